/* What an operator does with a queue: browse, purge, pause. */

#define _GNU_SOURCE

#include "base/base.h"
#include "catalog/catalog.h"
#include "paging/paging.h"
#include "ring/ring.h"
#include "schedule/schedule.h"

/* --- looking and managing --------------------------------------------------------------------- */

int64_t sb_browse(sb_queue *queue, int64_t position, sb_message *message, void *buffer,
                  int64_t capacity)
{
    int64_t code;
    sb_port port;
    if (!queue_look(queue, &code))
        return code;
    code = sb_port_to_look(queue, &port);
    if (code == SB_OK)
        code = sb_port_peek_whole(&port, position, message, buffer, capacity);
    queue_looked(queue);
    return code;
}

int64_t sb_browse_ahead(sb_queue *queue, int64_t position, sb_message *message, void *buffer,
                        int64_t capacity)
{
    int64_t code;
    sb_port port;
    if (!queue_look(queue, &code))
        return code;
    code = sb_port_to_look(queue, &port);
    if (code == SB_OK)
        code = sb_port_peek_ahead(&port, position, message, buffer, capacity);
    queue_looked(queue);
    return code;
}

/* What is on its way to another node was confirmed, and leaves the queue once that node has it;
 * where groups go, and when a transaction has ended, is known to the broker alone. */
static int64_t of_broker_code(const sb_queue *queue, const char *refused)
{
    if (has_routes(queue->name))
        return fail(SB_INVALID, "queue '%s' has where the groups of the cluster go: it is never %s",
                    queue->name, refused);
    if (goes_to_successor(queue->name))
        return fail(SB_INVALID, "queue '%s' has what is acknowledged in an open transaction of a "
                    "program on another host: it is never %s", queue->name, refused);
    if (!leads_to_node(queue->name))
        return SB_OK;
    return fail(SB_INVALID, "queue '%s' has what goes to another node of the cluster: it is never "
                "%s; shmbroker cluster forget is for a node that is gone for good", queue->name,
                refused);
}

static int64_t purge(sb_queue *queue)
{
    int64_t code = read_only_code(queue);
    if (code == SB_OK)
        code = of_broker_code(queue, "purged");
    if (code == SB_OK && is_on_its_way(queue->name))
        code = fail(SB_INVALID, "queue '%s' has messages that are on their way to another broker: "
                    "it is never purged", queue->name);
    if (code != SB_OK)
        return code;
    int64_t paged = queue->pages ? inbox_purge(queue) : 0; /* first: it would fill the ring */
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    code = sb_port_purge(&in->port);
    sb_port_wake_all(&in->port);
    lane_leave(in);
    if (paged < 0 || code < 0)
        return paged < 0 ? paged : code;
    return code + paged + schedule_purge(queue);
}

int64_t sb_purge(sb_queue *queue)
{
    int64_t code;
    if (!queue_look(queue, &code))
        return code;
    code = purge(queue);
    queue_looked(queue);
    return code;
}

int64_t sb_pause(sb_queue *queue, int64_t paused)
{
    int64_t code = SB_OK;
    if (!paused || goes_to_successor(queue->name) || has_routes(queue->name))
        code = of_broker_code(queue, paused ? "paused" : "resumed");
    if (code != SB_OK)
        return code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    _Atomic int64_t *mode = (_Atomic int64_t *)((char *)queue->ring.memory + L_RING_MODE_AT);
    if (paused)
        atomic_fetch_or(mode, L_MODE_PAUSED);
    else
        atomic_fetch_and(mode, ~(int64_t)L_MODE_PAUSED);
    sb_port_wake_all(&in->port);
    lane_leave(in);
    return SB_OK;
}
