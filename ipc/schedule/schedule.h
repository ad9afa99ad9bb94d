/* Schedules: messages that are to be delivered later wait in a ring beside their queue's, and the
 * schedule mover, a thread of each connection that has an interest in it, moves them when they are
 * due.  It stands on commit, as a move is a transaction. */

#ifndef SHMBROKER_SCHEDULE_ROOM_H
#define SHMBROKER_SCHEDULE_ROOM_H

#include "base/base.h"
#include "ring/ring.h"

/* --- schedule.c ------------------------------------------------------------------------------- */

/* What is to be known of a message in a schedule. */
typedef struct scheduled {
    int64_t id, time_of_day, not_before, expiry;
} scheduled;
/* The schedule of a queue, made if that is wanted; NULL, with SB_OK if it has none. */
sb_queue *schedule_of(sb_queue *queue, bool makes, int64_t *code);
/* A ring that was filled from the journal is the schedule of the queue of this reference. */
void schedule_restored(segment *ring, int64_t reference, int64_t last_id);
/* Whether it is to be delivered later. */
bool is_scheduled(const sb_outgoing *message);
/* When the message is due, in monotonic ns: 0 at once, or SB_INVALID. */
int64_t schedule_due(const sb_outgoing *message);
/* Publish it then: its id; and where it is. */
int64_t schedule_publish(sb_queue *queue, const sb_outgoing *message, int64_t due,
                         int64_t timeout_ns, sb_receipt *where);
/* Whether one more may be put into the schedule: SB_OK or SB_FULL. */
int64_t schedule_room(sb_queue *schedule, lane *in);
/* The code, with more words about it. */
int64_t schedule_explain(sb_queue *queue, int64_t code);
/* A chunk of this port for a message that is due then, by this port of the schedule. */
int64_t schedule_reserve(sb_queue *queue, sb_queue *schedule, sb_port *port,
                         const sb_outgoing *message, int64_t due, int64_t *id);
int64_t schedule_chunk(sb_queue *schedule, sb_port *port, const sb_outgoing *message,
                       const int64_t *extension, int64_t time_of_day, int64_t *id);
/* A chunk of this port with all of a message but its body, and with this body. */
int64_t schedule_copy(sb_port *port, const sb_message *from, const void *body, int64_t length);
/* Note in a chunk of this port how often its message was delivered. */
void schedule_deliveries(sb_port *port, int64_t chunk, int64_t deliveries);
/* What is READY at a position of a schedule: false if there is nothing. */
bool schedule_read(sb_queue *schedule, sb_port *port, int64_t position, sb_message *message,
                   scheduled *read);
/* Take it, for a short while: whether it was still there. */
bool schedule_take(sb_port *port, sb_message *message);
/* How many are scheduled. */
int64_t schedule_count(sb_queue *queue);
/* The same for who has the connection's mutex. */
bool schedule_is_empty(sb_queue *queue);
/* Drop them: how many. */
int64_t schedule_purge(sb_queue *queue);

/* --- mover.c ---------------------------------------------------------------------------------- */

#define LEASE_MS INT64_C(1000) /* of a message that is being moved */
/* This connection sees to it that what is scheduled for the queue is moved.  `serves`: nobody else
 * may be there. */
void mover_attend(sb_queue *queue, bool serves);
/* The same, if the queue has a schedule and we did not know. */
static inline void mover_look(sb_queue *queue);
/* For all schedules of the vhost. */
void mover_repair(sb_connection *connection);
/* The thread ends, and others may take its place.  `closed` is set. */
void mover_end(sb_connection *connection);
static inline void mover_look(sb_queue *queue)
{
    if (word_load(queue->ring.memory, L_RING_SCHEDULE_AT) && !atomic_load(&queue->attended))
        mover_attend(queue, false);
}

#endif
