/* Queues: what a program does with one - publish, take, acknowledge, lend, subscribe, browse, move
 * - and what becomes of messages that are not to be delivered any more.  It stands on schedule,
 * paging and ring. */

#ifndef SHMBROKER_QUEUE_ROOM_H
#define SHMBROKER_QUEUE_ROOM_H

#include "base/base.h"

/* --- dead_letter.c ---------------------------------------------------------------------------- */

typedef enum death { ALIVE, EXPIRED, REJECTED, SPENT } death;
/* A message that is ours, and was delivered so often, goes where the dead of this queue go: SB_OK,
 * SB_REVOKED if it was no longer ours, or SB_FULL, and it is still ours. */
int64_t dead_letter(sb_queue *queue, sb_port *port, sb_message *message, death reason,
                    int64_t deliveries);
/* One that is still ours after SB_FULL is passed over from now on, and tried again later: SB_OK, or
 * SB_REVOKED.  `was_delivered`: this was a delivery, and counts. */
int64_t dead_aside(sb_queue *queue, sb_port *port, sb_message *message, bool was_delivered);
/* Why a message is not to be delivered; ALIVE if it is.  *deliveries: as they are to be noted. */
death death_of(const sb_queue *queue, const sb_message *message, int64_t *deliveries);
/* This thread is dead-lettering: it does not dead-letter messages of the queue that it publishes
 * to. */
bool dead_lettering(void);

/* --- expiry.c --------------------------------------------------------------------------------- */

/* Take what is expired or was set aside, and dead-letter it: how many. */
int64_t queue_expire(sb_queue *queue, sb_port *port);

/* --- delay.c ---------------------------------------------------------------------------------- */

/* A message of ours that was delivered so often comes back after the delay of the queue's settings:
 * SB_OK, and it is no longer ours.  SB_REVOKED: it was not; any other code: it still is. */
int64_t delay_redelivery(sb_queue *queue, sb_port *port, sb_message *message, int64_t deliveries);

/* --- acknowledge.c ---------------------------------------------------------------------------- */

typedef int64_t (*verdict_kernel)(sb_port *port, sb_message *message);
/* By this kernel a message of ours is for others again; who looks for what is expired has passed
 * over it meanwhile, and is told when it expires. */
int64_t message_put_back(sb_port *port, sb_message *message, verdict_kernel kernel);

/* --- take.c ----------------------------------------------------------------------------------- */

/* SB_EMPTY, or why there is never anything to take. */
int64_t nothing_taken(const sb_queue *queue);
/* The same, for who has looked in vain: it may be the only one who is there for what is scheduled,
 * or set aside. */
int64_t found_nothing(sb_queue *queue, sb_port *port);

/* --- statistics.c ----------------------------------------------------------------------------- */

/* What is scheduled included; the connection's mutex is held. */
bool queue_is_empty(sb_queue *queue);

/* --- publish.c -------------------------------------------------------------------------------- */

/* publish_receipt, or where it is the message's turn: balanced.c. */
int64_t publish_in_turn(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns,
                        sb_receipt *where);
/* sb_publish_receipt of a message that was checked. */
int64_t publish_receipt(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns,
                        sb_receipt *where);

/* --- balanced.c ------------------------------------------------------------------------------- */

/* Whether its messages may go to other nodes; while it is looked at. */
bool has_turns(const sb_queue *queue);
/* Publish where it is the message's turn, if that is another node: the answer, with the number of
 * the ring that has it.  SB_UNDECIDED: it stays in this queue. */
int64_t balanced_publish(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns,
                         sb_receipt *where);
/* Of a queue that has a set: how many, or why there are none. */
int64_t balanced_publish_many(sb_queue *queue, const char *bodies, const int64_t *lengths,
                              int64_t count, int64_t timeout_ns);
/* The same as `known` of all that this connection has published towards other nodes. */
int64_t balanced_confirm_all(sb_connection *connection, int64_t known, int64_t level,
                             int64_t timeout_ns);

/* --- grouped.c -------------------------------------------------------------------------------- */

/* Whether this message is of a group that goes to another node, which may have to be asked for:
 * SB_OK, with the queue towards it and its number; SB_UNDECIDED: it stays in this queue;
 * SB_GROUPING_TIMEOUT. */
int64_t grouped_way(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns,
                    sb_queue **way, int64_t *number);
/* SB_OK if groups are of this queue alone, or the message has none; SB_INVALID: it may be one of
 * another node, and whoever publishes cannot wait for that. */
int64_t grouped_stays(sb_queue *queue, const sb_outgoing *message);
/* Publish it there; the answers of both. */
int64_t grouped_publish(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns,
                        sb_receipt *where);

/* --- inherited.c ------------------------------------------------------------------------------ */

/* Whether a message with this id was published in this queue of a node that has left. */
bool inherited_has(sb_queue *queue, const void *id, int64_t length);
/* The last number that a producer of this name has published there; 0: none. */
int64_t inherited_number(sb_queue *queue, const void *name, int64_t length);

#endif
