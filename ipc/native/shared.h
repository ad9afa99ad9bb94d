/* What the C files of the library share with each other, and with nobody else. */

#ifndef SHMBROKER_SHARED_H
#define SHMBROKER_SHARED_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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
/* A call begins that may answer a code without words: it is not to be told with those of an earlier one. */
void detail_forget(void);
/* SB_SYSTEM or SB_NO_MEMORY, with errno's text behind ours. */
int64_t fail_system(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A disk, a quota or a limit of a file's size leaves no room: there may be some later. */
static inline bool is_full_disk(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

/* --- system.c ----------------------------------------------------------------------------------- */

#define WAIT_WORDS_MAX 128 /* the kernel's FUTEX_WAITV_MAX */
#define TURN_NS 2000000

typedef struct system_word {
    int64_t address, value;
} system_word;

/* sb_system_wait for several words: until one is woken or has another value, or the deadline.  A
 * kernel without FUTEX_WAITV sleeps on one of them, for TURN_NS at most, and says SB_OK. */
int64_t system_wait_any(const system_word *words, int64_t count, int64_t deadline);

/* --- trust.c: whether what is in a file may be believed ------------------------------------------ */

#define NOBODY (-1)
#define TRUST_PATH_ROOM 4400 /* a folder's path and a name */

typedef struct trust {
    bool looks;     /* and believes nothing: root may look at what any user has */
    int64_t owner;  /* is believed like us and root; or NOBODY */
    int64_t group;  /* its members have what we have; or NOBODY */
    unsigned refused; /* bits of a mode that others may not have */
} trust;

/* Files of ours or root's that nobody else may read or write. */
extern const trust trust_segments;

/* Open a file in a folder, `in` for people (NULL: the name is a path): SB_UNTRUSTED if what is in it
 * cannot be believed; errno is set in any case. */
int64_t trusted_open(int folder, const char *in, const char *name, int how, const trust *whose,
                     int *file);
/* Files in this folder: its owner's, too, which on NFS may be what we are called there. */
trust trust_in(int folder);
int64_t trusted_segment(const char *path, int how, const trust *whose, int *file);
/* Why something could not be named so: SB_EXISTS, or SB_UNTRUSTED if we cannot remove it. */
int64_t trust_obstacle(const char *path);

/* --- segment.c: files in /dev/shm that are mapped ----------------------------------------------- */

typedef struct segment {
    void *memory;
    int64_t bytes;
    int file;
} segment;

/* Make a segment without a name, with memory behind its first `committed` bytes. */
int64_t segment_make(segment *made, int64_t bytes, int64_t committed);
/* Give it its name: SB_EXISTS if another has it.  The mapping stays. */
int64_t segment_name(const segment *made, const char *path);
/* Map a segment that exists, at least `bytes_min` long. */
int64_t segment_attach(segment *attached, const char *path, int64_t bytes_min,
                       const trust *whose);
void segment_detach(segment *attached);
int64_t realtime_ns(void);
int64_t monotonic_deadline(int64_t timeout_ns);

/* --- like.c ------------------------------------------------------------------------------------- */

/* Whether the operand of a LIKE is one that is_like takes. */
bool pattern_is_good(const uint8_t *pattern, int64_t length);
bool is_like(const uint8_t *text, int64_t length, const uint8_t *pattern, int64_t pattern_length);

/* --- thread.c ----------------------------------------------------------------------------------- */

/* Start a thread that gets no signals; "starting the thread of WHAT" failed otherwise. */
int64_t thread_start(pthread_t *started, void *(*work)(void *), void *context, const char *what);
/* The mask of the calling thread, for a moment: what it makes meanwhile gets no signals. */
void signals_block(sigset_t *before);
void signals_restore(const sigset_t *before);

/* --- vhost.c ------------------------------------------------------------------------------------ */

bool vhost_name_is_good(const char *name);
int64_t vhost_create(const char *vhost, int64_t arena_bytes, bool restoring);
void vhost_path(char *path, const char *vhost, const char *kind);
void queue_path(char *path, const char *vhost, int64_t reference);
int64_t boot_hash(void);

/* --- connection.c ------------------------------------------------------------------------------- */

#define ADDRESSEES 256

struct sb_connection {
    char vhost[L_CATALOG_NAME_BYTES_MAX + 1];
    segment catalog, arena, participants, transactions;
    int64_t id;            /* ours, as a participant */
    int lock_file;         /* holds the lock on our byte for as long as we live */
    int sweep_file;        /* another description of the same file: whose byte it locks is dead */
    int catalog_lock_file; /* holds the catalog's lock while we change it */
    _Atomic int64_t closed; /* 0, or the code that every call answers */
    _Atomic int64_t left;   /* 1: somebody is leaving for us, or has left */
    int64_t spins;         /* looks of a wait before it sleeps */
    bool spins_as_it_pays; /* nobody has said how long: spinning.c */
    bool waits_in_slices;  /* and answers SB_INTERRUPTED after each: the caller looks for signals */
    trust whose;   /* segments these may be */
    bool restores; /* the vhost; to others it does not exist until that is done */
    pthread_mutex_t mutex;  /* handles, our list of queues, the catalog's lock within the process */
    pthread_mutex_t repair; /* one thread at a time sweeps for us */
    pthread_mutex_t slow;   /* one thread at a time looks for slow consumers */
    pthread_mutex_t settle; /* one transaction of ours at a time is committed */
    int64_t stamp;          /* of the last one on durable queues, 0 if the last was on none */
    int64_t commits, settled; /* how many were committed, and how many of them have happened */
    bool has_record; /* there is memory behind it */
    sb_queue **queues;      /* by row */
    sb_queue *gone;         /* handles of deleted queues that are not let go of: departed.c */
    sb_queue *kept;         /* the same, let go of, until the program closes its handle */
    int64_t looked;         /* the row at which the next search for deleted queues begins */
    struct lane *idle, *idle_last; /* lanes of no queue, to be used again: lane.c */
    int64_t idle_count;
    struct lane *lent;      /* to compiled loops, as ports */
    sb_exchange *exchanges;
    struct requester *_Atomic requesters;      /* queues for replies to us: request.c */
    struct addressee *addressees[ADDRESSEES]; /* queues that we have replied to: reply.c */
    sb_pager *pager;     /* pages the queues of the vhost: pager.c */
    struct clerk *clerk; /* serves the schedules of our queues: clerk.c */
    sb_connection *next;    /* all connections of this process, for fork */
};

/* Whether the dead that go to `first` would come back to this queue, by way of others. */
bool leads_back(sb_connection *connection, const char *name, const char *first, int64_t setting_at);
/* Whether it may change the catalog: SB_OK or why not. */
int64_t change_code(sb_connection *connection);
int64_t connection_lock(sb_connection *connection);
/* The same, or SB_LOCKED at once if another process has the catalog's lock. */
int64_t connection_try_lock(sb_connection *connection);
void connection_unlock(sb_connection *connection);
/* Text of 1 to 255 bytes that may be a name. */
int64_t name_check(const char *kind, const char *name);
/* The handle of the queue with this reference; the connection's mutex is held. */
int64_t queue_handle(sb_connection *connection, int64_t reference, sb_queue **queue);
/* The same for who does not hold the mutex: to be left with queue_looked. */
int64_t queue_find(sb_connection *connection, int64_t reference, sb_queue **queue);
/* Delete the queue if this says so, under the catalog's lock. */
int64_t queue_delete_if(sb_connection *connection, const char *name, bool (*condition)(sb_queue *));
/* Make the queue if a pattern wants that: its reference, or SB_NOT_FOUND. */
int64_t queue_create(sb_connection *connection, const char *name);
int64_t exchange_close(sb_exchange *exchange);
/* Whether such a queue can be declared: before the lock is taken. */
int64_t queue_check(sb_connection *connection, const char *name, int64_t slots);
/* Make a queue, or find it just so: its reference.  This and what follows: under the lock. */
int64_t queue_declare(sb_connection *connection, const char *name, int64_t slots,
                      const sb_settings *settings, int64_t flags);
/* Make a queue with a page of settings, as settings_write has it: its reference. */
int64_t queue_add(sb_connection *connection, const char *name, int64_t slots, const char *settings,
                  int64_t flags);
/* One more gate, for the broker to adopt: before others know of the ring. */
void ring_add_gate(void *ring, int64_t position);
/* It is no more, nor are its schedule and its inbox; whoever is in one of their lanes finds out. */
void queue_remove(sb_connection *connection, int64_t reference);
/* The reference of an exchange, or SB_NOT_FOUND with what to do. */
int64_t exchange_reference(sb_connection *connection, const char *name);
int64_t binding_add(sb_connection *connection, const sb_binding *asked);

/* --- exchange.c --------------------------------------------------------------------------------- */

/* Queues that a message goes to; they stay valid until route_leave. */
typedef struct kept_route {
    uint64_t hash;
    int64_t key_length, properties_length, count;
    _Atomic int64_t users; /* messages on their way, and 1 while it is kept */
    sb_queue **queues;
    char bytes[]; /* key, then properties if the exchange looks at them */
} kept_route;

/* How many queues a message goes to, and which. */
int64_t exchange_route(sb_exchange *exchange, const sb_outgoing *message, kept_route **route);
void route_leave(kept_route *route);

/* --- tidy.c ------------------------------------------------------------------------------------- */

/* The reference that the row of a queue has, or will have once it is live. */
int64_t row_next_reference(sb_connection *connection, int64_t row);
/* No queue is here, and nobody uses the one that was. */
bool row_is_deserted(sb_connection *connection, int64_t row);
/* Remove what is left of changes that a death cut short; under the catalog's lock. */
void catalog_tidy(sb_connection *connection);

/* --- participant.c ------------------------------------------------------------------------------ */

int64_t participant_join(sb_connection *connection, const char *name, bool repairs);
void participant_leave(sb_connection *connection);
/* Note that we use this queue; before its ring is touched. */
int64_t participant_uses(sb_connection *connection, int64_t reference, int64_t use);
/* This participant uses the queue no more; under the catalog's lock.  The last one who used a queue
 * that was deleted frees its memory. */
void participant_forgets(sb_connection *connection, int64_t id, int64_t reference);
/* A descriptor that tells of the participant's death, -1 if there can be none. */
int participant_pidfd(const char *entry);
/* How many use this queue so. */
int64_t participant_users(sb_connection *connection, int64_t reference, int64_t use);
/* How many others have opened this queue for themselves: a deletion would disturb them. */
int64_t participant_others(sb_connection *connection, int64_t reference);
/* We look after all queues, and are in nobody's way. */
void participant_tends(sb_connection *connection);
/* Whether anybody uses this queue, we included. */
bool participant_used(sb_connection *connection, int64_t reference);
/* Whether its process runs: one that was killed and not yet repaired does not. */
bool participant_runs(sb_connection *connection, int64_t id);
/* Who writes the journal of the vhost; false: somebody else does.  It falls with the connection. */
bool participant_lock_journal(sb_connection *connection);
void participant_unlock_journal(sb_connection *connection);
/* The same for who pages its queues; and whether somebody does. */
bool participant_lock_pager(sb_connection *connection);
void participant_unlock_pager(sb_connection *connection);
bool participant_pager_runs(sb_connection *connection);
/* Another who consumes this queue and may own it, 0 if there is none; under the catalog's lock. */
int64_t participant_heir(sb_connection *connection, int64_t reference, int64_t former);
static inline int64_t participant_at(int64_t id)
{
    return L_PARTICIPANTS_AT + id * L_PARTICIPANT_BYTES;
}

/* Where it is noted how far our transaction is, or that of another. */
static inline void *participant_transaction(sb_connection *connection, int64_t id)
{
    return (char *)connection->participants.memory + participant_at(id) +
           L_PARTICIPANT_TRANSACTION_AT;
}

/* --- settlement.c ------------------------------------------------------------------------------- */

/* What a transaction does, in memory of our own until it is committed. */
typedef struct operation {
    sb_queue *queue;
    struct lane *lane; /* of a publish, else NULL */
    int64_t where;     /* the chunk's offset, or the message's position */
    int64_t word;      /* the chunk's origin, or our LEASED word */
    int64_t lease;     /* what was there before it was pledged, or SB_REVOKED */
} operation;

/* Commit these: SB_OK, SB_UNFINISHED, or a code after which nothing has happened; with SB_FULL the
 * queue that is.  Our settle mutex is held. */
int64_t record_commit(sb_connection *connection, operation *operations, int64_t count,
                      sb_queue **full);
/* Let all of what this participant has committed happen: SB_OK, or SB_UNFINISHED while a queue has
 * no room.  If it is another's, it is dead, and its byte is locked by us. */
int64_t record_settle(sb_connection *connection, int64_t id);

/* Commit these, and see them happen: the chunks are messages then, and their lanes may be left.  With
 * SB_UNFINISHED (the connection is being closed) their lanes are lent, for whoever does the rest. */
int64_t settle(sb_connection *connection, operation *operations, int64_t count);

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

int64_t stamp_renew(stamp_clock *clock);

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
    uint64_t since = stamp_cycles() - clock->cycles;
    if (since < clock->window)
        return clock->base_ns + (int64_t)((since * clock->factor) >> 32);
    return stamp_renew(clock);
}

/* Have a factor now, if need be by waiting 100 us for it. */
void stamp_settle(stamp_clock *clock);

/* --- settings.c --------------------------------------------------------------------------------- */

/* All of these take a page of settings as a ring, or as if it were in one: at L_RING_SETTINGS_AT. */
/* Check settings, and write what is given into a page that is all zero. */
int64_t settings_write(const sb_settings *settings, void *page);
/* Take over what a pattern has and the page has not, but for what is refused; *have: bits SB_SET_*. */
int64_t settings_inherit(void *page, const void *pattern, int64_t refused, int64_t *have);
void settings_default(void *page, int64_t have);
int64_t settings_agree(const void *page);
/* The same, once nothing is missing any more. */
int64_t settings_finished(const void *page);
/* How a ring with these settings is taken from: its RING_MODE. */
int64_t settings_mode(const void *page);
/* Whether what is asked for, and was written, is what a queue was declared as. */
bool settings_same(const void *asked, const void *there);
int64_t name_in(const void *page, int64_t at, char *name);
int64_t setting(const sb_queue *queue, int64_t at);
/* A queue's name in the settings: its length, 0 if there is none. */
int64_t setting_name(const sb_queue *queue, int64_t at, char *name);

/* --- pattern.c ---------------------------------------------------------------------------------- */

/* Complete the settings of a queue of this name with those of the patterns that match. */
int64_t patterns_apply(sb_connection *connection, const char *name, void *page);
/* Whether a queue of this name is to be made when somebody asks for it. */
bool patterns_create(sb_connection *connection, const char *name);
/* Remove what a death in the middle of a change has left. */
void patterns_tidy(sb_connection *connection);

/* --- group.c ------------------------------------------------------------------------------------ */

/* What the chunk says of the group of a message with these properties; 0: it has none. */
int64_t group_of(const void *properties, int64_t length);
/* We have begun to consume this queue. */
void group_join(sb_queue *queue);

/* --- auto_delete.c ------------------------------------------------------------------------------ */

/* Delete what is out of use, of so many queues (0: of all); or of some, in turns. */
void auto_delete(sb_connection *connection, int64_t looks);
void auto_delete_some(sb_connection *connection);
/* What a publish that went well is to answer, by a queue that may be about to be deleted. */
int64_t auto_delete_outcome(sb_queue *queue, int64_t code);

/* --- properties.c: pairs of texts in MessagePack maps ------------------------------------------- */

#define PAIR_ROOM(name, value) (sizeof name + (value) + 4)

typedef struct text_pair {
    const char *name, *value;
    int64_t length; /* of the value, at most 255 */
    bool is_bytes;  /* and no text */
} text_pair;

/* Whether such a message can be published: SB_OK, or SB_INVALID and why not. */
int64_t outgoing_check(const sb_outgoing *message);
/* The text that a property has: its length, or -1. */
int64_t property_text(const void *properties, int64_t length, const char *name, const char **text);
/* The same for a text or bytes; for those below 0.  0 if there is neither. */
int64_t property_id(const void *properties, int64_t length, const char *name, const char **id);
/* Properties with more pairs, in a buffer with room for them: their length, SB_INVALID if they
 * are no map, SB_TOO_LARGE. */
int64_t properties_with(unsigned char *made, const void *properties, int64_t length,
                        const text_pair *pairs, int count);

/* --- request.c, reply.c ------------------------------------------------------------------------- */

#define REPLY_TO "JMSReplyTo"
#define CORRELATION "JMSCorrelationID"
#define GROUP "JMSXGroupID"
#define CORRELATION_BYTES 16

void request_free(sb_connection *connection);
void reply_shut(sb_connection *connection);
void reply_free(sb_connection *connection);
/* Whether a handle of reply.c is open for this queue; the connection's mutex is held. */
bool reply_goes_to(sb_connection *connection, int64_t reference);

/* --- departed.c --------------------------------------------------------------------------------- */

/* Let go of deleted queues, as far as nobody is in a call with them: of all, or of some. */
void departed_forget(sb_connection *connection);
void departed_some(sb_connection *connection);
/* This queue was deleted by us just now; the caller looks at it, and no longer does after this. */
void departed_shut(sb_queue *queue);
/* The mutex is held: this handle, out of the table of rows, is one of a deleted queue. */
void departed_add(sb_queue *queue);
/* A call for a message that is still in hand has found its queue deleted: it is in hand no more. */
void departed_dealt_with(sb_queue *queue, const sb_message *message);
/* At the end of the connection. */
void departed_free(sb_connection *connection);

/* --- dead_letter.c ------------------------------------------------------------------------------ */

typedef enum death { ALIVE, EXPIRED, REJECTED, SPENT } death;

/* A message that is ours, and was delivered so often, goes where the dead of this queue go: SB_OK,
 * SB_REVOKED if it was no longer ours, or SB_FULL, and it is still ours. */
int64_t bury(sb_queue *queue, sb_port *port, sb_message *message, death reason, int64_t deliveries);
/* One that is still ours after SB_FULL is passed over from now on, and tried again later: SB_OK, or
 * SB_REVOKED.  `was_delivered`: this was a delivery, and counts. */
int64_t dead_aside(sb_queue *queue, sb_port *port, sb_message *message, bool was_delivered);
/* Why a message is not to be delivered; ALIVE if it is.  *deliveries: as they are to be noted. */
death death_of(const sb_queue *queue, const sb_message *message, int64_t *deliveries);
/* This thread is in bury: it does not go on to bury those of the queue that it publishes to. */
bool burying(void);

/* --- duplicates.c ------------------------------------------------------------------------------- */

void siphash_128(const int64_t key[2], const void *bytes, int64_t length, uint64_t hash[2]);
/* A message with an id or a producer: its position, SB_DUPLICATE, or another code. */
int64_t once_publish(sb_queue *queue, sb_port *port, const sb_outgoing *message,
                     const int64_t *extension);
/* There is no room for it: SB_DUPLICATE if there need be none, else SB_FULL, or what is wrong. */
int64_t once_refused(sb_queue *queue, sb_port *port, const sb_outgoing *message);
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

/* --- expiry.c ----------------------------------------------------------------------------------- */

/* A message that expires then was published, or given back. */
void expiry_note(sb_queue *queue, int64_t expiry);
/* There may be any, of somebody who died and did not note them. */
void expiry_unknown(sb_queue *queue);
int64_t expiry_of_chunk(const void *chunk);
bool is_expired(const sb_message *message);
/* A message is set aside now. */
void aside_note(sb_queue *queue);
/* There may be such messages, and queue_expire would try them again. */
bool aside_is_due(sb_queue *queue);
/* Take what is expired or was set aside, and bury it: how many. */
int64_t queue_expire(sb_queue *queue, sb_port *port);

/* --- latency.c ---------------------------------------------------------------------------------- */

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

void histograms_path(char *path, const char *vhost, int64_t reference, int64_t number);
/* Unmap, and let another have the stripe; or only unmap, if our participant has left. */
void recorder_close(recorder *closed);
void recorder_free(recorder *freed);
/* Whether times of the queue are to be recorded, now and here. */
bool recorder_is_asked(const recorder *with);
/* Count how long it is since these moments (CHUNK_PUBLISHED_AT). */
void recorder_count(recorder *with, int64_t kind, const int64_t *since, int64_t count);
/* The dead one counts no more: how many stripes it had. */
int64_t latency_sweep(sb_queue *queue, int64_t dead);
void latency_remove(sb_connection *connection, int64_t reference);

typedef struct lane lane;

/* --- schedule.c ---------------------------------------------------------------------------------- */

/* What is to be known of a message in a schedule. */
typedef struct scheduled {
    int64_t id, time_of_day, not_before, expiry;
} scheduled;

/* The schedule of a queue, made if that is wanted; NULL, with SB_OK if it has none. */
sb_queue *schedule_of(sb_queue *queue, bool makes, int64_t *code);
/* The name of the schedule of the queue of this reference. */
void schedule_name(char *name, int64_t reference);
/* The reference of the schedule of this queue, or SB_NOT_FOUND. */
int64_t schedule_find(sb_connection *connection, int64_t reference);
/* Remove schedules whose queues are gone; under the catalog's lock. */
void schedules_tidy(sb_connection *connection);
/* The address of its due word. */
int64_t due_word(const sb_queue *schedule);
/* A message that is due then was put into it. */
void schedule_note(sb_queue *schedule, int64_t due);
/* A ring that was filled from the journal is the schedule of the queue of this reference. */
void schedule_restored(segment *ring, int64_t reference, int64_t last_id);
/* If this ring is a schedule: somebody may have put something into it, and not noted it. */
void schedule_unknown(sb_queue *ring);
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
int64_t schedule_count(sb_queue *queue);
/* The same for who has the connection's mutex. */
bool schedule_is_empty(sb_queue *queue);
int64_t schedule_purge(sb_queue *queue);

/* --- inbox.c: queues that page ------------------------------------------------------------------ */

/* The inbox of a queue that pages, made if that is wanted; NULL, with SB_OK if it has none. */
sb_queue *inbox_of(sb_queue *queue, bool makes, int64_t *code);
/* The reference of the inbox of this queue, or SB_NOT_FOUND. */
int64_t inbox_find(sb_connection *connection, int64_t reference);
/* The first half of an inbox's identity is the second of its queue's: so it is found after the machine
 * was started anew. */
int64_t inbox_identity(sb_connection *connection, const void *settings);
/* The ring of an inbox is restored, as is that of its queue: with these references they are one. */
void inbox_restored(void *inbox, int64_t reference, char *name, void *ring, int64_t of);
/* If it is one in the inbox: the inbox, and the position there. */
sb_queue *inbox_of_position(sb_queue *queue, int64_t *position);
/* Remove inboxes whose queues are gone; under the catalog's lock. */
void inboxes_tidy(sb_connection *connection);
/* What is published now goes to the inbox. */
bool is_paging(sb_queue *queue);
/* The paging word of an inbox; and it does not page any more, unless the word was moved since. */
int64_t paging_begun(const sb_queue *inbox);
bool paging_ended(sb_queue *inbox, int64_t since);
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

/* --- fence.c: whether we may still write -------------------------------------------------------- */

#define EPOCH_DIGITS 16 /* hexadecimal */

/* A file or folder that is open, and the path at which others look for it. */
typedef struct open_path {
    char *path;
    dev_t device;
    ino_t inode;
} open_path;

#define PLACES_MAX 2

typedef struct fence {
    int file; /* begins with the epoch of who may write; -1: nobody else can */
    char epoch[EPOCH_DIGITS + 1];
    const _Atomic int64_t *lease; /* until when we may, by the clock of the boot, or NULL */
    open_path places[PLACES_MAX];
    int64_t place_count, looked_at;
} fence;

void fence_begin(fence *made, int64_t epoch);
/* SB_OK or SB_STALE, as far as the lease says; and both. */
int64_t fence_lease(const fence *at);
int64_t fence_check(fence *at);
/* This file has to stay at this path: SB_SYSTEM. */
int64_t fence_place(fence *at, int file, const char *path);
/* Whether all are there, now and then; SB_JOURNAL_FAILED if not. */
int64_t fence_look(fence *at);
void fence_end(fence *at);

/* --- restore.c ---------------------------------------------------------------------------------- */

/* A chunk of this port, reserved and filled with the bytes of another: its offset.  They come from a
 * file: SB_JOURNAL_DAMAGED if they contradict themselves. */
int64_t chunk_reserved_for(sb_port *port, const void *from, int64_t length);

/* --- page_store.c: the page files of one queue -------------------------------------------------- */

typedef struct page_store page_store;

typedef struct paged_message {
    int64_t position;
    const void *chunk; /* NULL: there is none; all below the position is done with */
    int64_t length;
    int64_t later; /* to be added to its expiry */
} paged_message;

/* Of a durable queue, whose files are synced. */
typedef struct page_safety {
    int64_t epoch;
    int64_t next;   /* all below is out of the files */
    int64_t backed; /* all from here on is in the inbox */
} page_safety;

/* Told of what is wrong with a file. */
typedef void (*page_teller)(void *context, const char *text);

/* The files in this folder, which is made if there is none.  safety: NULL, nothing is synced. */
int64_t page_store_open(const char *folder, int64_t page_bytes, const page_safety *safety,
                        page_teller told, void *context, page_store **opened);
/* Put a message behind all others, in a file by page_store_write at the latest: SB_OK, SB_DISK_FULL,
 * SB_SYSTEM. */
int64_t page_store_put(page_store *to, const paged_message *message);
int64_t page_store_write(page_store *to);
/* So much was put that it is written before more is. */
bool page_store_is_due(const page_store *of);
/* Forget what was put since it was written. */
void page_store_forget(page_store *to);
/* The oldest message, until page_store_pass: SB_OK, or SB_EMPTY; or why it cannot be read. */
int64_t page_store_look(page_store *from, paged_message *message);
void page_store_pass(page_store *from);
/* Drop all that is there, which is below this position. */
int64_t page_store_clear(page_store *of, int64_t position);
/* The journal has all below this position again: files with nothing else go, if they were read. */
void page_store_settled(page_store *of, int64_t position);
/* All of them are read, and there are no files any more. */
bool page_store_is_empty(const page_store *of);
/* Of all that are there. */
int64_t page_store_bytes(const page_store *of);
void page_store_close(page_store *closed);
/* Remove the files and the folder. */
void page_store_remove(const char *folder);

/* --- pager.c ------------------------------------------------------------------------------------ */

/* There is something to do for whoever pages. */
void pager_ring(sb_connection *connection);
/* Ours ends, if we have one.  `closed` is set. */
void pager_end(sb_connection *connection);

/* --- heap.c --------------------------------------------------------------------------------------- */

typedef struct due {
    int64_t at, position;
} due;

typedef struct heap {
    due *all; /* the first is the earliest; two behind each are later */
    int64_t count, room;
} heap;

/* false if there is no memory for one more. */
bool heap_put(heap *in, due added);
/* The first one; there is one. */
due heap_pop(heap *from);

/* --- clerk.c -------------------------------------------------------------------------------------- */

#define LEASE_MS INT64_C(1000) /* of a message that is being moved */

/* This connection sees to it that what is scheduled for the queue is moved.  `serves`: nobody else
 * may be there. */
void clerk_attend(sb_queue *queue, bool serves);
/* The same, if the queue has a schedule and we did not know. */
static inline void clerk_look(sb_queue *queue);
/* For all schedules of the vhost. */
void clerk_upkeep(sb_connection *connection);
/* Tell whoever serves this schedule to look at its due word; or all who might. */
void clerk_ring(sb_connection *connection, int64_t reference, bool others);
/* The thread ends, and others may take its place.  `closed` is set. */
void clerk_end(sb_connection *connection);

/* --- delay.c -------------------------------------------------------------------------------------- */

/* A message of ours that was delivered so often comes back after the delay of the queue's settings:
 * SB_OK, and it is no longer ours.  SB_REVOKED: it was not; any other code: it still is. */
int64_t delay_redelivery(sb_queue *queue, sb_port *port, sb_message *message, int64_t deliveries);

/* --- last_value.c ------------------------------------------------------------------------------- */

/* How many messages it may hold, so that there is room for what is carried. */
void last_value_limit(sb_queue *queue);
/* Whether there is room for a message of this key: SB_OK, or SB_FULL. */
int64_t last_value_room(sb_queue *queue, sb_port *port, const void *key, int64_t key_length);
/* Make room for one among what was replaced: whether there is some now. */
bool last_value_carry(sb_queue *queue, sb_port *port, const void *key, int64_t key_length);

/* --- slow_consumer.c ---------------------------------------------------------------------------- */

/* Look who is slow, and do what the queue's settings say. */
void slow_look(sb_queue *queue, sb_port *port);
/* If we are to leave: from now on every call answers SB_SLOW. */
void slow_find_out(sb_connection *connection);

/* --- queue.c ------------------------------------------------------------------------------------ */

/* --- spinning.c --------------------------------------------------------------------------------- */

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
static inline void spinning_tell(const sb_connection *connection, spinning *how, bool won, bool soon)
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

/* --- lane.c ------------------------------------------------------------------------------------- */

/* A lane of no queue, whose port is to be opened; NULL, with a code.  The mutex is held. */
lane *lane_new(sb_connection *connection, int64_t *code);
/* It is SHUT, and its port closed.  Whoever still knows it finds a port that answers SB_CLOSED.  Its
 * memory stays what it is until the connection is freed.  The mutex is held. */
void lane_drop(sb_connection *connection, lane *dropped);
void lanes_free(sb_connection *connection);

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
    _Atomic int64_t attended;   /* our clerk looks after it */
    _Atomic int64_t counted;    /* of a schedule: below this position there is room */
    int64_t key[2];         /* of its hashes: its own, and random */
    char name[L_NAME_BYTES_MAX + 1];
    const void *row;       /* the catalog's word for it */
    int64_t live;          /* what its upper half is until the queue is deleted */
    _Atomic int64_t shut;  /* 1 while its lanes are being closed, 2 when they are */
    _Atomic int64_t gone;  /* deleted: SB_NOT_FOUND, else 0 */
    _Atomic int64_t uses;  /* USE_* bits that our participant's list has */
    _Atomic int64_t held;  /* by threads of ours that serve it: until they let go, its memory stays */
    _Atomic int64_t looks; /* calls, and desks of clerk.c, that look at its ring outside of a lane */
    _Atomic int64_t opened; /* handles that the program has, and routes and transactions of ours */
    _Atomic int64_t leaves; /* 1: no look begins any more, its ring is unmapped or about to be */
    /* with the connection's mutex: */
    bool forgotten;         /* our participant does not list it any more */
    int64_t ports;          /* lent to compiled loops */
    int64_t left_count;     /* messages that were in hand when the ring was unmapped, -1 unknown, */
    struct left_message *left; /* and which */
    sb_queue *next, **link;    /* in one of the connection's lists */
    _Atomic int64_t lanes_made;
    lane *_Atomic lanes[LANES];
};

