/* Waiting for several things at once: for one thread that sleeps on behalf of others (asyncio).
 *
 * The handshake is that of core/bell.py: arm all bells, look at everything once more, sleep.  The
 * looking is done in lanes of the queues, and no lane is kept while we sleep.
 *
 * The kernel takes 127 bells and a word of ours.  If there are more, we are told of all by a bell
 * of a follower; if the vhost has none left of those, we look every 2 ms. */

#define _GNU_SOURCE

#include "base/base.h"
#include "paging/paging.h"
#include "catalog/catalog.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define REPAIR_NS 100000000

/* SB_CONFIRMED, or that less a level. */
static bool is_confirm(int64_t returned)
{
    return returned <= SB_CONFIRMED && returned >= SB_CONFIRMED_BOTH;
}

static int64_t level_of(int64_t returned)
{
    return returned == SB_CONFIRMED ? L_CONFIRM_EFFECTIVE : SB_CONFIRMED - returned;
}

static int64_t bell_of(const sb_queue *queue, int64_t position, int64_t returned)
{
    int64_t at = is_confirm(returned)    ? L_RING_CONFIRM_BELL_AT
                 : position == SB_ROOM    ? L_RING_PRODUCER_BELL_AT
                 : position == SB_A_MESSAGE && !queue->buckets ? L_RING_CONSUMER_BELL_AT
                                                               : L_RING_SUBSCRIBER_BELL_AT;
    return (int64_t)(intptr_t)queue->ring.memory + at;
}

/* Whose bell it is: who finds no room in a queue that pages waits for its inbox, and so does who
 * has published there. */
static sb_queue *rings_of(const sb_wait *wait)
{
    int64_t code;
    sb_queue *queue = wait->queue;
    int64_t position = wait->position;
    bool is_room = position == SB_ROOM && !is_confirm(wait->returned);
    sb_queue *inbox = NULL, *way = is_confirm(wait->returned) ? way_at(queue, &position) : NULL;
    if (way)
        return way;
    if (queue->pages)
        inbox = is_room ? inbox_of(queue, true, &code) : inbox_of_position(queue, &position);
    return inbox ? inbox : queue;
}

/* Arm the bell, then look: SB_OK if it is worth trying, SB_EMPTY, or why nothing will come.
 * `is_time`: room that nobody tells of is looked for by whoever wants it (wait.c). */
static int64_t arm_and_look(sb_queue *queue, int64_t position, int64_t returned, bool is_time)
{
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    queue_used(queue);
    sb_cursor cursor = {.port = &in->port, .position = position, .gate = -1};
    code = position == SB_A_MESSAGE ? sb_port_wait_for_message(&in->port, 0)
           : position == SB_ROOM    ? wait_kernel(queue)(&in->port, 0)
           : is_confirm(returned)
               ? sb_port_wait_for_confirm(&in->port, position & L_POSITION_MASK,
                                          level_of(returned), 0)
           : returned >= 0 ? sb_port_wait_for_selected(&in->port, position, returned, 0)
                           : sb_cursor_wait(&cursor, 0);
    if (is_time && code == SB_FULL && wait_kernel(queue) == sb_port_wait_for_head)
        code = SB_OK;
    lane_leave(in);
    return code == SB_FULL ? SB_EMPTY : code;
}

/* follower: the number of a bell that is told of all, -1 none. */
static int64_t look_at_all(sb_wait *waits, int64_t count, int64_t follower, bool is_time)
{
    int64_t ready = 0;
    for (int64_t each = 0; each < count; each++) {
        sb_queue *ring = rings_of(&waits[each]);
        int64_t position = waits[each].position, returned = waits[each].returned;
        if (follower >= 0)
            sb_bell_follow((int64_t *)bell_of(ring, position, returned), follower);
        waits[each].code = arm_and_look(ring, position, returned, is_time);
        ready += waits[each].code != SB_EMPTY;
    }
    return ready;
}

/* The word that tells of new waits, and all bells: or one that is told of them. */
static int64_t words_of(system_word *words, const sb_wait *waits, int64_t count,
                        const int64_t *control, int64_t seen, const char *bell)
{
    int64_t used = 0;
    words[used++] = (system_word){(int64_t)(intptr_t)control, seen};
    if (bell)
        words[used++] = (system_word){(int64_t)(intptr_t)bell, 1};
    if (bell)
        return used;
    for (int64_t each = 0; each < count && used < WAIT_WORDS_MAX; each++)
        words[used++] = (system_word){bell_of(rings_of(&waits[each]), waits[each].position,
                                              waits[each].returned), 1};
    return used;
}

