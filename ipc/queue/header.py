"""Queues in the C interface: declaring, publishing, taking, loans, cursors, moving, waiting."""

from __future__ import annotations

from shmbroker.core import layout
from shmbroker.ipc.ring.header import CURSOR

LEVELS = (
    ("effective", layout.CONFIRM_EFFECTIVE),
    ("shm", layout.CONFIRM_SHM),
    ("disk", layout.CONFIRM_DISK),
    ("replicated", layout.CONFIRM_REPLICATED),
)
"""Of confirms."""

QUEUES = f"""\
/* --- queues --- */

/* Make a queue of so many slots, a power of two; 0: 1,024.  SB_OK, also if it exists and has what
 * is asked for; SB_DIFFERENT if it was declared differently.  What is left out is not asked for. */
int64_t sb_declare_queue(sb_connection *connection, const char *name, int64_t slots);
int64_t sb_declare_queue_with(sb_connection *connection, const char *name, int64_t slots,
                              const sb_settings *settings);
/* A queue with a name of its own, which is deleted when this participant leaves or dies.  SB_OK. */
int64_t sb_temporary_queue(sb_connection *connection, int64_t slots, const sb_settings *settings,
                           sb_queue **queue);
/* SB_OK; SB_NOT_FOUND.  What was opened (also a temporary queue, a subscription, and the queue of
 * sb_exchange_full) stays valid until it is closed, as often as it was opened.  If the queue is
 * deleted, all calls answer SB_NOT_FOUND.  The connection's end closes what is left. */
int64_t sb_open_queue(sb_connection *connection, const char *name, sb_queue **queue);
/* Close it once.  No thread is in a call with it, and all that was taken is acknowledged or given
 * back. */
int64_t sb_close_queue(sb_queue *queue);
/* One more handle of the same queue: to be closed once more. */
int64_t sb_share_queue(sb_queue *queue);
/* SB_OK; SB_IN_USE if another participant uses it, unless forced. */
int64_t sb_delete_queue(sb_connection *connection, const char *name, int64_t force);
const char *sb_queue_name(sb_queue *queue);
int64_t sb_queue_slots(sb_queue *queue);
/* Drop all that nobody has taken, scheduled messages included: how many. */
int64_t sb_purge(sb_queue *queue);
/* 1: nothing is taken from it until it is called with 0. */
int64_t sb_pause(sb_queue *queue, int64_t paused);
/* Move expired messages to the expiry queue, or drop them: how many.  Nobody gets an expired
 * message anyway; waiting calls, full queues and sb_repair_for do this too. */
int64_t sb_expire(sb_queue *queue);

struct sb_queue_statistics {{
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
}};
int64_t sb_statistics(sb_queue *queue, sb_queue_statistics *told);
/* A stream of messages that comes from elsewhere, each once. */
typedef struct sb_origin {{
    int64_t high, low; /* its identity */
    int64_t position;  /* of the stream: all below are known here */
    int64_t owner;     /* the participant that pours it, 0 nobody */
    int64_t used;      /* when it was poured last, ns since the epoch */
    int64_t counted;   /* 1: of a remote producer, which may leave numbers open */
}} sb_origin;
/* The streams that a queue knows: how many there are, up to `room`. */
int64_t sb_origins(sb_queue *queue, sb_origin *origins, int64_t room);
/* Record times, from publishing to taking and from there to acknowledging, or stop that.  Each
 * message is counted when it is acknowledged, or one in so many, a power of two.  A lowest or
 * highest time or digits of 0: as before, or 1 ns, an hour, and 2.  Another range than before
 * starts from nothing.  SB_OK. */
int64_t sb_latency(sb_queue *queue, int64_t records, int64_t lowest_ns, int64_t highest_ns,
                   int64_t digits, int64_t one_in);
"""

