/* A setting of a queue, as its ring has it. */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"

int64_t setting(const sb_queue *queue, int64_t at)
{
    return word_load(queue->ring.memory, at);
}
