/* A ring: a queue as memory.  Handles of queues and the lanes in which threads use them, publishing
 * with all that a queue's settings ask for, waiting, expiry, groups, duplicates, limits, histograms
 * of times; and how handles of deleted queues are let go of.  It stands on vhost and message. */

#ifndef SHMBROKER_RING_ROOM_H
#define SHMBROKER_RING_ROOM_H

#include "base/base.h"
#include "vhost/vhost.h"

/* --- latency.c -------------------------------------------------------------------------------- */

/* The clock of a lane, and where it counts times; all zero but for the queue at first. */
typedef struct recorder {
    stamp_clock clock; /* this and what follows: see L_RECORDING_* */
    int64_t number;
    int64_t where[(L_RECORDING_BYTES - L_RECORDING_COUNTS) / 8];
    int64_t refused; /* number of the histograms that cannot be used */
    int64_t stripe;  /* that is ours, 0 everybody's */
    int64_t kinds;   /* how many are counted, from the first on */
    segment histograms;
    sb_queue *queue;
} recorder;
_Static_assert(offsetof(stamp_clock, cycles) == L_CLOCK_CYCLES &&
               offsetof(stamp_clock, window) == L_CLOCK_WINDOW &&
               offsetof(stamp_clock, factor) == L_CLOCK_FACTOR &&
               offsetof(stamp_clock, base_ns) == L_CLOCK_BASE &&
               offsetof(recorder, number) == L_RECORDING_NUMBER &&
               offsetof(recorder, where) == L_RECORDING_COUNTS, "as the kernels have it");
/* Unmap, and let another have the stripe; or only unmap, if our participant has left. */
void recorder_close(recorder *closed);
void recorder_free(recorder *freed);
/* Whether times of the queue are to be recorded, now and here. */
bool recorder_is_asked(const recorder *with);
/* Count how long it is since these moments (CHUNK_PUBLISHED_AT). */
void recorder_count(recorder *with, int64_t kind, const int64_t *since, int64_t count);
/* The dead one counts no more: how many stripes it had. */
int64_t latency_repair(sb_queue *queue, int64_t dead);
/* Its ring is about to go: the number of its histograms is in there. */
void latency_remove(sb_connection *connection, int64_t reference);

/* --- spinning.c ------------------------------------------------------------------------------- */

/* Whether the waits of one kind in one lane spin.  The words are those of core/spinning.py. */
typedef struct spinning {
    int64_t words[L_SPINNING_BYTES / 8];
    _Atomic int64_t spins, won; /* how many did, and how many of them found something */
} spinning;
/* What it was in vain for is told: its words are changed if it matters. */
void spinning_in_vain(const sb_connection *connection, spinning *how);

/* How many times connection->spins a wait looks before it sleeps. */
static inline int64_t spinning_times(const sb_connection *connection, spinning *how)
{
    if (connection->spins == 0)
        return 0;
    return how->words[L_SPINNING_PATIENCE / 8] > 0 || !connection->spins_as_it_pays
               ? 1 : sb_spinning_times(how->words, sb_system_clock());
}

/* Whether it found something, and whether it did in the first of its times. */
static inline void spinning_tell(const sb_connection *connection, spinning *how, bool won,
                                 bool soon)
{
    /* one thread at a time is in the lane: no locked operation */
    atomic_store_explicit(&how->spins, how->spins + 1, memory_order_relaxed);
    if (!won) {
        spinning_in_vain(connection, how);
        return;
    }
    atomic_store_explicit(&how->won, how->won + 1, memory_order_relaxed);
    if (soon && how->words[L_SPINNING_PATIENCE / 8] < L_SPINNING_PATIENCE_MAX)
        sb_spinning_won(how->words);
}
#define LANES 64
enum { IDLE, IN, ON_LOAN, SHUT }; /* what a lane is */

/* --- read_only.c ------------------------------------------------------------------------------ */

/* SB_OK; SB_READ_ONLY: it follows a queue of another broker, and only its applier changes it. */
int64_t read_only_code(const sb_queue *queue);

/* --- handle.c --------------------------------------------------------------------------------- */

