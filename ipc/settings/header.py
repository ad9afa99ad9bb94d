"""Settings of queues in the C interface."""

from __future__ import annotations

from shmbroker.core import layout

PUBLIC = f"""\
/* --- settings --- */

/* How a queue treats its messages.  All zero: as sb_declare_queue makes it.  Times in ns. */
struct sb_settings {{
    int64_t max_deliveries; /* 1 to 14, 0 for {layout.MAX_DELIVERIES}, or SB_UNLIMITED */
    int64_t ttl_ns;         /* of a message that names none; 0: it lives for ever */
    int64_t ttl_min_ns, ttl_max_ns;
    int64_t max_messages;   /* not acknowledged; 0: as many as there are slots */
    int64_t max_bytes;      /* of what is not acknowledged; 0: as much as there is */
    int64_t when_full;      /* SB_BLOCK, SB_FAIL, SB_DROP_OLDEST or SB_PAGE */
    int64_t priorities;     /* levels that go before each other, up to {layout.LEVELS}; 0: none */
    int64_t groups;         /* buckets for message groups, up to {layout.BUCKETS}; 0: none */
    int64_t rebalance;      /* 1: groups are bound anew whenever a consumer joins */
    int64_t single_active;  /* 1: one consumer at a time gets messages */
    int64_t last_value;     /* 1: of the messages of a key only the newest stays */
    int64_t non_destructive; /* 1: nothing is taken, consumers look (sb_subscribe) */
    int64_t max_producer_bytes; /* of the arena, of one participant; 0: as much as there is */
    int64_t slow_consumer_ns; /* a consumer is slow that takes longer for a message; 0: none is */
    int64_t slow_consumer_policy; /* SB_NOTIFY or SB_DISCONNECT */
    int64_t auto_delete;    /* 1: gone when it is empty and was not used for the delay */
    int64_t auto_delete_delay_ns;
    int64_t duplicate_ids;  /* ids remembered; 0: {layout.DUPLICATE_IDS}, or none if set */
    int64_t auto_create;    /* of a pattern: sb_open_queue makes queues that match it */
    int64_t durable;        /* 1: messages are taken when they are on disk: sb_confirm */
    int64_t redelivery_delay_ns;     /* what comes back is delivered again after so long */
    int64_t redelivery_multiplier;   /* each time so many times as long, in millionths; 0: 1 */
    int64_t max_redelivery_delay_ns; /* 0: no such limit */
    int64_t max_scheduled;           /* 0 for {layout.MAX_SCHEDULED} */
    const char *dead_letter;  /* a queue for what cannot be delivered; made if there is none */
    const char *expiry_queue; /* and for what is expired; NULL: it is dropped and counted */
    const void *given;        /* for people: what was asked for, as a MessagePack map */
    int64_t given_length;
    int64_t set; /* bits SB_SET_*: given though it is 0; what is not 0 is given anyway */
}};

/* Settings of queues that are declared from now on and whose names match the pattern (words
 * between dots, * is one word, # any number), as far as their declaration does not give them.  The
 * most specific pattern wins.  Once more for the same pattern: instead of what it had.  SB_OK. */
int64_t sb_settings_put(sb_connection *connection, const char *pattern,
                        const sb_settings *settings);
/* SB_OK; SB_NOT_FOUND. */
int64_t sb_settings_remove(sb_connection *connection, const char *pattern);
/* What was given when the queue was declared, a MessagePack map: its length. */
int64_t sb_settings_given(sb_queue *queue, void *buffer, int64_t capacity);
/* One setting of a queue: SB_BLOCK, ...; 1 or 0; 1 or 0. */
int64_t sb_when_full(sb_queue *queue);
int64_t sb_is_non_destructive(sb_queue *queue);
int64_t sb_is_durable(sb_queue *queue);
"""


def enumerators() -> list[str]:
    """What settings are set to, and the bits of sb_settings.set."""
    numbers = {"UNLIMITED": -1, "BLOCK": layout.BLOCK, "FAIL": layout.FAIL}
    numbers |= {"DROP_OLDEST": layout.DROP_OLDEST, "PAGE": layout.PAGE}
    numbers |= {"NOTIFY": layout.NOTIFY, "DISCONNECT": layout.DISCONNECT}
    numbers |= {f"SET_{name.upper()}": 1 << bit for bit, name in enumerate(layout.SETTING_NAMES)}
    return [f"    SB_{name} = {value}," for name, value in numbers.items()]
