/* Departed queues: deleted by others, or with their owner, while we were publishing to them.
 *
 * Our blocks in them, and their rows, wait until we let them go.  A program that publishes through an
 * exchange whose subscribers come and go does so when it looks for a route anew.  Where we have
 * consumed, or lent memory, somebody may still look at it: that stays until we leave. */

#define _GNU_SOURCE
#include <sys/mman.h>

#include "shared.h"

static bool is_departed(const sb_queue *queue)
{
    return queue && word_load(queue->row, 0) >> L_ROW_GENERATION_SHIFT != queue->live;
}

static bool may_go(sb_queue *queue)
{
    int64_t open = 0;
    if (!is_departed(queue) || atomic_load(&queue->held) || (atomic_load(&queue->uses) & ~(int64_t)L_USE_PRODUCES) ||
        reply_goes_to(queue->connection, queue->reference) || atomic_load(&queue->shut) != open)
        return false;
    for (int64_t each = 0; each < atomic_load(&queue->lanes_made); each++)
        if (atomic_load(&atomic_load(&queue->lanes[each])->busy) != open)
            return false;
    return true;
}

static sb_queue *one_departed(sb_connection *connection)
{
    int64_t rows = word_load(connection->catalog.memory, L_CATALOG_HIGH_AT + 8 * L_QUEUES);
    for (int64_t row = 0; row < rows && row < L_QUEUE_ROWS; row++)
        if (is_departed(connection->queues[row]) && may_go(connection->queues[row]))
            return connection->queues[row];
    for (sb_queue *each = connection->stale; each; each = each->next)
        if (may_go(each))
            return each;
    return NULL;
}

void departed_forget(sb_connection *connection)
{
    for (;;) {
        pthread_mutex_lock(&connection->mutex);
        sb_queue *queue = atomic_load(&connection->closed) ? NULL : one_departed(connection);
        pthread_mutex_unlock(&connection->mutex);
        if (!queue)
            return;
        queue_shut(queue);
        if (connection_lock(connection) != SB_OK)
            return;
        participant_forgets(connection, connection->id, queue->reference);
        if (!participant_used(connection, queue->reference))
            madvise(queue->ring.memory, (size_t)queue->ring.bytes, MADV_REMOVE);
        connection_unlock(connection);
    }
}
