/* A follower and its queues, for follower.c, source.c and batch.c. */

#ifndef SHMBROKER_FOLLOWER_SOURCE_H
#define SHMBROKER_FOLLOWER_SOURCE_H

#include "base/base.h"
#include "follower/follower.h"
#include "ring/ring.h"

/* One queue that is followed. */
typedef struct source {
    sb_port port;
    sb_follower *of;
    sb_queue *queue;
    sb_cursor cursor;
    int64_t number;  /* in the records */
    int64_t end;     /* of the moment: no more is read */
    int64_t released;
    int64_t told;    /* the reader knows that all below is retired, -1: nothing */
    uint64_t above;  /* a digest of what it knows to be done with above */
    retired_set done;
    bool is_told;    /* the reader knows that it is there */
    ready_one ready; /* there may be something to read */
} source;

struct sb_follower {
    sb_connection *connection;
    int64_t kind;
    bool lasting, from_now, skips, tells;
    char name[L_GATE_NAME_BYTES_MAX + 1];
    following following;
    ready_set ready; /* of its sources */
    int64_t turn;
    int64_t *gone; /* numbers of queues that were deleted, to be told of */
    int64_t gone_count, gone_room;
    int64_t looked_at; /* when all queues were looked at last */
    bool in_moment;    /* one was seen, and not all of it is read */
};

/* Where records are written. */
typedef struct writing {
    sb_follower_batch *batch;
    char *at;
    int64_t left;
} writing;

/* --- source.c --------------------------------------------------------------------------------- */

/* Sources that follow these: all of `flags`, and others if they are added. */
int64_t sources_begin(sb_follower *of, int64_t flags);
/* All are ready: a bell may have been rung by one who has died of it. */
void sources_all_ready(sb_follower *of);
/* The source with this number, NULL: there is none. */
source *source_numbered(const sb_follower *of, int64_t number);
void sources_end(sb_follower *of, bool leaves);

/* --- batch.c ---------------------------------------------------------------------------------- */

/* Write what is there, of all in turn. */
int64_t batch_fill(sb_follower *of, writing *to);

#endif
