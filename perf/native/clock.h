/* The clock that Python's time.monotonic_ns reads, too. */
#ifndef SHMBROKER_PERF_CLOCK_H
#define SHMBROKER_PERF_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

#endif
