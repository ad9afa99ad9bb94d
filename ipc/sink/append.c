/* Records go into one ring: many at once by a kernel (core/pour.py) where nothing has to be looked
 * at, one by one as the queue's settings want it, and into the inbox of a queue that pages. */

#define _GNU_SOURCE

#include "base/base.h"
#include "paging/paging.h"
#include "queue/queue.h"
#include "ring/ring.h"
#include "sink/sink.h"

/* What pour() reads and writes: L_POURING_*. */
typedef struct pouring {
    int64_t words[L_POURING_BYTES / 8];
} pouring;

/* Whether a copy is all that a message needs there; what is full is seen by the kernel. */
static bool is_simple(const outlet *to)
{
    const sb_queue *queue = to->queue;
    return (queue->max_messages | queue->max_bytes | queue->ttl_ns | queue->ttl_max_ns |
            queue->last_value | queue->grouped) == 0 &&
           !outlet_is_schedule(to);
}

/* The lane publishes for the origin, until it is given back. */
static lane *origin_enter(const outlet *to, int64_t *code)
{
    lane *in = lane_enter(to->queue, code);
    if (!in)
        return NULL;
    int64_t id = to->queue->connection->id;
    sb_port_origin_own(&in->port, to->origin, id, id, realtime_ns()); /* it is in use */
    *port_field(&in->port, L_PORT_PRODUCER) = to->origin;
    return in;
}

static void origin_leave(lane *in)
{
    *port_field(&in->port, L_PORT_PRODUCER) = 0;
    *port_field(&in->port, L_PORT_SEQUENCE) = 0;
    lane_leave(in);
}

void record_answered(stretch *part, const poured_record *record, int64_t what)
{
    part->at = record->next;
    *part->answers++ = what;
    part->told->appended += what >= 0;
    part->told->seen += what == SB_DUPLICATE;
    part->told->refused += what < 0 && what != SB_DUPLICATE;
}

/* --- one by one ------------------------------------------------------------------------------- */

static int64_t publish(outlet *to, lane *in, const sb_outgoing *message,
                       const poured_record *record, bool compares)
{
    sb_queue *queue = to->queue;
    if (outlet_is_schedule(to))
        return scheduled_publish(to, in, message, record);
    int64_t extension[4] = {queue_expiry(queue, message->ttl_ns)};
    int64_t code = queue_within(queue, in, message);
    if (code != SB_OK)
        return code;
    *port_field(&in->port, L_PORT_SEQUENCE) = record->sequence - 1;
    *port_field(&in->port, L_PORT_PUBLISHED) = word_load(record->chunk, L_CHUNK_PUBLISHED_AT);
    const int64_t *more = message_extension(queue, message, extension);
    code = compares ? once_publish_poured(queue, &in->port, message, more)
                    : sb_port_publish_with(&in->port, message, more);
    if (code >= 0 && extension[0])
        expiry_note(queue, extension[0]);
    return code;
}

static int64_t offer(outlet *to, lane *in, const sb_outgoing *message,
                     const poured_record *record, bool compares)
{
    int64_t code = publish(to, in, message, record, compares);
    while (code < 0 && queue_gets_room(to->queue, in, message, code))
        code = publish(to, in, message, record, compares);
    return code;
}

/* No message has this number, and it is known. */
static int64_t refuse(outlet *to, lane *in, int64_t sequence)
{
    if (sequence == to->retried) {
        sb_port_number_give_up(&in->port, to->origin, sequence);
        return SB_OK;
    }
    int64_t code = sb_port_origin_pass(&in->port, to->origin, sequence);
    to->last = code == SB_OK ? sequence : to->last;
    return code;
}

/* The record at hand, if it is a message: SB_OK, or why it waits. */
static int64_t append_one(outlet *to, lane *in, stretch *part)
{
    poured_record record;
    sb_outgoing message = {0};
    int64_t code = record_next(part->at, part->end, &record);
    if (code != SB_OK)
        return code;
    if (!record.is_message) {
        part->at = record.next;
        return SB_OK;
    }
    if (record.sequence <= to->last && record.sequence != to->retried)
        return record_answered(part, &record, SB_DUPLICATE), SB_OK;
    code = record_outgoing(&record, part->later, &message);
    if (!to->passes_on) /* if it came from another node, it has arrived */
        message.target = to->target == 0 && part->sink->travels ? SB_TRAVELLED : to->target;
    if (code == SB_OK && part->journey)
        journey_says(part->journey, to, &message);
    bool compares = to->checks || (part->journey && journey_compares(part->journey));
    if (compares)
        message.target = target_with_id(message.target);
    if (code == SB_OK && to->queue->grouped && !part->sink->arrives)
        code = grouped_stays(to->queue, &message);
    if (code == SB_OK)
        code = offer(to, in, &message, &record, compares);
    if (code >= 0 && record.sequence > to->last)
        to->last = record.sequence;
    bool is_there = code == SB_DUPLICATE && part->journey; /* an id that was published before */
    bool is_refused = code == SB_INVALID || code == SB_TOO_LARGE || code == SB_DUPLICATE ||
                      (code == SB_FULL && to->queue->when_full == L_FAIL);
    if (code < 0 && !is_refused)
        return code;
    if (is_refused && !is_there && part->sink->stops) {
        part->told->refused = 1;
        return code;
    }
    if (is_refused) { /* it is the sender's business now; the stream goes on */
        int64_t passed = refuse(to, in, record.sequence);
        if (passed != SB_OK)
            return passed;
    }
    record_answered(part, &record, code);
    return SB_OK;
}

