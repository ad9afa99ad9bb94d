/* What becomes of a message that was taken: acknowledged, given back, or rejected. */

#define _GNU_SOURCE

#include "base/base.h"
#include "queue/queue.h"
#include "ring/ring.h"

static inline __attribute__((always_inline)) lane *enter(sb_queue *queue, int64_t *code)
{
    lane *in = lane_enter(queue, code);
    return in || *code != SB_TOO_MANY_LOANS ? in : lane_to_deal(queue, code);
}

/* The message is dealt with in this way, also if it was no longer ours. */
static inline __attribute__((always_inline)) int64_t
deal_with(verdict_kernel kernel, sb_queue *queue, sb_message *message)
{
    int64_t code;
    lane *in = enter(queue, &code);
    if (!in) {
        if (code == SB_NOT_FOUND) {
            deleted_dealt_with(queue, message);
            message->word = 0;
        }
        return code;
    }
    code = message->word ? kernel(&in->port, message) : SB_REVOKED;
    message->word = 0;
    lane_leave(in);
    return code;
}

int64_t sb_ack(sb_queue *queue, sb_message *message)
{
    return deal_with(sb_port_ack, queue, message);
}

int64_t message_put_back(sb_port *port, sb_message *message, verdict_kernel kernel)
{
    sb_queue *queue = (sb_queue *)(intptr_t)*port_field(port, L_PORT_QUEUE_HANDLE);
    int64_t expiry = sb_chunk_expiry(message->chunk), code = kernel(port, message);
    if (code == SB_OK && expiry)
        expiry_note(queue, expiry);
    return code;
}

/* The last delivery that it may have: it goes where the dead go, unless there is no room. */
static int64_t give_back_or_dead_letter(sb_port *port, sb_message *message)
{
    sb_queue *queue = (sb_queue *)(intptr_t)*port_field(port, L_PORT_QUEUE_HANDLE);
    int64_t most = setting(queue, L_SETTING_MAX_DELIVERIES_AT);
    if (!message->chunk && sb_port_reread(port, message) != SB_OK)
        return sb_port_give_back(port, message); /* it is no longer ours, or not to be read */
    int64_t deliveries = sb_message_deliveries(message) + 1;
    if (most > 0 && deliveries >= most) {
        int64_t code = dead_letter(queue, port, message, SPENT, deliveries);
        if (code == SB_FULL) {
            code = dead_aside(queue, port, message, true);
            if (code == SB_OK)
                ring_count(queue, L_COUNTER_GIVEN_BACK_AT);
        }
        return code;
    } else if (queue->redelivery_ns) {
        int64_t code = delay_redelivery(queue, port, message, deliveries);
        if (code == SB_OK)
            ring_count(queue, L_COUNTER_GIVEN_BACK_AT);
        if (code == SB_OK || code == SB_REVOKED)
            return code;
    }
    return message_put_back(port, message, sb_port_give_back);
}

int64_t sb_give_back(sb_queue *queue, sb_message *message)
{
    return deal_with(give_back_or_dead_letter, queue, message);
}

static int64_t untake(sb_port *port, sb_message *message)
{
    if (!message->chunk && sb_port_reread(port, message) != SB_OK)
        return sb_port_untake(port, message);
    return message_put_back(port, message, sb_port_untake);
}

int64_t sb_untake(sb_queue *queue, sb_message *message)
{
    return deal_with(untake, queue, message);
}

static int64_t dead_letter_rejected(sb_port *port, sb_message *message)
{
    sb_queue *queue = (sb_queue *)(intptr_t)*port_field(port, L_PORT_QUEUE_HANDLE);
    int64_t code = dead_letter(queue, port, message, REJECTED, sb_message_deliveries(message) + 1);
    if (code != SB_FULL)
        return code;
    message_put_back(port, message, sb_port_give_back); /* it will be rejected again */
    return fail(code, "the dead-letter queue of '%s' is full: the message was given back",
                queue->name);
}

int64_t sb_reject(sb_queue *queue, sb_message *message)
{
    return deal_with(dead_letter_rejected, queue, message);
}

static bool is_leased(const sb_queue *queue, int64_t position)
{
    int64_t head = word_load(queue->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
    int64_t word = slot_word(queue, position);
    return position >= head && (word >> L_STATE_SHIFT & L_STATE_MASK) == L_LEASED;
}

int64_t sb_take_at(sb_queue *queue, int64_t position, sb_message *message)
{
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    code = read_only_code(queue);
    if (code != SB_OK) {
        lane_leave(in);
        return code;
    }
    code = sb_port_look(&in->port, position, message);
    if (code == SB_OK)
        code = sb_port_take_to_set_aside(&in->port, message);
    if (code != SB_OK)
        code = is_leased(queue, position) ? SB_REVOKED : SB_GONE;
    lane_leave(in);
    return code;
}

int64_t sb_reject_at(sb_queue *queue, int64_t position)
{
    sb_message message = {0};
    int64_t code = sb_take_at(queue, position, &message);
    return code == SB_OK ? sb_reject(queue, &message) : code == SB_READ_ONLY ? code : SB_GONE;
}

int64_t sb_expire(sb_queue *queue)
{
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    expiry_unknown(queue); /* who asks wants it now, also what is to be tried again later */
    code = queue_expire(queue, &in->port);
    lane_leave(in);
    return code;
}

int64_t sb_ack_many(sb_queue *queue, sb_message *messages, int64_t count)
{
    int64_t code;
    lane *in = enter(queue, &code);
    if (!in)
        return code;
    code = sb_port_ack_many(&in->port, messages, count);
    lane_leave(in);
    return code;
}
