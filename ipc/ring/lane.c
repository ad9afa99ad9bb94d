/* Lanes: a handle may be used by any thread, because each call takes an idle lane of it. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <time.h>

#include "base/base.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

/* --- lanes ------------------------------------------------------------------------------------ */

/* Open the port of a lane, with what it has beside that of a bare ring. */
static int64_t lane_open_port(sb_queue *queue, lane *opened)
{
    sb_connection *connection = queue->connection;
    sb_port *port = &opened->port;
    opened->recorder = (recorder){.queue = queue, .kinds = L_KINDS_COMMITTED};
    int64_t code = sb_port_open(port, queue->ring.memory, queue->ring.bytes,
                                connection->arena.memory, connection->arena.bytes, connection->id);
    port->file = connection->arena.file;
    *port_field(port, L_PORT_QUEUE_HANDLE) = (int64_t)(intptr_t)queue;
    *port_field(port, L_PORT_MESSAGES_MAX) = queue->max_messages;
    *port_field(port, L_PORT_RANK) = atomic_load(&queue->rank);
    *port_field(port, L_PORT_SHARE) = queue->max_producer_bytes;
    *port_field(port, L_PORT_RECORDING) = (int64_t)(intptr_t)&opened->recorder;
    return code;
}

lane *lane_open(sb_queue *queue, bool is_room, int64_t *code)
{
    sb_connection *connection = queue->connection;
    if (!queue_is_usable(queue, code))
        return NULL;
    if (connection->id == 0)
        *code = fail(SB_INVALID, "the connection only observes: connect to publish or take");
    else if (!is_room)
        *code = fail(SB_TOO_MANY_LOANS,
                     "queue '%s': %d threads and loans of this process are in it, and more cannot "
                     "be: publish or drop some loans first", queue->name, LANES);
    lane *made = *code == SB_OK ? lane_new(connection, code) : NULL;
    if (!made)
        return NULL;
    participant_uses(connection, queue->reference, 0);
    sb_spinning_begin(made->for_message.words);
    sb_spinning_begin(made->for_room.words);
    *code = lane_open_port(queue, made);
    if (*code == SB_OK)
        return made;
    lane_drop(connection, made);
    return NULL;
}

static lane *lane_make(sb_queue *queue, int64_t most, int64_t *code)
{
    pthread_mutex_lock(&queue->connection->mutex);
    int64_t count = atomic_load(&queue->lanes_made);
    lane *made = lane_open(queue, count < most, code);
    if (made) {
        atomic_store(&made->busy, IN);
        atomic_store(&queue->lanes[count], made);
        atomic_store(&queue->lanes_made, count + 1);
    }
    pthread_mutex_unlock(&queue->connection->mutex);
    return made;
}

lane *lane_refuse(sb_queue *queue)
{
    if (is_expelled(atomic_load(&queue->connection->closed)))
        /* who noticed was in a lane, and could not leave */
        queue->connection->duties->leave(queue->connection);
    return NULL;
}

static lane *lane_among(sb_queue *queue, int64_t most, int64_t *code)
{
    if (!queue_is_usable(queue, code))
        return NULL;
    int64_t count = atomic_load_explicit(&queue->lanes_made, memory_order_acquire);
    for (int64_t index = 0; index < count && index < most; index++) {
        lane *each = atomic_load_explicit(&queue->lanes[index], memory_order_relaxed);
        int64_t idle = IDLE;
        if (atomic_load_explicit(&each->busy, memory_order_relaxed) != IDLE ||
            !atomic_compare_exchange_strong(&each->busy, &idle, IN))
            continue;
        if (queue_is_usable(queue, code))
            return each;
        lane_leave(each);
        return NULL;
    }
    return lane_make(queue, most, code);
}

lane *lane_beside(sb_queue *queue, int64_t *code)
{
    return lane_among(queue, LANES, code);
}

lane *lane_search(sb_queue *queue, int64_t *code)
{
    lane *in = lane_beside(queue, code);
    return in ? in : lane_refuse(queue);
}

lane *lane_to_deal(sb_queue *queue, int64_t *code)
{
    const struct timespec pause = {0, 1000000};
    lane *in;
    while (!(in = lane_among(queue, LANES + 1, code)) && *code == SB_TOO_MANY_LOANS)
        nanosleep(&pause, NULL);
    return in ? in : lane_refuse(queue);
}

int64_t sb_port_to_look(sb_queue *queue, sb_port *port)
{
    sb_connection *connection = queue->connection;
    int64_t code = sb_port_open(port, queue->ring.memory, queue->ring.bytes,
                                connection->arena.memory, connection->arena.bytes,
                                /* an observer takes nothing */
                                connection->id ? connection->id : 1);
    port->file = connection->arena.file;
    return code;
}

void queue_shut(sb_queue *queue)
{
    const struct timespec pause = {0, 1000000};
    int64_t open = 0;
    if (!atomic_compare_exchange_strong(&queue->shut, &open, 1)) {
        while (atomic_load(&queue->shut) != 2) /* another thread is at it */
            nanosleep(&pause, NULL);
        return;
    }
    sb_port port;
    bool wakes = sb_port_to_look(queue, &port) == SB_OK;
    int64_t count = atomic_load(&queue->lanes_made);
    for (int64_t index = 0; index < count; index++)
        word_store(&atomic_load(&queue->lanes[index])->port, L_PORT_STOP, 1);
    if (wakes)
        sb_port_wake_all(&port); /* subscribers too, whose lanes are not waited for */
    for (int64_t index = 0; index < count; index++) {
        lane *each = atomic_load(&queue->lanes[index]);
        int64_t idle = IDLE;
        while (!atomic_compare_exchange_strong(&each->busy, &idle, SHUT) && idle != ON_LOAN &&
               idle != SHUT) {
            idle = IDLE;
            if (wakes)
                sb_port_wake_all(&port);
            nanosleep(&pause, NULL);
        }
        if (idle == IDLE)
            lane_shut(each);
    }
    atomic_store(&queue->shut, 2);
}

void lane_shut(lane *idle)
{
    recorder_close(&idle->recorder);
    sb_port_close(&idle->port); /* and it stays busy: nobody enters again */
}
