/* What waiters do for a queue between two sleeps, and what is repaired in its ring. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "queue/queue.h"
#include "repair/repair.h"
#include "ring/ring.h"
#include "schedule/schedule.h"
#include "vhost/vhost.h"

int64_t queue_repair(sb_queue *queue, int64_t dead, bool publishes)
{
    sb_port port;
    uint64_t alive[L_PARTICIPANTS / 64];
    int64_t code = sb_port_to_look(queue, &port);
    if (code != SB_OK)
        return code;
    memset(alive, 0xFF, sizeof alive);
    alive[dead / 64] &= ~(UINT64_C(1) << (dead % 64));
    code = publishes ? sb_port_repair_messages(&port, alive) : sb_port_repair(&port, alive, 0, 0);
    bool is_closed = word_load(queue->ring.memory, L_RING_CLOSED_AT) != 0;
    if (code >= 0 && queue->last_value && !is_closed) /* else its original decides */
        sb_port_latest_repair(&port);
    sb_expiry_repair(queue->ring.memory, sb_port_asides_in(&port) > 0);
    schedule_unknown(queue);
    if (queue->buckets)
        sb_port_groups_touch(&port);
    latency_repair(queue, dead);
    if (code > 0)
        sb_port_wake_all(&port);
    return code;
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* For a repair that takes nobody for dead: hints are put right, and what is done is reclaimed. */
static const uint64_t *all_alive(void)
{
    static uint64_t alive[L_PARTICIPANTS / 64];
    if (!alive[0])
        memset(alive, 0xFF, sizeof alive);
    return alive;
}

static void ring_repair(sb_port *port)
{
    if (sb_port_repair(port, all_alive(), 0, 0) > 0)
        sb_port_wake_all(port);
}

void queue_repair_alone(sb_queue *queue, sb_port *port)
{
    ring_repair(port);
    queue_expire(queue, port);
    slow_look(queue, port);
    mover_look(queue);
}

void queue_repair_between_sleeps(sb_queue *queue, sb_port *port)
{
    queue_used(queue);
    queue_repair_alone(queue, port);
    sb_repair(queue->connection);
    auto_delete_some(queue->connection);
}

bool queue_needs_repair(sb_connection *connection, int64_t reference)
{
    char path[NAME_ROOM];
    int64_t expiry = 0;
    queue_path(path, connection->home, reference);
    int file;
    if (trusted_segment(path, O_RDONLY, &connection->whose, &file) != SB_OK)
        return false;
    bool read = pread(file, &expiry, sizeof expiry, L_RING_NEXT_EXPIRY_AT) == sizeof expiry;
    close(file);
    return read && expiry != 0 && expiry <= sb_system_clock();
}
