/* A producer that keeps to a timetable, and its consumer, in C:
 * python -m shmbroker.perf.scenarios.open_loop.
 *
 * Each message carries when it was due, not when it was sent: a producer that was held up makes its
 * messages late, and that is what their receivers would feel. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "connect.h"
#include "waiting.h"

#define NEAR_NS 200000 /* what is nearer than this is spun for */

static void wait_until(int64_t due)
{
    for (int64_t left; (left = due - now_ns()) > 0;)
        if (left > NEAR_NS) {
            int64_t nap = left - NEAR_NS / 2;
            nanosleep(&(struct timespec){nap / 1000000000, nap % 1000000000}, NULL);
        }
}

/* The bare ring: a cache line for each message, which holds when it was due; 0: it is taken. */

enum { LINES = 1 << 16 };

struct line {
    _Atomic int64_t due;
    int64_t rest[7];
};

/* Spins until it is taken, or until it is there: when it was due. */
static int64_t await(struct line *line, bool is_taken)
{
    for (int64_t tries = 0; tries >> 31 == 0; tries++) {
        int64_t due = atomic_load_explicit(&line->due, memory_order_acquire);
        if ((due == 0) == is_taken)
            return due;
        pause_cpu();
    }
    return SB_EMPTY;
}

/* Into the queue, or without a connection into the ring. */
int64_t paced_produce(sb_connection *connection, struct line *ring, int64_t count, int64_t burst,
                      double gap_ns, int64_t start)
{
    sb_queue *queue = NULL;
    int64_t code = connection ? sb_open_queue(connection, "paced", &queue) : SB_OK, body[8] = {0};
    for (int64_t each = 0; code >= 0 && each < count; each++) {
        body[0] = start + (int64_t)(gap_ns * (double)(each / burst * burst));
        if (each % burst == 0)
            wait_until(body[0]);
        if (queue)
            code = sb_publish(queue, body, sizeof body, PATIENCE_NS);
        else if ((code = await(&ring[each % LINES], true)) == 0)
            atomic_store_explicit(&ring[each % LINES].due, body[0], memory_order_release);
    }
    return code < 0 ? code : SB_OK;
}

/* How long after it was due each was in our hand; *last: when the last was.  After `stall_at`
 * messages it does nothing for so long. */
int64_t paced_consume(sb_connection *connection, struct line *ring, int64_t count,
                      int64_t stall_at, int64_t stall_ns, int64_t *took_ns, int64_t *last)
{
    sb_queue *queue = NULL;
    int64_t code = connection ? sb_open_queue(connection, "paced", &queue) : SB_OK;
    for (int64_t each = 0; code >= 0 && each < count; each++) {
        sb_message message;
        if (each == stall_at && stall_ns)
            wait_until(now_ns() + stall_ns);
        code = queue ? sb_get(queue, &message, PATIENCE_NS) : await(&ring[each % LINES], false);
        if (code < 0)
            return code;
        *last = now_ns();
        took_ns[each] = *last - (queue ? *(const int64_t *)message.body : code);
        if (queue)
            code = sb_ack(queue, &message);
        else
            atomic_store_explicit(&ring[each % LINES].due, 0, memory_order_release);
    }
    return code < 0 ? code : SB_OK;
}
