/* Producers and consumers of any number of queues, in C:
 * python -m shmbroker.perf.scenarios.scaling.
 *
 * Message number n of producer i of p carries n * p + i, so that no two are alike; what is below 0
 * ends a queue for whoever gets it. */
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "connect.h"

#define LOOK 16                          /* messages between two looks at the clock */
#define STOP INT64_C(-1)
#define KEY "us.ny.fx"

struct told {
    int64_t count, sum, at_ns;
};

struct ends {
    sb_exchange *exchange; /* NULL: straight into the queues, in turns */
    int64_t queues, size;
    int64_t *body, *room;
    sb_queue *queue[];
};

int64_t scaling_open(sb_connection *connection, int64_t queues, int64_t by_exchange, int64_t size,
                     struct ends **opened)
{
    struct ends *ends = calloc(1, sizeof *ends + (size_t)queues * sizeof ends->queue[0]);
    if (!ends || !(ends->body = calloc(1, (size_t)size)) ||
        !(ends->room = calloc(1, (size_t)size)))
        return SB_FULL;
    ends->queues = queues, ends->size = size;
    for (int64_t each = 0; each < queues; each++) {
        char name[32];
        snprintf(name, sizeof name, "queue-%lld", (long long)each);
        int64_t code = sb_open_queue(connection, name, &ends->queue[each]);
        if (code < 0)
            return code;
    }
    *opened = ends;
    return by_exchange ? sb_open_exchange(connection, "exchange", &ends->exchange) : SB_OK;
}

static int64_t publish(struct ends *ends, int64_t stamp, int64_t queue)
{
    ends->body[0] = stamp;
    if (!ends->exchange)
        return sb_publish(ends->queue[queue], ends->body, ends->size, PATIENCE_NS);
    const sb_outgoing message = {
        .body = ends->body, .length = ends->size, .key = KEY, .key_length = sizeof KEY - 1};
    int64_t done = 0;
    return sb_exchange_publish(ends->exchange, &message, PATIENCE_NS, &done);
}

/* One message for each queue, so that all are at hand, and then for so long; told: how many, their
 * sum, when the first turn was over. */
int64_t scaling_produce(sb_connection *connection, struct ends *ends, int64_t first, int64_t step,
                        int64_t lasting_ns, struct told *told)
{
    (void)connection;
    int64_t count = 0, sum = 0, queue = 0, until_ns = 0;
    for (int64_t stamp = first;
         count <= ends->queues || count % LOOK || now_ns() < until_ns; stamp += step) {
        if (count == ends->queues)
            told->at_ns = now_ns(), until_ns = told->at_ns + lasting_ns;
        int64_t code = publish(ends, stamp, queue);
        if (code < 0)
            return code;
        count++, sum += stamp;
        queue = queue + 1 == ends->queues ? 0 : queue + 1;
    }
    told->count = count, told->sum = sum;
    return SB_OK;
}

int64_t scaling_stop(sb_connection *connection, struct ends *ends, int64_t consumers)
{
    (void)connection;
    ends->body[0] = STOP;
    for (int64_t each = 0; each < ends->queues * consumers; each++) {
        int64_t code = sb_publish(ends->queue[each % ends->queues], ends->body, ends->size,
                                  PATIENCE_NS);
        if (code < 0)
            return code;
    }
    return SB_OK;
}

/* All queues in turns, each until its end; told: how many, their sum, when the last was there. */
int64_t scaling_consume(sb_connection *connection, struct ends *ends, struct told *told)
{
    (void)connection;
    int64_t count = 0, sum = 0;
    sb_message message;
    sb_room room = {.messages = &message, .buffer = ends->room, .capacity = ends->size};
    for (int64_t open = ends->queues, queue = 0; open;
         queue = queue + 1 >= ends->queues ? 0 : queue + 1) {
        if (!ends->queue[queue])
            continue;
        int64_t code = sb_receive(ends->queue[queue], &room, PATIENCE_NS);
        if (code < 0)
            return code;
        int64_t stamp = ends->room[0];
        if (stamp < 0)
            ends->queue[queue] = NULL, open--;
        else
            count++, sum += stamp;
    }
    told->count = count, told->sum = sum, told->at_ns = now_ns();
    return SB_OK;
}
