/* Confirms: a message of a durable queue is safe when the journal's gate has passed its position.
 *
 * The gate is the barrier of the ring (core/visible.py), so what a publisher waits for and what a
 * consumer may take is one and the same word, and it stays true if the broker that moved it
 * dies. */

#define _GNU_SOURCE

#include "base/base.h"
#include "paging/paging.h"
#include "ring/ring.h"
#include "schedule/schedule.h"

static int64_t not_durable(const sb_queue *queue)
{
    return fail(SB_INVALID, "queue '%s' is not durable: declare it so, or do not ask whether its "
                "messages are on disk", queue->name);
}

int64_t sb_is_confirmed(sb_queue *queue, int64_t position)
{
    int64_t code;
    sb_port port;
    if (!queue_look(queue, &code))
        return code;
    code = port_to_look(queue, &port);
    if (code == SB_OK)
        code = is_journaled(queue, &port, position);
    queue_looked(queue);
    return code;
}

int64_t sb_confirmed(sb_queue *queue)
{
    int64_t code;
    if (!sb_is_durable(queue))
        return not_durable(queue);
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    code = journaled_below(queue, &in->port);
    lane_leave(in);
    return code;
}

/* Of this ring, whatever pages. */
static int64_t ring_published(sb_queue *queue)
{
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    code = sb_port_true_tail(&in->port);
    lane_leave(in);
    return code;
}

static int64_t published(sb_queue *queue)
{
    int64_t code, tail;
    sb_queue *inbox =
        is_paging(queue) && sb_is_durable(queue) ? inbox_of(queue, false, &code) : NULL;
    if (!inbox || (tail = ring_published(inbox)) == 0)
        return ring_published(queue);
    return tail < 0 ? tail : tail | L_IN_INBOX;
}

int64_t sb_published(sb_queue *queue)
{
    int64_t code;
    if (!queue_look(queue, &code))
        return code;
    code = published(queue);
    queue_looked(queue);
    return code;
}

static int64_t wait_for_gate(sb_queue *queue, lane *in, int64_t position, int64_t deadline)
{
    int64_t code;
    while ((code = sb_port_wait_for_gate(&in->port, position, deadline)) == SB_SLEPT) {
        if (!queue_is_usable(queue, &code))
            return code;
        queue->connection->duties->repair_ring(queue, &in->port);
        if (queue->connection->waits_in_slices)
            return SB_INTERRUPTED;
    }
    if (code != SB_EMPTY)
        return code;
    return fail(SB_UNCONFIRMED, "queue '%s': message %lld is in shared memory, and nobody has said "
                "that it is on disk: is a broker running?", queue->name, (long long)position);
}

static int64_t confirm_in(sb_queue *queue, int64_t position, int64_t deadline)
{
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    if (position < 0)
        position = sb_port_true_tail(&in->port) - 1; /* or DAMAGED, less one */
    code = position < 0 ? position == -1 ? SB_OK : position + 1
                        : wait_for_gate(queue, in, position, deadline);
    lane_leave(in);
    return code;
}

static int64_t confirm(sb_queue *queue, int64_t position, int64_t deadline)
{
    int64_t code;
    sb_queue *inbox = queue->pages ? inbox_of_position(queue, &position) : NULL;
    code = confirm_in(inbox ? inbox : queue, position, deadline);
    if (position >= 0 || code != SB_OK)
        return code;
    /* all that was published, wherever that is */
    inbox = queue->pages ? inbox_of(queue, false, &code) : NULL;
    if (inbox)
        code = confirm_in(inbox, -1, deadline);
    sb_queue *schedule = code == SB_OK ? schedule_of(queue, false, &code) : NULL;
    return schedule ? confirm_in(schedule, -1, deadline) : code;
}

int64_t sb_confirm(sb_queue *queue, int64_t position, int64_t timeout_ns)
{
    int64_t code, deadline = monotonic_deadline(timeout_ns);
    if (!sb_is_durable(queue))
        return not_durable(queue);
    if (!queue_look(queue, &code))
        return code;
    code = confirm(queue, position, deadline);
    queue_looked(queue);
    return code;
}