/* SB_OK, or which of them asks for what there is not. */
static int64_t check(const sb_wait *waits, int64_t count)
{
    if (count < 0)
        return fail(SB_INVALID, "%lld waits: their number is 0 or more", (long long)count);
    for (int64_t each = 0; each < count; each++) {
        int64_t position = waits[each].position, returned = waits[each].returned;
        if (!waits[each].queue)
            return fail(SB_INVALID, "wait %lld: there is no queue", (long long)each);
        if (position < 0 && position != SB_A_MESSAGE && position != SB_ROOM)
            return fail(SB_INVALID, "wait %lld: position %lld is none: SB_A_MESSAGE, SB_ROOM, or 0 "
                        "or more", (long long)each, (long long)position);
        if (returned < 0 && returned != SB_ANY_NUMBER && !is_confirm(returned))
            return fail(SB_INVALID,
                        "wait %lld: returned %lld is none: SB_ANY_NUMBER, SB_CONFIRMED, "
                        "or 0 or more",
                        (long long)each, (long long)returned);
        if (is_confirm(returned) && position < 0)
            return fail(SB_INVALID,
                        "wait %lld: SB_CONFIRMED is asked of the message at a position, not of %s",
                        (long long)each, position == SB_ROOM ? "SB_ROOM" : "SB_A_MESSAGE");
    }
    return SB_OK;
}

/* By the clock, and not after a sleep in vain: beside a bell that rings all the time there is none,
 * and others wait for what the dead have left.  Whether it was time; *since: when it was before. */
static bool repair_if_due(const sb_wait *waits, int64_t count, int64_t *since)
{
    int64_t now = sb_system_clock();
    if (count == 0 || now - *since < REPAIR_NS)
        return false;
    sb_connection *connection = waits[0].queue->connection;
    atomic_store(&connection->rings_repaired, *since = now);
    connection->duties->repair_rings(waits, count);
    return true;
}

/* With a follower's bell, or as many bells as the kernel takes. */
static int64_t wait_with(sb_wait *waits, int64_t count, const int64_t *control, int64_t seen,
                         int64_t timeout_ns, int64_t follower)
{
    system_word words[WAIT_WORDS_MAX];
    char *bell = follower < 0 ? NULL : follower_bell(waits[0].queue->connection, follower);
    int64_t code, used = words_of(words, waits, count, control, seen, bell);
    int64_t deadline = monotonic_deadline(timeout_ns);
    int64_t since = count > 0 ? atomic_load(&waits[0].queue->connection->rings_repaired) : 0;
    for (;;) {
        bool is_time = repair_if_due(waits, count, &since);
        if (bell)
            sb_bell_arm((int64_t *)(void *)bell);
        int64_t ready = look_at_all(waits, count, follower, is_time);
        if (ready > 0 || word_load(control, 0) != seen)
            return ready;
        int64_t until = deadline, turn = sb_system_clock() + TURN_NS;
        if (count > 0 && since + REPAIR_NS < until)
            until = since + REPAIR_NS;
        if (count >= WAIT_WORDS_MAX && !bell && turn < until)
            until = turn;
        code = system_wait_any(words, used, until);
        if (code == SB_INTERRUPTED)
            return 0;
        if (code == SB_SYSTEM)
            return fail_system("waiting for %lld bells", (long long)count);
        /* also if we were woken: that may go on for ever, and be for nothing each time */
        if (sb_system_clock() >= deadline)
            return look_at_all(waits, count, follower, false);
    }
}

static int64_t wait_any(sb_wait *waits, int64_t count, const int64_t *control, int64_t seen,
                        int64_t timeout_ns)
{
    if (count < WAIT_WORDS_MAX)
        return wait_with(waits, count, control, seen, timeout_ns, -1);
    sb_connection *connection = waits[0].queue->connection;
    int64_t follower = follower_bell_take(connection);
    int64_t ready = wait_with(waits, count, control, seen, timeout_ns, follower);
    follower_bell_return(connection, follower);
    return ready;
}

/* The bells are in rings, which stay where they are while we sleep. */
int64_t sb_wait_any(sb_wait *waits, int64_t count, const int64_t *control, int64_t seen,
                    int64_t timeout_ns)
{
    int64_t gone = 0, code = check(waits, count);
    if (code != SB_OK)
        return code;
    for (int64_t each = 0; each < count; each++) {
        bool is_there = queue_look(waits[each].queue, &waits[each].code);
        if (is_there)
            waits[each].code = SB_EMPTY;
        gone += !is_there;
    }
    int64_t ready = gone;
    if (gone == 0)
        ready = wait_any(waits, count, control, seen, timeout_ns);
    for (int64_t each = 0; each < count; each++)
        if (gone == 0 || waits[each].code == SB_EMPTY)
            queue_looked(waits[each].queue);
    return ready;
}

int64_t sb_pass_on(sb_queue *queue, int64_t position)
{
    int64_t code;
    if (position >= 0 || (position == SB_A_MESSAGE && queue->buckets))
        return SB_OK; /* subscribers, and consumers of groups, are woken all at once */
    if (!queue_look(queue, &code))
        return code;
    sb_queue *ring = rings_of(&(sb_wait){.queue = queue, .position = position, .returned = -1});
    code = arm_and_look(ring, position, -1, false);
    if (code == SB_OK)
        sb_system_wake(bell_of(ring, position, -1), 1);
    queue_looked(queue);
    return code;
}
