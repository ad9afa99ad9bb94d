/* Memory in the arena for a message, with what the settings of its queue give it. */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"

const int64_t *message_extension(const sb_queue *queue, const sb_outgoing *message,
                               int64_t extension[4])
{
    if (queue->grouped)
        extension[1] = group_of(message->properties, message->properties_length);
    extension[3] = message->id_length ? target_with_id(message->target) : message->target;
    return extension[0] | extension[1] | extension[3] ? extension : NULL;
}

bool queue_gets_memory(sb_queue *queue, int64_t code)
{
    return (code == SB_OVER_SHARE || code == SB_ARENA_FULL) &&
           memory_return(queue->connection, NULL) > 0;
}

/* --- loans ------------------------------------------------------------------------------------ */

static int64_t reserve_once(sb_queue *queue, sb_port *port, const sb_outgoing *shape)
{
    int64_t extension[4] = {queue_expiry(queue, shape->ttl_ns)};
    const int64_t *more = message_extension(queue, shape, extension);
    if (shape->id_length | shape->producer)
        return once_reserve(queue, port, shape, more);
    return sb_port_loan_with(port, shape, more);
}

int64_t queue_reserve(sb_queue *queue, sb_port *port, const sb_outgoing *shape)
{
    int64_t chunk;
    do
        chunk = reserve_once(queue, port, shape);
    while (chunk < 0 && queue_gets_memory(queue, chunk));
    return chunk;
}