/* Why it is not usable, told as well. */
int64_t queue_unusable(sb_queue *queue);
/* A handle of the queue with this reference, its ring mapped. */
int64_t queue_map(sb_connection *connection, int64_t reference, sb_queue **queue);
/* Whether a queue that cannot be used for this reason is of no use to anybody; then the log says
 * who leaves it out. */
bool ring_is_lost(sb_connection *connection, int64_t code, const char *who);
void queue_note_first_use(sb_queue *queue, int64_t use);
/* Our participant takes what this selector matches; one that has no place counts as all. */
void queue_tell_selector(sb_queue *queue, const void *text, int64_t length);
/* Unmap the ring; the mutex is held, and nobody is in a lane, or looks. */
void queue_unmap(sb_queue *queue);
void queue_free(sb_queue *queue);
/* A field of a port, by its offset (L_PORT_*). */
int64_t *port_field(sb_port *port, int64_t at);
/* Put memory behind a part of its segment that has none yet. */
int64_t ring_allocate(sb_queue *queue, int64_t start, int64_t bytes, const char *what);

/* --- lane.c ----------------------------------------------------------------------------------- */

typedef struct lane lane;

/* A port, and whether a thread is in it.  The thread that finds it idle takes it; so several
 * threads may use one handle, and each publishes and waits in a port of its own. */
struct lane {
    _Atomic int64_t busy;
    int64_t bytes_left; /* to be published before the queue's bytes are counted again */
    spinning for_message, for_room;
    recorder recorder;
    lane *next; /* of those that are idle in the connection */
    sb_port port;
};

struct sb_queue {
    sb_connection *connection;
    segment ring;
    int64_t reference;
    int64_t slots;
    int64_t ttl_ns, ttl_min_ns, ttl_max_ns, max_messages, max_bytes, when_full; /* settings */
    int64_t buckets; /* of message groups, 0: none */
    int64_t grouped; /* 1: what a message's group is, is looked up when it is published */
    _Atomic int64_t rank;      /* our priority among its consumers */
    _Atomic int64_t consuming; /* how many sb_consume_begin there were, less those that ended */
    int64_t max_producer_bytes, slow_consumer_ns;
    bool last_value, non_destructive, durable;
    struct slow_watch *watch; /* what was seen of its consumers; NULL until somebody looks */
    int64_t auto_delete_ns; /* 0: it is not deleted by itself */
    int64_t plain;          /* 1: publishing a plain message asks nothing of what is above */
    int64_t redelivery_ns;  /* 0: what comes back is redelivered at once */
    sb_queue *_Atomic schedule; /* once we know it */
    sb_queue *_Atomic inbox;    /* the same */
    _Atomic int64_t asides_from; /* position at which to begin with what was set aside */
    int64_t pages;              /* 1: what finds no room goes to its inbox */
    _Atomic int64_t attended;   /* our mover looks after it */
    _Atomic int64_t counted;    /* of a schedule: below this position there is room */
    int64_t key[2];         /* of its hashes: its own, and random */
    char name[L_NAME_BYTES_MAX + 1];
    const void *row;       /* the catalog's word for it */
    int64_t live;          /* what its upper half is until the queue is deleted */
    _Atomic int64_t shut;  /* 1 while its lanes are being closed, 2 when they are */
    _Atomic int64_t gone;  /* deleted: SB_NOT_FOUND, else 0 */
    _Atomic int64_t uses;  /* USE_* bits that our participant's list has */
    int64_t promises; /* publishes of open transactions of ours, if it is deleted by itself; with
                         the connection's mutex */
    /* by threads of ours that serve it: until they let go, its memory stays */
    _Atomic int64_t held;
    /* calls, and services of mover.c, that look at its ring outside of a lane */
    _Atomic int64_t looks;
    _Atomic int64_t opened; /* handles that the program has, and routes and transactions of ours */
    _Atomic int64_t leaves; /* 1: no look begins any more, its ring is unmapped or about to be */
    /* with the connection's mutex: */
    bool forgotten;         /* our participant does not list it any more */
    int64_t ports;          /* lent to compiled loops */
    int64_t left_count;     /* messages that were in hand when the ring was unmapped, -1 unknown, */
    struct left_message *left; /* and which */
    sb_queue *next, **link;    /* in one of the connection's lists */
    _Atomic int64_t lanes_made;
    lane *_Atomic lanes[LANES + 1]; /* the last one: lane_to_deal */
};
/* A setting of the queue: the word at this offset of its ring. */
static inline int64_t setting(const sb_queue *queue, int64_t at)
{
    return word_load(queue->ring.memory, at);
}
/* An idle lane for this thread, or a code in *code and NULL. */
lane *lane_search(sb_queue *queue, int64_t *code);
/* The same for a thread that is in another lane, holds commit_mutex, or is the mover: if we were
 * expelled, whoever calls next leaves.  To leave waits for all lanes, for commits and the mover. */