/* An idle lane for this thread, or a code in *code and NULL. */
lane *lane_search(sb_queue *queue, int64_t *code);
/* Why it is not usable, told as well. */
int64_t queue_unusable(sb_queue *queue);
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
/* Whoever looks at its ring and is in none of its lanes does so between these two, or holds the
 * connection's mutex: so nobody looks at memory that is no longer there.  False, with a code: the
 * queue was deleted, or the connection closed. */
bool queue_look(sb_queue *queue, int64_t *code);
/* The same, also of a queue that was deleted, or when the connection is closed, as long as its ring is
 * mapped. */
bool queue_look_late(sb_queue *queue);
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
/* The same, unless settle has lent it. */
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

/* A port for one look or repair, outside of all lanes: it owns no memory. */
int64_t port_to_look(sb_queue *queue, sb_port *port);
/* SB_EMPTY, or why there is never anything to take. */
int64_t nothing_taken(const sb_queue *queue);
/* The code, with more words about it. */
int64_t explained(sb_queue *queue, int64_t code);
typedef int64_t (*wait_for)(sb_port *port, int64_t deadline);
/* Wait in a lane: SB_OK to try again, or what to answer.  Between two sleeps the waiter repairs
 * what the dead have left: one of them may hold what it waits for. */
int64_t wait_in(sb_queue *queue, sb_port *port, wait_for kernel, int64_t deadline);
int64_t queue_map(sb_connection *connection, int64_t reference, sb_queue **queue);
/* What is scheduled included; the connection's mutex is held. */
bool queue_is_empty(sb_queue *queue);
static inline void clerk_look(sb_queue *queue)
{
    if (word_load(queue->ring.memory, L_RING_SCHEDULE_AT) && !atomic_load(&queue->attended))
        clerk_attend(queue, false);
}
/* The word of the slot of a position. */
static inline int64_t slot_word(const sb_queue *queue, int64_t position)
{
    return word_load(queue->ring.memory,
                     L_RING_SLOTS_START + ((position & (queue->slots - 1)) << L_SLOT_SHIFT));
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
void queue_note_first_use(sb_queue *queue, int64_t use);
/* Our participant's list says what we do with the queue, for people to see. */
static inline void queue_note_use(sb_queue *queue, int64_t use)
{
    queue_used(queue);
    if (!(atomic_load_explicit(&queue->uses, memory_order_relaxed) & use))
        queue_note_first_use(queue, use);
}
/* A publish is done: its position, or SB_NOT_FOUND if the queue was deleted meanwhile. */
static inline int64_t queue_published(sb_queue *queue, int64_t code)
{
    return code >= 0 && queue->auto_delete_ns ? auto_delete_outcome(queue, code) : code;
}
/* Wait until no thread is in it, and return its ports' memory.  No thread enters any more.  The caller
 * looks at it. */
void queue_shut(sb_queue *queue);
/* Close the port of a lane that nobody is in, or enters any more. */
void lane_shut(lane *idle);
/* Unmap the ring; the mutex is held, and nobody is in a lane, or looks. */
void queue_unmap(sb_queue *queue);
void queue_free(sb_queue *queue);
/* sb_publish_receipt of a message that was checked. */
int64_t publish_receipt(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns,
                        sb_receipt *where);
/* Publish in this ring, also if it pages. */
int64_t ring_publish(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns);
int64_t ring_publish_many(sb_queue *queue, const void *bodies, const int64_t *lengths,
                          int64_t count, int64_t timeout_ns);
/* A chunk for a message of this shape, with what the settings give it: its offset, or a code. */
int64_t queue_reserve(sb_queue *queue, sb_port *port, const sb_outgoing *shape);
/* By which a producer waits until it is worth trying again. */
wait_for wait_kernel(const sb_queue *queue);
/* Sleep until it is worth trying to publish again: SB_OK, or why not. */
int64_t queue_wait_for_room(sb_queue *queue, lane *in, int64_t deadline);
/* Until when a message with this time to live may be delivered there, 0 for ever. */
int64_t queue_expiry(const sb_queue *queue, int64_t ttl_ns);
/* Whether its limits leave room for this one: SB_OK, SB_FULL or SB_TOO_LARGE. */
int64_t queue_within(sb_queue *queue, lane *in, const sb_outgoing *message);
/* It is full for this one: drop what nobody is to get any more; whether it is worth trying again. */
bool queue_make_room(sb_queue *queue, lane *in, const sb_outgoing *message);
/* Publish without waiting, as the queue's settings want it. */
int64_t queue_offer(sb_queue *queue, lane *in, const sb_outgoing *message);
/* Repair what the dead one has left: the ring, and unless it still publishes, its blocks. */
int64_t queue_sweep(sb_queue *queue, int64_t dead, bool publishes);
/* Free all blocks of a queue that was deleted and that nobody uses. */
void blocks_drop(sb_connection *connection, int64_t row);
/* The same of all rows whose bit is set, of L_QUEUE_MASK + 1 bits. */
void blocks_drop_marked(sb_connection *connection, const int64_t *marks);
/* Whether there is something to do in a queue that nobody may be using, without mapping it. */
bool queue_needs_upkeep(sb_connection *connection, int64_t reference);
/* What a waiter does when it has slept for long: put right what the dead left in this ring. */
void queue_upkeep(sb_port *port);
/* The same, what is expired, and what dead participants have left anywhere. */
void queue_look_after(sb_queue *queue, sb_port *port);

/* --- waiting.c ---------------------------------------------------------------------------------- */

/* What is done between two sleeps for the queues that are waited for. */
void wait_upkeep(const sb_wait *waits, int64_t count);

/* --- door.c: transactions on durable queues, and the journaler ----------------------------------- */

/* Before it is decided: its number among those on durable queues. */
int64_t door_enter(sb_connection *connection, void *record);
/* After all of it has happened: the number to wait for. */
int64_t door_passed(sb_connection *connection, int64_t stamp);
/* Until those up to this number are on disk. */
int64_t door_await(sb_connection *connection, int64_t stamp, int64_t timeout_ns);
/* The journaler of the vhost, if it sleeps, looks again. */
void journaler_rouse(sb_connection *connection);

typedef struct door {
    sb_connection *connection;
    bool is_closed;
    int64_t excused[L_PARTICIPANTS]; /* 1 + the number with which one was inside for too long */
} door;

/* A message of a durable queue was copied to another one, and is not let go of yet: the journaler
 * does not write the one without the other. */
void door_copied(sb_connection *connection);
/* How many were ever begun. */
int64_t door_begun(sb_connection *connection);
/* And how many are on disk. */
int64_t door_whole(sb_connection *connection);
/* Wait until nobody is inside, with the door closed if need be. */
void door_clear(door *at);
void door_close(door *at);
void door_open(door *at);
/* So many are on disk. */
void door_journaled(door *at, int64_t begun);

/* --- audit.c: whether the journal has what the rings have --------------------------------------- */

typedef struct audited {
    int64_t number, low, high; /* of a queue: it had these positions when we took over */
    int64_t next;              /* what is below is in the journal, or staged */
    unsigned char *found;      /* a bit for each that the journal has */
} audited;

typedef struct audit {
    audited *queues; /* by number */
    int64_t count, room;
    bool runs, is_read;
    int64_t damaged; /* segments */
    int64_t missed;  /* messages that the journal had lost */
    int64_t lost;    /* and the ring as well */
    void *copy;
    int64_t copy_room;
} audit;

int64_t audit_add(audit *to, int64_t number, int64_t low, int64_t high);
/* All are added. */
void audit_begin(audit *of);
void audit_end(audit *of);
void audit_found(audit *of, int64_t number, int64_t first, int64_t last);
/* Stage what is missing of a queue, until so many bytes are staged: SB_OK if that was all, SB_EMPTY if
 * there may be more. */
int64_t audit_stage(audit *of, sb_queue *queue, sb_port *port, int64_t number, sb_journal *journal,
                    int64_t most);

/* --- journal.c, on a full disk ------------------------------------------------------------------- */

/* Whether the segment that was to be got ready is: SB_OK, SB_EMPTY: not yet, or why not. */
int64_t journal_prepared(sb_journal *journal);
/* As sb_journal_retire, once it is written: by journal_relieve, or with the frame that is staged, if
 * there is a record of it in that. */
int64_t journal_retire_then(sb_journal *journal, int64_t queue, int64_t position);
/* Whether all segments were looked through, so that it is known which are needed. */
bool journal_is_known(const sb_journal *journal);
/* Write only what was told by journal_retire_then, ahead of all that is staged, into the room that each
 * segment keeps for it: how many segments are let go of.  If there is none, nothing is written. */
int64_t journal_relieve(sb_journal *journal);
/* sb_journal_commit, and if there is no room, into the reserve, provided that what was told by
 * journal_retire_then makes a segment dead. */
int64_t journal_commit_full(sb_journal *journal);

/* --- journal_needed.c: which segments are needed ------------------------------------------------ */

/* These queues are there: of others nothing is needed that is in the segments of before, once it is
 * written which there are. */
int64_t journal_retire_others(sb_journal *journal, const int64_t *queues, int64_t count);

/* --- remembered.c: ids and producers' numbers, in the journal ----------------------------------- */

typedef struct remembered {
    sb_queue *queue;
    int64_t number;  /* in the journal */
    int64_t serial;  /* ids up to here are in the journal, or staged: with a message, or in a list */
    int64_t listed;  /* in lists */
    int64_t listing; /* and in those that are staged */
    struct {
        int64_t identity, sequence;
    } *numbers; /* by index in the table of producers; NULL none */
} remembered;

/* Of a queue that is followed from its gate on. */
int64_t remembered_begin(remembered *of, sb_queue *queue, int64_t number, const sb_cursor *gate);
/* With the record of each message that counts; before it, what it needs is staged. */
int64_t remembered_note(remembered *of, sb_port *port, const void *chunk, sb_journal *journal);
/* When a segment begins; all messages below `until` are staged, or were. */
int64_t remembered_stage(remembered *of, sb_port *port, int64_t until, sb_journal *journal);
void remembered_committed(remembered *of, sb_journal *journal);
int64_t remembered_gone(const remembered *of, sb_journal *journal);
/* The segments that had lists may be lost: all of them are staged again with the next ones. */
void remembered_again(remembered *of);
void remembered_end(remembered *of);

typedef struct ids_read {
    struct ordered_id *ids;
    int64_t count, room, most;
} ids_read;

/* What is read of it when the queue is restored. */
typedef struct recollection {
    ids_read listed, news; /* by serial, and by the position of their messages */
    int64_t until, serial;
    bool pages;
} recollection;

/* Of a queue that remembers so many ids, and that pages or does not. */
void recollection_begin(recollection *of, int64_t most, bool pages);
int64_t recollection_note(recollection *of, sb_port *port, int64_t position, const void *chunk);
int64_t recollection_ids(recollection *of, const sb_journal_record *record);
int64_t recollection_producers(sb_port *port, const sb_journal_record *record);
/* Whether the ring needs more memory for it. */
bool recollection_is_any(const recollection *of);
/* All was read: into the memory of the ring, whose file is open then. */
int64_t recollection_restore(recollection *of, sb_port *port, segment *ring);
void recollection_end(recollection *of);

/* --- confirm.c ----------------------------------------------------------------------------------- */

/* The journal has what is at this position, or the queue is in none. */
bool is_journaled(const sb_queue *queue, sb_port *port, int64_t position);

/* --- declaration.c: what a vhost consists of, as bodies of the journal's records ---------------- */

typedef struct declaration_head {
    int64_t identity[2]; /* the queue's; the second is its number in the journal */
    int64_t slots, flags, created;
    int64_t monotonic, realtime; /* one moment by both clocks: expiry is monotonic, of one boot */
    int64_t name_length, settings_length;
} declaration_head;

#define DECLARATION_ROOM (sizeof(declaration_head) + L_NAME_BYTES_MAX + L_PAGE_BYTES)

/* The body that declares a queue, from its handle and its entry: its length; SB_NOT_FOUND for the
 * schedule of a queue that is gone. */
int64_t declaration_of(sb_queue *queue, const char *entry, char *body);
/* And back: its name, and a page of settings as if it were in a ring.  SB_JOURNAL_DAMAGED. */
int64_t declaration_read(const void *body, int64_t length, declaration_head *head, char *name,
                         char *page);
/* Stage all exchanges, and what they are bound to that lasts. */
int64_t catalog_stage(sb_connection *connection, sb_journal *journal);
/* The ring of a queue in this row, without a name; its name; and its row, once it is filled.
 * All (connection.c) under the catalog's lock. */
int64_t ring_begin(sb_connection *connection, segment *ring, int64_t row, int64_t slots,
                   const char *settings);
int64_t ring_name(sb_connection *connection, const segment *ring, int64_t reference);
int64_t queue_put(sb_connection *connection, int64_t row, const char *name,
                  const declaration_head *declared);
/* What catalog_stage would stage, in short: it is the same as long as this is. */
uint64_t catalog_digest(sb_connection *connection);
/* And back, of one record: SB_NOT_FOUND if it needs another one first. */
int64_t catalog_declare(sb_connection *connection, const void *body, int64_t length);

#endif
