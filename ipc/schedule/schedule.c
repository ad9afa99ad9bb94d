/* The schedule of a queue: messages that are not to be delivered yet.
 *
 * It is a ring of its own, made when the first message is scheduled: a queue without a name for
 * people, whose settings say whose it is.  So what holds for messages holds for these: one is there
 * when its word is READY, whoever dies is repaired, and the arena is shared in the same way.  What
 * is in one's body is in core/layout.py.
 *
 * When its time has come, a message is acknowledged here and published in the queue, by one
 * transaction: never lost, never twice.  A mover does it (mover.c); the due word tells it when to
 * look (core/due.py).
 *
 * The schedule of a durable queue is durable itself: the journal follows it like any queue, and a
 * move is in one frame, as transactions are (gate.c).  What the journal does not have yet is not
 * moved: it would be written later than what it becomes, and be there twice if a crash came
 * between.
 *
 * One that is scheduled for next week would hold its slot and all behind it.  So there are some
 * more slots than messages, and who finds them used up, but not by messages, publishes the oldest
 * anew, at the end: that is a transaction as well. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "commit/commit.h"
#include "paging/paging.h"
#include "ring/ring.h"
#include "schedule/schedule.h"
#include "vhost/vhost.h"

#define SECONDS_MAX_NS INT64_C(1000000000000000000)

#define SPARE_SHIFT 4 /* one slot of 16 is for moving the oldest */

#define MOVED_AT_ONCE 64

/* --- whose it is, and where it is ------------------------------------------------------------- */

/* So much of a schedule with so many slots may be in use when its oldest messages were moved: fewer
 * slots than make it full, however few it has. */
static int64_t moved_to(int64_t slots)
{
    return slots - (slots >> (SPARE_SHIFT - 1)) - 2;
}

static int64_t slots_for(int64_t most)
{
    int64_t slots = L_SLOTS_MIN;
    while (moved_to(slots) < most + (most >> SPARE_SHIFT))
        slots *= 2;
    return slots;
}

static int64_t make(sb_queue *queue, const char *name)
{
    char page[L_RING_GATES_AT] = "";
    int64_t most = setting(queue, L_SETTING_MAX_SCHEDULED_AT);
    if (most < 1 || most > L_MAX_SCHEDULED_MAX)
        return fail(SB_DAMAGED, "the settings of queue '%s' are damaged", queue->name);
    word_store(page, L_SETTING_SCHEDULE_OF_AT, queue->reference);
    word_store(page, L_SETTING_MAX_SCHEDULED_AT, most);
    word_store(page, L_SETTING_MAX_BYTES_AT, queue->max_bytes);
    word_store(page, L_SETTING_DURABLE_AT, sb_is_durable(queue));
    word_store(page, L_SETTING_REPLICATE_AT, setting(queue, L_SETTING_REPLICATE_AT));
    return queue_add(queue->connection, name, slots_for(most), page, L_QUEUE_SCHEDULE);
}

static const beside SCHEDULE = {.flag = L_QUEUE_SCHEDULE, .word_at = L_RING_SCHEDULE_AT,
                                .whose_at = L_SETTING_SCHEDULE_OF_AT, .noun = "schedule",
                                .make = make};

sb_queue *schedule_of(sb_queue *queue, bool makes, int64_t *code)
{
    return beside_of(queue, &queue->schedule, &SCHEDULE, makes, code);
}

int64_t sb_schedule(sb_queue *queue, sb_queue **schedule)
{
    int64_t code;
    *schedule = NULL;
    if (!queue_look(queue, &code))
        return code;
    *schedule = schedule_of(queue, false, &code);
    queue_looked(queue);
    return code;
}

void schedule_restored(segment *ring, int64_t reference, int64_t last_id)
{
    word_store(ring->memory, L_SETTING_SCHEDULE_OF_AT, reference);
    word_store(ring->memory, L_RING_SCHEDULED_AT, last_id);
    sb_due_note((int64_t)(intptr_t)ring->memory + L_RING_DUE_AT, 0);
}

/* --- room ------------------------------------------------------------------------------------- */

static int64_t live_in(sb_port *port)
{
    return sb_port_slots_in(port, L_READY) + sb_port_slots_in(port, L_LEASED);
}

/* Take what is at this position, and make a chunk of it to be published behind all others. */
static int64_t copy_to_end(sb_queue *schedule, lane *in, sb_message *message, operation *operations)
{
    sb_port *port = &in->port;
    if (!is_confirmed(schedule, message->position) || !schedule_take(port, message))
        return SB_GONE;
    int64_t chunk = schedule_copy(port, message, message->body, message->length);
    if (chunk < 0) {
        sb_port_give_back(port, message);
        return chunk;
    }
    operations[0] = (operation){.queue = schedule, .where = message->position,
                                .word = message->word};
    operations[1] = (operation){.queue = schedule, .lane = in, .where = chunk};
    return SB_OK;
}