PUBLISHING = """\
/* --- publishing --- */

/* Publish a body: the message's position.  SB_FULL if there was no room in time.  It does not wait
 * for the disk, in a durable queue neither: sb_confirm does. */
int64_t sb_publish(sb_queue *queue, const void *body, int64_t length, int64_t timeout_ns);
/* The same without waiting. */
int64_t sb_publish_now(sb_queue *queue, const void *body, int64_t length);
/* Publish with key, properties, ...: its position, or its id if it is scheduled.  SB_DUPLICATE: its
 * id or number was published before; it is in the queue once, and all is well. */
int64_t sb_publish_message(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns);
/* The same with each part as an argument: for other languages' bindings. */
int64_t sb_publish_with(sb_queue *queue, const void *body, int64_t length, const void *key,
                        int64_t key_length, const void *properties, int64_t properties_length,
                        int64_t ttl_ns, int64_t priority, const void *id, int64_t id_length,
                        int64_t timeout_ns);
/* Bodies that lie end to end: how many were published in time, from the first on. */
int64_t sb_publish_many(sb_queue *queue, const void *bodies, const int64_t *lengths, int64_t count,
                        int64_t timeout_ns);
/* The position of the next message that is published. */
int64_t sb_published(sb_queue *queue);

/* Where a message is that was published: in a durable queue, or in its schedule. */
struct sb_receipt {
    sb_queue *queue;
    int64_t position;
};
/* As sb_publish_message, and where the message is, for sb_confirm. */
int64_t sb_publish_receipt(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns,
                           sb_receipt *receipt);
/* Wait until the message at this position, or with -1 all that was published or scheduled before,
 * is confirmed at this level (docs/durability.md); only in a durable queue.  The level that it has
 * now: SB_CONFIRM_DISK, SB_CONFIRM_REPLICATED, or both.  SB_UNCONFIRMED: not in time; it is in the
 * queue, and may be on disk.
 * SB_CONFIRM_EFFECTIVE is what consumers of the queue wait for.  Any other level is a demand. */
int64_t sb_confirm(sb_queue *queue, int64_t position, int64_t level, int64_t timeout_ns);
/* The effective level of the queue now; SB_CONFIRM_SHM if it is not durable. */
int64_t sb_confirm_level(sb_queue *queue);
/* All below this position is confirmed, at the effective level. */
int64_t sb_confirmed(sb_queue *queue);
/* 1: so is the message at this position, or the queue is not durable; 0: not yet. */
int64_t sb_is_confirmed(sb_queue *queue, int64_t position);

/* A producer of this name, for sb_outgoing.producer.  For good, and at most 55 a queue. */
int64_t sb_producer_open(sb_queue *queue, const void *name, int64_t length);
/* The last number that is published: go on behind it.  0 at first. */
int64_t sb_producer_sequence(sb_queue *queue, int64_t producer);
/* Properties that make a message one of this group, beside those given: written into a buffer with
 * room for 275 bytes more.  Their length. */
int64_t sb_group_properties(const char *group, const void *properties, int64_t length,
                            void *buffer, int64_t capacity);
"""

LOANS = """\
/* --- loans: a message is written where its consumer reads it --- */

/* Memory to be filled: `length` bytes at `body`. */
struct sb_loan {
    void *lane;
    void *body;
    int64_t length;
    int64_t chunk;
};
/* Memory for a message of shape->length; its key, properties, ... are copied now.  SB_OK;
 * SB_ARENA_FULL; SB_TOO_MANY_LOANS if 64 loans and threads of this process are in the queue: then
 * every call in it answers that, at once, but for acknowledging, giving back and rejecting. */
int64_t sb_loan_take(sb_queue *queue, const sb_outgoing *shape, sb_loan *loan);
/* Publish it: its position.  After SB_FULL it is still on loan. */
int64_t sb_loan_publish(sb_queue *queue, sb_loan *loan, int64_t timeout_ns);
/* Give the memory back; nothing is published. */
int64_t sb_loan_drop(sb_queue *queue, sb_loan *loan);
"""

