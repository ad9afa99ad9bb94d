/* Queues that keep the newest of each key: what core/latest.py and core/carry.py do not decide.
 *
 * A ring is full when its oldest message stays, however much behind it was replaced.  So such a
 * queue holds fewer messages than it has slots, and uses the others for what was replaced; when
 * those are used up its oldest messages are carried to the end.  A key that is there may always be
 * updated. */

#include "base/base.h"
#include "ring/ring.h"

#define REPLACED_PART 8 /* one slot of so many is for what was replaced, or is carried */

static int64_t part_of(const sb_queue *queue, int64_t part)
{
    return queue->slots - (queue->slots + part - 1) / part;
}

void last_value_limit(sb_queue *queue)
{
    int64_t most = part_of(queue, REPLACED_PART);
    if (queue->last_value && (queue->max_messages == 0 || queue->max_messages > most))
        queue->max_messages = most;
}

static bool is_update(sb_port *port, const void *key, int64_t key_length)
{
    return key_length > 0 && sb_port_latest_find(port, key, key_length) >= 0;
}

int64_t slots_for_news(const sb_queue *queue)
{
    return queue->last_value ? part_of(queue, L_CARRIED_PART) : queue->slots;
}

int64_t last_value_most(const sb_queue *queue, sb_port *port, const void *key, int64_t key_length)
{
    return is_update(port, key, key_length) ? slots_for_news(queue) : queue->max_messages;
}

int64_t last_value_room(sb_queue *queue, sb_port *port, const void *key, int64_t key_length)
{
    int64_t used = sb_port_window(port);
    if (used < queue->max_messages)
        return SB_OK;
    return used < last_value_most(queue, port, key, key_length) ? SB_OK : SB_FULL;
}

bool last_value_carry(sb_queue *queue, sb_port *port, int64_t most, int64_t count)
{
    int64_t live = sb_port_slots_in(port, L_READY) + sb_port_slots_in(port, L_LEASED);
    if (live + count > most)
        return false;
    sb_port_latest_repair(port); /* what is still to be replaced is not carried */
    /* half of what was replaced: else the next who publishes would look through all of it again */
    int64_t wanted = live + (most - live) / 2;
    if (wanted > most - count)
        wanted = most - count;
    for (int64_t carried = 0; carried <= live && sb_port_window(port) > wanted; carried++) {
        sb_message message;
        int64_t head = word_load(queue->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
        if (!is_confirmed(queue, head)) /* head waits for that, and would not move */
            break;
        if (sb_port_carry(port, &message) != SB_OK)
            break;
        int64_t expiry = sb_chunk_expiry(message.chunk);
        if (expiry)
            expiry_note(queue, expiry);
    }
    return sb_port_window(port) + count <= most;
}

static int64_t value_in(sb_queue *queue, const void *key, int64_t key_length, sb_message *message,
                        void *buffer, int64_t capacity)
{
    sb_port port;
    if (!queue->last_value)
        return fail(SB_INVALID, "queue '%s' keeps no last values: declare it with last_value",
                    queue->name);
    if (key_length <= 0)
        return fail(SB_INVALID, "a value has a key, and it is not empty");
    int64_t code = sb_port_to_look(queue, &port);
    while (code >= 0) {
        int64_t position = sb_port_latest_find(&port, key, key_length);
        if (position < 0)
            return position;
        code = sb_port_peek_ahead(&port, position, message, buffer, capacity);
        if (code == SB_GONE) {
            code = SB_OK; /* replaced meanwhile, and recycled: there is a newer one */
            continue;
        }
        if (code >= 0 && capacity >= L_CHUNK_HEADER_BYTES + L_CHUNK_EXTENSION_BYTES) {
            int64_t expiry = sb_chunk_expiry(buffer);
            if (expiry > 0 && expiry <= sb_system_clock())
                return SB_EMPTY;
        }
        return code;
    }
    return code;
}

int64_t sb_value(sb_queue *queue, const void *key, int64_t key_length, sb_message *message,
                 void *buffer, int64_t capacity)
{
    int64_t code;
    if (!queue_look(queue, &code))
        return code;
    code = value_in(queue, key, key_length, message, buffer, capacity);
    queue_looked(queue);
    return code;
}
