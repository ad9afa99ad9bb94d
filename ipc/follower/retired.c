/* What is retired of a queue: all below its head, and what is done with above that. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "follower/follower.h"
#include "ring/ring.h"

#define DIGEST_PRIME UINT64_C(0x9E3779B97F4A7C15)

int64_t retired_head(const sb_queue *queue)
{
    return word_load(queue->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
}

static bool is_done(const sb_queue *queue, int64_t position)
{
    return (slot_word(queue, position) >> L_STATE_SHIFT & L_STATE_MASK) == L_DONE;
}

/* Head itself is looked at afterwards. */
int64_t retired_look(retired_set *of, const sb_queue *queue, sb_port *port, int64_t end)
{
    while (sb_port_reclaim(port) > 0)
        continue;
    int64_t head = retired_head(queue), bytes = (end - head + 7) / 8;
    of->head = head;
    of->length = 0;
    if (bytes <= 0 || end - head > queue->slots)
        return SB_OK;
    if (bytes > of->room) {
        unsigned char *room = realloc(of->bits, (size_t)bytes);
        if (!room)
            return fail_system("memory for what is retired");
        of->bits = room;
        of->room = bytes;
    }
    memset(of->bits, 0, (size_t)bytes);
    of->digest = ((uint64_t)head + 1) * DIGEST_PRIME;
    for (int64_t position = head; position < end; position++)
        if (is_done(queue, position)) {
            int64_t bit = position - head;
            of->bits[bit / 8] |= (unsigned char)(1 << bit % 8);
            of->digest = (of->digest ^ (uint64_t)position) * DIGEST_PRIME;
            of->length = bit / 8 + 1;
        }
    return SB_OK;
}
