/* Confirms: a message of a durable queue is safe when the barrier of its ring has passed it.
 *
 * What a publisher waits for and what a consumer may take is one and the same word
 * (core/barrier.py), and it stays true if the broker that moved it dies.  Who asks for a level by
 * its name waits for the gates that say so, and not for the others. */

#define _GNU_SOURCE

#include "base/base.h"
#include "catalog/catalog.h"
#include "paging/paging.h"
#include "queue/queue.h"
#include "ring/ring.h"
#include "schedule/schedule.h"

static int64_t not_durable(const sb_queue *queue)
{
    return fail(SB_INVALID, "queue '%s' is not durable: declare it so, or do not ask whether its "
                "messages are on disk", queue->name);
}

/* No replica ever confirms it. */
static int64_t not_replicated(const sb_queue *queue)
{
    bool has_none = setting(queue, L_SETTING_REPLICATE_AT) == L_REPLICATE_NONE;
    return fail(SB_INVALID, "queue '%s' has replicate '%s', so no replica confirms its messages: "
                "ask for 'disk', or declare it with replicate 'all'", queue->name,
                has_none ? "none" : "configuration");
}

int64_t sb_is_confirmed(sb_queue *queue, int64_t position)
{
    int64_t code;
    sb_queue *way = way_at(queue, &position);
    if (way)
        return sb_is_confirmed(way, position);
    if (!queue_look(queue, &code))
        return code;
    code = is_confirmed(queue, position);
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
    code = confirmed_below(queue);
    int64_t lacking = word_load(queue->ring.memory, L_RING_COPIED_AT);
    if (lacking && lacking - 1 < code)
        code = lacking - 1;
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

static int64_t last_of(sb_queue *queue, int64_t *last, int64_t inbox)
{
    int64_t tail = ring_published(queue);
    if (tail > 0)
        *last = (tail - 1) | inbox;
    return tail > 0 ? 1 : tail;
}

int64_t sb_published_last(sb_queue *queue, int64_t last[2])
{
    int64_t code;
    if (!queue_look(queue, &code))
        return code;
    int64_t count = last_of(queue, last, 0);
    code = SB_OK;
    sb_queue *inbox = queue->pages ? inbox_of(queue, false, &code) : NULL;
    if (inbox && count >= 0)
        code = last_of(inbox, last + count, L_IN_INBOX);
    queue_looked(queue);
    return count < 0 ? count : code < 0 ? code : count + code;
}

static int64_t unconfirmed(const sb_queue *queue, sb_port *port, int64_t position, int64_t level)
{
    int64_t missing = ~sb_port_confirm_level(port, position);
    const char *why = missing & L_CONFIRM_DISK && (level < 0 || level & L_CONFIRM_DISK)
                          ? "nobody has said that it is on disk: is a broker running?"
                      : !is_replicated(queue)
                          ? "its broker may not serve: shmbroker ha status"
                      : level < 0 && position < confirmed_below(queue)
                          ? "a queue that follows it has not confirmed it"
                      : sb_port_confirm_level(port, L_CONFIRM_EFFECTIVE) & L_CONFIRM_REPLICATED
                          ? "a replica has not confirmed it"
                          : "no replica is in sync";
    return fail(SB_UNCONFIRMED, "queue '%s': message %lld is in shared memory, and %s",
                queue->name, (long long)position, why);
}

static int64_t wait_in_lane(sb_queue *queue, lane *in, int64_t position, int64_t level,
                            int64_t deadline)
{
    int64_t code;
    while ((code = sb_port_wait_for_confirm(&in->port, position, level, deadline)) == SB_SLEPT) {
        if (!queue_is_usable(queue, &code))
            return code == SB_MOVED
                       ? unconfirmed(queue, &in->port, position, level) : code;
        queue->connection->duties->repair_ring(queue, &in->port);
        if (queue->connection->waits_in_slices)
            return SB_INTERRUPTED;
    }
    if (code == SB_EMPTY)
        return unconfirmed(queue, &in->port, position, level);
    return code == SB_OK ? sb_port_confirm_level(&in->port, position) : code;
}

static int64_t confirm_in(sb_queue *queue, int64_t position, int64_t level, int64_t deadline)
{
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    if (position < 0)
        position = sb_port_true_tail(&in->port) - 1; /* or DAMAGED, less one */
    if (position == -1)
        code = sb_port_confirm_level(&in->port, L_CONFIRM_EFFECTIVE);
    else
        code = position < 0 ? position + 1 : wait_in_lane(queue, in, position, level, deadline);
    lane_leave(in);
    return code;
}

/* What is safe in all places is safe at the levels that it has in each. */
static int64_t confirm_in_too(sb_queue *queue, int64_t before, int64_t level, int64_t deadline)
{
    if (!queue || before < 0)
        return before;
    int64_t here = confirm_in(queue, -1, level, deadline);
    return here < 0 ? here : before & here;
}

static int64_t confirm(sb_queue *queue, int64_t position, int64_t level, int64_t deadline)
{
    int64_t code;
    sb_queue *inbox = queue->pages ? inbox_of_position(queue, &position) : NULL;
    int64_t known = confirm_in(inbox ? inbox : queue, position, level, deadline);
    if (position >= 0 || known < 0)
        return known;
    /* all that was published, wherever that is */
    code = SB_OK;
    inbox = queue->pages ? inbox_of(queue, false, &code) : NULL;
    known = code < 0 ? code : confirm_in_too(inbox, known, level, deadline);
    sb_queue *schedule = known >= 0 ? schedule_of(queue, false, &code) : NULL;
    return code < 0 ? code : confirm_in_too(schedule, known, level, deadline);
}

int64_t sb_confirm(sb_queue *queue, int64_t position, int64_t level, int64_t timeout_ns)
{
    int64_t code, deadline = monotonic_deadline(timeout_ns);
    if (level < L_CONFIRM_EFFECTIVE || level > (L_CONFIRM_DISK | L_CONFIRM_REPLICATED))
        return fail(SB_INVALID, "%lld is no level of a confirm: SB_CONFIRM_DISK, ...",
                    (long long)level);
    if (!sb_is_durable(queue))
        return level == L_CONFIRM_SHM ? L_CONFIRM_SHM : not_durable(queue);
    sb_queue *way = way_at(queue, &position);
    if (way)
        return sb_confirm(way, position, level, timeout_ns);
    if (!queue_look(queue, &code))
        return code;
    bool is_asked = level > 0 && level & L_CONFIRM_REPLICATED;
    code = is_asked && !is_replicated(queue) ? not_replicated(queue)
                                             : confirm(queue, position, level, deadline);
    bool in_turn = position < 0 && has_turns(queue);
    queue_looked(queue);
    return in_turn ? balanced_confirm_all(queue->connection, code, level, timeout_ns) : code;
}

int64_t sb_confirm_level(sb_queue *queue)
{
    int64_t code;
    sb_port port;
    if (!sb_is_durable(queue))
        return L_CONFIRM_SHM;
    if (!queue_look(queue, &code))
        return code;
    code = sb_port_to_look(queue, &port);
    if (code == SB_OK)
        code = sb_port_confirm_level(&port, L_CONFIRM_EFFECTIVE);
    queue_looked(queue);
    return code;
}
