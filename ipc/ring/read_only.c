/* Queues that follow one of another broker (core/closed.py).  Kernels refuse to publish and to take
 * there; what else changes a queue asks here. */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"

int64_t read_only_code(const sb_queue *queue)
{
    return word_load(queue->ring.memory, L_RING_CLOSED_AT)
               ? fail(SB_READ_ONLY, "queue '%s' follows a queue of another broker: change it "
                      "there, or end that (shmbroker ha detach)", queue->name)
               : SB_OK;
}
