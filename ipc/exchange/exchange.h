/* Exchanges: which queues a message goes to, by its key or its properties; and queues that are
 * subscribed to an exchange by name.  It stands on queue and catalog. */

#ifndef SHMBROKER_EXCHANGE_ROOM_H
#define SHMBROKER_EXCHANGE_ROOM_H

#include "base/base.h"

/* --- exchange.c ------------------------------------------------------------------------------- */

/* Free it, and let go of the queues that it leads to. */
#define DELETED_TRIES 64 /* who deletes a queue each time that it is made is to end before */

int64_t exchange_close(sb_exchange *exchange);

/* Queues that a message goes to; they stay valid until route_leave. */
typedef struct kept_route {
    uint64_t hash, known_by; /* of its key, and of its queues */
    int64_t key_length, properties_length, count;
    _Atomic int64_t users; /* messages on their way, and 1 while it is kept */
    sb_queue **queues;
    int64_t *targets; /* of each: where it goes at the node that its queue leads to, 0: here */
    bool lacks;       /* a queue that was deleted while the route was searched */
    char bytes[]; /* key, then properties if the exchange looks at them */
} kept_route;
/* An exchange that routes what comes from another node: to queues here, and by its own bindings. */
int64_t exchange_open_here(sb_connection *connection, const char *name, sb_exchange **opened);
/* The same exchange for what an agent has brought; NULL: there is no memory. */
sb_exchange *exchange_of_agent(sb_exchange *exchange);
/* How many queues a message goes to, and which. */
int64_t exchange_route(sb_exchange *exchange, const sb_outgoing *message, kept_route **route);
/* The same of one with WISHES: if it is immediate, and no queue takes it now, agents get what
 * nobody takes. */
int64_t exchange_route_wished(sb_exchange *exchange, const sb_outgoing *message, int64_t wishes,
                              kept_route **route);
/* Whether such a message goes to this queue of its route: it leads elsewhere, or has a consumer. */
bool route_takes(const kept_route *route, int64_t each, int64_t wishes);
/* A copy of a message on its way to a queue of its route: what goes to an agent says what is
 * wished, and who is told when it is returned.  What it points to is freed by the caller. */
int64_t route_copy(const kept_route *route, int64_t each, const sb_outgoing *message,
                   int64_t wishes, sb_outgoing *copy, unsigned char **kept);
/* It leads to the queue that the key names. */
bool exchange_is_default(const sb_exchange *exchange);
/* The message was published: its route may change. */
void route_leave(kept_route *route);

/* --- receipts.c ------------------------------------------------------------------------------- */

int64_t receipts_room(sb_receipts *receipts, int64_t more);
/* A durable queue has the message: note where it can be confirmed.  There is room for it. */
void receipts_note(sb_receipts *receipts, sb_receipt where, int64_t code);

#endif
