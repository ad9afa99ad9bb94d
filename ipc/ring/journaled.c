/* Whether the journal has what is in a ring. */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"

int64_t sb_is_durable(sb_queue *queue)
{
    return queue->durable;
}

bool is_journaled(const sb_queue *queue, sb_port *port, int64_t position)
{
    int64_t barrier = word_load(queue->ring.memory, L_RING_BARRIER_AT);
    return barrier == 0 || position < sb_port_gate_position(port, barrier - 1);
}
