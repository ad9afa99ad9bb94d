/* A connection of a program to a vhost. */

#ifndef SHMBROKER_CONNECTION_ROOM_H
#define SHMBROKER_CONNECTION_ROOM_H

#include "vhost/vhost.h"

/* --- duties.c --------------------------------------------------------------------------------- */

extern const duties all_duties;

#endif
