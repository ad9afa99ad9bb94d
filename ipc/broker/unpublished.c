/* What transactions had still to publish when the journal ended (unplaced.c): it is published when
 * a vhost is restored, as one transaction of somebody who has committed it and is gone.  So what
 * finds no room even now waits for it like any other, and whoever repairs goes on with it.
 *
 * Nobody writes the journal of the vhost yet.  The frame that its journaler writes first has all of
 * it again, with places or without. */

#define _GNU_SOURCE
#include <stdlib.h>

#include "base/base.h"
#include "broker/applier.h"
#include "commit/commit.h"
#include "connection/connection.h"
#include "vhost/vhost.h"

/* Its chunk, in memory of whoever commits it: in the lane of an operation before, which nobody else
 * uses, or in one more. */
static int64_t reserve(restored *queue, const sb_unpublished *one, operation *made, int64_t before)
{
    int64_t code = SB_OK;
    made->where = SB_TOO_MANY_LOANS;
    for (const operation *each = made - 1; each >= made - before && !made->lane; each--)
        if (each->queue == made->queue)
            made->lane = each->lane;
    if (made->lane)
        made->where = applier_chunk(queue, &made->lane->port, one->chunk, one->length);
    if (made->where == SB_TOO_MANY_LOANS) {
        made->lane = lane_enter(made->queue, &code);
        if (!made->lane)
            return code;
        atomic_store(&made->lane->busy, ON_LOAN);
        made->where = applier_chunk(queue, &made->lane->port, one->chunk, one->length);
    }
    return made->where < 0 ? made->where : SB_OK;
}

static int64_t add(sb_connection *connection, restored *queue, const sb_unpublished *one,
                   operation *made, int64_t before)
{
    void *catalog = connection->catalog.memory;
    int64_t reference = sb_row_reference(catalog, L_QUEUES, queue->row);
    int64_t code = queue_find(connection, reference, &made->queue);
    if (code != SB_OK)
        return code;
    code = reserve(queue, one, made, before);
    queue_looked(made->queue);
    return code;
}

static int64_t commit(sb_applier *all, sb_connection *connection, const sb_unpublished *several,
                      int64_t most)
{
    int64_t count = 0, code = SB_OK;
    operation *operations = calloc((size_t)most, sizeof *operations);
    if (!operations)
        return fail_system("memory for a transaction");
    for (int64_t each = 0; each < most && code == SB_OK; each++) {
        restored *queue = *applier_place(all, several[each].queue);
        if (!queue || !queue->is_there)
            continue; /* it was deleted, with all that was in it */
        code = add(connection, queue, &several[each], &operations[count], count);
        count++;
    }
    pthread_mutex_lock(&connection->commit_mutex);
    if (code == SB_OK && count > 0)
        code = record_restored(connection, operations, count);
    pthread_mutex_unlock(&connection->commit_mutex);
    free(operations);
    return code;
}

int64_t sb_applier_commit(sb_applier *all, const sb_unpublished *several, int64_t count)
{
    sb_connection *connection;
    int64_t code = sb_connect_compiled(SB_VERSION, SB_LAYOUT, all->connection->vhost, "restored",
                                       &connection);
    if (code != SB_OK)
        return code;
    code = commit(all, connection, several, count);
    sb_connection_free(connection);
    return code;
}
