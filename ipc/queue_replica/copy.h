/* Replicas of single queues that are brought to moments of their originals, for copy.c, which fills
 * chunks, and showing.c. */

#ifndef SHMBROKER_QUEUE_REPLICA_COPY_H
#define SHMBROKER_QUEUE_REPLICA_COPY_H

#include "base/base.h"
#include "ring/ring.h"

typedef struct staged {
    int64_t position, chunk;
} staged;

typedef struct copy {
    sb_port port;
    sb_queue *queue;
    int64_t number, later;
    staged *staged;
    int64_t count, room;
    int64_t next;     /* all below is staged, or shown */
    int64_t head;     /* of the original, as told last */
    int64_t end;      /* of what is known, as told last */
    char *bits;       /* what is done with from head on */
    int64_t length, bits_room;
    bool has_news;    /* it was told how the original stands */
    bool is_looked_at;
    bool is_compared; /* and that nothing came back there */
    int64_t revived;  /* 1 + the position of what did */
    int64_t code, failed_at;
    struct copy *following;
} copy;

struct sb_copies {
    sb_connection *connection;
    copy *first;
    int file;      /* with the moment that is being shown */
    int64_t stamp; /* of the last that was shown of a durable replica */
};

/* --- showing.c -------------------------------------------------------------------------------- */

/* The file with the moment that is being shown, which is made if it is not there. */
int64_t moment_open(sb_connection *connection, int *file);
/* Show the rest of it, if somebody was killed in it. */
int64_t moment_finish(sb_connection *connection, int file);

static inline int64_t copy_tail(const sb_queue *queue)
{
    return word_load(queue->ring.memory, L_RING_TAIL_AT) & L_POSITION_MASK;
}

#endif
