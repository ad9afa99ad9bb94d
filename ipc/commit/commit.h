/* Commits: several acknowledgements and publishes that happen together or not at all, also if the
 * one who commits dies, and the gate by which the journaler finds a moment between them.  It stands
 * on paging, catalog and ring. */

#ifndef SHMBROKER_COMMIT_ROOM_H
#define SHMBROKER_COMMIT_ROOM_H

#include "base/base.h"

/* --- record.c --------------------------------------------------------------------------------- */

/* What a transaction does, in memory of our own until it is committed. */
typedef struct operation {
    sb_queue *queue;
    struct lane *lane; /* of a publish, else NULL */
    int64_t where;     /* the chunk's offset, or the message's position */
    int64_t word;      /* our LEASED word */
    sb_queue *promised; /* that it will publish to, and is kept until then; or NULL */
} operation;
/* Commit these: SB_OK, SB_UNFINISHED, or a code after which nothing has happened; with SB_FULL the
 * queue that is, NULL: it is not for want of room in one.  Our commit mutex is held. */
int64_t record_commit(sb_connection *connection, operation *operations, int64_t count,
                      sb_queue **full);
/* What this one has committed is about to happen: it may have died before that was counted. */
void record_count(sb_connection *connection, int64_t dead);
/* Let all of what this participant has committed happen: SB_OK, or SB_UNFINISHED while a queue has
 * no room.  If it is another's, it is dead, and its byte is locked by us. */
int64_t record_finish(sb_connection *connection, int64_t id);
/* Let what another participant has committed happen, while it may go on with it: SB_OK,
 * SB_UNFINISHED while a queue has no room, or why it cannot be done.  *serial: which it was, 0:
 * nothing is committed.  `wanted`: only if it is this one, 0: whichever it is. */
int64_t record_help(sb_connection *connection, int64_t id, int64_t wanted, int64_t *serial);
/* The same of what was decided before the vhost was restored: whether there is room or not. */
int64_t record_restored(sb_connection *connection, operation *operations, int64_t count);
/* Its record, in shared memory. */
char *record_of(sb_connection *connection, int64_t id);
/* Commit these, and see them happen: the chunks are messages then, and their lanes may be left.
 * With SB_UNFINISHED (the connection is being closed) their lanes are lent, for whoever does the
 * rest. */
int64_t commit_at_once(sb_connection *connection, operation *operations, int64_t count);
/* The same, and it waits for no room.  With SB_UNFINISHED it is decided, and the connection has
 * their lanes until it has happened. */
int64_t commit_and_leave(sb_connection *connection, operation *operations, int64_t count);

/* --- left.c ----------------------------------------------------------------------------------- */

/* The operation behind these needs the lane no more; perhaps one of these does. */
void operations_return(const operation *operations, int64_t count, struct lane *in);
/* It is over: its handles are closed, and its queue may be deleted if nobody uses it. */
void operation_close(const operation *over);
/* They have happened: others may use their lanes, and they are closed. */
void operations_end(const operation *operations, int64_t count);
/* Nobody waits for these any more, which are of this commit, and counted as a transaction that is
 * open: the connection has them, in memory to be freed.  Our commit mutex is held. */
void operations_leave(sb_connection *connection, operation *operations, int64_t count,
                      int64_t serial);
/* All that is committed has happened: end those that were left.  Our commit mutex is held. */
void left_operations_end(sb_connection *connection);

/* --- gate.c ----------------------------------------------------------------------------------- */

/* After all of it has happened: the number to wait for.  Our commit mutex is held. */
int64_t commit_gate_passed(sb_connection *connection, int64_t stamp);
/* The level that they have. */
int64_t commit_gate_level(sb_connection *connection, int64_t stamp);

/* --- moment.c --------------------------------------------------------------------------------- */

/* duties.at_a_moment */
int64_t commit_moment(sb_connection *connection, int64_t (*see)(void *), void *context);

/* --- gate.c, of all transactions -------------------------------------------------------------- */

/* Whether one is half way. */
bool commit_is_under_way(sb_connection *connection);

/* --- gate.c, for the journaler ---------------------------------------------------------------- */

typedef struct commit_gate {
    sb_connection *connection;
    bool is_closed;
    void (*meanwhile)(void *context); /* while it waits for who is inside; or NULL */
    void *context;
    int64_t helped[L_PARTICIPANTS]; /* the serial of one that has happened, but for want of room */
} commit_gate;
/* A message of a durable queue was copied to another one, and is not let go of yet: the journaler
 * does not write the one without the other. */
void commit_gate_copied(sb_connection *connection);
/* How many were ever begun. */
int64_t commit_gate_begun(sb_connection *connection);
/* And how many are on disk. */
int64_t commit_gate_whole(sb_connection *connection);
/* And how many had the effective level; it never falls. */
int64_t commit_gate_confirmed(sb_connection *connection);
/* Wait until nobody is inside, with the commit gate closed if need be; help who stands still. */
void commit_gate_clear(commit_gate *at);
/* Let nobody in; and let them in again. */
void commit_gate_close(commit_gate *at);
void commit_gate_open(commit_gate *at);
/* So many are on disk, and with all replicas, -1: there is none. */
void commit_gate_journaled(commit_gate *at, int64_t durable, int64_t replicated);

#endif
