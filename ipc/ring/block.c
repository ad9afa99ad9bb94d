/* Blocks of the arena that a deleted queue has left. */

#define _GNU_SOURCE

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
