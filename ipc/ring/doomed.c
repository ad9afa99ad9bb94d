/* Whether a queue was deleted for want of use while somebody published in it. */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

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
