/* Repair: what participants that died have left is put right, by whoever finds it; and what is
 * overdue is done - queues out of use are deleted, slow consumers told of.  It stands on all that
 * it repairs, up to request. */

#ifndef SHMBROKER_REPAIR_ROOM_H
#define SHMBROKER_REPAIR_ROOM_H

#include "base/base.h"

/* --- catalog.c -------------------------------------------------------------------------------- */

/* Remove what is left of changes that a death cut short; under the catalog's lock. */
void catalog_repair(sb_connection *connection);

/* --- join.c ----------------------------------------------------------------------------------- */

/* Take an id, for a participant of this name; `repairs`: it repairs for all. */
int64_t participant_join(sb_connection *connection, const char *name, bool repairs);
/* Give back what we hold, and the id. */
void participant_leave(sb_connection *connection);

/* --- auto_delete.c ---------------------------------------------------------------------------- */

/* Delete what is out of use, of so many queues (0: of all); or of some, in turns. */
void auto_delete(sb_connection *connection, int64_t looks);
void auto_delete_some(sb_connection *connection);

/* --- slow_consumer.c -------------------------------------------------------------------------- */

/* Look who is slow, and do what the queue's settings say. */
void slow_look(sb_queue *queue, sb_port *port);

/* --- expelled.c ------------------------------------------------------------------------------- */

/* A slow consumer is to leave, and what it has in hand of this queue goes to others. */
void expel_slow(sb_queue *queue, sb_port *port, int64_t id, int64_t head, int64_t tail);
/* If we are to leave: from now on every call answers SB_SLOW, or SB_DISCONNECTED. */
void expelled_find_out(sb_connection *connection);

/* --- queue.c ---------------------------------------------------------------------------------- */

/* Repair what the dead one has left: the ring, and unless it still publishes, its blocks. */
int64_t queue_repair(sb_queue *queue, int64_t dead, bool publishes);
/* Whether there is something to do in a queue that nobody may be using, without mapping it. */
bool queue_needs_repair(sb_connection *connection, int64_t reference);
/* What a waiter does when it has slept for long: put right what the dead left in this ring, take
 * out what is expired, look who is slow. */
void queue_repair_alone(sb_queue *queue, sb_port *port);
/* The same, and what dead participants have left anywhere. */
void queue_repair_between_sleeps(sb_queue *queue, sb_port *port);

/* --- waits.c ---------------------------------------------------------------------------------- */

/* What is done between two sleeps for the queues that are waited for. */
void rings_repair(const sb_wait *waits, int64_t count);

/* --- participant.c ---------------------------------------------------------------------------- */

/* Repair what the owner of this id has left.  Its byte is locked by us. */
int64_t repair_owner(sb_connection *connection, int64_t dead);
/* What it left is repaired: its id is free, and people can read what happened. */
void note_death(sb_connection *connection, int64_t id);

#endif
