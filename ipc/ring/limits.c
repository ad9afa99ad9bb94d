/* The limits of a queue: messages, bytes, a producer's share, and the time to live. */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"

/* at most */
#define CHUNK_OVERHEAD (L_CHUNK_HEADER_BYTES + L_CHUNK_EXTENSION_BYTES + L_CHUNK_ONCE_BYTES)

/* --- publishing ------------------------------------------------------------------------------- */

int64_t queue_expiry(const sb_queue *queue, int64_t ttl_ns)
{
    if (ttl_ns <= 0)
        ttl_ns = queue->ttl_ns;
    if (ttl_ns > 0 && ttl_ns < queue->ttl_min_ns)
        ttl_ns = queue->ttl_min_ns;
    if (queue->ttl_max_ns > 0 && (ttl_ns <= 0 || ttl_ns > queue->ttl_max_ns))
        ttl_ns = queue->ttl_max_ns;
    return ttl_ns > 0 ? monotonic_deadline(ttl_ns) : 0;
}

static int64_t bytes_of(const sb_outgoing *message)
{
    return message->length + message->key_length + message->properties_length + CHUNK_OVERHEAD;
}

/* Whether the limits of the queue's settings leave room for one more that takes so many bytes of
 * the arena: SB_OK, SB_FULL or SB_TOO_LARGE.  Several producers that look at once may each find the
 * same room; its bytes are counted again after an eighth of what was left. */
int64_t within_limits(sb_queue *queue, lane *in, const sb_outgoing *message)
{
    sb_port *port = &in->port;
    int64_t length = bytes_of(message);
    if (queue->last_value) {
        int64_t code = last_value_room(queue, port, message->key, message->key_length);
        if (code != SB_OK)
            return code;
    } else if (queue->max_messages > 0 && sb_port_window(port) >= queue->max_messages)
        return SB_FULL;
    if (queue->max_bytes > 0 && (in->bytes_left -= length) < 0) {
        int64_t left = queue->max_bytes - sb_port_bytes_held(port);
        if (length > queue->max_bytes)
            return SB_TOO_LARGE;
        if (left < length)
            return SB_FULL;
        in->bytes_left = (left - length) / 8;
    }
    return SB_OK;
}

bool is_limited(const sb_queue *queue)
{
    return (queue->max_messages | queue->max_bytes) > 0;
}

int64_t queue_within(sb_queue *queue, lane *in, const sb_outgoing *message)
{
    return is_limited(queue) ? within_limits(queue, in, message) : SB_OK;
}

bool queue_make_room(sb_queue *queue, lane *in, const sb_outgoing *message)
{
    int64_t most = queue->last_value ? last_value_most(queue, &in->port, message->key,
                                                       message->key_length)
                                     : queue->slots;
    return queue_make_room_for(queue, in, most, 1);
}

bool queue_make_room_for(sb_queue *queue, lane *in, int64_t most, int64_t count)
{
    return queue->connection->duties->expire(queue, &in->port) > 0 ||
           (queue->last_value && last_value_carry(queue, &in->port, most, count)) ||
           (queue->when_full == L_DROP_OLDEST && sb_port_drop_oldest(&in->port) > 0);
}
