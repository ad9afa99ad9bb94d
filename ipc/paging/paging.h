/* Paging: a queue that is full goes on in files.  A second ring takes what is published, the pager
 * moves it into page files and from there into the queue's ring, and order is kept.  It stands on
 * catalog and ring, and its records are like the journal's. */

#ifndef SHMBROKER_PAGING_ROOM_H
#define SHMBROKER_PAGING_ROOM_H

#include "base/base.h"

/* --- inbox.c ---------------------------------------------------------------------------------- */

/* The ring of an inbox is restored, as is that of its queue: with these references they are one. */
void inbox_restored(void *inbox, int64_t reference, char *name, void *ring, int64_t of);
/* The inbox of a queue that pages, made if that is wanted; NULL, with SB_OK if it has none. */
sb_queue *inbox_of(sb_queue *queue, bool makes, int64_t *code);
/* If it is one in the inbox: the inbox, and the position there. */
sb_queue *inbox_of_position(sb_queue *queue, int64_t *position);
/* What is published now goes to the inbox. */
bool is_paging(sb_queue *queue);
/* If this ring is an inbox: something was published in it. */
void inbox_noted(sb_queue *ring);
/* Somebody found nothing to take: if it pages, the pager may be asleep. */
void inbox_look(sb_queue *queue);
/* Up to which position of the inbox all was put into the queue's ring, by a port of that. */
int64_t inbox_passed(sb_queue *inbox, sb_port *of);
/* How many messages of a queue are not in its ring yet, by a port of its inbox. */
int64_t inbox_count(sb_port *inbox, int64_t passed);
/* For who has the connection's mutex. */
bool inbox_is_empty(sb_queue *queue);
/* Whether such a message may be published in a queue that pages. */
int64_t inbox_admits(const sb_queue *queue, const sb_outgoing *message);
/* Why there is no room in it. */
int64_t inbox_explain(sb_queue *inbox);
/* Publish to a queue that pages, where it is the message's turn. */
int64_t inbox_publish(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns);
int64_t inbox_publish_many(sb_queue *queue, const void *bodies, const int64_t *lengths,
                           int64_t count, int64_t timeout_ns);
/* Drop what is in inbox and pages: how many. */
int64_t inbox_purge(sb_queue *queue);

/* --- pager.c ---------------------------------------------------------------------------------- */

/* There is something to do for whoever pages, with this inbox. */
void pager_ring(const sb_queue *inbox);
/* Ours ends, if we have one.  `closed` is set, and nothing is held that its thread waits for. */
void pager_end(sb_connection *connection);

/* --- explain.c -------------------------------------------------------------------------------- */

/* The code, with more words about it. */
int64_t explained(sb_queue *queue, int64_t code);
/* The same of a commit, which does not count bytes. */
int64_t explained_commit(sb_queue *queue, int64_t code);

#endif
