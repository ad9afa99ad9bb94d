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

bool has_turns(const sb_queue *queue)
{
    return is_balanced(queue) || queue->grouped;
}

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

/* What a selector sees of a message that is to be published. */
static sb_subject subject_of(const sb_outgoing *message)
{
    int64_t now = realtime_ns();
    return (sb_subject){
        .key = message->key, .key_length = message->key_length,
        .properties = message->properties, .properties_length = message->properties_length,
        .body_length = message->length, .published_ns = now,
        .expiry_ns = message->ttl_ns > 0 ? now + message->ttl_ns : 0,
        .priority = message->priority ? message->priority - 1 : L_LEVEL_DEFAULT,
    };
}

/* A bit for each member of which a selector takes the message. */
static int64_t members_that_take(const char *selectors, int64_t bytes, const sb_outgoing *message)
{
    const sb_subject subject = subject_of(message);
    int64_t takes = 0;
    for (int64_t at = 0; at + 8 <= bytes;) {
        int64_t word = word_load(selectors, at);
        int64_t member = word & ((1 << L_BALANCE_SELECTOR_SHIFT) - 1);
        int64_t length = word >> L_BALANCE_SELECTOR_SHIFT;
        const char *program = selectors + at + 8;
        at += 8 + ((length + 7) & ~INT64_C(7));
        if (length < 0 || at > bytes)
            break;
        /* it was in shared memory: so it is checked, before it is run */
        if (member < L_BALANCE_MEMBERS && sb_selector_check(program, length) == SB_OK &&
            sb_selector_matches(program, length, &subject))
            takes |= INT64_C(1) << member;
    }
    return takes;
}

/* Whose turn it is: SB_OK with the two words of a member at `chosen`. */
static int64_t choose(sb_queue *queue, int64_t set, const sb_outgoing *message, int64_t *chosen)
{
    void *catalog = queue->connection->catalog.memory;
    int64_t code = sb_balance_choose(catalog, set, chosen);
    if (code <= 0)
        return code;
    int64_t turn = chosen[0], copied[1 + L_BALANCE_SELECTORS_BYTES / 8];
    code = SB_STALE;
    for (int tries = 0; tries < TURNS && code == SB_STALE; tries++) {
        int64_t bytes = sb_balance_selectors(catalog, set, copied);
        if (bytes == SB_STALE)
            continue;
        if (bytes < 0)
            return bytes;
        int64_t takes = members_that_take((const char *)(copied + 1), bytes, message);
        code = sb_balance_choose_among(catalog, set, turn, copied[0], takes, chosen);
    }
    return code;
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
        if (choose(queue, set, &copy, chosen) != SB_OK)
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

int64_t sb_published_towards(sb_queue *queue, int64_t *last, int64_t room)
{
    int64_t code, found, count = 0, here[2];
    if (!queue_look(queue, &code))
        return code;
    int64_t ways = has_turns(queue) ? atomic_load(&queue->connection->ways_count) : 0;
    queue_looked(queue);
    for (int64_t each = 0; each < ways; each++) {
        found = sb_published_last(queue->connection->ways[each], here);
        if (found < 0 && found != SB_NOT_FOUND) /* deleted: nobody waits for what was in it */
            return found;
        for (int64_t end = 0; end < found && count < room; end++)
            last[count++] = here[end] | (each + 1) << L_WAY_SHIFT;
    }
    return count;
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