/* --- many at once ----------------------------------------------------------------------------- */

static int64_t append_many(outlet *to, lane *in, stretch *part)
{
    pouring how = {{0}};
    int64_t *words = how.words;
    words[L_POURING_AT / 8] = (int64_t)(intptr_t)part->at;
    words[L_POURING_END / 8] = (int64_t)(intptr_t)part->end;
    words[L_POURING_LAST / 8] = to->last;
    words[L_POURING_ANSWERS / 8] = (int64_t)(intptr_t)part->answers;
    words[L_POURING_CHECKS / 8] = to->checks;
    int64_t code = sb_port_pour(&in->port, words);
    int64_t *answers = (int64_t *)(intptr_t)words[L_POURING_ANSWERS / 8];
    int64_t appended = words[L_POURING_COUNT / 8];
    part->told->appended += appended;
    part->told->seen += answers - part->answers - appended;
    part->answers = answers;
    part->at = (const char *)(intptr_t)words[L_POURING_AT / 8];
    to->last = words[L_POURING_LAST / 8];
    return code;
}

/* --- a ring ----------------------------------------------------------------------------------- */

bool has_no_room(int64_t code)
{
    return code == SB_FULL || code == SB_OVER_SHARE || code == SB_ARENA_FULL;
}

static int64_t append(outlet *to, lane *in, stretch *part)
{
    bool is_many = is_simple(to) && !to->retried && !to->target && !part->sink->travels &&
                   !part->journey;
    int64_t code = SB_OK;
    while (code == SB_OK && part->at < part->end) {
        code = is_many ? append_many(to, in, part) : SB_UNDECIDED;
        /* it needs more than a copy, or room is to be made first, or it is wrong */
        if (code == SB_UNDECIDED || has_no_room(code) || code == SB_TOO_LARGE ||
            code == SB_INVALID)
            code = append_one(to, in, part);
    }
    return code;
}

int64_t outlet_append_now(outlet *to, stretch *part, int64_t deadline)
{
    int64_t code;
    lane *in = origin_enter(to, &code);
    if (!in)
        return code;
    code = append(to, in, part);
    while (has_no_room(code) && deadline && to->queue->when_full != L_FAIL &&
           (code = queue_wait_for_room(to->queue, in, deadline)) == SB_OK)
        code = append(to, in, part);
    origin_leave(in);
    return code == SB_OK ? queue_published(to->queue, code) : code;
}

/* --- a queue that pages ----------------------------------------------------------------------- */

void answers_in_inbox(sb_queue *queue, int64_t *first, const int64_t *end)
{
    for (; sb_is_durable(queue) && first < end; first++)
        *first |= *first >= 0 ? L_IN_INBOX : 0;
}

/* As inbox_publish_many does it (inbox.c): the paging word is moved before and after. */
static int64_t append_to_inbox(outlet *to, stretch *part)
{
    outlet *inbox;
    int64_t code = outlet_inbox(part->sink, to, true, &inbox);
    if (code != SB_OK)
        return code;
    int64_t *first = part->answers;
    inbox->last = to->last;
    inbox_noted(inbox->queue);
    code = outlet_append_now(inbox, part, part->deadline);
    to->last = inbox->last;
    inbox_noted(inbox->queue);
    answers_in_inbox(to->queue, first, part->answers);
    return code;
}

static int64_t append_paging(outlet *to, stretch *part)
{
    int64_t code = is_paging(to->queue) ? SB_FULL : outlet_append_now(to, part, 0);
    return has_no_room(code) ? append_to_inbox(to, part) : code;
}

int64_t outlet_append(outlet *to, stretch *part)
{
    int64_t code;
    if (!queue_look(to->queue, &code))
        return code;
    code = to->counts ? counted_append(to, part)
           : to->queue->pages ? append_paging(to, part)
                              : outlet_append_now(to, part, part->deadline);
    queue_looked(to->queue);
    if (!has_no_room(code))
        return code;
    part->sink->lacks_memory = code != SB_FULL;
    return SB_FULL;
}
