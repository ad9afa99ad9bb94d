/* The raw latency limit: two processes hand one cache line in shared memory to and fro.
 *
 * The line's first word is the turn: the initiator writes an odd number, the responder answers
 * with the next even one. Nothing else is carried, so no messenger has a shorter round trip.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../native/clock.h"

typedef _Atomic uint64_t turn_t;

#ifdef SLEEPS
/* The futex is the turn's low half. */
static inline void rest(turn_t *turn, uint64_t seen)
{
    syscall(SYS_futex, turn, FUTEX_WAIT, (uint32_t)seen, NULL, NULL, 0);
}

static inline void hand_over(turn_t *turn, uint64_t value)
{
    atomic_store(turn, value);
    syscall(SYS_futex, turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}
#else
static inline void rest(turn_t *turn, uint64_t seen)
{
    (void)turn, (void)seen;
    pause_cpu();
}

static inline void hand_over(turn_t *turn, uint64_t value)
{
    atomic_store_explicit(turn, value, memory_order_release);
}
#endif

static inline uint64_t await(turn_t *turn, uint64_t wanted)
{
    uint64_t seen;
    while ((seen = atomic_load_explicit(turn, memory_order_acquire)) < wanted)
        rest(turn, seen);
    return seen;
}

static inline uint64_t round_trip(turn_t *turn, uint64_t trip)
{
    hand_over(turn, 2 * trip + 1);
    return await(turn, 2 * trip + 2);
}

/* Times by the rule in plan.py; returns the sum of all replies. */
uint64_t cacheline_initiate(turn_t *turn, int64_t warmup, int64_t groups, int64_t group_length,
                            int64_t singles, int64_t *groups_ns, int64_t *singles_ns)
{
    uint64_t trip = 0, total = 0;
    for (int64_t i = 0; i < warmup; i++)
        total += round_trip(turn, trip++);
    for (int64_t group = 0; group < groups; group++) {
        int64_t before = now_ns();
        for (int64_t i = 0; i < group_length; i++)
            total += round_trip(turn, trip++);
        groups_ns[group] = now_ns() - before;
    }
    for (int64_t single = 0; single < singles; single++) {
        int64_t before = now_ns();
        total += round_trip(turn, trip++);
        singles_ns[single] = now_ns() - before;
    }
    return total;
}

void cacheline_respond(turn_t *turn, int64_t trips)
{
    for (int64_t trip = 0; trip < trips; trip++) {
        await(turn, 2 * (uint64_t)trip + 1);
        hand_over(turn, 2 * (uint64_t)trip + 2);
    }
}
