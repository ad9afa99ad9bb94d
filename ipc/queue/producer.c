/* A producer that is known by name, and numbers what it publishes. */

#define _GNU_SOURCE

#include "base/base.h"
#include "paging/paging.h"
#include "queue/queue.h"
#include "ring/ring.h"

#define ID_BYTES_MAX 255

/* --- named producers -------------------------------------------------------------------------- */

int64_t sb_producer_open(sb_queue *queue, const void *name, int64_t length)
{
    sb_port port;
    int64_t code;
    if (length < 1 || length > ID_BYTES_MAX)
        return fail(SB_INVALID, "the name of a producer has 1 to %d bytes, not %lld", ID_BYTES_MAX,
                    (long long)length);
    if (!queue_is_usable(queue, &code))
        return code;
    if (queue->last_value)
        return no_numbers(queue);
    code = queue->pages ? inbox_admits(queue, &(sb_outgoing){.producer = 1}) : SB_OK;
    if (code != SB_OK)
        return code;
    if (queue->connection->id == 0)
        return fail(SB_INVALID, "the connection only observes: connect to publish or take");
    if (!queue_look(queue, &code))
        return code;
    code = sb_port_to_look(queue, &port);
    if (code == SB_OK)
        code = sb_port_producer_find(&port, producer_hash(queue->key, name, length));
    int64_t last = code > 0 ? inherited_number(queue, name, length) : 0;
    if (last > 0)
        sb_port_producer_raise(&port, code, last);
    queue_looked(queue);
    if (code == 0)
        return fail(SB_NO_PRODUCER,
                    "queue '%s' knows %d named producers, and has room for no more: "
                    "publish with message ids, or give a producer the name that it had before",
                    queue->name, (int)(L_PRODUCERS - L_SERIES_KEPT - 1));
    return code;
}
