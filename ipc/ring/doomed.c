/* A queue that is deleted if it is empty, and who publishes there meanwhile: core/deletion.py. */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

/* A transaction will publish there. */
static bool is_committed_to(sb_queue *queue)
{
    sb_port port;
    return sb_port_to_look(queue, &port) != SB_OK || sb_port_series_is_held(&port);
}

bool is_promised(const sb_queue *queue)
{
    return participant_users(queue->connection, queue->reference, L_USE_PROMISED) > 0;
}

int64_t queue_promise(sb_queue *queue)
{
    sb_connection *connection = queue->connection;
    if (!queue->auto_delete_ns)
        return SB_OK;
    pthread_mutex_lock(&connection->mutex);
    int64_t code = atomic_load(&connection->closed);
    if (code == SB_OK && queue->promises == 0)
        code = participant_uses(connection, queue->reference, L_USE_PROMISED);
    queue->promises += code == SB_OK;
    pthread_mutex_unlock(&connection->mutex);
    if (code != SB_OK)
        return code;
    queue_used(queue);
    atomic_thread_fence(memory_order_seq_cst); /* as who publishes: then it looks for the mark */
    code = auto_delete_outcome(queue, SB_OK);
    if (code != SB_OK)
        queue_promised_no_more(queue);
    return code;
}

void queue_promised_no_more(sb_queue *queue)
{
    sb_connection *connection = queue->connection;
    if (!queue->auto_delete_ns || atomic_load(&connection->closed) != SB_OK)
        return; /* closed: the participant's list is gone; first, see enter in transaction.c */
    pthread_mutex_lock(&connection->mutex);
    int64_t row = queue->reference & L_REFERENCE_INDEX_MASK;
    if (--queue->promises == 0 && atomic_load(&connection->closed) == SB_OK &&
        row_last_reference(connection, row) == queue->reference) /* and not another queue's */
        participant_uses_no_more(connection, queue->reference, L_USE_PROMISED);
    pthread_mutex_unlock(&connection->mutex);
}

bool doomed_if_empty(sb_queue *queue)
{
    bool (*is_empty)(sb_queue *) = queue->connection->duties->is_empty;
    if (!is_empty(queue)) /* and what is beside it is known, of which nobody makes one now */
        return false;
    sb_queue *rings[] = {queue, atomic_load(&queue->schedule), atomic_load(&queue->inbox)};
    bool is_left = false;
    for (int each = 0; each < 3; each++)
        if (rings[each])
            sb_deletion_mark(rings[each]->ring.memory);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with that of queue_promise */
    is_left = is_promised(queue);
    for (int each = 0; each < 3; each++)
        is_left |= rings[each] && is_committed_to(rings[each]);
    /* in this order: what a transaction has placed is seen when its series is free */
    if (!is_left && is_empty(queue))
        return true;
    for (int each = 0; each < 3; each++)
        if (rings[each])
            sb_deletion_unmark(rings[each]->ring.memory);
    return false;
}

int64_t auto_delete_outcome(sb_queue *queue, int64_t code)
{
    if (!sb_deletion_is_marked(queue->ring.memory))
        return code;
    int64_t outcome = connection_lock(queue->connection);
    if (outcome != SB_OK)
        return outcome;
    /* whoever marked it has deleted it, or died before it could */
    bool lives = sb_row_of(queue->connection->catalog.memory, L_QUEUES, queue->reference) >= 0;
    if (lives)
        sb_deletion_unmark(queue->ring.memory);
    connection_unlock(queue->connection);
    return lives ? code
                 : fail(SB_NOT_FOUND, "queue '%s' was deleted: nobody had used it", queue->name);
}