TAKING = """\
/* --- taking --- */

/* Take the oldest message: SB_OK; SB_EMPTY if none came in time. */
int64_t sb_get(sb_queue *queue, sb_message *message, int64_t timeout_ns);
/* Take up to `count` messages, as soon as there is one: how many; SB_EMPTY. */
int64_t sb_get_many(sb_queue *queue, sb_message *messages, int64_t count, int64_t timeout_ns);
/* Take the oldest message that a selector matches.  Answers as sb_get. */
int64_t sb_get_selected(sb_queue *queue, sb_message *message, sb_selection *wanted,
                        int64_t timeout_ns);
/* It will be called with this: to be said before sb_consume_begin.  SB_OK. */
int64_t sb_selects(sb_queue *queue, sb_selection *wanted);

/* Where received messages are copied to. */
struct sb_room {
    sb_message *messages; /* as many as are received at once */
    void *buffer;
    int64_t capacity;
    int64_t *ends; /* where body i ends; ends[count]: the length of all, or -1 */
};
/* Take a message, copy its body into the buffer, acknowledge it: the length of its body.  SB_EMPTY;
 * SB_TOO_SMALL: it is in room->messages, taken and not acknowledged. */
int64_t sb_receive(sb_queue *queue, sb_room *room, int64_t timeout_ns);
/* The same with several messages, their bodies end to end: how many.  One that no longer fits is
 * not taken, unless it is the first. */
int64_t sb_receive_many(sb_queue *queue, sb_room *room, int64_t count, int64_t timeout_ns);

/* Consume for a while: sb_consume_end lets go of our groups, or of being the active consumer.  In a
 * queue with single_active the consumer with the highest priority, 0 to 100, gets messages; an
 * exclusive one is alone as long as it is there.  SB_OK; SB_IN_USE. */
int64_t sb_consume_begin(sb_queue *queue, int64_t priority, int64_t exclusive);
int64_t sb_consume_end(sb_queue *queue);
/* Let others have this group of ours, or with NULL all: how many buckets of groups that were. */
int64_t sb_let_go(sb_queue *queue, const char *group, int64_t length);
/* The bucket that a group is in, SB_NOT_FOUND in a queue without groups; the participant that each
 * bucket is bound to, 0: none. */
int64_t sb_group_bucket(sb_queue *queue, const char *group, int64_t length);
int64_t sb_group_owners(sb_queue *queue, int64_t *owners, int64_t capacity);

/* --- acknowledging --- */

/* The message is dealt with.  SB_OK; SB_REVOKED: it is no longer ours, others may get it. */
int64_t sb_ack(sb_queue *queue, sb_message *message);
/* How many of them were still ours, and are acknowledged. */
int64_t sb_ack_many(sb_queue *queue, sb_message *messages, int64_t count);
/* Others may have it; this counts as a delivery.  SB_OK; SB_REVOKED. */
int64_t sb_give_back(sb_queue *queue, sb_message *message);
/* Nobody shall have it: to the dead-letter queue, or dropped.  SB_OK; SB_REVOKED. */
int64_t sb_reject(sb_queue *queue, sb_message *message);
/* The same of the message at this position: SB_GONE, it is done with already, or somebody has it;
 * SB_FULL, there is no room where it goes. */
int64_t sb_reject_at(sb_queue *queue, int64_t position);
"""

CURSORS = f"""\
/* --- looking at messages without taking them --- */

{CURSOR.text()}
/* See every message of a queue, from now on or from the oldest.  A queue keeps what its subscribers
 * have not released; a lossy one is passed by instead, and cursor->missed counts.  SB_OK. */
int64_t sb_subscribe(sb_queue *queue, sb_cursor *cursor, int64_t from_now, int64_t lossy);
int64_t sb_unsubscribe(sb_queue *queue, sb_cursor *cursor);
/* Copy the next message with its key and properties: how many bytes.  SB_EMPTY; SB_TOO_SMALL. */
int64_t sb_next(sb_queue *queue, sb_cursor *cursor, sb_message *message, void *buffer,
                int64_t capacity, int64_t timeout_ns);
/* All that sb_next returned is dealt with.  SB_OK. */
int64_t sb_released(sb_queue *queue, sb_cursor *cursor);
/* Copy the message at a position, with its key and properties: how many bytes.  SB_GONE if it was
 * acknowledged; SB_EMPTY if it is not there yet, in a durable queue: not yet on disk. */
int64_t sb_browse(sb_queue *queue, int64_t position, sb_message *message, void *buffer,
                  int64_t capacity);
/* The same, and in a durable queue also what is not yet on disk. */
int64_t sb_browse_ahead(sb_queue *queue, int64_t position, sb_message *message, void *buffer,
                        int64_t capacity);
/* Copy the newest message of a key, of a queue with last_value: how many bytes; SB_EMPTY. */
int64_t sb_value(sb_queue *queue, const void *key, int64_t key_length, sb_message *message,
                 void *buffer, int64_t capacity);
"""

