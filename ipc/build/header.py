"""shmbroker.h: the C interface, written from the kernels themselves.

Every exported kernel becomes a prototype with its docstring as comment; codes and layout become
enumerators.  A parameter's C type follows from its name, which is the same everywhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from shmbroker.core import codes, layout
from shmbroker.core.kernel import Kernel
from shmbroker.ipc.broker.journaler_header import JOURNALER
from shmbroker.ipc.build.kernels import KERNELS
from shmbroker.ipc.journal.header import JOURNAL, journal_enumerators
from shmbroker.ipc.paging.header import PAGER
from shmbroker.ipc.selector import opcodes

PARAMETER_TYPES = {
    "port": "sb_port *",
    "message": "sb_message *",
    "messages": "sb_message *",
    "cursor": "sb_cursor *",
    "body": "const void *",
    "outgoing": "const sb_outgoing *",
    "extension": "const int64_t *",
    "once": "const int64_t *",
    "bodies": "const void *",
    "buffer": "void *",
    "lengths": "const int64_t *",
    "positions": "const int64_t *",
    "ends": "int64_t *",
    "alive": "const uint64_t *",
    "bell": "int64_t *",
    "ring": "void *",
    "arena": "void *",
    "catalog": "void *",
    "histograms": "void *",
    "recording": "int64_t *",
    "spinning": "int64_t *",
    "counts": "int64_t *",
    "sums": "int64_t *",
    "before": "const int64_t *",
    "indexes": "int64_t *",
    "name": "const void *",
    "key": "const void *",
    "pattern": "const void *",
    "properties": "const void *",
    "arguments": "const void *",
    "visited": "uint64_t *",
    "found": "int64_t *",
}
RESULT_TYPES = {"loan_body": "void *", "received": "sb_message *", "arena_data": "void *"}

STRUCTURES = f"""\
/* One thread's view of one ring.  Private: do not look inside. */
typedef struct sb_port {{
    int64_t opaque[{layout.PORT_FILE // 8}];
    int64_t file;
    int64_t more[{(layout.PORT_BYTES - layout.PORT_FILE - 8) // 8}];
}} sb_port;

/* What a take tells.  `body` is valid until the message is acknowledged or given back. */
typedef struct sb_message {{
    int64_t position;
    int64_t word;
    const void *body;
    int64_t length;
    const void *chunk;
    int64_t shape;
    int64_t mark;
    int64_t offset;
}} sb_message;

/* A subscriber's place. */
typedef struct sb_cursor {{
    sb_port *port;
    int64_t position;
    int64_t gate;
    int64_t missed;
}} sb_cursor;

/* A ring and its arena, attached to this process. */
typedef struct sb_ring sb_ring;

/* This process as a participant of a vhost; a queue and an exchange of it.  All its threads may use
 * them. */
typedef struct sb_connection sb_connection;
typedef struct sb_queue sb_queue;
typedef struct sb_exchange sb_exchange;

/* Where a message is that was published, of a durable queue or of its schedule. */
typedef struct sb_receipt {{
    sb_queue *queue;
    int64_t position;
}} sb_receipt;

typedef struct sb_receipts {{
    sb_receipt *entries;
    int64_t count, room;
}} sb_receipts;


/* Publishes and acknowledgements that happen together or not at all.  Of one thread at a time. */
typedef struct sb_transaction sb_transaction;

/* A message to publish. */
typedef struct sb_outgoing {{
    const void *body;
    int64_t length;
    const void *key;
    int64_t key_length;
    const void *properties; /* a MessagePack map with text keys, or nothing */
    int64_t properties_length;
    int64_t ttl_ns;   /* how long it may be delivered; 0: as the queue's settings say */
    int64_t priority; /* SB_PRIORITY(0) to SB_PRIORITY(9); 0: the default, which is 4 */
    const void *id;    /* of several messages with the same id, one counts: SB_DUPLICATE */
    int64_t id_length; /* 1 to 255 bytes, 0: it has none; below 0: so many that are no text */
    int64_t producer;  /* of sb_producer_open, 0 none; then instead of an id */
    int64_t sequence;  /* its number: higher than those before, or it is SB_DUPLICATE */
    int64_t delay_ns;      /* not to be delivered before; then publishing answers with an id */
    int64_t deliver_at_ns; /* or not before this time of day, in ns since the epoch */
}} sb_outgoing;

/* How a queue treats its messages.  All zero: as sb_declare_queue makes it.  Times in ns. */
typedef struct sb_settings {{
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
    int64_t durable;        /* 1: messages are taken when they are in the journal, see there */
    int64_t redelivery_delay_ns;     /* what comes back is delivered again after so long */
    int64_t redelivery_multiplier;   /* each time so many times as long, in millionths; 0: 1 */
    int64_t max_redelivery_delay_ns; /* 0: no such limit */
    int64_t max_scheduled;           /* 0 for {layout.MAX_SCHEDULED} */
    const char *dead_letter;  /* a queue for what cannot be delivered; made if there is none */
    const char *expiry_queue; /* and for what is expired; NULL: it is dropped and counted */
    const void *given;        /* for people: what was asked for, as a MessagePack map */
    int64_t given_length;
    int64_t set; /* bits SB_SET_*: given though it is 0; what is not 0 is given anyway */
}} sb_settings;

/* What a selector looks at. */
typedef struct sb_subject {{
    const void *key;
    int64_t key_length;
    const void *properties; /* a MessagePack map with text keys, or nothing */
    int64_t properties_length;
    int64_t body_length;
    int64_t published_ns; /* since the epoch, 0: unknown */
    int64_t expiry_ns;    /* since the epoch, 0: never */
    int64_t priority;
    int64_t deliveries;   /* before this one */
}} sb_subject;

/* What somebody selects from a queue; zero but for the program, which sb_selector_check accepts. */
typedef struct sb_selection {{
    const void *program;
    int64_t bytes;
    int64_t position;  /* nothing below matches, */
    int64_t returned;  /* while so many messages have come back, */
    int64_t looked_ns; /* since it was last looked at from the first one on */
}} sb_selection;

/* Where received messages are copied to. */
typedef struct sb_room {{
    sb_message *messages; /* as many as are received at once */
    void *buffer;
    int64_t capacity;
    int64_t *ends; /* one more than messages: see sb_port_receive_many */
}} sb_room;

/* Memory in the arena, to be filled and published in place. */
typedef struct sb_loan {{
    void *lane;
    void *body;
    int64_t length;
    int64_t chunk;
}} sb_loan;

/* A binding of a queue, or of another exchange, to an exchange. */
typedef struct sb_binding {{
    const char *exchange;
    const char *destination;
    int64_t to_exchange;
    int64_t match_any; /* of the arguments, which an exchange of kind headers looks at */
    const void *key;
    int64_t key_length;
    const void *arguments; /* a MessagePack map */
    int64_t arguments_length;
    int64_t exclusive; /* 1: what it takes goes to no other binding of its exchange */
}} sb_binding;

/* A request that is on its way, or was answered: `reply` was taken from `replies`. */
typedef struct sb_asked {{
    void *requester;
    sb_queue *replies;
    int64_t number;
    sb_message reply;
    const void *properties; /* of the reply */
    int64_t properties_length;
}} sb_asked;

/* What a subscription by name is: others get it by the same name only if it is the same. */
typedef struct sb_subscription {{
    const char *name;
    const char *exchange;
    const void *key;
    int64_t key_length;
    int64_t durable; /* 0: it vanishes with its last consumer */
    int64_t shared;  /* 0: one participant consumes it at a time, others get SB_TAKEN */
    int64_t slots;
    const sb_settings *settings;
}} sb_subscription;

/* What the histograms of a queue can tell apart; times in ns. */
typedef struct sb_histograms {{
    int64_t number;  /* of those that there are: changes with the range; 0: there are none */
    int64_t lowest, highest, digits;
    int64_t length;  /* how many counts each kind has; one more is of what fits in none */
    int64_t recording; /* 1: times are recorded now */
    int64_t kinds;     /* how many: SB_PUBLISH_DURABLE is of durable queues */
}} sb_histograms;

/* Whether a message is meant: 1 or 0. */
typedef int64_t (*sb_chooser)(const sb_message *message, void *context);

/* What somebody waits for, among other things: see sb_wait_any. */
typedef struct sb_wait {{
    sb_queue *queue;
    int64_t position; /* of the message that a subscriber wants; or SB_A_MESSAGE, SB_ROOM */
    int64_t returned; /* at a position: or that other than so many messages have come back.
                         SB_ANY_NUMBER (-1): no matter.  SB_CONFIRMED: that the message at this
                         position is on disk */
    int64_t code;     /* the answer: SB_EMPTY, or it is worth trying (and may tell of an error) */
}} sb_wait;

typedef struct sb_queue_statistics {{
    int64_t slots, head, tail, ready, leased, bytes;
    int64_t given_back, revoked, expired, dropped, rejected, damaged;
    int64_t delayed;   /* left it for a while, to be redelivered: published again then */
    int64_t scheduled; /* not to be delivered yet */
    int64_t paged, paged_bytes; /* behind what is in the ring; what of it is in files */
    int64_t missing, purged; /* lost with damaged page files; purged before they were in the ring */
    int64_t duplicates, withdrawn; /* not published; published, and dropped before anybody got it */
    int64_t carried;  /* to the end of the ring: it has few slots for so many keys */
    int64_t replaced; /* by newer ones of the same key */
    int64_t slow;     /* how often a consumer was found to be slow */
    int64_t aside;    /* not to be delivered, and where it goes is full: passed over for now */
    int64_t paused, consumers, producers;
    int64_t recording;              /* 1: times are recorded; 0 they are not */
    int64_t histograms;             /* number of the histograms that there are, 0 none */
    int64_t levels;                 /* of priority, 0 none */
    int64_t waiting[{layout.LEVELS}];    /* of each level, in nobody's hand */
    int64_t waiting_since[{layout.LEVELS}]; /* when the oldest was published, ns since the epoch */
}} sb_queue_statistics;
"""

SEGMENTS = """\
/* Make a ring of so many slots, a power of two, with an arena of so many bytes. */
int64_t sb_ring_create(const char *name, int64_t slots, int64_t arena_bytes, int64_t flags);
/* Map a ring and its arena, after checking both. */
int64_t sb_ring_attach(const char *name, sb_ring **ring);
/* Open the port of one thread; owner is from 1 to 4095. */
int64_t sb_ring_port(sb_ring *ring, int64_t owner, sb_port *port);
/* Unmap; all its ports must be closed. */
void sb_ring_detach(sb_ring *ring);
/* Remove the names; who has the ring attached keeps it. */
int64_t sb_ring_remove(const char *name);
/* What a code means. */
const char *sb_strerror(int64_t code);
/* --- vhosts and connections ---
 * Time-outs are in nanoseconds: 0 does not wait, SB_FOREVER (or less than 0) waits without end.
 * A wait that a signal interrupts answers SB_INTERRUPTED: call again to wait on. */

/* Make a vhost with an arena of so many bytes. */
int64_t sb_vhost_create(const char *vhost, int64_t arena_bytes);
/* Take part in a vhost; `name` is for people, NULL: the program's. */
int64_t sb_connect(const char *vhost, const char *name, sb_connection **connection);
/* Look only: no participant of its own, so that it works when all ids are taken, and nothing is
 * repaired.  Publishing and taking answer SB_INVALID. */
int64_t sb_observe(const char *vhost, sb_connection **connection);
/* How long each wait spins before it sleeps, from now on.  Without this call it is 10 us, and a
 * thread that may run on one processor only spins while that finds something, and now and then for
 * 80 us to find out: rarely if the other side is on the same processor. */
int64_t sb_spin(sb_connection *connection, int64_t ns);
/* From now on a wait answers SB_INTERRUPTED every 100 ms, for a caller who has to look for signals
 * between two calls, as Python has: a signal that comes between two sleeps interrupts none. */
int64_t sb_wait_in_slices(sb_connection *connection);
/* Leave: what we took and did not acknowledge goes to others; all further calls say SB_CLOSED. */
int64_t sb_disconnect(sb_connection *connection);
/* Unmap and free; no thread may be in a call, or read a message in place.  Disconnects first. */
void sb_connection_free(sb_connection *connection);
/* Repair what dead participants have left: how many repairs.  Waiting calls do so by themselves. */
int64_t sb_repair(sb_connection *connection);
/* Repair as soon as somebody dies, for so long at most: how many repairs. */
int64_t sb_repair_for(sb_connection *connection, int64_t timeout_ns);
/* More words about the code that this thread was answered last, or "". */
const char *sb_detail(int64_t code);
/* The same, copied, with a 0 at its end, and told once: what is told next for the same code was
 * said since.  How long it is. */
int64_t sb_detail_take(int64_t code, char *buffer, int64_t capacity);
int64_t sb_participant(sb_connection *connection);
/* 1 if the participant of this number is alive. */
int64_t sb_participant_lives(sb_connection *connection, int64_t id);
int64_t sb_closed(sb_connection *connection);
void *sb_catalog(sb_connection *connection);
void *sb_participants(sb_connection *connection);
/* The memory of all messages: one's body lies at its offset. */
void *sb_arena(sb_connection *connection, int64_t *bytes);
/* How much of it each participant holds; `shares` has room for 4096, by id. */
void sb_arena_shares(sb_connection *connection, int64_t *shares);

/* --- queues --- */

/* Make a queue of so many slots; OK as well if it exists so. */
int64_t sb_declare_queue(sb_connection *connection, const char *name, int64_t slots);
int64_t sb_declare_queue_with(sb_connection *connection, const char *name, int64_t slots,
                              const sb_settings *settings);
/* Settings of queues that are declared from now on and whose names match the pattern (words
 * between dots, * is one word, # any number), as far as who declares one does not give them.  The
 * most specific pattern wins.  Once more for the same pattern: instead of what it had. */
int64_t sb_settings_put(sb_connection *connection, const char *pattern,
                        const sb_settings *settings);
int64_t sb_settings_remove(sb_connection *connection, const char *pattern);
/* A queue with a name of its own, which is deleted when we leave or die. */
int64_t sb_temporary_queue(sb_connection *connection, int64_t slots, const sb_settings *settings,
                           sb_queue **queue);
/* What was given when it was declared, and by whom: its length. */
int64_t sb_settings_given(sb_queue *queue, void *buffer, int64_t capacity);
int64_t sb_when_full(sb_queue *queue);
int64_t sb_is_non_destructive(sb_queue *queue);
/* Move what is expired to where it belongs, or drop it: how many.  Nobody gets such a message
 * anyway; waiting calls, full queues and sb_repair_for do this by themselves. */
int64_t sb_expire(sb_queue *queue);
/* What was opened (also a temporary queue, a subscription, and the queue of sb_exchange_full) stays
 * valid until it is closed, as often as it was opened; of a queue that was deleted every call
 * answers SB_NOT_FOUND.  Its ring is unmapped before that, when no call is under way and nothing
 * of it is lent.  The connection's end closes what is left. */
int64_t sb_open_queue(sb_connection *connection, const char *name, sb_queue **queue);
/* Nobody uses it through this handle any more: no thread is in a call with it, and what was taken
 * from it is dealt with. */
int64_t sb_close_queue(sb_queue *queue);
/* One more handle of it: to be closed once more. */
int64_t sb_share_queue(sb_queue *queue);
/* SB_IN_USE if another participant uses it, unless forced. */
int64_t sb_delete_queue(sb_connection *connection, const char *name, int64_t force);
/* Publish: the message's position.  SB_FULL if there was no room in time; SB_DUPLICATE if it has an
 * id or a number that was published before: all is well, and it is there once. */
int64_t sb_publish(sb_queue *queue, const void *body, int64_t length, int64_t timeout_ns);
/* The same without waiting, SB_FULL at once; sb_get and sb_receive that look so many times. */
int64_t sb_publish_now(sb_queue *queue, const void *body, int64_t length);
int64_t sb_look_and_copy(sb_queue *queue, sb_message *message, sb_room *room, int64_t looks);
int64_t sb_look_and_receive(sb_queue *queue, sb_room *room, int64_t looks);
int64_t sb_publish_message(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns);
/* The same, and where it is, for sb_confirm: if it is scheduled, that is in the schedule. */
int64_t sb_publish_receipt(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns,
                           sb_receipt *receipt);
/* The same with each part as an argument: for other languages' bindings. */
int64_t sb_publish_with(sb_queue *queue, const void *body, int64_t length, const void *key,
                        int64_t key_length, const void *properties, int64_t properties_length,
                        int64_t ttl_ns, int64_t priority, const void *id, int64_t id_length,
                        int64_t timeout_ns);
/* A producer of this name: to go into sb_outgoing.  For good, and at most 55 a queue. */
int64_t sb_producer_open(sb_queue *queue, const void *name, int64_t length);
/* The last number that is published: go on behind it.  0 at first. */
int64_t sb_producer_sequence(sb_queue *queue, int64_t producer);
/* Bodies that lie end to end: how many were published in time, from the first on. */
int64_t sb_publish_many(sb_queue *queue, const void *bodies, const int64_t *lengths, int64_t count,
                        int64_t timeout_ns);
int64_t sb_loan_take(sb_queue *queue, const sb_outgoing *shape, sb_loan *loan);
int64_t sb_loan_publish(sb_queue *queue, sb_loan *loan, int64_t timeout_ns);
int64_t sb_loan_drop(sb_queue *queue, sb_loan *loan);
/* Take the oldest message: SB_OK, or SB_EMPTY if none came in time. */
int64_t sb_get(sb_queue *queue, sb_message *message, int64_t timeout_ns);
/* Take the oldest message that is selected; the others are left to others. */
int64_t sb_get_selected(sb_queue *queue, sb_message *message, sb_selection *wanted,
                        int64_t timeout_ns);
int64_t sb_get_many(sb_queue *queue, sb_message *messages, int64_t count, int64_t timeout_ns);
/* Take, copy, acknowledge; as sb_port_receive. */
int64_t sb_receive(sb_queue *queue, sb_room *room, int64_t timeout_ns);
int64_t sb_receive_many(sb_queue *queue, sb_room *room, int64_t count, int64_t timeout_ns);
/* Consume for a while: sb_consume_end lets go of our groups, or of being the active consumer.  In a
 * queue with single_active the consumer with the highest priority, 0 to 100, gets messages; an
 * exclusive one is alone as long as it is there: SB_IN_USE if there is another. */
int64_t sb_consume_begin(sb_queue *queue, int64_t priority, int64_t exclusive);
int64_t sb_consume_end(sb_queue *queue);
/* Let others have this group of ours, or with NULL all: how many buckets of groups that were. */
int64_t sb_let_go(sb_queue *queue, const char *group, int64_t length);
/* Properties that make a message one of this group, beside those given: in a buffer with room for
 * 275 bytes more; their length. */
int64_t sb_group_properties(const char *group, const void *properties, int64_t length,
                            void *buffer, int64_t capacity);
/* The bucket that a group is in, SB_NOT_FOUND in a queue without groups; the participant that each
 * bucket is bound to, 0: none. */
int64_t sb_group_bucket(sb_queue *queue, const char *group, int64_t length);
int64_t sb_group_owners(sb_queue *queue, int64_t *owners, int64_t capacity);
/* SB_REVOKED if it is no longer ours. */
int64_t sb_ack(sb_queue *queue, sb_message *message);
int64_t sb_ack_many(sb_queue *queue, sb_message *messages, int64_t count);
int64_t sb_give_back(sb_queue *queue, sb_message *message);
int64_t sb_reject(sb_queue *queue, sb_message *message);
const void *sb_message_key(const sb_message *message, int64_t *length);
const void *sb_message_properties(const sb_message *message, int64_t *length);
/* Nanoseconds since the epoch. */
int64_t sb_message_published_at(const sb_message *message);
/* The id that it was published with: length 0 if it has none, below 0 if it is no text. */
const void *sb_message_id(const sb_message *message, int64_t *length);
/* How often it was delivered before. */
int64_t sb_message_deliveries(const sb_message *message);
/* Copy the whole chunk of the message at a position: its length, SB_GONE, SB_EMPTY, ...  Of a
 * durable queue: SB_EMPTY also if it is not on disk yet. */
int64_t sb_browse(sb_queue *queue, int64_t position, sb_message *message, void *buffer,
                  int64_t capacity);
/* sb_browse that shows what is not on disk yet, too: ask sb_is_confirmed before. */
int64_t sb_browse_ahead(sb_queue *queue, int64_t position, sb_message *message, void *buffer,
                        int64_t capacity);
/* 1: the message of this position is on disk, or the queue is not durable; 0: not yet. */
int64_t sb_is_confirmed(sb_queue *queue, int64_t position);
/* Copy the whole chunk of the newest message of a key, taken or not, of a queue that keeps the last
 * value: its length, SB_EMPTY if there is none. */
int64_t sb_value(sb_queue *queue, const void *key, int64_t key_length, sb_message *message,
                 void *buffer, int64_t capacity);
/* Where what is scheduled for a queue waits: for sb_browse and sb_statistics only.  Or NULL. */
int64_t sb_schedule(sb_queue *queue, sb_queue **schedule);
/* 1: it will not be delivered; 0: there is none of this id any more. */
int64_t sb_cancel_scheduled(sb_queue *queue, int64_t id);
/* Throw away all that nobody has, what is scheduled included. */
int64_t sb_purge(sb_queue *queue);
int64_t sb_pause(sb_queue *queue, int64_t paused);
int64_t sb_statistics(sb_queue *queue, sb_queue_statistics *told);
/* Record times, from publishing to taking and from there to acknowledging, or stop that.  Each
 * message is counted when it is acknowledged, or one in so many, a power of two.  A lowest or
 * highest time or digits of 0: as before, or 1 ns, an hour, and 2.  Another range than before
 * starts from nothing. */
int64_t sb_latency(sb_queue *queue, int64_t records, int64_t lowest_ns, int64_t highest_ns,
                   int64_t digits, int64_t one_in);
int64_t sb_queue_reference(sb_queue *queue);
int64_t sb_histograms_told(sb_connection *connection, int64_t reference, sb_histograms *told);
/* The counts of one kind, SB_PUBLISH_TAKE, ...: SB_GONE if the histograms are not those
 * of this number.  Room for told.length + 1. */
int64_t sb_counts(sb_connection *connection, int64_t reference, int64_t number, int64_t kind,
                  int64_t *counts);
/* Head and tail of a queue by its row, without mapping its ring: equal if it is empty. */
int64_t sb_glance(sb_connection *connection, int64_t reference, int64_t *head, int64_t *tail,
                  int64_t *paused);
const char *sb_queue_name(sb_queue *queue);
int64_t sb_queue_slots(sb_queue *queue);
/* A port for one thread's compiled loops, until the connection is closed. */
int64_t sb_queue_port(sb_queue *queue, sb_port **port);
/* The port is not used any more: who does all the same is answered SB_CLOSED. */
int64_t sb_queue_port_return(sb_queue *queue, sb_port *port);
/* Make a port of no queue, which answers SB_CLOSED; what a port in this memory held is not
 * returned. */
int64_t sb_port_end(sb_port *port);
/* See every message without taking any; a cursor belongs to one thread at a time. */
int64_t sb_subscribe(sb_queue *queue, sb_cursor *cursor, int64_t from_now, int64_t lossy);
int64_t sb_unsubscribe(sb_queue *queue, sb_cursor *cursor);
/* The next message, its whole chunk copied: its length. */
int64_t sb_next(sb_queue *queue, sb_cursor *cursor, sb_message *message, void *buffer,
                int64_t capacity, int64_t timeout_ns);
/* All that sb_next returned is dealt with: the ring may be used again. */
int64_t sb_released(sb_queue *queue, sb_cursor *cursor);

/* --- requests and replies --- */

/* Publish a request and wait for its reply, in asked->reply; SB_NO_REPLY if none came in time.
 * Whatever the answer: sb_asked_end afterwards, which acknowledges the reply. */
int64_t sb_request(sb_queue *queue, const sb_outgoing *request, sb_asked *asked,
                   int64_t timeout_ns);
int64_t sb_request_with(sb_queue *queue, const void *body, int64_t length, const void *key,
                        int64_t key_length, const void *properties, int64_t properties_length,
                        int64_t ttl_ns, int64_t priority, sb_asked *asked, int64_t timeout_ns);
/* The same in two steps, with other things to do in between. */
int64_t sb_ask(sb_queue *queue, const sb_outgoing *request, sb_asked *asked, int64_t timeout_ns);
int64_t sb_await_reply(sb_asked *asked, int64_t timeout_ns);
int64_t sb_asked_end(sb_asked *asked);
/* Reply to a request that was taken from this queue, before it is acknowledged.
 * SB_REQUESTER_LEFT if nobody waits for it. */
int64_t sb_reply(sb_queue *queue, const sb_message *request, const sb_outgoing *reply,
                 int64_t timeout_ns);
int64_t sb_reply_with(sb_queue *queue, const sb_message *request, const void *body, int64_t length,
                      const void *properties, int64_t properties_length, int64_t timeout_ns);

/* --- subscriptions by name --- */

/* A queue, sub.NAME, that is bound to an exchange: made, or as it is if it was made just so. */
int64_t sb_subscription_open(sb_connection *connection, const sb_subscription *subscription,
                             sb_queue **queue);
/* We consume it no more: another may, or it vanishes if it is not durable. */
int64_t sb_subscription_close(sb_connection *connection, const char *name);
int64_t sb_subscription_delete(sb_connection *connection, const char *name, int64_t force);

/* --- moving and copying --- */

/* Move what nobody has taken, from the oldest on: how many.  At most so many as are there now, and
 * not more than `most`, if that is not 0.  Stops where the other queue has had no room for so long.
 * `chooses` may be NULL: all of them. */
int64_t sb_move(sb_queue *from, sb_queue *to, int64_t most, int64_t timeout_ns, sb_chooser chooses,
                void *context);
/* The same, and the messages stay. */
int64_t sb_copy(sb_queue *from, sb_queue *to, int64_t most, int64_t timeout_ns, sb_chooser chooses,
                void *context);
/* A chooser: what the program of an sb_selection, the context, selects. */
int64_t sb_is_selected(const sb_message *message, void *selection);

/* --- waiting for several things at once, in one thread --- */

/* Sleep until one is worth trying: how many are.  0: none is, but somebody has changed *control
 * from `seen` (and woke us by sb_system_wake), a signal came, or the time is over; then what the
 * dead have left was repaired.
 * Up to 127 are waited for at once; if there are more, or the kernel is older than Linux 5.16
 * (FUTEX_WAITV), it looks at all of them every 2 ms. */
int64_t sb_wait_any(sb_wait *waits, int64_t count, const int64_t *control, int64_t seen,
                    int64_t timeout_ns);
/* Wait until the message at this position, or with -1 all that was published or scheduled before,
 * is on disk; only in a durable queue.  SB_UNCONFIRMED: not in time; it is in the queue, and may be
 * on disk. */
int64_t sb_confirm(sb_queue *queue, int64_t position, int64_t timeout_ns);
int64_t sb_is_durable(sb_queue *queue);
/* How many waits of this process in this queue have spun, and how many of them found something. */
int64_t sb_spun(sb_queue *queue, int64_t *spins, int64_t *won);
/* The position of the next message. */
int64_t sb_published(sb_queue *queue);
/* All below this position is on disk. */
int64_t sb_confirmed(sb_queue *queue);
/* We were woken for this, and do not need it, or not all of it: if there is some, wake another. */
int64_t sb_pass_on(sb_queue *queue, int64_t position);

/* --- exchanges --- */

/* kind: 0 direct, 1 topic, 2 fanout, 3 headers.  alternate: NULL, or who gets what nobody took. */
int64_t sb_declare_exchange(sb_connection *connection, const char *name, int64_t kind,
                            const char *alternate);
int64_t sb_delete_exchange(sb_connection *connection, const char *name, int64_t force);
int64_t sb_bind(sb_connection *connection, const sb_binding *binding);
int64_t sb_unbind(sb_connection *connection, const sb_binding *binding);
/* "" is the default exchange: the key is a queue's name. */
int64_t sb_open_exchange(sb_connection *connection, const char *name, sb_exchange **exchange);
/* How many queues the message went to.  *done counts them, and is 0 at first: after a code less
 * than 0, the same call with the same *done goes on behind those that have it already. */
int64_t sb_exchange_publish(sb_exchange *exchange, const sb_outgoing *message, int64_t timeout_ns,
                            int64_t *done);
/* The same, and where it is in each durable queue is noted behind what the receipts have, which are
 * zeros at first.  Then wait until all of that is on disk: SB_UNCONFIRMED if not in time; ask
 * again. */
int64_t sb_exchange_publish_receipts(sb_exchange *exchange, const sb_outgoing *message,
                                     int64_t timeout_ns, int64_t *done, sb_receipts *receipts);
int64_t sb_receipts_confirm(const sb_receipts *receipts, int64_t timeout_ns);
void sb_receipts_free(sb_receipts *receipts);
int64_t sb_exchange_publish_with(sb_exchange *exchange, const void *body, int64_t length,
                                 const void *key, int64_t key_length, const void *properties,
                                 int64_t properties_length, int64_t ttl_ns, int64_t priority,
                                 const void *id, int64_t id_length, int64_t timeout_ns,
                                 int64_t *done);
/* After SB_FULL: the queue that had no room, opened; NULL if the bindings have changed since. */
int64_t sb_exchange_full(sb_exchange *exchange, const void *key, int64_t key_length,
                         const void *properties, int64_t properties_length, int64_t done,
                         sb_queue **queue);
const char *sb_exchange_name(sb_exchange *exchange);
int64_t sb_exchange_kind(sb_exchange *exchange);

/* --- selectors ---
 * A program is what shmbroker.Selector compiles a text to.  It must lie in memory that nobody else
 * changes; a message may change while it is looked at. */

/* SB_OK, or SB_INVALID: only what was checked may be run. */
int64_t sb_selector_check(const void *program, int64_t bytes);
/* 1 if the message is selected; 0 if not, or if that is unknown. */
int64_t sb_selector_matches(const void *program, int64_t bytes, const sb_subject *subject);
/* How many of them are selected. */
int64_t sb_selector_count(const void *program, int64_t bytes, const sb_subject *subjects,
                          int64_t count);
/* What a selector sees of a message that was taken or looked at. */
int64_t sb_subject_of(const sb_message *message, sb_subject *subject);
/* --- transactions ---
 * Nothing of one is visible before sb_transaction_commit.  After a commit or rollback every call
 * answers SB_ENDED. */

int64_t sb_transaction_begin(sb_connection *connection, sb_transaction **transaction);
/* Publish at commit.  The message is copied, and where it goes is decided, now. */
int64_t sb_transaction_publish(sb_transaction *transaction, sb_queue *queue,
                               const sb_outgoing *message);
/* The same through an exchange: how many queues it will go to. */
int64_t sb_transaction_route(sb_transaction *transaction, sb_exchange *exchange,
                             const sb_outgoing *message);
/* Acknowledge at commit; on rollback it is given back.  The message is the transaction's from now
 * on: SB_REVOKED if it was not in hand. */
int64_t sb_transaction_ack(sb_transaction *transaction, sb_queue *queue, sb_message *message);
/* SB_OK: all of it has happened.  SB_FULL (there was no room in time), SB_REVOKED (a message is no
 * longer ours), SB_NOT_FOUND (a queue was deleted): nothing has happened; try again, or roll back.
 * SB_UNFINISHED: it is committed, and a queue that had room is full again: call again, until it
 * says SB_OK; other calls of this connection finish it as well. */
int64_t sb_transaction_commit(sb_transaction *transaction, int64_t timeout_ns);
/* Wait until all of a transaction that is committed is on disk, in its durable queues: SB_OK at
 * once if it has none.  SB_UNCONFIRMED: not in time; ask again. */
int64_t sb_transaction_confirm(sb_transaction *transaction, int64_t timeout_ns);
int64_t sb_transaction_rollback(sb_transaction *transaction);
/* How many operations it has; at most 1,000, one for each queue that a message goes to. */
int64_t sb_transaction_operations(sb_transaction *transaction);
/* Rolls back if it was not committed.  Before sb_connection_free. */
void sb_transaction_free(sb_transaction *transaction);

/* The system calls of the library. */
int64_t sb_system_allocate(int64_t file, int64_t offset, int64_t length);
int64_t sb_system_yield(void);
int64_t sb_system_wait(int64_t address, int64_t value, int64_t timeout_ns);
int64_t sb_system_wake(int64_t address, int64_t count);
int64_t sb_system_clock(void);
int64_t sb_system_decide(int64_t port, int64_t message);
int64_t sb_system_revoked(int64_t port);
int64_t sb_system_recorder(int64_t recording);
"""


FOREVER_NS = 1 << 62
EVERY_POSITION = 1 << 48


def code_names() -> dict[str, int]:
    """The names of all codes, SB_ left off."""
    return {name: value for name, value in vars(codes).items() if isinstance(value, int)}


def symbol(kernel: Kernel) -> str:
    """What C programs call it: what is done to a port is named so."""
    of_port = kernel.parameters[:1] == ("port",) and not kernel.name.startswith("port_")
    return f"sb_port_{kernel.name}" if of_port else f"sb_{kernel.name}"


def prototype(kernel: Kernel) -> str:
    """One exported kernel as C declares it."""
    parameters = []
    for name in kernel.parameters:
        kind = PARAMETER_TYPES.get(name, "int64_t ")
        parameters.append(f"{kind}{name}" if kind.endswith("*") else f"int64_t {name}")
    result = RESULT_TYPES.get(kernel.name, "int64_t ")
    return f"{result}{symbol(kernel)}({', '.join(parameters) or 'void'});"


def exported_kernels() -> Iterator[Kernel]:
    return (each for each in KERNELS.values() if each.exported)


def declarations() -> str:
    """Structures and prototypes, as C and cffi both read them."""
    parts = [STRUCTURES, SEGMENTS, JOURNAL, JOURNALER, PAGER]
    for kernel in exported_kernels():
        text = inspect.getdoc(kernel.function)
        comment = f"/* {text} */\n" if text else ""
        parts.append(f"{comment}{prototype(kernel)}\n")
    return "\n".join(parts)


def enumerators() -> str:
    """The codes, and the few numbers of the layout that programs need."""
    lines = [f"    SB_{name} = {value}," for name, value in code_names().items()]
    lines += [
        f"    SB_BROADCAST = {layout.RING_BROADCAST},",
        f"    SB_GATE_FLEETING = {layout.GATE_FLEETING},",
        f"    SB_GATE_LASTING = {layout.GATE_LASTING},",
        "    SB_UNLIMITED = -1,",
        *(
            f"    SB_SET_{name.upper()} = {1 << bit},"
            for bit, name in enumerate(layout.SETTING_NAMES)
        ),
        f"    SB_PUBLISH_TAKE = {layout.PUBLISH_TAKE},",
        f"    SB_TAKE_ACK = {layout.TAKE_ACK},",
        f"    SB_BLOCK = {layout.BLOCK},",
        f"    SB_FAIL = {layout.FAIL},",
        f"    SB_DROP_OLDEST = {layout.DROP_OLDEST},",
        f"    SB_PAGE = {layout.PAGE},",
        "    SB_A_MESSAGE = -1,",
        "    SB_ROOM = -2,",
        "    SB_ANY_NUMBER = -1,",
        "    SB_CONFIRMED = -3,",
        f"    SB_ROUTE_VISITED_BYTES = {layout.ROUTE_VISITED_BYTES},",
        *journal_enumerators(),
    ]
    forever = f"#define SB_FOREVER {FOREVER_NS}\n#define SB_JOURNAL_ALL {EVERY_POSITION}\n"
    return forever + "enum {\n" + "\n".join(lines) + "\n};\n"


def header() -> str:
    """The whole of shmbroker.h."""
    return f"""\
/* shmbroker.h: rings of messages in shared memory.  Generated from the kernels: do not edit.
 *
 * Functions return a number of their own, 0 for done, or a negative code: see sb_strerror.
 * A port, a message and a cursor belong to one thread at a time; a ring may be shared. */

#ifndef SHMBROKER_H
#define SHMBROKER_H

#include <stdint.h>

#define SB_PRIORITY(level) ((level) + 1)

#ifdef __cplusplus
extern "C" {{
#endif
#pragma GCC visibility push(default)

{enumerators()}
{declarations()}
#pragma GCC visibility pop
#ifdef __cplusplus
}}
#endif

#endif
"""


def layout_source() -> str:
    """layout.py and opcodes.py for the C files of the library: L_ or OP_, and the name."""
    lines = []
    for prefix, module in (("L", layout), ("OP", opcodes)):
        numbers = {name: value for name, value in vars(module).items() if isinstance(value, int)}
        lines += [f"#define {prefix}_{name} INT64_C({value})" for name, value in numbers.items()]
    return "\n".join(lines) + "\n"


def strerror_source() -> str:
    """sb_strerror in C, with the texts of codes.py."""
    texts = {name: codes.TEXTS[value] for name, value in code_names().items()}
    cases = "\n".join(f'    case SB_{name}: return "{text}";' for name, text in texts.items())
    return f"""\
#include "shmbroker.h"

const char *sb_strerror(int64_t code)
{{
    switch (code) {{
{cases}
    default: return code >= 0 ? "done" : "unknown code";
    }}
}}
"""
