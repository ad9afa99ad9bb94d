/* What the C files of the library share with each other, and with nobody else. */

#ifndef SHMBROKER_SHARED_H
#define SHMBROKER_SHARED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout.h"
#include "shmbroker.h"

#define NAME_ROOM 384 /* a path in /dev/shm */

/* --- words of shared memory -------------------------------------------------------------------- */

static inline int64_t word_load(const void *memory, int64_t at)
{
    return atomic_load_explicit((_Atomic int64_t *)((char *)memory + at), memory_order_acquire);
}

static inline void word_store(void *memory, int64_t at, int64_t value)
{
    atomic_store_explicit((_Atomic int64_t *)((char *)memory + at), value, memory_order_release);
}

/* --- detail.c: what a code alone does not tell -------------------------------------------------- */

int64_t fail(int64_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* SB_SYSTEM or SB_NO_MEMORY, with errno's text behind ours. */
int64_t fail_system(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* --- system.c ----------------------------------------------------------------------------------- */

#define WAIT_WORDS_MAX 128 /* the kernel's FUTEX_WAITV_MAX */
#define TURN_NS 2000000

typedef struct system_word {
    int64_t address, value;
} system_word;

/* sb_system_wait for several words: until one is woken or has another value, or the deadline.  A
 * kernel without FUTEX_WAITV sleeps on one of them, for TURN_NS at most, and says SB_OK. */
int64_t system_wait_any(const system_word *words, int64_t count, int64_t deadline);

/* --- segment.c: files in /dev/shm that are mapped ----------------------------------------------- */

typedef struct segment {
    void *memory;
    int64_t bytes;
    int file;
} segment;

/* Make a segment under a temporary name, with memory behind its first `committed` bytes. */
int64_t segment_make(segment *made, char *temporary, int64_t bytes, int64_t committed);
/* Give it its name: SB_EXISTS if another has it.  The mapping stays. */
int64_t segment_name(const char *temporary, const char *path);
/* Map a segment that exists, at least `bytes_min` long. */
int64_t segment_attach(segment *attached, const char *path, int64_t bytes_min);
void segment_detach(segment *attached);
int64_t realtime_ns(void);
int64_t monotonic_deadline(int64_t timeout_ns);

/* --- vhost.c ------------------------------------------------------------------------------------ */

bool vhost_name_is_good(const char *name);
void vhost_path(char *path, const char *vhost, const char *kind);
void queue_path(char *path, const char *vhost, int64_t reference);
int64_t boot_hash(void);

/* --- connection.c ------------------------------------------------------------------------------- */

#define ADDRESSEES 256

struct sb_connection {
    char vhost[L_CATALOG_NAME_BYTES_MAX + 1];
    segment catalog, arena, participants;
    int64_t id;            /* ours, as a participant */
    int lock_file;         /* holds the lock on our byte for as long as we live */
    int sweep_file;        /* another description of the same file: whose byte it locks is dead */
    int catalog_lock_file; /* holds the catalog's lock while we change it */
    _Atomic int64_t closed; /* 0, or the code that every call answers */
    int64_t spins;
    pthread_mutex_t mutex;  /* handles, our list of queues, the catalog's lock within the process */
    pthread_mutex_t repair; /* one thread at a time sweeps for us */
    sb_queue **queues;      /* by row */
    sb_queue *stale;        /* handles to queues that were deleted: freed with the connection */
    sb_exchange *exchanges;
    struct requester *_Atomic requesters;      /* queues for replies to us: request.c */
    struct addressee *addressees[ADDRESSEES]; /* queues that we have replied to: reply.c */
    sb_connection *next;    /* all connections of this process, for fork */
};

/* Whether it may change the catalog: SB_OK or why not. */
int64_t change_code(sb_connection *connection);
int64_t connection_lock(sb_connection *connection);
void connection_unlock(sb_connection *connection);
/* Text of 1 to 255 bytes that may be a name. */
int64_t name_check(const char *kind, const char *name);
/* The handle of the queue with this reference; the connection's mutex is held. */
int64_t queue_handle(sb_connection *connection, int64_t reference, sb_queue **queue);
int64_t exchange_close(sb_exchange *exchange);
/* Whether such a queue can be declared: before the lock is taken. */
int64_t queue_check(sb_connection *connection, const char *name, int64_t slots);
/* Make a queue, or find it just so: its reference.  This and what follows: under the lock. */
int64_t queue_declare(sb_connection *connection, const char *name, int64_t slots,
                      const sb_settings *settings, int64_t flags);
/* It is no more; whoever is in one of its lanes finds out. */
void queue_remove(sb_connection *connection, int64_t reference);
/* The reference of an exchange, or SB_NOT_FOUND with what to do. */
int64_t exchange_reference(sb_connection *connection, const char *name);
int64_t binding_add(sb_connection *connection, const sb_binding *asked);

/* --- tidy.c ------------------------------------------------------------------------------------- */

/* The reference that the row of a queue has, or will have once it is live. */
int64_t row_next_reference(sb_connection *connection, int64_t row);
/* No queue is here, and nobody uses the one that was. */
bool row_is_deserted(sb_connection *connection, int64_t row);
/* Remove what is left of changes that a death cut short; under the catalog's lock. */
void catalog_tidy(sb_connection *connection);

/* --- participant.c ------------------------------------------------------------------------------ */

int64_t participant_join(sb_connection *connection, const char *name);
void participant_leave(sb_connection *connection);
/* Note that we use this queue; before its ring is touched. */
int64_t participant_uses(sb_connection *connection, int64_t reference, int64_t use);
/* This participant uses the queue no more; under the catalog's lock.  The last one who used a queue
 * that was deleted frees its memory. */
void participant_forgets(sb_connection *connection, int64_t id, int64_t reference);
/* A descriptor that tells of the participant's death, -1 if there can be none. */
int participant_pidfd(const char *entry);
/* How many use this queue so; with use 0: how many others use it at all. */
int64_t participant_users(sb_connection *connection, int64_t reference, int64_t use);
/* Whether anybody uses this queue, we included. */
bool participant_used(sb_connection *connection, int64_t reference);
/* Whether its process runs: one that was killed and not yet repaired does not. */
bool participant_runs(sb_connection *connection, int64_t id);
/* Another who consumes this queue and may own it, 0 if there is none; under the catalog's lock. */
int64_t participant_heir(sb_connection *connection, int64_t reference, int64_t former);
static inline int64_t participant_at(int64_t id)
{
    return L_PARTICIPANTS_AT + id * L_PARTICIPANT_BYTES;
}

/* --- ownership.c: under the catalog's lock, but for ownership_end ------------------------------- */

bool ownership_begins_with(int64_t flags);
/* The queue of this entry belongs to a participant, if its row is or becomes live. */
void ownership_give(sb_connection *connection, int64_t entry, int64_t id);
/* The participant gives up a queue that it owns: whether it was deleted.  Its blocks wait until the
 * participant's list is gone through, or it forgets the queue itself. */
bool ownership_give_up(sb_connection *connection, int64_t row, int64_t id);
/* The participant leaves or is dead: what it owns is deleted, or goes to others. */
int64_t ownership_end(sb_connection *connection, int64_t id);

/* --- log.c -------------------------------------------------------------------------------------- */

void log_note(sb_connection *connection, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* --- stamp.c ------------------------------------------------------------------------------------ */

/* The time of day for a thread that asks often: counted in cycles from a moment that is not long
 * ago.  All zero at first. */
typedef struct stamp_clock {
    uint64_t cycles; /* at base_ns */
    uint64_t window; /* cycles from there for which the factor holds; 0: it is not known */
    uint64_t factor; /* nanoseconds a cycle, times 2^32 */
    int64_t base_ns;
} stamp_clock;

int64_t stamp_renew(stamp_clock *clock, uint64_t cycles);

static inline uint64_t stamp_cycles(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return 0;
#endif
}

static inline int64_t stamp_ns(stamp_clock *clock)
{
    uint64_t cycles = stamp_cycles(), since = cycles - clock->cycles;
    if (since < clock->window)
        return clock->base_ns + (int64_t)((since * clock->factor) >> 32);
    return stamp_renew(clock, cycles);
}

/* --- settings.c --------------------------------------------------------------------------------- */

/* Check settings, and write them into a ring whose page for them is all zero. */
int64_t settings_write(const sb_settings *settings, void *ring);
int64_t setting(const sb_queue *queue, int64_t at);
/* A queue's name in the settings: its length, 0 if there is none. */
int64_t setting_name(const sb_queue *queue, int64_t at, char *name);

/* --- properties.c: pairs of texts in MessagePack maps ------------------------------------------- */

#define PAIR_ROOM(name, value) (sizeof name + (value) + 4)

typedef struct text_pair {
    const char *name, *value;
    int64_t length; /* of the value, at most 255 */
} text_pair;

/* The text that a property has: its length, or -1. */
int64_t property_text(const void *properties, int64_t length, const char *name, const char **text);
/* Properties with two more pairs, in a buffer with room for both: their length, SB_INVALID if they
 * are no map, SB_TOO_LARGE. */
int64_t properties_with(unsigned char *made, const void *properties, int64_t length,
                        const text_pair *pairs, int count);

/* --- request.c, reply.c ------------------------------------------------------------------------- */

#define REPLY_TO "JMSReplyTo"
#define CORRELATION "JMSCorrelationID"
#define CORRELATION_BYTES 16

void request_free(sb_connection *connection);
void reply_shut(sb_connection *connection);
void reply_free(sb_connection *connection);
/* Whether a handle of reply.c is open for this queue; the connection's mutex is held. */
bool reply_goes_to(sb_connection *connection, int64_t reference);

/* --- departed.c --------------------------------------------------------------------------------- */

/* Let go of deleted queues that we only published to; no thread of ours is in their lanes. */
void departed_forget(sb_connection *connection);

/* --- dead_letter.c ------------------------------------------------------------------------------ */

typedef enum death { EXPIRED, REJECTED, SPENT } death;

/* A message that is ours goes where the dead of this queue go: SB_OK, SB_REVOKED if it was no longer
 * ours, or SB_FULL, and it is still ours. */
int64_t bury(sb_queue *queue, sb_port *port, sb_message *message, death reason);

/* --- expiry.c ----------------------------------------------------------------------------------- */

/* A message that expires then is about to be published. */
void expiry_note(sb_queue *queue, int64_t expiry);
bool is_expired(const sb_message *message);
/* Take what is expired, and bury it: how many. */
int64_t queue_expire(sb_queue *queue, sb_port *port);

/* --- queue.c ------------------------------------------------------------------------------------ */

#define LANES 64

/* A port, and whether a thread is in it.  The thread that finds it idle takes it; so several
 * threads may use one handle, and each publishes and waits in a port of its own. */
typedef struct lane {
    _Atomic int64_t busy;
    stamp_clock clock;
    int64_t bytes_left; /* to be published before the queue's bytes are counted again */
    sb_port port;
} lane;

struct sb_queue {
    sb_connection *connection;
    segment ring;
    int64_t reference;
    int64_t slots;
    int64_t ttl_ns, ttl_min_ns, ttl_max_ns, max_messages, max_bytes, when_full; /* settings */
    char name[L_NAME_BYTES_MAX + 1];
    const void *row;       /* the catalog's word for it */
    int64_t live;          /* what its upper half is until the queue is deleted */
    _Atomic int64_t shut;  /* 1 while its lanes are being closed, 2 when they are */
    _Atomic int64_t gone;  /* deleted: SB_NOT_FOUND, else 0 */
    _Atomic int64_t uses;  /* USE_* bits that our participant's list has */
    _Atomic int64_t lanes_made;
    lane *_Atomic lanes[LANES];
    sb_queue *next;
};

/* An idle lane for this thread, or a code in *code and NULL. */
lane *lane_search(sb_queue *queue, int64_t *code);
bool queue_is_usable(sb_queue *queue, int64_t *code);
static inline void lane_leave(lane *left)
{
    atomic_store_explicit(&left->busy, 0, memory_order_release);
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
    return NULL;
}

int64_t queue_map(sb_connection *connection, int64_t reference, sb_queue **queue);
/* Wait until no thread is in it, and return its ports' memory.  No thread enters any more. */
void queue_shut(sb_queue *queue);
void queue_free(sb_queue *queue);
int64_t queue_sweep(sb_queue *queue, int64_t dead);
/* Our participant's list says what we do with the queue, for people to see. */
void queue_notes_use(sb_queue *queue, int64_t use);
/* Sleep until it is worth trying to publish again: SB_OK, or why not. */
int64_t queue_wait_for_room(sb_queue *queue, lane *in, int64_t deadline);
/* Publish without waiting, as the queue's settings want it. */
int64_t queue_offer(sb_queue *queue, lane *in, const sb_outgoing *message);
/* Free all blocks of a queue that was deleted and that nobody uses. */
void blocks_drop(sb_connection *connection, int64_t row);
/* What a waiter does when it has slept for long: put right what the dead left in this ring. */
void queue_upkeep(sb_port *port);

#endif
