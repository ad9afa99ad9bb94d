/* Whether the journal has what is in a ring. */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"

int64_t sb_is_durable(sb_queue *queue)
{
    return queue->durable;
}

int64_t journaled_below(const sb_queue *queue, sb_port *port)
{
    return sb_port_gate_position(port, word_load(queue->ring.memory, L_RING_BARRIER_AT) - 1);
}

bool is_journaled(const sb_queue *queue, sb_port *port, int64_t position)
{
    return !queue->durable || position < journaled_below(queue, port);
}
