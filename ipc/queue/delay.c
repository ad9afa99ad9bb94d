/* Redelivery after a delay: a message that was not dealt with goes to the schedule for a while.
 *
 * One transaction takes it out of the queue and into the schedule, with the number of its
 * deliveries.  Whoever gives it back does that; what a dead consumer had is given back by the
 * repair in its place, and then whoever takes it next does so instead of delivering it
 * (dead_letter.c).  If there is no room in the schedule it is delivered at once: late is better
 * than never. */

#include "base/base.h"
#include "commit/commit.h"
#include "queue/queue.h"
#include "ring/ring.h"
#include "schedule/schedule.h"
#include "vhost/vhost.h"

static int64_t delay_for(const sb_queue *queue, int64_t deliveries)
{
    double delay = (double)queue->redelivery_ns;
    double most = (double)setting(queue, L_SETTING_MAX_REDELIVERY_DELAY_AT);
    double factor = (double)setting(queue, L_SETTING_REDELIVERY_MULTIPLIER_AT) / L_MULTIPLIER_UNIT;
    for (int64_t each = 1; each < deliveries; each++)
        delay *= factor;
    if (most > 0 && delay > most)
        delay = most;
    return delay < 1e18 ? (int64_t)delay : INT64_C(1000000000000000000);
}

static int64_t put(sb_queue *queue, sb_queue *schedule, lane *in, const sb_message *message,
                   int64_t deliveries)
{
    int64_t code = schedule_room(schedule, in), id;
    if (code != SB_OK)
        return code;
    int64_t extension[4] = {0};
    if (message->mark & L_CHUNK_EXTENDED << L_MARK_FLAGS_SHIFT)
        for (int each = 0; each < 4; each++)
            extension[each] = word_load(message->chunk, L_CHUNK_EXPIRY_AT + 8 * each);
    extension[2] = sb_system_clock() + delay_for(queue, deliveries);
    sb_outgoing shape = {.body = message->body, .length = message->length,
                         .priority = (message->mark >> L_MARK_PRIORITY_SHIFT) &
                                     L_MARK_PRIORITY_MASK};
    shape.key = sb_message_key(message, &shape.key_length);
    shape.properties = sb_message_properties(message, &shape.properties_length);
    int64_t chunk = schedule_chunk(schedule, &in->port, &shape, extension, 0, &id);
    if (chunk < 0)
        return chunk;
    schedule_deliveries(&in->port, chunk, deliveries);
    operation operations[2] = {
        {.queue = queue, .where = message->position, .word = message->word},
        {.queue = schedule, .lane = in, .where = chunk},
    };
    code = commit_at_once(queue->connection, operations, 2); /* and that is noted as due */
    if (code != SB_OK && code != SB_UNFINISHED)
        sb_port_unreserve(&in->port, chunk);
    return code;
}

int64_t delay_redelivery(sb_queue *queue, sb_port *port, sb_message *message, int64_t deliveries)
{
    int64_t code;
    if (!sb_port_is_ours(port, message))
        return SB_REVOKED;
    sb_queue *schedule = schedule_of(queue, true, &code);
    lane *in = schedule ? lane_beside(schedule, &code) : NULL;
    if (!in) {
        log_note(queue->connection, "queue '%s' has no schedule, redelivery is at once: %s",
                 queue->name, sb_strerror(code));
        return code;
    }
    queue_note_use(schedule, L_USE_PRODUCES);
    mover_attend(queue, true);
    code = put(queue, schedule, in, message, deliveries);
    lane_part(in);
    if (code == SB_UNFINISHED)
        code = SB_OK; /* whoever closes us does the rest */
    if (code == SB_OK) {
        ring_count(queue, L_COUNTER_DELAYED_AT);
        sb_port_reclaim(port);
    } else if (code != SB_REVOKED) {
        log_note(queue->connection, "queue '%s': redelivery is at once, not after a delay: %s",
                 queue->name, sb_strerror(code));
    }
    return code;
}