/* Publish some of the oldest anew, so that head can move: SB_OK, or why not. */
static int64_t move_oldest(sb_queue *schedule, lane *in, int64_t *position, int64_t end)
{
    operation operations[2 * MOVED_AT_ONCE];
    sb_message messages[MOVED_AT_ONCE];
    sb_port *port = &in->port;
    int64_t count = 0, code = SB_OK, room = schedule->slots - sb_port_window(port);
    int64_t head = word_load(schedule->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
    if (room < 1 && *position == head)
        room = 1; /* the commit acknowledges it first, and has its slot */
    for (; *position < end && count < MOVED_AT_ONCE && count < room; ++*position) {
        if (sb_port_look(port, *position, &messages[count]) != SB_OK)
            continue;
        code = copy_to_end(schedule, in, &messages[count], operations + 2 * count);
        count += code == SB_OK;
        if (code != SB_OK && code != SB_GONE)
            break;
    }
    if (count == 0)
        return room <= 0 ? SB_FULL : code == SB_GONE ? SB_OK : code;
    code = commit_at_once(schedule->connection, operations, 2 * count);
    for (int64_t each = 0; code != SB_OK && code != SB_UNFINISHED && each < count; each++) {
        sb_port_give_back(port, &messages[each]);
        sb_port_unreserve(port, operations[2 * each + 1].where);
    }
    while (sb_port_reclaim(port) > 0)
        ;
    return code;
}

/* Once through all that are there, at most. */
static int64_t compact(sb_queue *schedule, lane *in)
{
    int64_t tail = sb_port_true_tail(&in->port), code = SB_OK;
    int64_t enough = moved_to(schedule->slots);
    int64_t at = word_load(schedule->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
    while (at < tail && code == SB_OK && sb_port_window(&in->port) > enough)
        code = move_oldest(schedule, in, &at, tail);
    return code;
}

/* Whether one more may be scheduled: SB_OK or SB_FULL.  Counting looks at every slot, so it says up
 * to which position it need not be done again. */
int64_t schedule_room(sb_queue *schedule, lane *in)
{
    sb_port *port = &in->port;
    int64_t most = setting(schedule, L_SETTING_MAX_SCHEDULED_AT);
    int64_t usable = schedule->slots - (schedule->slots >> SPARE_SHIFT) - 1;
    int64_t window = sb_port_window(port);
    if (window < most)
        return SB_OK;
    int64_t tail = sb_port_true_tail(port);
    if (tail < atomic_load(&schedule->counted))
        return SB_OK;
    int64_t live = live_in(port);
    if (live >= most)
        return SB_FULL;
    if (window >= usable) {
        int64_t code = compact(schedule, in);
        window = sb_port_window(port);
        if (window >= usable)
            return code < 0 ? code : SB_FULL;
    }
    tail = sb_port_true_tail(port);
    int64_t more = most - live < usable - window ? most - live : usable - window;
    atomic_store(&schedule->counted, tail + more);
    return SB_OK;
}

/* --- a chunk in it ---------------------------------------------------------------------------- */

int64_t schedule_copy(sb_port *port, const sb_message *from, const void *body, int64_t length)
{
    sb_outgoing shape = {.length = length,
                         .priority = (from->mark >> L_MARK_PRIORITY_SHIFT) & L_MARK_PRIORITY_MASK};
    shape.key = sb_message_key(from, &shape.key_length);
    shape.properties = sb_message_properties(from, &shape.properties_length);
    bool extended = from->mark & L_CHUNK_EXTENDED << L_MARK_FLAGS_SHIFT;
    const char *extension = (const char *)from->chunk + L_CHUNK_EXPIRY_AT;
    int64_t chunk = sb_port_loan_with(port, &shape, extended ? (const int64_t *)extension : NULL);
    if (chunk < 0)
        return chunk;
    memcpy(sb_port_loan_body(port, chunk), body, (size_t)length);
    schedule_deliveries(port, chunk, from->mark & L_MARK_DELIVERIES_MASK);
    return chunk;
}

void schedule_deliveries(sb_port *port, int64_t chunk, int64_t deliveries)
{
    char *at = (char *)sb_port_arena_data(port) + chunk;
    if (deliveries > L_MARK_DELIVERIES_MASK)
        deliveries = L_MARK_DELIVERIES_MASK;
    if (deliveries)
        word_store(at, L_CHUNK_MARK_AT,
                   (word_load(at, L_CHUNK_MARK_AT) & ~L_MARK_DELIVERIES_MASK) | deliveries);
}

int64_t schedule_chunk(sb_queue *schedule, sb_port *port, const sb_outgoing *message,
                       const int64_t *extension, int64_t time_of_day, int64_t *id)
{
    sb_outgoing shape = *message;
    shape.length += L_SCHEDULED_BYTES;
    if (message->length < 0 || shape.length > L_BODY_BYTES_MAX)
        return message->length < 0 ? SB_INVALID : SB_TOO_LARGE;
    int64_t chunk = sb_port_loan_with(port, &shape, extension);
    if (chunk < 0)
        return chunk;
    char *body = sb_port_loan_body(port, chunk);
    _Atomic int64_t *last =
        (_Atomic int64_t *)((char *)schedule->ring.memory + L_RING_SCHEDULED_AT);
    *id = atomic_fetch_add(last, 1) + 1;
    memset(body, 0, L_SCHEDULED_BYTES);
    word_store(body, L_SCHEDULED_ID_AT, *id);
    word_store(body, L_SCHEDULED_TIME_AT, time_of_day);
    word_store(body, L_SCHEDULED_DUE_AT, realtime_ns() + extension[2] - sb_system_clock());
    if (message->length > 0)
        memcpy(body + L_SCHEDULED_BYTES, message->body, (size_t)message->length);
    return chunk;
}

/* --- scheduling ------------------------------------------------------------------------------- */

bool is_scheduled(const sb_outgoing *message)
{
    return (message->delay_ns | message->deliver_at_ns) != 0;
}

/* When it is due, in monotonic ns: 0 at once, or SB_INVALID. */
int64_t schedule_due(const sb_outgoing *message)
{
    int64_t delay = message->delay_ns;
    if (message->id_length | message->producer)
        return fail(SB_INVALID, "a message that is scheduled has no id and no number: publish it "
                    "when it is due, or without");
    if (message->deliver_at_ns && delay)
        return fail(SB_INVALID, "a message is delivered after a delay or at a time, not both");
    if (message->deliver_at_ns)
        delay = message->deliver_at_ns < 0 ? -1 : message->deliver_at_ns - realtime_ns();
    if (delay > SECONDS_MAX_NS)
        return fail(SB_INVALID, "a message is scheduled for a time within some 30 years");
    if (message->delay_ns < 0 || message->deliver_at_ns < 0)
        return fail(SB_INVALID, "a message is scheduled for a time to come, not %lld ns",
                    (long long)(message->deliver_at_ns ? message->deliver_at_ns : delay));
    return delay <= 0 ? 0 : sb_system_clock() + delay;
}

int64_t schedule_reserve(sb_queue *queue, sb_queue *schedule, sb_port *port,
                         const sb_outgoing *message, int64_t due, int64_t *id)
{
    int64_t expiry = queue_expiry(queue, message->ttl_ns);
    if (expiry && expiry < SB_FOREVER)
        expiry += due - sb_system_clock(); /* it lives from when it can be delivered */
    int64_t group = queue->grouped ? group_of(message->properties, message->properties_length) : 0;
    const int64_t extension[4] = {expiry, group, due, message->target};
    return schedule_chunk(schedule, port, message, extension, message->deliver_at_ns, id);
}

static int64_t offer(sb_queue *queue, sb_queue *schedule, lane *in, const sb_outgoing *message,
                     int64_t due, int64_t *id)
{
    int64_t code = schedule_room(schedule, in);
    sb_outgoing shape = *message;
    shape.length += L_SCHEDULED_BYTES;
    if (code == SB_OK)
        code = queue_within(schedule, in, &shape);
    if (code != SB_OK)
        return code;
    word_store(&in->port, L_PORT_PUBLISHED, realtime_ns());
    int64_t chunk = schedule_reserve(queue, schedule, &in->port, message, due, id);
    if (chunk < 0)
        return chunk;
    code = sb_port_publish_chunk(&in->port, chunk);
    if (code < 0)
        sb_port_unreserve(&in->port, chunk);
    return code;
}

int64_t schedule_explain(sb_queue *queue, int64_t code)
{
    if (code == SB_FULL)
        return fail(code,
                    "queue '%s' has scheduled messages for all of its max_scheduled (%lld) or "
                    "max_bytes (%lld, 0: no such limit)",
                    queue->name, (long long)setting(queue, L_SETTING_MAX_SCHEDULED_AT),
                    (long long)queue->max_bytes);
    return explained(queue, code);
}

static int64_t publish_looked(sb_queue *queue, const sb_outgoing *message, int64_t due,
                              int64_t timeout_ns, sb_receipt *where)
{
    int64_t code = read_only_code(queue), id = 0;
    if (code != SB_OK)
        return code;
    sb_queue *schedule = schedule_of(queue, true, &code);
    lane *in = schedule ? lane_enter(schedule, &code) : NULL;
    if (!in)
        return code;
    queue_note_use(schedule, L_USE_PRODUCES);
    queue_note_use(queue, L_USE_PRODUCES);
    mover_attend(queue, true);
    int64_t deadline = timeout_ns ? monotonic_deadline(timeout_ns) : 0;
    code = offer(queue, schedule, in, message, due, &id);
    while (code == SB_FULL && timeout_ns != 0 && queue->when_full == L_BLOCK) {
        code = wait_in(schedule, &in->port, sb_port_wait_for_head, deadline);
        if (code != SB_OK)
            break;
        code = offer(queue, schedule, in, message, due, &id);
        if (sb_system_clock() >= deadline)
            break;
    }
    if (code >= 0) {
        *where = (sb_receipt){schedule, code};
        schedule_note(schedule, due);
        code = queue_published(queue, id);
    }
    lane_part(in);
    return code < 0 ? schedule_explain(queue, code) : code;
}

int64_t schedule_publish(sb_queue *queue, const sb_outgoing *message, int64_t due,
                         int64_t timeout_ns, sb_receipt *where)
{
    int64_t code;
    if (!queue_look(queue, &code))
        return code;
    code = publish_looked(queue, message, due, timeout_ns, where);
    queue_looked(queue);
    return code;
}

/* --- looking at it, and taking out of it ------------------------------------------------------ */

/* Whether the journal has it or not: when it is due does not depend on that.  So it is read with
 * gate 0, which is the journal's in a durable ring. */
bool schedule_read(sb_queue *schedule, sb_port *port, int64_t position, sb_message *message,
                   scheduled *read)
{
    sb_cursor at = {.port = port, .position = position, .gate = 0};
    if (sb_cursor_next(&at, message) != SB_OK || message->position != position ||
        ((message->word >> L_STATE_SHIFT) & L_STATE_MASK) != L_READY ||
        message->length < L_SCHEDULED_BYTES ||
        !(message->mark & L_CHUNK_EXTENDED << L_MARK_FLAGS_SHIFT))
        return false;
    *read = (scheduled){.id = word_load(message->body, L_SCHEDULED_ID_AT),
                        .time_of_day = word_load(message->body, L_SCHEDULED_TIME_AT),
                        .not_before = word_load(message->chunk, L_CHUNK_NOT_BEFORE_AT),
                        .expiry = word_load(message->chunk, L_CHUNK_EXPIRY_AT)};
    /* the word is the same after: so the chunk was its */
    return slot_word(schedule, position) == message->word;
}

bool schedule_take(sb_port *port, sb_message *message)
{
    word_store(port, L_PORT_LEASE_DEADLINE, sb_system_clock() / 1000000 + LEASE_MS);
    return sb_port_take_seen(port, message) == SB_OK;
}

static int64_t cancel(sb_queue *queue, int64_t id)
{
    int64_t code;
    sb_queue *schedule = schedule_of(queue, false, &code);
    lane *in = schedule ? lane_enter(schedule, &code) : NULL;
    if (!in)
        return code;
    code = 0;
    int64_t position = word_load(schedule->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
    /* one that is published anew while we look is found again, behind */
    for (; code == 0 && position < sb_port_true_tail(&in->port); position++) {
        sb_message message;
        scheduled read;
        if (schedule_read(schedule, &in->port, position, &message, &read) && read.id == id &&
            schedule_take(&in->port, &message))
            code = sb_port_drop_taken(&in->port, &message, L_COUNTER_DROPPED_AT) == SB_OK;
    }
    sb_port_tell_producers(&in->port);
    lane_leave(in);
    return code;
}

int64_t sb_cancel_scheduled(sb_queue *queue, int64_t id)
{
    int64_t code;
    if (!queue_look(queue, &code))
        return code;
    code = cancel(queue, id);
    queue_looked(queue);
    return code;
}

static int64_t count_in(sb_queue *schedule)
{
    sb_port port;
    return schedule && sb_port_to_look(schedule, &port) == SB_OK ? live_in(&port) : 0;
}

int64_t schedule_count(sb_queue *queue)
{
    int64_t code;
    return count_in(schedule_of(queue, false, &code));
}

bool schedule_is_empty(sb_queue *queue)
{
    int64_t code;
    return count_in(beside_handle(queue, &queue->schedule, &SCHEDULE, &code)) == 0;
}

int64_t schedule_purge(sb_queue *queue)
{
    int64_t code;
    sb_queue *schedule = schedule_of(queue, false, &code);
    lane *in = schedule ? lane_enter(schedule, &code) : NULL;
    if (!in)
        return 0;
    code = sb_port_purge(&in->port);
    sb_port_wake_all(&in->port);
    lane_leave(in);
    return code > 0 ? code : 0;
}
