/* Counting and adding up what arrives, and comparing it with what was sent. */
#ifndef SHMBROKER_PERF_TALLY_H
#define SHMBROKER_PERF_TALLY_H

#include <string.h>

#include "job.h"

enum { STAMP_BYTES = 8, DIFFERENT = -1000 };

static inline int64_t stamp_of(const char *body)
{
    int64_t stamp;
    memcpy(&stamp, body, sizeof stamp);
    return stamp;
}

/* In mode loan only the first message of a period is written, and therefore compared, in full. */
static inline int64_t is_full(const struct job *job, int64_t stamp)
{
    return job->mode != LOAN || (uint32_t)stamp == 0;
}

static inline int64_t compare(const struct job *job, const char *body)
{
    int64_t stamp = stamp_of(body), sender = stamp >> 32, row = (uint32_t)stamp;
    if (sender < 0 || sender >= job->senders || row >= job->rows)
        return DIFFERENT;
    const char *sent = job->expected + (sender * job->rows + row) * job->size;
    return memcmp(body, sent, (size_t)job->size) == 0 ? SB_OK : DIFFERENT;
}

/* Count a message, and now and then look at all of it. */
static inline int64_t keep(const struct job *job, const char *body)
{
    struct tally *tally = job->tally;
    int64_t stamp = stamp_of(body);
    tally->count++;
    tally->total += stamp;
    if (job->mode == LOAN ? (uint32_t)stamp != 0 : ++tally->unchecked < job->check_every)
        return SB_OK;
    tally->unchecked = 0;
    return compare(job, body);
}

#endif
