/* Base: what every room stands on, and what knows nothing of a broker: words of shared memory,
 * files in /dev/shm and whose files are believed, futexes, threads, clocks, checksums, and what
 * went wrong, in words.  It stands on the C library and the kernel alone, and on the layouts that
 * are made of core/ (layout.h). */

#ifndef SHMBROKER_BASE_ROOM_H
#define SHMBROKER_BASE_ROOM_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "within.h" /* first: what programs call is public.c, which is generated */

#include "shmbroker_private.h"

#define NAME_ROOM 384 /* a path in /dev/shm */

/* --- words ------------------------------------------------------------------------------------ */

static inline int64_t word_load(const void *memory, int64_t at)
{
    return atomic_load_explicit((_Atomic int64_t *)((char *)memory + at), memory_order_acquire);
}
static inline void word_store(void *memory, int64_t at, int64_t value)
{
    atomic_store_explicit((_Atomic int64_t *)((char *)memory + at), value, memory_order_release);
}

/* --- detail.c --------------------------------------------------------------------------------- */

/* Note, for this thread, what is wrong in words: the code. */
int64_t fail(int64_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A call begins that may answer a code without words: it is not to be told with those of an earlier
 * one. */
void detail_forget(void);
/* SB_SYSTEM or SB_NO_MEMORY, with errno's text behind ours. */
int64_t fail_system(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A disk, a quota or a limit of a file's size leaves no room: there may be some later. */
static inline bool is_full_disk(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

/* --- system.c --------------------------------------------------------------------------------- */

#define WAIT_WORDS_MAX 128 /* the kernel's FUTEX_WAITV_MAX */
#define TURN_NS 2000000

typedef struct system_word {
    int64_t address, value;
} system_word;
/* sb_system_wait for several words: until one is woken or has another value, or the deadline.  A
 * kernel without FUTEX_WAITV sleeps on one of them, for TURN_NS at most, and says SB_OK. */
int64_t system_wait_any(const system_word *words, int64_t count, int64_t deadline);

/* --- trust.c ---------------------------------------------------------------------------------- */

#define NOBODY (-1)

typedef struct trust {
    bool looks;     /* and believes nothing: root may look at what any user has */
    int64_t owner;  /* is believed like us and root; or NOBODY */
    int64_t group;  /* its members have what we have; or NOBODY */
    bool shared;    /* what any of them has made is believed: a vhost of this group */
    unsigned refused; /* bits of a mode that others may not have */
} trust;
/* Files of ours or root's that nobody else may read or write. */
extern const trust trust_segments;
/* Open a file in a folder, `in` for people (NULL: the name is a path): SB_UNTRUSTED if what is in
 * it cannot be believed; errno is set in any case. */
int64_t trusted_open(int folder, const char *in, const char *name, int how, const trust *whose,
                     int *file);
/* Files in this folder: its owner's, too, which on NFS may be what we are called there. */
trust trust_in(int folder);
/* The folder of a vhost that a group shares: SB_UNTRUSTED if we are not of the group, or its mode
 * gives it to others.  From then on whose says what is believed in it. */
int64_t trust_folder(const char *path, trust *whose);
/* The same of a segment, by its path. */
int64_t trusted_segment(const char *path, int how, const trust *whose, int *file);
/* Why something could not be named so: SB_EXISTS, or SB_UNTRUSTED if we cannot remove it. */
int64_t trust_obstacle(const char *path);

/* --- segment.c -------------------------------------------------------------------------------- */

typedef struct segment {
    void *memory;
    int64_t bytes;
    int file;
} segment;
/* Make a segment without a name, with memory behind its first `committed` bytes; `path` is in the
 * folder in which it will have one, which also says which mode and group it has. */
int64_t segment_make(segment *made, const char *path, int64_t bytes, int64_t committed);
/* Give it its name: SB_EXISTS if another has it.  The mapping stays. */
int64_t segment_name(const segment *made, const char *path);
/* Map a segment that exists, at least `bytes_min` long. */
int64_t segment_attach(segment *attached, const char *path, int64_t bytes_min,
                       const trust *whose);
void segment_detach(segment *attached);
int64_t realtime_ns(void);
int64_t boottime_ns(void); /* goes on while the machine sleeps */
int64_t monotonic_deadline(int64_t timeout_ns);

/* --- thread.c --------------------------------------------------------------------------------- */

/* Start a thread that gets no signals; "starting the thread of WHAT" failed otherwise. */
int64_t thread_start(pthread_t *started, void *(*work)(void *), void *context, const char *what);
/* The mask of the calling thread, for a moment: what it makes meanwhile gets no signals. */
void signals_block(sigset_t *before);
void signals_restore(const sigset_t *before);

/* --- stamp.c ---------------------------------------------------------------------------------- */

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

/* --- fence.c ---------------------------------------------------------------------------------- */

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
/* Close what it looked at. */
void fence_end(fence *at);

/* --- array.c ---------------------------------------------------------------------------------- */

/* Room for so many things of this size, in an array that `array` points to, of which NULL is an
 * empty one; false: there is no memory, and it is as it was. */
bool array_room(void *array, int64_t *room, int64_t count, size_t size);
#define ROOM_FOR(all, room, count) array_room(&(all), &(room), count, sizeof *(all))

/* --- heap.c ----------------------------------------------------------------------------------- */

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

/* --- utf8.c ----------------------------------------------------------------------------------- */

bool is_utf8(const char *text, int64_t length);

/* --- crc32c.c --------------------------------------------------------------------------------- */

uint32_t crc32c(uint32_t crc, const void *bytes, size_t count);
/* The same of what it copies. */
uint32_t crc32c_copy(uint32_t crc, void *to, const void *from, size_t count);

/* --- copy.c ----------------------------------------------------------------------------------- */

/* memcpy of bytes that may be in no cache: messages of a ring, on their way out. */
void copy_far(void *to, const void *from, size_t count);

#endif
