/* What is retired of a queue: all below its head, and what is done with above that. */

#define _GNU_SOURCE
#include <stdlib.h>

#include "base/base.h"
#include "follower/follower.h"
#include "ring/ring.h"

#define DIGEST_PRIME UINT64_C(0x9E3779B97F4A7C15)

int64_t retired_head(const sb_queue *queue)
{
    return word_load(queue->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
}

/* So that a set that is as before is known without a copy of it. */
static uint64_t digest_of(const retired_set *of)
{
    uint64_t digest = ((uint64_t)of->head + 1) * DIGEST_PRIME;
    for (int64_t at = 0; at < of->length; at++)
        digest = (digest ^ of->bits[at]) * DIGEST_PRIME;
    return digest;
}

/* Head itself is looked at afterwards. */
int64_t retired_look(retired_set *of, const sb_queue *queue, sb_port *port, int64_t end)
{
    while (sb_port_reclaim(port) > 0)
        continue;
    int64_t head = retired_head(queue), words = (end - head + 63) / 64;
    of->head = head;
    of->length = 0;
    if (words <= 0 || end - head > queue->slots)
        return SB_OK;
    if (8 * words > of->room) {
        unsigned char *room = realloc(of->bits, (size_t)words * 8);
        if (!room)
            return fail_system("memory for what is retired");
        of->bits = room;
        of->room = 8 * words;
    }
    of->length = sb_port_retired_look(port, head, end, (int64_t)(intptr_t)of->bits);
    while (of->length > 0 && of->bits[of->length - 1] == 0)
        of->length--;
    of->digest = digest_of(of);
    return SB_OK;
}
