/* Publishing to a queue, which may page or schedule the message. */

#define _GNU_SOURCE

#include "base/base.h"
#include "message/message.h"
#include "paging/paging.h"
#include "queue/queue.h"
#include "ring/ring.h"
#include "schedule/schedule.h"

static int64_t publish_at_once(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns)
{
    return queue->pages ? inbox_publish(queue, message, timeout_ns)
                        : explained(queue, ring_publish(queue, message, timeout_ns));
}

int64_t publish_receipt(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns,
                        sb_receipt *where)
{
    if (is_scheduled(message)) {
        int64_t due = schedule_due(message);
        if (due != 0)
            return due < 0 ? due : schedule_publish(queue, message, due, timeout_ns, where);
    }
    int64_t code = publish_at_once(queue, message, timeout_ns);
    *where = (sb_receipt){queue, code};
    return code;
}

int64_t publish_in_turn(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns,
                        sb_receipt *where)
{
    int64_t code = balanced_publish(queue, message, timeout_ns, where);
    return code == SB_UNDECIDED ? publish_receipt(queue, message, timeout_ns, where) : code;
}

int64_t sb_publish_receipt(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns,
                           sb_receipt *where)
{
    int64_t code = outgoing_check(message);
    return code == SB_OK ? publish_in_turn(queue, message, timeout_ns, where) : code;
}

int64_t sb_publish_message(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns)
{
    sb_receipt where;
    return sb_publish_receipt(queue, message, timeout_ns, &where);
}

/* A message with nothing of its own, in a queue that looks at nothing, and is no other node's: its
 * position.  Below 0 it has to go the whole way. */
static inline __attribute__((always_inline)) int64_t
publish_plain(sb_queue *queue, const void *body, int64_t length)
{
    int64_t code = SB_FULL;
    lane *in = queue->plain ? lane_enter(queue, &code) : NULL;
    if (!in)
        return SB_FULL;
    if (is_balanced(queue)) {
        lane_leave(in);
        return SB_FULL;
    }
    queue_note_use(queue, L_USE_PRODUCES);
    *port_field(&in->port, L_PORT_PUBLISHED) = stamp_ns(&in->recorder.clock);
    code = sb_port_publish(&in->port, body, length);
    lane_leave(in);
    return code;
}

int64_t sb_publish_now(sb_queue *queue, const void *body, int64_t length)
{
    int64_t code = publish_plain(queue, body, length);
    if (code >= 0)
        return code;
    const sb_outgoing message = {.body = body, .length = length};
    sb_receipt where;
    code = balanced_publish(queue, &message, 0, &where);
    if (code != SB_UNDECIDED)
        return code;
    if (queue->pages)
        return inbox_publish(queue, &message, 0);
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    queue_note_use(queue, L_USE_PRODUCES);
    code = queue_published(queue, queue_offer(queue, in, &message));
    lane_leave(in);
    return code < 0 ? explained(queue, code) : code;
}

int64_t sb_publish_with(sb_queue *queue, const void *body, int64_t length, const void *key,
                        int64_t key_length, const void *properties, int64_t properties_length,
                        int64_t ttl_ns, int64_t priority, const void *id, int64_t id_length,
                        int64_t timeout_ns)
{
    sb_receipt where;
    const sb_outgoing message = {body, length, key, key_length, properties, properties_length,
                                 ttl_ns, priority, id, id_length, 0, 0, 0, 0, 0, 0};
    int64_t code = outgoing_check(&message);
    if (code != SB_OK)
        return code;
    return publish_in_turn(queue, &message, timeout_ns, &where);
}

int64_t sb_publish(sb_queue *queue, const void *body, int64_t length, int64_t timeout_ns)
{
    int64_t position = publish_plain(queue, body, length);
    if (position >= 0)
        return position;
    sb_receipt where;
    const sb_outgoing message = {.body = body, .length = length};
    return publish_in_turn(queue, &message, timeout_ns, &where);
}

int64_t sb_publish_many(sb_queue *queue, const void *bodies, const int64_t *lengths, int64_t count,
                        int64_t timeout_ns)
{
    int64_t code;
    bool in_turn = queue_look(queue, &code) && is_balanced(queue);
    if (code == SB_OK)
        queue_looked(queue);
    if (in_turn)
        return balanced_publish_many(queue, bodies, lengths, count, timeout_ns);
    return queue->pages ? inbox_publish_many(queue, bodies, lengths, count, timeout_ns)
                        : explained(queue, ring_publish_many(queue, bodies, lengths, count,
                                                             timeout_ns));
}
