/* Connections: a program takes part in a vhost, and stops doing so.  It stands on all rooms that a
 * client has, and tells those below what they may ask of those above them (duties.c). */

#ifndef SHMBROKER_CONNECTION_ROOM_H
#define SHMBROKER_CONNECTION_ROOM_H

#include "vhost/vhost.h"

/* --- duties.c --------------------------------------------------------------------------------- */

extern const duties all_duties;

#endif
