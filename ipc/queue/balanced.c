/* Publishing to a queue that other nodes of a cluster have too: to the one whose turn it is.
 *
 * Which of them have turns is a set in the catalog (core/balance.py), which the broker keeps.  A
 * message that goes to another node is published here, into the queue towards it.  If that has no
 * room, others have their turn; if none of those has, the publisher waits, as for any queue.
 *
 * Messages with an id or the number of a producer stay here: only this ring knows whether they are
 * there already.
 *
 * The answer names the ring, in its upper bits: by a number that this connection gives each queue
 * towards another node.  So confirms are of the message, wherever it is. */

#define _GNU_SOURCE

#include "base/base.h"
#include "catalog/catalog.h"
#include "paging/paging.h"
#include "queue/queue.h"
#include "ring/ring.h"
#include "schedule/schedule.h"
#include "vhost/vhost.h"

#define TURNS 8 /* of those that have no room, or are gone, before the publisher waits */

/* The set of this queue, 0 none. */
static int64_t set_of(sb_queue *queue)
{
    int64_t code, set = 0;
    if (queue_look(queue, &code)) {
        set = sb_balance_of(queue->ring.memory);
        queue_looked(queue);
    }
    return set;
}

/* Into the queue towards a node: the answer, or why not. */
static int64_t publish_towards(sb_queue *way, int64_t number, const sb_outgoing *message,
                               int64_t timeout_ns, sb_receipt *where)
{
    int64_t code = ring_publish(way, message, timeout_ns);
    if (code < 0)
        return code;
    *where = (sb_receipt){way, code};
    return code | number << L_WAY_SHIFT;
}

int64_t balanced_publish(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns,
                         sb_receipt *where)
{
    int64_t chosen[L_MEMBER_BYTES / 8], number, code = SB_UNDECIDED;
    sb_outgoing copy = *message;
    if (queue->grouped)
        return grouped_publish(queue, message, timeout_ns, where);
    int64_t set = message->id_length | message->producer || is_scheduled(message) ? 0
                                                                                  : set_of(queue);
    for (int turn = 1; set && turn <= TURNS; turn++) {
        if (sb_balance_choose(queue->connection->catalog.memory, set, chosen) != SB_OK)
            return SB_UNDECIDED;
        copy.target = chosen[L_MEMBER_TARGET_AT / 8];
        if (copy.target == 0)
            return SB_UNDECIDED;
        sb_queue *way = way_of(queue->connection, chosen[L_MEMBER_QUEUE_AT / 8], &number);
        code = way ? publish_towards(way, number, &copy, turn == TURNS ? timeout_ns : 0, where)
                   : SB_NOT_FOUND;
        if (code != SB_FULL && code != SB_NOT_FOUND)
            return code;
    }
    return code == SB_FULL ? code : SB_UNDECIDED;
}

int64_t balanced_publish_many(sb_queue *queue, const char *bodies, const int64_t *lengths,
                              int64_t count, int64_t timeout_ns)
{
    int64_t done = 0, code = SB_OK;
    sb_receipt where;
    int64_t deadline = timeout_ns ? monotonic_deadline(timeout_ns) : 0;
    for (; done < count; bodies += lengths[done++]) {
        const sb_outgoing message = {.body = bodies, .length = lengths[done]};
        int64_t left = deadline ? deadline - sb_system_clock() : 0;
        code = balanced_publish(queue, &message, left > 0 ? left : 0, &where);
        if (code == SB_UNDECIDED)
            code = publish_receipt(queue, &message, left > 0 ? left : 0, &where);
        if (code < 0)
            break;
    }
    return done > 0 ? done : code;
}

int64_t balanced_confirm_all(sb_connection *connection, int64_t known, int64_t level,
                             int64_t timeout_ns)
{
    int64_t deadline = monotonic_deadline(timeout_ns);
    int64_t count = atomic_load(&connection->ways_count);
    for (int64_t each = 0; each < count && known >= 0; each++) {
        int64_t left = deadline - sb_system_clock();
        int64_t there = sb_confirm(connection->ways[each], -1, level, left > 0 ? left : 0);
        if (there != SB_NOT_FOUND) /* deleted: nobody waits for what was in it */
            known = there < 0 ? there : known & there;
    }
    return known;
}