lane *lane_beside(sb_queue *queue, int64_t *code);
/* The same, after SB_TOO_MANY_LOANS, for who deals with a message that was taken: there is one more
 * lane, in which nobody waits for long, so nothing stays in hand for want of one. */
lane *lane_to_deal(sb_queue *queue, int64_t *code);

/* Whoever deletes a queue tells everybody by the word of its row. */
static inline bool queue_is_usable(sb_queue *queue, int64_t *code)
{
    *code = SB_OK;
    if (atomic_load_explicit(&queue->connection->closed, memory_order_acquire) == SB_OK &&
        atomic_load_explicit(&queue->gone, memory_order_acquire) == SB_OK &&
        word_load(queue->row, 0) >> L_ROW_GENERATION_SHIFT == queue->live)
        return true;
    *code = queue_unusable(queue);
    return false;
}
static inline void queue_looked(sb_queue *queue)
{
    atomic_fetch_sub(&queue->looks, 1);
}
/* It was deleted. */
static inline bool queue_is_gone(const sb_queue *queue)
{
    return word_load(queue->row, 0) >> L_ROW_GENERATION_SHIFT != queue->live;
}
/* No lane: NULL. */
lane *lane_refuse(sb_queue *queue);
static inline void lane_leave(lane *left)
{
    atomic_store_explicit(&left->busy, 0, memory_order_release);
}
/* The same, unless commit_at_once has lent it. */
static inline void lane_part(lane *left)
{
    int64_t in = IN;
    atomic_compare_exchange_strong(&left->busy, &in, IDLE);
}

/* lane_search, looking at the first lane first. */
static inline lane *lane_enter(sb_queue *queue, int64_t *code)
{
    lane *first = atomic_load_explicit(&queue->lanes[0], memory_order_acquire);
    int64_t idle = 0;
    if (!first || !atomic_compare_exchange_strong(&first->busy, &idle, 1))
        return lane_search(queue, code);
    /* whoever closes sets `closed`, then waits for the busy: so one of us sees the other */
    if (queue_is_usable(queue, code))
        return first;
    lane_leave(first);
    return lane_refuse(queue);
}
typedef int64_t (*wait_for)(sb_port *port, int64_t deadline);
/* The word of the slot of a position. */
static inline int64_t slot_word(const sb_queue *queue, int64_t position)
{
    return word_load(queue->ring.memory,
                     L_RING_SLOTS_START + ((position & (queue->slots - 1)) << L_SLOT_SHIFT));
}
/* Whether its messages may go to other nodes; in a lane, or while the queue is looked at. */
static inline bool is_balanced(const sb_queue *queue)
{
    return word_load(queue->ring.memory, L_RING_BALANCE_AT) != 0;
}
/* Start to fetch it. */
static inline void slot_prefetch(const sb_queue *queue, int64_t position)
{
    __builtin_prefetch((const char *)queue->ring.memory + L_RING_SLOTS_START +
                       ((position & (queue->slots - 1)) << L_SLOT_SHIFT));
}
/* One more of a counter of its ring. */
static inline void ring_count(sb_queue *queue, int64_t counter)
{
    atomic_fetch_add((_Atomic int64_t *)((char *)queue->ring.memory + counter), 1);
}
/* Somebody uses it. */
static inline void queue_used(sb_queue *queue)
{
    if (queue->auto_delete_ns)
        word_store(queue->ring.memory, L_RING_USED_AT, sb_system_clock());
}
/* Our participant's list says what we do with the queue, for people to see. */
static inline void queue_note_use(sb_queue *queue, int64_t use)
{
    queue_used(queue);
    if (use & ~atomic_load_explicit(&queue->uses, memory_order_relaxed))
        queue_note_first_use(queue, use);
}
/* Wait until no thread is in it, and return its ports' memory.  No thread enters any more.  The
 * caller looks at it. */
