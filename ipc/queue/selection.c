/* Taking what a selector matches, and leaving the rest to others, in its order.
 *
 * Whoever selects remembers how far it has looked: nothing below matches, as long as nothing was
 * given back.  The counters of returned messages tell; one who dies between giving back and
 * counting is made up for by looking from head again after AGAIN_NS.  What is looked at belongs to
 * nobody yet and may change under our eyes: only the claim that follows is believed. */

#define _GNU_SOURCE

#include "base/base.h"
#include "queue/queue.h"
#include "ring/ring.h"

#define AGAIN_NS 100000000

static int64_t returned(const sb_queue *queue)
{
    return setting(queue, L_COUNTER_GIVEN_BACK_AT) + setting(queue, L_COUNTER_REVOKED_AT) +
           setting(queue, L_RING_CHANGES_AT);
}

/* What is above the highest level of the queue counts as that. */
static int64_t level_of(const sb_message *message, int64_t levels)
{
    int64_t code = (message->mark >> L_MARK_PRIORITY_SHIFT) & L_MARK_PRIORITY_MASK;
    int64_t level = code ? code - 1 : L_LEVEL_DEFAULT;
    return level < levels ? level : levels - 1;
}

/* In a queue with groups: the first that matches and that we may have. */
static int64_t find_in_groups(sb_port *port, sb_selection *wanted, sb_message *found)
{
    int64_t position = sb_port_group_begin(port), code;
    sb_message message; /* *found is the caller's only once it matches */
    if (wanted->position > position)
        position = wanted->position;
    while ((code = sb_port_look(port, position, &message)) != SB_EMPTY) {
        /* what somebody else has in hand may hold up others of its group */
        bool passed = code == SB_OK && !sb_is_selected(&message, wanted);
        int64_t may = passed ? L_NOT_OURS : sb_port_may_take(port, position);
        if (may == L_OURS && code == SB_OK) {
            *found = message;
            break;
        }
        position = may == L_AGAIN ? sb_port_group_begin(port) : position + 1;
    }
    wanted->position = position;
    return code == SB_OK ? SB_OK : SB_EMPTY;
}

/* The same; and whoever holds one up tells us when it is dealt with. */
static int64_t find_or_be_told(sb_queue *queue, sb_port *port, sb_selection *wanted,
                               sb_message *found)
{
    if (find_in_groups(port, wanted, found) == SB_OK)
        return SB_OK;
    if (word_load(port, L_PORT_PENDING) < 0)
        return SB_EMPTY;
    sb_bell_arm((int64_t *)((char *)queue->ring.memory + L_RING_PRODUCER_BELL_AT));
    wanted->position = 0;
    int64_t code = find_in_groups(port, wanted, found);
    wanted->looked_ns = 0; /* look at everything when we are told */
    return code;
}

/* The first that matches, or the first of the highest level; SB_EMPTY, and where to wait. */
static int64_t find(sb_queue *queue, sb_port *port, sb_selection *wanted, sb_message *found)
{
    if (queue->buckets)
        return find_or_be_told(queue, port, wanted, found);
    int64_t levels = setting(queue, L_RING_MODE_AT) >> L_MODE_LEVELS_SHIFT & L_MODE_LEVELS_MASK;
    int64_t head = setting(queue, L_RING_HEAD_AT) & L_POSITION_MASK, code;
    int64_t position = levels || wanted->position < head ? head : wanted->position, best = -1;
    sb_message message;
    for (; (code = sb_port_look(port, position, &message)) != SB_EMPTY; position++) {
        if (code != SB_OK || sb_is_aside(message.word) || !sb_is_selected(&message, wanted))
            continue;
        int64_t level = levels ? level_of(&message, levels) : 0;
        if (level <= best)
            continue;
        *found = message;
        if (!levels)
            break;
        best = level;
    }
    wanted->position = position;
    return best >= 0 || code == SB_OK ? SB_OK : SB_EMPTY;
}

static int64_t select_in(sb_queue *queue, sb_port *port, sb_selection *wanted, sb_message *message)
{
    int64_t code = read_only_code(queue);
    if (code != SB_OK)
        return code;
    int64_t seen = returned(queue), now = sb_system_clock();
    if (seen != wanted->returned || now - wanted->looked_ns >= AGAIN_NS) {
        wanted->position = 0;
        wanted->looked_ns = now;
    }
    wanted->returned = seen;
    if (setting(queue, L_RING_MODE_AT) & L_MODE_PAUSED) {
        wanted->position = sb_port_true_tail(port);
        wanted->looked_ns = 0; /* look at everything when it goes on */
        return SB_EMPTY;
    }
    while (find(queue, port, wanted, message) == SB_OK) {
        if (sb_port_take_selected(port, message) != SB_OK) {
            message->word = 0; /* somebody else was faster, or it is a replica by now */
            if ((code = read_only_code(queue)) != SB_OK)
                return code;
            continue;
        }
        code = sb_system_decide((int64_t)(intptr_t)port, (int64_t)(intptr_t)message);
        if (code != SB_GONE)
            return code;
    }
    return SB_EMPTY;
}

/* Others are told what we select, before they see that we consume. */
static void tell(sb_queue *queue, sb_selection *wanted)
{
    if (wanted->told != queue->reference)
        queue_tell_selector(queue, wanted->text, wanted->text_length);
    wanted->told = queue->reference;
    queue_note_use(queue, L_USE_CONSUMES);
}

int64_t sb_selects(sb_queue *queue, sb_selection *wanted)
{
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    tell(queue, wanted);
    lane_leave(in);
    return SB_OK;
}

int64_t sb_find_selected(sb_queue *queue, sb_selection *wanted)
{
    sb_message message;
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    int64_t position = setting(queue, L_RING_HEAD_AT) & L_POSITION_MASK;
    while ((code = sb_port_look(&in->port, position, &message)) != SB_EMPTY &&
           (code != SB_OK || sb_is_aside(message.word) || !sb_is_selected(&message, wanted)))
        position++;
    lane_leave(in);
    return queue->non_destructive ? nothing_taken(queue) : code == SB_OK ? position : code;
}

int64_t sb_get_selected(sb_queue *queue, sb_message *message, sb_selection *wanted,
                        int64_t timeout_ns)
{
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    if (queue->non_destructive) {
        lane_leave(in);
        return nothing_taken(queue);
    }
    tell(queue, wanted);
    int64_t deadline = timeout_ns ? monotonic_deadline(timeout_ns) : 0;
    code = select_in(queue, &in->port, wanted, message);
    if (code == SB_EMPTY)
        code = found_nothing(queue, &in->port);
    while (code == SB_EMPTY && timeout_ns != 0) {
        code = sb_port_wait_for_selected(&in->port, wanted->position, wanted->returned, deadline);
        if (code == SB_SLEPT) {
            queue->connection->duties->repair_ring(queue, &in->port);
            if (queue_is_usable(queue, &code))
                code = queue->connection->waits_in_slices ? SB_INTERRUPTED : SB_OK;
        }
        if (code != SB_OK)
            break;
        code = select_in(queue, &in->port, wanted, message);
        if (sb_system_clock() >= deadline)
            break;
    }
    lane_leave(in);
    return code;
}
