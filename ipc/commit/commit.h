/* Commit records, and the gate through which commits reach the journal. */

#ifndef SHMBROKER_COMMIT_ROOM_H
#define SHMBROKER_COMMIT_ROOM_H

#include "base/base.h"
#include "ring/ring.h"

/* --- settlement.c ----------------------------------------------------------------------------- */


/* What a transaction does, in memory of our own until it is committed. */
typedef struct operation {
    sb_queue *queue;
    struct lane *lane; /* of a publish, else NULL */
    int64_t where;     /* the chunk's offset, or the message's position */
    int64_t word;      /* the chunk's origin, or our LEASED word */
    int64_t lease;     /* what was there before it was pledged, or SB_REVOKED */
} operation;
/* Commit these: SB_OK, SB_UNFINISHED, or a code after which nothing has happened; with SB_FULL the
 * queue that is.  Our settle mutex is held. */
int64_t record_commit(sb_connection *connection, operation *operations, int64_t count,
                      sb_queue **full);
/* Let all of what this participant has committed happen: SB_OK, or SB_UNFINISHED while a queue has
 * no room.  If it is another's, it is dead, and its byte is locked by us. */
int64_t record_settle(sb_connection *connection, int64_t id);
/* Commit these, and see them happen: the chunks are messages then, and their lanes may be left.  With
 * SB_UNFINISHED (the connection is being closed) their lanes are lent, for whoever does the rest. */
int64_t settle(sb_connection *connection, operation *operations, int64_t count);

/* --- door.c ----------------------------------------------------------------------------------- */

/* Before it is decided: its number among those on durable queues. */
int64_t door_enter(sb_connection *connection, void *record);
/* After all of it has happened: the number to wait for. */
int64_t door_passed(sb_connection *connection, int64_t stamp);
/* Until those up to this number are on disk. */
int64_t door_await(sb_connection *connection, int64_t stamp, int64_t timeout_ns);

typedef struct door {
    sb_connection *connection;
    bool is_closed;
    int64_t excused[L_PARTICIPANTS]; /* 1 + the number with which one was inside for too long */
} door;
/* A message of a durable queue was copied to another one, and is not let go of yet: the journaler
 * does not write the one without the other. */
void door_copied(sb_connection *connection);
/* How many were ever begun. */
int64_t door_begun(sb_connection *connection);
/* And how many are on disk. */
int64_t door_whole(sb_connection *connection);
/* Wait until nobody is inside, with the door closed if need be. */
void door_clear(door *at);
void door_close(door *at);
void door_open(door *at);
/* So many are on disk. */
void door_journaled(door *at, int64_t begun);

#endif