void queue_shut(sb_queue *queue);
/* Close the port of a lane that nobody is in, or enters any more. */
void lane_shut(lane *idle);
/* A lane with its port open; the mutex is held.  `is_room`: there may be one more. */
lane *lane_open(sb_queue *queue, bool is_room, int64_t *code);

/* --- forget.c --------------------------------------------------------------------------------- */

/* This participant uses the queue no more; under the catalog's lock.  The last one who used a queue
 * that was deleted frees its memory. */
void participant_forgets(sb_connection *connection, int64_t id, int64_t reference);

/* --- group.c ---------------------------------------------------------------------------------- */

/* What the chunk says of the group of a message with these properties; 0: it has none. */
int64_t group_of(const void *properties, int64_t length);
/* We have begun to consume this queue. */
void group_join(sb_queue *queue);

/* --- doomed.c --------------------------------------------------------------------------------- */

/* Under the catalog's lock: mark the queue, to be deleted now.  False: it is not empty, or is about
 * not to be, and is not marked. */
bool doomed_if_empty(sb_queue *queue);
/* A transaction that is open will publish there: it is not deleted for want of use before as many
 * calls of the other one.  SB_OK, or SB_NOT_FOUND: it was deleted.  The caller looks at it. */
int64_t queue_promise(sb_queue *queue);
void queue_promised_no_more(sb_queue *queue);
/* Whether one will, of whichever participant. */
bool is_promised(const sb_queue *queue);
/* What a publish that went well is to answer, by a queue that may be about to be deleted. */
int64_t auto_delete_outcome(sb_queue *queue, int64_t code);

/* --- deleted.c -------------------------------------------------------------------------------- */

/* Let go of deleted queues, as far as nobody is in a call with them: of all, or of some.  False:
 * another process has the catalog's lock, and it is to be tried again. */
bool deleted_forget(sb_connection *connection, bool waits);
void deleted_some(sb_connection *connection);
/* This queue was deleted by us just now; the caller looks at it, and no longer does after this. */
void deleted_shut(sb_queue *queue);
/* The mutex is held: this handle, out of the table of rows, is one of a deleted queue. */
void deleted_add(sb_queue *queue);
/* A call for a message that is still in hand has found its queue deleted: it is in hand no more. */
void deleted_dealt_with(sb_queue *queue, const sb_message *message);
/* At the end of the connection. */
void deleted_free(sb_connection *connection);
/* Whoever looks at its ring and is in none of its lanes does so between these two, or holds the
 * connection's mutex: so nobody looks at memory that is no longer there.  False, with a code: the
 * queue was deleted, or the connection closed. */
bool queue_look(sb_queue *queue, int64_t *code);
/* The same, also of a queue that was deleted, or when the connection is closed, as long as its ring
 * is mapped. */
bool queue_look_late(sb_queue *queue);

/* --- duplicates.c ----------------------------------------------------------------------------- */

/* SipHash-2-4, with 128 bits. */
void siphash_128(const int64_t key[2], const void *bytes, int64_t length, uint64_t hash[2]);
/* By what a queue with this key knows an id, and a named producer. */
void id_hash(const int64_t key[2], const void *id, int64_t length, int64_t identity[2]);
int64_t producer_hash(const int64_t key[2], const void *name, int64_t length);
/* A message with an id or a producer: its position, SB_DUPLICATE, or another code. */
int64_t once_publish(sb_queue *queue, sb_port *port, const sb_outgoing *message,
                     const int64_t *extension);
