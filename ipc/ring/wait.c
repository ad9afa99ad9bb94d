/* Waiting in a lane until there is a message, or room for one. */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"

static int64_t wait_on(sb_queue *queue, sb_port *port, wait_for kernel, int64_t deadline,
                       bool in_slices)
{
    int64_t code;
    while ((code = kernel(port, deadline)) == SB_SLEPT) {
        if (!queue_is_usable(queue, &code))
            return code;
        queue->connection->duties->repair_ring(queue, port);
        if (in_slices)
            return SB_INTERRUPTED;
        if (kernel == sb_port_wait_for_head)
            return SB_OK; /* bytes may have become free although head stands: look again */
    }
    if (code == SB_OK && !queue_is_usable(queue, &code))
        return code;
    return code;
}

int64_t wait_in(sb_queue *queue, sb_port *port, wait_for kernel, int64_t deadline)
{
    return wait_on(queue, port, kernel, deadline, queue->connection->waits_in_slices);
}

int64_t queue_wait_for_room(sb_queue *queue, lane *in, int64_t deadline)
{
    return wait_on(queue, &in->port, wait_kernel(queue), deadline, false);
}

wait_for wait_kernel(const sb_queue *queue)
{
    /* a schedule is full before its ring is; and where messages are carried, room is made by who
     * looks again, so they must not all sleep until there is some */
    return queue->max_bytes | queue->max_producer_bytes | queue->last_value ||
                   setting(queue, L_SETTING_SCHEDULE_OF_AT)
               ? sb_port_wait_for_head : sb_port_wait_for_room;
}
