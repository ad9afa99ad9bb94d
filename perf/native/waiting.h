/* What a process does that finds nothing to do. */
#ifndef SHMBROKER_PERF_WAITING_H
#define SHMBROKER_PERF_WAITING_H

#include <sched.h>
#include <stdint.h>

#include "clock.h"
#include "job.h"

/* Before the next try.  With more processes than cores, whom we wait for may need ours. */
static inline void relax(const struct job *job, int64_t *tries)
{
    if (job->crowded && ++*tries > job->tries)
        sched_yield();
    else
        for (int64_t i = 0; i < job->pauses; i++)
            pause_cpu();
}

#endif