/* What goes to an agent says there whether ids are compared: a program may set that property. */
int64_t target_with_id(int64_t target);
/* A message of a stream from elsewhere, with the number that the port is at: if its properties have
 * an id, it is compared. */
int64_t once_publish_poured(sb_queue *queue, sb_port *port, const sb_outgoing *message,
                            const int64_t *extension);
/* There is no room for it: SB_DUPLICATE if there need be none, else SB_FULL, or what is wrong. */
int64_t once_refused(sb_queue *queue, sb_port *port, const sb_outgoing *message);
/* A chunk for such a message, to be lent: its offset. */
int64_t once_reserve(sb_queue *queue, sb_port *port, const sb_outgoing *message,
                     const int64_t *extension);
/* Whether a chunk is of once_reserve; then it is published so.  After SB_DUPLICATE as well it is on
 * loan no more. */
bool is_once(const void *chunk);
int64_t once_publish_loan(sb_queue *queue, sb_port *port, int64_t chunk, const void *memory);
/* The same in a queue that has no room: SB_DUPLICATE, or SB_FULL and the loan is as it was. */
int64_t once_refused_loan(sb_queue *queue, sb_port *port, int64_t chunk, const void *memory);
/* What we have taken is a duplicate, and has left the ring. */
bool once_withdraw(sb_port *port, sb_message *message);
/* Why the queue knows no named producers. */
int64_t no_numbers(const sb_queue *queue);

/* --- expiry.c --------------------------------------------------------------------------------- */

/* A message that expires then was published, or given back (core/expiry.py). */
static inline void expiry_note(sb_queue *queue, int64_t expiry)
{
    sb_expiry_note(queue->ring.memory, expiry);
}
/* There may be any: the next search looks. */
static inline void expiry_unknown(sb_queue *queue)
{
    sb_expiry_unknown(queue->ring.memory);
}
/* Whether a message that was taken has expired. */
bool is_expired(const sb_message *message);
/* There may be such messages, and queue_expire would try them again. */
bool aside_is_due(sb_queue *queue);
/* When a message that was taken expires, 0 never. */
int64_t message_expiry(const sb_message *message);

/* --- due.c ------------------------------------------------------------------------------------ */

/* The address of its due word. */
int64_t due_word(const sb_queue *schedule);
/* A message that is due then was put into it. */
void schedule_note(sb_queue *schedule, int64_t due);
/* If this ring is a schedule: somebody may have put something into it, and not noted it. */
void schedule_unknown(sb_queue *ring);

/* --- last_value.c ----------------------------------------------------------------------------- */

/* How many messages it may hold, so that there is room for what is carried. */
void last_value_limit(sb_queue *queue);
/* Of its slots, those that are not for what is carried. */
int64_t slots_for_news(const sb_queue *queue);
/* Of how many of these a message of this key may be one: of all if the key is there. */
int64_t last_value_most(const sb_queue *queue, sb_port *port, const void *key,
                        int64_t key_length);
/* Whether there is room for a message of this key: SB_OK, or SB_FULL. */
int64_t last_value_room(sb_queue *queue, sb_port *port, const void *key, int64_t key_length);
/* Make room for so many, where `most` may be, among what was replaced: whether there is now. */
bool last_value_carry(sb_queue *queue, sb_port *port, int64_t most, int64_t count);

/* --- idle_lane.c ------------------------------------------------------------------------------ */

/* A lane of no queue, whose port is to be opened; NULL, with a code.  The mutex is held. */
lane *lane_new(sb_connection *connection, int64_t *code);
/* It is SHUT, and its port closed.  Whoever still knows it finds a port that answers SB_CLOSED.
 * Its memory stays what it is until the connection is freed.  The mutex is held. */
void lane_drop(sb_connection *connection, lane *dropped);
void lanes_free(sb_connection *connection);

/* --- wait.c ----------------------------------------------------------------------------------- */

/* Wait in a lane: SB_OK to try again, or what to answer.  Between two sleeps the waiter repairs
 * what the dead have left: one of them may hold what it waits for. */
