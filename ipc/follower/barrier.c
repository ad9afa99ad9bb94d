/* Gates that the barrier of a durable queue waits for (core/barrier.py): whose owner moves them. */

#define _GNU_SOURCE

#include "base/base.h"
#include "follower/follower.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

/* Do this with a port of the queue. */
typedef int64_t (*gate_verb)(sb_queue *queue, sb_port *port, int64_t gate, int64_t argument);

static bool begin(sb_queue *queue, sb_port *port, int64_t *code)
{
    *code = change_code(queue->connection);
    if (*code != SB_OK || !queue_look(queue, code))
        return false;
    *code = sb_port_to_look(queue, port);
    if (*code != SB_OK)
        queue_looked(queue);
    return *code == SB_OK;
}

static int64_t with_port(sb_queue *queue, gate_verb verb, int64_t gate, int64_t argument)
{
    sb_port port;
    int64_t code;
    if (!begin(queue, &port, &code))
        return code;
    code = verb(queue, &port, gate, argument);
    queue_looked(queue);
    return code;
}

static int64_t told(const sb_queue *queue, int64_t gate, int64_t code)
{
    if (code == SB_REVOKED)
        return fail(SB_STALE, "queue '%s': gate %lld is not ours", queue->name, (long long)gate);
    if (code == SB_INVALID)
        return fail(code, "queue '%s': gate %lld cannot do that", queue->name, (long long)gate);
    return code;
}

int64_t sb_gate_open(sb_queue *queue, int64_t kind, const char *name, int64_t from_now)
{
    const gate_wish wish = {.kind = kind, .name = name, .lasting = true, .from_now = from_now};
    sb_port port;
    int64_t code;
    if (!begin(queue, &port, &code))
        return code;
    code = gate_take(queue, &port, &wish);
    queue_looked(queue);
    return code;
}

static int64_t position(sb_queue *queue, sb_port *port, int64_t gate, int64_t unused)
{
    (void)unused;
    return told(queue, gate, sb_port_gate_position(port, gate));
}

int64_t sb_gate_position(sb_queue *queue, int64_t gate)
{
    return with_port(queue, position, gate, 0);
}

static int64_t move(sb_queue *queue, sb_port *port, int64_t gate, int64_t to)
{
    int64_t tail = sb_port_true_tail(port);
    if (tail >= 0 && to > tail)
        return fail(SB_INVALID, "queue '%s': nothing was published at position %lld", queue->name,
                    (long long)to - 1);
    int64_t code = sb_port_gate_move(port, gate, to);
    if (code < 0)
        return told(queue, gate, code);
    while (sb_port_reclaim(port) > 0)
        continue;
    sb_port_gate_moved(port);
    return SB_OK;
}

int64_t sb_gate_move(sb_queue *queue, int64_t gate, int64_t to)
{
    return with_port(queue, move, gate, to);
}

int64_t gate_end(sb_port *port, int64_t gate)
{
    sb_port_barrier_leave(port, gate);
    sb_port_gate_moved(port);
    int64_t code = sb_port_gate_leave(port, gate);
    sb_port_wake_all(port);
    return code;
}

static int64_t let_go(sb_queue *queue, sb_port *port, int64_t gate, int64_t leaves)
{
    return told(queue, gate, leaves ? gate_end(port, gate) : sb_port_gate_put_down(port, gate));
}

int64_t sb_gate_close(sb_queue *queue, int64_t gate, int64_t leaves)
{
    return with_port(queue, let_go, gate, leaves);
}

static int64_t join(sb_queue *queue, sb_port *port, int64_t gate, int64_t unused)
{
    (void)unused;
    return told(queue, gate, sb_port_barrier_join(port, gate));
}

int64_t sb_barrier_join(sb_queue *queue, int64_t gate)
{
    return with_port(queue, join, gate, 0);
}

static int64_t leave(sb_queue *queue, sb_port *port, int64_t gate, int64_t unused)
{
    (void)unused;
    int64_t code = told(queue, gate, sb_port_barrier_leave(port, gate));
    sb_port_gate_moved(port);
    return code;
}

int64_t sb_barrier_leave(sb_queue *queue, int64_t gate)
{
    return with_port(queue, leave, gate, 0);
}
