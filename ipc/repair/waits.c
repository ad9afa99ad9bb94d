/* What is done between two sleeps for the queues that are waited for. */

#define _GNU_SOURCE

#include "base/base.h"
#include "queue/queue.h"
#include "repair/repair.h"
#include "ring/ring.h"
#include "schedule/schedule.h"

/* queues that are repaired after one sleep: with many, they take turns */
#define REPAIRED_AT_ONCE 8

void rings_repair(const sb_wait *waits, int64_t count)
{
    static _Atomic uint64_t turn;
    for (int64_t each = 0; each < count && each < REPAIRED_AT_ONCE; each++) {
        int64_t code;
        sb_queue *queue = waits[atomic_fetch_add(&turn, 1) % (uint64_t)count].queue;
        lane *in = lane_enter(queue, &code);
        if (!in)
            continue;
        queue_repair_alone(queue, &in->port);
        lane_leave(in);
    }
    if (count > 0) {
        sb_repair(waits[0].queue->connection);
        auto_delete_some(waits[0].queue->connection);
    }
}