int64_t wait_in(sb_queue *queue, sb_port *port, wait_for kernel, int64_t deadline);
/* By which a producer waits until it is worth trying again. */
wait_for wait_kernel(const sb_queue *queue);
/* Sleep until it is worth trying to publish again: SB_OK, or why not. */
int64_t queue_wait_for_room(sb_queue *queue, lane *in, int64_t deadline);

/* --- publish.c -------------------------------------------------------------------------------- */

/* A publish is done: its position, or SB_NOT_FOUND if the queue was deleted meanwhile. */
static inline int64_t queue_published(sb_queue *queue, int64_t code)
{
    return code >= 0 && queue->auto_delete_ns ? auto_delete_outcome(queue, code) : code;
}
/* Publish in this ring, also if it pages. */
int64_t ring_publish(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns);
int64_t ring_publish_many(sb_queue *queue, const void *bodies, const int64_t *lengths,
                          int64_t count, int64_t timeout_ns);
/* After this code: make room, in the queue or in the arena; whether it is worth trying again. */
bool queue_gets_room(sb_queue *queue, lane *in, const sb_outgoing *message, int64_t code);
/* Publish without waiting, as the queue's settings want it. */
int64_t queue_offer(sb_queue *queue, lane *in, const sb_outgoing *message);

/* --- reserve.c -------------------------------------------------------------------------------- */

/* A chunk for a message of this shape, with what the settings give it: its offset, or a code. */
int64_t queue_reserve(sb_queue *queue, sb_port *port, const sb_outgoing *shape);
/* After this code: what holds no message is returned; whether it is worth trying again. */
bool queue_gets_memory(sb_queue *queue, int64_t code);
/* What a chunk has beyond its header, with its expiry there already; NULL if that is nothing. */
const int64_t *message_extension(const sb_queue *queue, const sb_outgoing *message,
                                 int64_t extension[4]);

/* --- limits.c --------------------------------------------------------------------------------- */

/* Until when a message with this time to live may be delivered there, 0 for ever. */
int64_t queue_expiry(const sb_queue *queue, int64_t ttl_ns);
/* Whether its limits leave room for this one: SB_OK, SB_FULL or SB_TOO_LARGE. */
int64_t queue_within(sb_queue *queue, lane *in, const sb_outgoing *message);
/* It is full for this one: drop what nobody is to get any more; whether it is worth trying
 * again. */
bool queue_make_room(sb_queue *queue, lane *in, const sb_outgoing *message);
/* The same for so many, of a queue of last values where `most` may be. */
bool queue_make_room_for(sb_queue *queue, lane *in, int64_t most, int64_t count);
/* The same, by the limits of the settings alone, if there are any (is_limited). */
int64_t within_limits(sb_queue *queue, lane *in, const sb_outgoing *message);
bool is_limited(const sb_queue *queue);

/* --- block.c ---------------------------------------------------------------------------------- */

/* Free all blocks of a queue that was deleted and that nobody uses. */
void blocks_drop(sb_connection *connection, int64_t row);
/* The same of all rows whose bit is set, of L_QUEUE_MASK + 1 bits. */
void blocks_drop_marked(sb_connection *connection, const int64_t *marks);
/* Somebody lacks memory: return what holds no message, empty runs of ours and sealed blocks of
 * queues that we use: how many.  `heads`, or NULL: L_QUEUE_MASK + 1 words, all 0; -1 afterwards
 * where a queue that we do not use has sealed blocks. */
int64_t memory_return(sb_connection *connection, int64_t *heads);
/* Less than a quarter of it is left. */
bool arena_is_short(sb_connection *connection);

/* --- confirmed.c ------------------------------------------------------------------------------ */

/* Of a durable queue: all below this position is confirmed. */
int64_t confirmed_below(const sb_queue *queue);
/* Of L_REPLICATE_*: messages too.  What nobody has said is so if there is another member at all. */
static inline bool replicate_is_all(int64_t said)
{
    return said != L_REPLICATE_NONE && said != L_REPLICATE_CONFIGURATION;
}

/* Other members of a replicated node, if there are any, have its messages when they take over. */
bool is_replicated(const sb_queue *queue);
/* What is at this position is confirmed, or the queue is not durable. */
bool is_confirmed(const sb_queue *queue, int64_t position);

#endif
