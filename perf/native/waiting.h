/* What a process does that finds nothing to do, and the clock. */
#ifndef SHMBROKER_PERF_WAITING_H
#define SHMBROKER_PERF_WAITING_H

#include <sched.h>
#include <stdint.h>
#include <time.h>

enum { TRIES_BEFORE_YIELDING = 32 };

static inline void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Before the next try.  With more processes than cores, whom we wait for may need ours. */
static inline void relax(int64_t crowded, int64_t *tries)
{
    if (crowded && ++*tries > TRIES_BEFORE_YIELDING)
        sched_yield();
    else
        pause_cpu();
}

static inline int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

#endif