MOVING = """\
/* --- moving and copying --- */

/* Whether a message is meant: 1 or 0. */
typedef int64_t (*sb_chooser)(const sb_message *message, void *context);

/* Move what nobody has taken, from the oldest on: how many.  At most so many as are there now, and
 * not more than `most`, if that is not 0.  Stops where the other queue has had no room for so long;
 * one that is moved, and has lost its room to another producer meanwhile, comes when there is some.
 * `chooses` may be NULL: all of them. */
int64_t sb_move(sb_queue *from, sb_queue *to, int64_t most, int64_t timeout_ns, sb_chooser chooses,
                void *context);
/* The same, and the messages stay. */
int64_t sb_copy(sb_queue *from, sb_queue *to, int64_t most, int64_t timeout_ns, sb_chooser chooses,
                void *context);
/* A chooser: what the program of an sb_selection, the context, selects. */
int64_t sb_is_selected(const sb_message *message, void *selection);
/* A chooser: what one of `wanted` selects, or all if there are none, and none of `others`. */
struct sb_choice {
    const sb_selection *wanted;
    int64_t wanted_count;
    const sb_selection *others;
    int64_t others_count;
};
int64_t sb_is_chosen(const sb_message *message, void *choice);
"""

WAITING = """\
/* --- waiting for several things at once, in one thread --- */

struct sb_wait {
    sb_queue *queue;
    int64_t position; /* of the message that a subscriber wants; or SB_A_MESSAGE, SB_ROOM */
    int64_t returned; /* at a position: or that other than so many messages have come back.
                         SB_ANY_NUMBER: no matter.  SB_CONFIRMED, SB_CONFIRMED_DISK, ...: that the
                         message at this position is confirmed, at this level */
    int64_t code;     /* the answer: SB_EMPTY, or it is worth trying (and may tell of an error) */
};
/* Sleep until one is worth trying: how many are.  Of room that a limit in bytes leaves no bell
 * tells: to try is worth it every 100 ms.  0: none is, but *control is no longer `seen`, a
 * signal came, or the time is over.  Another thread ends the wait by changing *control and calling
 * sb_system_wake((int64_t)(intptr_t)control, 1).
 * Up to 127 are waited for at once; if there are more, or the kernel is older than Linux 5.16
 * (FUTEX_WAITV), it looks at all of them every 2 ms. */
int64_t sb_wait_any(sb_wait *waits, int64_t count, const int64_t *control, int64_t seen,
                    int64_t timeout_ns);
/* Wake so many that sleep at this address: how many there were. */
int64_t sb_system_wake(int64_t address, int64_t count);
/* We were woken for this, and do not need it, or not all of it: if there is some, wake another. */
int64_t sb_pass_on(sb_queue *queue, int64_t position);
"""

