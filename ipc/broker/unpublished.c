/* What transactions had still to publish when the journal ended (unplaced.c): it is published when
 * a vhost is restored, as one transaction of somebody who has committed it and is gone.  So what
 * finds no room even now waits for it like any other, and whoever repairs goes on with it.
 *
 * Nobody writes the journal of the vhost yet.  The frame that its journaler writes first has all of
 * it again, with places or without. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "broker/applier.h"
#include "commit/commit.h"
#include "connection/connection.h"
#include "vhost/vhost.h"

static unpublished **place_of(sb_applier *all, int64_t id)
{
    unpublished **at = &all->unpublished;
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

int64_t unpublished_note(sb_applier *all, const sb_journal_record *record)
{
    unpublished **at = place_of(all, record->position), *known = *at, *made = NULL;
    if (known && record->length == 0) {
        *at = known->next;
        free(known);
    }
    if (known || record->length == 0)
        return SB_OK; /* a segment says it again before the frame that it begins with */
    made = malloc(sizeof *made + (size_t)record->length);
    if (!made)
        return fail_system("memory for a message of %lld bytes", (long long)record->length);
    *made = (unpublished){.id = record->position, .number = record->queue,
                          .length = record->length};
    memcpy(made->chunk, record->body, (size_t)record->length);
    *at = made;
    return SB_OK;
}

void unpublished_free(sb_applier *all)
{
    while (all->unpublished) {
        unpublished *first = all->unpublished;
        all->unpublished = first->next;
        free(first);
    }
}

/* Its chunk, in memory of whoever commits it: in the lane of an operation before, which nobody else
 * uses, or in one more. */
static int64_t reserve(restored *queue, const unpublished *one, operation *made, int64_t before)
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
    made->word = word_load(one->chunk, L_CHUNK_ORIGIN_AT);
    return made->where < 0 ? made->where : SB_OK;
}

static int64_t add(sb_connection *connection, restored *queue, const unpublished *one,
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

/* As many as one transaction has, behind `*from`. */
static int64_t commit_some(sb_applier *all, sb_connection *connection, const unpublished **from)
{
    int64_t count = 0, code = SB_OK;
    operation *operations = calloc(L_TRANSACTION_OPERATIONS, sizeof *operations);
    if (!operations)
        return fail_system("memory for a transaction");
    for (; *from && count < L_TRANSACTION_OPERATIONS && code == SB_OK; *from = (*from)->next) {
        restored *queue = *applier_place(all, (*from)->number);
        if (!queue || !queue->is_there)
            continue; /* it was deleted, with all that was in it */
        code = add(connection, queue, *from, &operations[count], count);
        count++;
    }
    pthread_mutex_lock(&connection->commit_mutex);
    if (code == SB_OK && count > 0)
        code = record_restored(connection, operations, count);
    pthread_mutex_unlock(&connection->commit_mutex);
    free(operations);
    return code;
}

int64_t unpublished_commit(sb_applier *all)
{
    const unpublished *next = all->unpublished;
    int64_t code = SB_OK;
    while (next && code == SB_OK) {
        sb_connection *connection;
        code = sb_connect_compiled(SB_VERSION, SB_LAYOUT, all->connection->vhost, "restored",
                                   &connection);
        if (code != SB_OK)
            return code;
        code = commit_some(all, connection, &next);
        sb_connection_free(connection);
    }
    return code;
}
