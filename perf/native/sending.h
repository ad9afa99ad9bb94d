/* Publishing one message, however long it takes until there is room. */
#ifndef SHMBROKER_PERF_SENDING_H
#define SHMBROKER_PERF_SENDING_H

#include <string.h>

#include "job.h"
#include "tally.h"
#include "waiting.h"

static inline int64_t send_copy(const struct job *job, const char *body)
{
    int64_t code, tries = 0;
    while ((code = sb_port_publish(job->out, body, job->size)) == SB_FULL)
        relax(job, &tries);
    return code;
}

/* Write the message into the ring's own memory: the stamp, or all of it. */
static inline int64_t send_loan(const struct job *job, const char *body, int64_t stamp)
{
    int64_t chunk = sb_port_loan(job->out, job->size), code, tries = 0;
    if (chunk < 0)
        return chunk;
    char *loaned = sb_port_loan_body(job->out, chunk);
    if (is_full(job, stamp))
        memcpy(loaned, body, (size_t)job->size);
    else
        memcpy(loaned, &stamp, sizeof stamp);
    while ((code = sb_port_publish_chunk(job->out, chunk)) == SB_FULL)
        relax(job, &tries);
    return code;
}

/* The sender's message number i. */
static inline int64_t send_number(const struct job *job, int64_t number)
{
    int64_t index = number % job->period;
    if (job->mode == LOAN)
        return send_loan(job, job->source, stamp_of(job->source) + index);
    return send_copy(job, job->source + index * job->size);
}

#endif
