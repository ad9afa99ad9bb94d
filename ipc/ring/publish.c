/* Publishing in a ring: one message, or several at once. */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"

bool queue_gets_room(sb_queue *queue, lane *in, const sb_outgoing *message, int64_t code)
{
    return code == SB_FULL ? queue_make_room(queue, in, message) : queue_gets_memory(queue, code);
}

static int64_t publish_in(sb_queue *queue, lane *in, const sb_outgoing *message)
{
    int64_t code = is_limited(queue) ? within_limits(queue, in, message) : SB_OK;
    if (code != SB_OK)
        return code == SB_FULL ? once_refused(queue, &in->port, message) : code;
    *port_field(&in->port, L_PORT_PUBLISHED) = stamp_ns(&in->recorder.clock);
    int64_t extension[4] = {queue_expiry(queue, message->ttl_ns)};
    const int64_t checked = message->id_length | message->producer;
    if ((message->key_length | message->properties_length | message->priority | extension[0] |
         checked | queue->last_value | message->target | message->deliveries) == 0)
        return sb_port_publish(&in->port, message->body, message->length);
    const int64_t *more = message_extension(queue, message, extension);
    code = checked ? once_publish(queue, &in->port, message, more)
                   : sb_port_publish_with(&in->port, message, more);
    if (code >= 0 && extension[0])
        expiry_note(queue, extension[0]);
    return code;
}

int64_t queue_offer(sb_queue *queue, lane *in, const sb_outgoing *message)
{
    int64_t code;
    do
        code = publish_in(queue, in, message);
    while (code < 0 && queue_gets_room(queue, in, message, code));
    return code;
}

/* The queue, or this participant's part of the arena. */
static bool has_no_room(int64_t code)
{
    return code < 0 && (code == SB_FULL || code == SB_OVER_SHARE);
}

static int64_t publish_slowly(sb_queue *queue, lane *in, const sb_outgoing *message,
                              int64_t timeout_ns)
{
    sb_port *port = &in->port;
    int64_t deadline = monotonic_deadline(timeout_ns), code = SB_FULL;
    int64_t times = spinning_times(queue->connection, &in->for_room), looks = 0;
    if (times > 0) {
        for (; looks < times * queue->connection->spins && has_no_room(code); looks += 32) {
            sb_port_room_wait(port);
            code = publish_in(queue, in, message);
        }
        spinning_tell(queue->connection, &in->for_room, !has_no_room(code),
                      looks <= queue->connection->spins);
    }
    while (has_no_room(code)) {
        int64_t waited = wait_in(queue, port, wait_kernel(queue), deadline);
        if (waited != SB_OK)
            return waited == SB_FULL ? code : waited;
        code = queue_offer(queue, in, message);
        if (sb_system_clock() >= deadline) /* others may make head move for as long as we look */
            break;
    }
    return code;
}

int64_t ring_publish(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns)
{
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    queue_note_use(queue, L_USE_PRODUCES);
    code = queue_offer(queue, in, message);
    if (has_no_room(code) && timeout_ns != 0 && queue->when_full != L_FAIL)
        code = publish_slowly(queue, in, message, timeout_ns);
    code = queue_published(queue, code);
    lane_leave(in);
    return code;
}

static const sb_outgoing NOTHING; /* in particular: no key */

/* As many as there is room for; one by one where each has to be looked at. */
static int64_t publish_several(sb_queue *queue, lane *in, const char *bodies,
                               const int64_t *lengths, int64_t count)
{
    if ((queue->max_messages | queue->max_bytes | queue->ttl_ns | queue->ttl_max_ns |
         queue->max_producer_bytes | queue->when_full) == 0)
        return sb_port_publish_many(&in->port, bodies, lengths, count);
    int64_t code = SB_OK, done = 0;
    while (done < count) {
        const sb_outgoing message = {.body = bodies, .length = lengths[done]};
        code = queue_offer(queue, in, &message);
        if (code < 0)
            break;
        bodies += lengths[done++];
    }
    return done > 0 ? done : code;
}

int64_t ring_publish_many(sb_queue *queue, const void *bodies, const int64_t *lengths,
                          int64_t count, int64_t timeout_ns)
{
    int64_t code, done = 0;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    queue_note_use(queue, L_USE_PRODUCES);
    int64_t deadline = timeout_ns ? monotonic_deadline(timeout_ns) : 0;
    bool is_late = timeout_ns == 0;
    *port_field(&in->port, L_PORT_PUBLISHED) = stamp_ns(&in->recorder.clock);
    code = SB_OK;
    while (done < count) {
        code = publish_several(queue, in, bodies, lengths + done, count - done);
        if (code < 0 && queue_gets_room(queue, in, &NOTHING, code))
            continue;
        if (has_no_room(code) && !is_late && queue->when_full != L_FAIL) {
            int64_t waited = wait_in(queue, &in->port, wait_kernel(queue), deadline);
            is_late = sb_system_clock() >= deadline;
            if (waited == SB_OK)
                continue;
            if (waited != SB_FULL)
                code = waited;
        }
        if (code < 0)
            break;
        for (int64_t each = 0; each < code; each++)
            bodies = (const char *)bodies + lengths[done + each];
        done += code;
    }
    if (done > 0 && (code = queue_published(queue, done)) < 0)
        done = 0;
    lane_leave(in);
    return done > 0 || code >= 0 ? done : code;
}
