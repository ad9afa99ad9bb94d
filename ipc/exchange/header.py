"""Exchanges and subscriptions by name in the C interface."""

from __future__ import annotations

EXCHANGES = """\
/* --- exchanges --- */

/* kind: 0 direct, 1 topic, 2 fanout, 3 headers.  alternate: the exchange that gets what no binding
 * took, or NULL.  SB_OK, also if it exists and is the same; SB_DIFFERENT. */
int64_t sb_declare_exchange(sb_connection *connection, const char *name, int64_t kind,
                            const char *alternate);
/* The same; replicate: SB_REPLICATE_ALL, ...; SB_REPLICATE_NONE + 1: as its broker has it. */
int64_t sb_declare_exchange_with(sb_connection *connection, const char *name, int64_t kind,
                                 const char *alternate, int64_t replicate);
/* SB_OK; SB_IN_USE if something is bound to it, unless forced. */
int64_t sb_delete_exchange(sb_connection *connection, const char *name, int64_t force);

/* A binding of a queue, or of another exchange, to an exchange. */
struct sb_binding {
    const char *exchange;
    const char *destination;
    int64_t to_exchange;
    int64_t match_any; /* of the arguments, which an exchange of kind headers looks at */
    const void *key;
    int64_t key_length;
    const void *arguments; /* a MessagePack map */
    int64_t arguments_length;
    int64_t exclusive; /* 1: what it takes goes to no other binding of its exchange */
};
/* SB_OK, also if it is there; SB_NOT_FOUND. */
int64_t sb_bind(sb_connection *connection, const sb_binding *binding);
int64_t sb_unbind(sb_connection *connection, const sb_binding *binding);
/* SB_OK; SB_NOT_FOUND.  "" is the default exchange: the key is a queue's name. */
int64_t sb_open_exchange(sb_connection *connection, const char *name, sb_exchange **exchange);
const char *sb_exchange_name(sb_exchange *exchange);
int64_t sb_exchange_kind(sb_exchange *exchange);

/* For the target of a message that is published through an exchange: it is returned if no queue
 * takes it, or none with a consumer, also where an agent sends it (docs/agents.md). */
#define SB_IMMEDIATE 0x2000
#define SB_MANDATORY 0x4000
/* What agents return to this connection goes to this queue from now on. */
int64_t sb_returns_to(sb_connection *connection, sb_queue *queue);

/* How many queues the message went to.  *done counts them, and is 0 at first: after a code less
 * than 0, the same call with the same *done goes on behind those that have it already. */
int64_t sb_exchange_publish(sb_exchange *exchange, const sb_outgoing *message, int64_t timeout_ns,
                            int64_t *done);
/* How many queues of its route are dealt with, and by what this route is told from others.  Zeros
 * at first. */
struct sb_progress {
    int64_t done;
    uint64_t route; /* 0: whichever it is */
    int64_t passed; /* of those, as SB_IMMEDIATE wants it, so many do not have the message */
};
/* The same, and SB_DIFFERENT, with nothing done, if the route is another one since: count anew how
 * many of its queues have the message.  receipts: as sb_exchange_publish_receipts, or NULL. */
int64_t sb_exchange_go_on(sb_exchange *exchange, const sb_outgoing *message, int64_t timeout_ns,
                          sb_progress *progress, sb_receipts *receipts);
/* The same with each part as an argument: for other languages' bindings. */
int64_t sb_exchange_publish_with(sb_exchange *exchange, const void *body, int64_t length,
                                 const void *key, int64_t key_length, const void *properties,
                                 int64_t properties_length, int64_t ttl_ns, int64_t priority,
                                 const void *id, int64_t id_length, int64_t timeout_ns,
                                 sb_progress *progress);
/* The route that a message has now: SB_OK, or why there is none. */
int64_t sb_exchange_route(sb_exchange *exchange, const void *key, int64_t key_length,
                          const void *properties, int64_t properties_length, uint64_t *route);
/* After SB_FULL: the queue that had no room, opened; NULL if the bindings have changed since. */
int64_t sb_exchange_full(sb_exchange *exchange, const void *key, int64_t key_length,
                         const void *properties, int64_t properties_length, int64_t done,
                         sb_queue **queue);

/* Where a message is in each durable queue that it went to. */
struct sb_receipts {
    sb_receipt *entries;
    int64_t count, room;
};
/* As sb_exchange_publish, and notes behind what the receipts have, which are zeros at first, where
 * the message is. */
int64_t sb_exchange_publish_receipts(sb_exchange *exchange, const sb_outgoing *message,
                                     int64_t timeout_ns, int64_t *done, sb_receipts *receipts);
/* Wait until all of that is confirmed at a level, as sb_confirm does: SB_OK; SB_UNCONFIRMED if not
 * in time: ask again. */
int64_t sb_receipts_confirm(const sb_receipts *receipts, int64_t level, int64_t timeout_ns);
void sb_receipts_free(sb_receipts *receipts);
"""

SUBSCRIPTIONS = """\
/* --- subscriptions by name --- */

/* What a subscription is: another consumer gets it by the same name only if it is the same. */
struct sb_subscription {
    const char *name;
    const char *exchange;
    const void *key;
    int64_t key_length;
    int64_t durable; /* 0: it vanishes with its last consumer */
    int64_t shared;  /* 0: one participant consumes it at a time, others get SB_TAKEN */
    int64_t slots;
    const sb_settings *settings;
};
/* Its queue, sub.NAME, bound to the exchange: made, or as it is.  SB_OK; SB_DIFFERENT; SB_TAKEN. */
int64_t sb_subscription_open(sb_connection *connection, const sb_subscription *subscription,
                             sb_queue **queue);
/* This participant consumes it no more: another may, or it vanishes if it is not durable. */
int64_t sb_subscription_close(sb_connection *connection, const char *name);
/* SB_OK; SB_IN_USE if it has a consumer, unless forced. */
int64_t sb_subscription_delete(sb_connection *connection, const char *name, int64_t force);
"""