PRIVATE = """\
/* As sb_open_queue, for who only looks: no pattern makes it. */
int64_t sb_find_queue(sb_connection *connection, const char *name, sb_queue **queue);
/* Where the last message is that was published, in the ring and in the inbox of a queue that pages:
 * when these are confirmed, all that was published so far is.  How many they are. */
int64_t sb_published_last(sb_queue *queue, int64_t last[2]);
/* The same of what this connection has published to queues towards other nodes, if this one's
 * messages go there as well: places as publishing answers them. */
int64_t sb_published_towards(sb_queue *queue, int64_t *last, int64_t room);
/* What others have in hand is given back, as that of a slow consumer is: how many. */
int64_t sb_take_back(sb_queue *queue);
/* This handle serves others: it keeps nobody from deleting the queue. */
void sb_queue_serve(sb_queue *queue);
/* Other members of a replicated node, if there are any, have its messages when they take over. */
int64_t sb_is_replicated(sb_queue *queue);
/* sb_temporary_queue of this name: that of a program on another host keeps its name.
 * SB_DIFFERENT if one is there that is not temporary; SB_IN_USE if it is another's. */
int64_t sb_temporary_queue_as(sb_connection *connection, const char *name, int64_t slots,
                              const sb_settings *settings, sb_queue **queue);
/* Of which node of a cluster the vhost is, "CLUSTER.NODEID"; "": of none.  Names of temporary
 * queues end with it: what they end with, "" or with an @ before it, in CATALOG_NODE_BYTES; and
 * whether this is a name of now. */
int64_t sb_node_set(sb_connection *connection, const char *node);
int64_t sb_node_end(sb_connection *connection, char *end);
int64_t sb_node_is_of(sb_connection *connection, const char *name);
/* Where the first message is that a selector matches and that nobody has; SB_EMPTY.  Whatever its
 * group, also in a paused queue: this is not for a consumer. */
int64_t sb_find_selected(sb_queue *queue, sb_selection *wanted);
/* The same, take the message at this position: SB_GONE, it is done with already; SB_REVOKED,
 * somebody else has it. */
int64_t sb_take_at(sb_queue *queue, int64_t position, sb_message *message);
/* As if this message had not been taken: sb_give_back, and it is no delivery. */
int64_t sb_untake(sb_queue *queue, sb_message *message);
/* Messages that were taken, as records of the journal's format (ipc/queue/records.c): how many
 * bytes they need, and the records, into a buffer of 8 bytes aligned. */
int64_t sb_records_room(const sb_message *messages, int64_t count);
void sb_records_of(const sb_message *messages, int64_t count, void *buffer);
/* Wait until it is decided to which node a message goes.  SB_OK: it is, or nobody has to. */
int64_t sb_group_decided(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns);
/* sb_get and sb_receive without waiting: they look so many times. */
int64_t sb_look(sb_queue *queue, sb_message *message, int64_t looks);
int64_t sb_look_and_receive(sb_queue *queue, sb_room *room, int64_t looks);
/* sb_get_many as far as the bodies fit, but for the first. */
int64_t sb_get_fitting(sb_queue *queue, sb_message *messages, int64_t count, int64_t bytes,
                       int64_t timeout_ns);
int64_t sb_queue_reference(sb_queue *queue);
/* What is new for as long as the vhost is there: the key of its hashes. */
void sb_queue_identity(sb_queue *queue, int64_t identity[2]);
/* How far messages have passed from one queue to another, for who looks at signals meanwhile. */
typedef struct sb_passage {
    int64_t most, deadline;
    int64_t waits, copies;
    sb_chooser chooses;
    void *context;
    int64_t position, tail; /* where it goes on, and ends.  A caller may say where it begins; behind
                             * what may not be taken yet it does not go */
    int64_t done;           /* messages */
    int64_t target;         /* of another node, whose queue they are for; 0: none */
    int64_t flags;          /* 1: what was delivered before says so there; else it begins anew */
    int64_t is_left;        /* 1: the last of them is moved, and comes when there is room */
} sb_passage;
void sb_pass_begin(sb_passage *made, int64_t most, int64_t timeout_ns, sb_chooser chooses,
                   void *context, int64_t copies);
/* SB_INTERRUPTED: call it again; SB_FULL: there was no room for so long. */
int64_t sb_pass(sb_queue *from, sb_queue *to, sb_passage *told);
/* What changes when messages come, come back or go.  Nothing is counted: it takes as long whatever
 * the queue has. */
typedef struct sb_queue_changes {
    int64_t head, tail; /* what is done with may be between them */
    int64_t given_back, revoked;
    int64_t consumers;
} sb_queue_changes;
int64_t sb_changes(sb_queue *queue, sb_queue_changes *told);
/* Head and tail of a queue by its row, without mapping its ring: equal if it is empty. */
int64_t sb_glance(sb_connection *connection, int64_t reference, int64_t *head, int64_t *tail,
                  int64_t *paused);

/* What the histograms of a queue can tell apart; times in ns. */
struct sb_histograms {
    int64_t number;  /* of those that there are: changes with the range; 0: there are none */
    int64_t lowest, highest, digits;
    int64_t length;  /* how many counts each kind has; one more is of what fits in none */
    int64_t recording; /* 1: times are recorded now */
    int64_t kinds;     /* how many: SB_PUBLISH_DURABLE is of durable queues */
};
int64_t sb_histograms_told(sb_connection *connection, int64_t reference, sb_histograms *told);
/* The counts of one kind, SB_PUBLISH_TAKE, ...: SB_GONE if the histograms are not those
 * of this number.  Room for told.length + 1. */
int64_t sb_counts(sb_connection *connection, int64_t reference, int64_t number, int64_t kind,
                  int64_t *counts);
"""


def enumerators() -> list[str]:
    """What sb_wait.position and sb_wait.returned may be, and levels of confirms."""
    return [
        *(f"    SB_CONFIRM_{name.upper()} = {level}," for name, level in LEVELS),
        "    SB_A_MESSAGE = -1,",
        "    SB_ROOM = -2,",
        "    SB_ANY_NUMBER = -1,",
        "    SB_CONFIRMED = -3,",
        "    SB_CONFIRMED_DISK = SB_CONFIRMED - SB_CONFIRM_DISK,",
        "    SB_CONFIRMED_REPLICATED = SB_CONFIRMED - SB_CONFIRM_REPLICATED,",
        "    SB_CONFIRMED_BOTH = SB_CONFIRMED - (SB_CONFIRM_DISK | SB_CONFIRM_REPLICATED),",
    ]
