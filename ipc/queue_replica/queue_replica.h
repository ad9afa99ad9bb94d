/* Replicas of single queues: how an original is read without holding it up (original.c), how a
 * queue becomes a replica and ceases to be one (declare.c), and how its applier brings it to where
 * the original was at a moment (copy.c, showing.c, core/replica.py).
 *
 * What goes from the one to the other are records with heads as the journal's: messages, and of
 * each queue how it stands.  The room stands on catalog, commit, follower, ring, journal's
 * format, vhost and base. */

#ifndef SHMBROKER_QUEUE_REPLICA_ROOM_H
#define SHMBROKER_QUEUE_REPLICA_ROOM_H

#include "base/base.h"

/* A record's kind: how a queue stands.  Its position is the head; its body a word, the position
 * below which all is known; then a bit for each position from head on that is done with. */
#define RECORD_STANDS 64

/* A moment that somebody was killed in is shown as a whole: before the journal of the vhost is
 * written again. */
int64_t moments_finish(sb_connection *connection);

#endif
