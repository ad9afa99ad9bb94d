/* Blocks of the arena: that a deleted queue has left, and that somebody lacks while they hold no
 * message. */

#define _GNU_SOURCE
#include <stdlib.h>

#include "base/base.h"
#include "ring/ring.h"

/* Of a queue whose ring may be gone: only the arena is looked at. */
static sb_port port_of_arena(sb_connection *connection, int64_t row)
{
    sb_port port = {0};
    *port_field(&port, L_PORT_ARENA) = (int64_t)(intptr_t)connection->arena.memory;
    *port_field(&port, L_PORT_BLOCKS) = word_load(connection->arena.memory, L_ARENA_BLOCKS_AT);
    *port_field(&port, L_PORT_QUEUE) = row;
    return port;
}

void blocks_drop(sb_connection *connection, int64_t row)
{
    sb_port port = port_of_arena(connection, row);
    sb_port_blocks_drop(&port);
}

void blocks_drop_marked(sb_connection *connection, const int64_t *marks)
{
    sb_port port = port_of_arena(connection, 0);
    sb_port_blocks_drop_marked(&port, (int64_t)(intptr_t)marks);
}

/* --- whoever lacks memory --------------------------------------------------------------------- */

/* The empty runs of a queue's idle lanes: how many; and where its head is, if our participant uses
 * it: its row is not another queue's then. */
static int64_t runs_return(sb_queue *queue, int64_t *head)
{
    int64_t returned = 0, code, count = atomic_load(&queue->lanes_made);
    for (int64_t index = 0; index < count; index++) {
        lane *each = atomic_load(&queue->lanes[index]);
        int64_t idle = IDLE;
        if (!atomic_compare_exchange_strong(&each->busy, &idle, IN))
            continue;
        returned += sb_port_trim(&each->port);
        lane_leave(each);
    }
    if (count > 0 && !queue->forgotten && queue_look(queue, &code)) {
        *head = word_load(queue->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
        queue_looked(queue);
    }
    return returned;
}

int64_t memory_return(sb_connection *connection, int64_t *heads)
{
    int64_t returned = 0;
    int64_t *known = heads ? heads : calloc(L_QUEUE_MASK + 1, sizeof *known);
    if (!known)
        return 0;
    sb_port arena = port_of_arena(connection, 0);
    pthread_mutex_lock(&connection->mutex);
    for (int64_t row = 0; row < L_QUEUE_ROWS; row++)
        if (connection->queues[row])
            returned += runs_return(connection->queues[row], &known[row]);
    /* under the mutex: nobody lets go of these rows meanwhile */
    returned += sb_port_blocks_return(&arena, (int64_t)(intptr_t)known);
    pthread_mutex_unlock(&connection->mutex);
    if (!heads)
        free(known);
    return returned;
}

bool arena_is_short(sb_connection *connection)
{
    sb_port arena = port_of_arena(connection, 0);
    int64_t blocks = word_load(connection->arena.memory, L_ARENA_BLOCKS_AT);
    int64_t committed = word_load(connection->arena.memory, L_ARENA_COMMITTED_AT);
    return committed > blocks - blocks / 4 && sb_port_blocks_left(&arena) < blocks / 4;
}
