/* Queues towards other nodes of a cluster, as this connection knows them: each has a number here,
 * by which answers say that a message is in it.  Only who has published asks with an answer, so no
 * other connection has to know the number. */

#define _GNU_SOURCE
#include <stdlib.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

static sb_queue *known_way(sb_connection *connection, int64_t reference, int64_t *number)
{
    int64_t count = atomic_load_explicit(&connection->ways_count, memory_order_acquire);
    for (*number = 1; *number <= count; ++*number)
        if (connection->ways[*number - 1]->reference == reference)
            return connection->ways[*number - 1];
    return NULL;
}

/* Its number is for good: answers that were given name it. */
static sb_queue *new_way(sb_connection *connection, int64_t reference, int64_t *number)
{
    sb_queue *found;
    int64_t count = atomic_load(&connection->ways_count);
    if (!connection->ways &&
        !(connection->ways = calloc(L_WAYS_MAX, sizeof *connection->ways)))
        return NULL;
    if (count == L_WAYS_MAX || queue_handle(connection, reference, &found) != SB_OK)
        return NULL;
    sb_share_queue(found); /* as long as the connection */
    connection->ways[count] = found;
    atomic_store_explicit(&connection->ways_count, count + 1, memory_order_release);
    *number = count + 1;
    return found;
}

sb_queue *way_of(sb_connection *connection, int64_t reference, int64_t *number)
{
    sb_queue *found = known_way(connection, reference, number);
    if (found)
        return found;
    pthread_mutex_lock(&connection->mutex);
    found = known_way(connection, reference, number);
    if (!found)
        found = new_way(connection, reference, number);
    pthread_mutex_unlock(&connection->mutex);
    return found;
}

sb_queue *way_at(sb_queue *queue, int64_t *position)
{
    sb_connection *connection = queue->connection;
    int64_t number = *position < 0 ? 0 : *position >> L_WAY_SHIFT;
    if (number < 1 || number > atomic_load(&connection->ways_count))
        return NULL;
    *position &= (INT64_C(1) << L_WAY_SHIFT) - 1;
    return connection->ways[number - 1];
}
