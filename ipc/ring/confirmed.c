/* What of a ring is confirmed: all below its barrier (core/barrier.py). */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"

int64_t sb_is_durable(sb_queue *queue)
{
    return queue->durable;
}

bool is_replicated(const sb_queue *queue)
{
    return queue->durable && replicate_is_all(setting(queue, L_SETTING_REPLICATE_AT));
}

int64_t sb_is_replicated(sb_queue *queue)
{
    return is_replicated(queue);
}

int64_t confirmed_below(const sb_queue *queue)
{
    return word_load(queue->ring.memory, L_RING_CONFIRMED_AT) & L_POSITION_MASK;
}

bool is_confirmed(const sb_queue *queue, int64_t position)
{
    return !queue->durable || position < confirmed_below(queue);
}
