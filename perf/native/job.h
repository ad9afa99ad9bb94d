/* The job of one process: what perf/ours/job.py hands to the loops, field by field.
 *
 * All fields are 64 bits wide, so that a tuple of integers and addresses is this structure. */
#ifndef SHMBROKER_PERF_JOB_H
#define SHMBROKER_PERF_JOB_H

#include <stdint.h>

#include "shmbroker.h"

enum mode { SINGLE, COMBINED, BATCH, LOAN };

enum { UNTIL_STOPPED = -1 };

/* One receiver's count and sum. */
struct tally {
    int64_t count, total;
    int64_t finished_ns;
    int64_t unchecked;  /* messages since the last one that was compared in full */
    int64_t unreleased; /* messages since a subscriber last moved its gate */
    int64_t clock[2];   /* where Numba reads the time */
};

struct job {
    sb_port *out, *in;
    int64_t mode;
    int64_t pauses;     /* before looking once more */
    int64_t crowded;    /* more processes than cores: */
    int64_t tries;      /* after so many looks, yield */
    int64_t subscribed; /* the receiver only looks, with its cursor; it takes nothing */
    int64_t size;    /* of every message */
    int64_t period;  /* of a sender's stamps */
    int64_t rows;    /* of messages held in full, for each sender */
    int64_t senders;
    int64_t wanted;  /* messages to send or to receive, or UNTIL_STOPPED */
    int64_t batch, check_every;
    int64_t warmup, groups, group_length, singles;
    const char *source;      /* rows x size: what this process sends */
    const char *expected;    /* senders x rows x size: what anybody sends */
    char *room;              /* batch x size: where copies go */
    sb_message *messages;    /* batch */
    const int64_t *lengths;  /* batch: size each */
    sb_cursor *cursor;
    int64_t *groups_ns, *singles_ns;
    struct tally *tally;
};

#endif
