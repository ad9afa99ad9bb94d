/* How a queue becomes a replica, and the file with the moment that is being shown.
 *
 * A replica is a new ring from its beginning: it begins at a position of the original, is closed
 * (core/closed.py), and its page of settings says what it follows.  So whoever finds the queue,
 * after whatever death, finds a replica, and knows of what. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define MOMENT_BYTES 4096 /* of a file that was made just now */

/* What a replica cannot be so far. */
static int64_t check(const sb_queue *queue, int64_t flags)
{
    const char *what = queue->pages                   ? "pages"
                       : queue->non_destructive       ? "is non_destructive"
                       : flags & L_QUEUE_TEMPORARY    ? "is temporary"
                       : flags & L_QUEUE_SUBSCRIPTION ? "is a subscription"
                                                      : NULL;
    return what ? fail(SB_INVALID, "queue '%s' %s, and cannot be a replica", queue->name, what)
                : SB_OK;
}

static int64_t replace(sb_connection *connection, const char *name, int64_t position,
                       const void *of, int64_t length, sb_queue **former)
{
    char page[L_RING_GATES_AT] = "";
    void *catalog = connection->catalog.memory;
    int64_t row = sb_row_find(catalog, L_QUEUES, name, (int64_t)strlen(name));
    if (row < 0)
        return fail(SB_NOT_FOUND, "there is no queue '%s' in vhost '%s'", name, connection->vhost);
    int64_t reference = sb_row_reference(catalog, L_QUEUES, row);
    int64_t flags = word_load(catalog, sb_catalog_entry_at(L_QUEUES, row) + L_QUEUE_FLAGS_AT);
    sb_queue *queue;
    int64_t code = queue_handle(connection, reference, &queue);
    if (code == SB_OK)
        code = check(queue, flags);
    if (code != SB_OK)
        return code;
    memcpy(page + L_RING_SETTINGS_AT, (char *)queue->ring.memory + L_RING_SETTINGS_AT,
           L_RING_GATES_AT - L_RING_SETTINGS_AT);
    word_store(page, L_SETTING_REPLICA_AT, 1 + position);
    word_store(page, L_SETTING_REPLICA_OF_AT, length);
    memcpy(page + L_SETTING_REPLICA_OF_AT + 8, of, (size_t)length);
    atomic_fetch_add(&queue->looks, 1);
    reference = queue_replace(connection, reference, name, queue->slots, page);
    if (queue_is_gone(queue))
        *former = queue;
    else
        queue_looked(queue);
    return reference < 0 ? reference : SB_OK;
}

int64_t sb_replica_declare(sb_connection *connection, const char *name, int64_t position,
                           const void *of, int64_t length)
{
    sb_queue *former = NULL;
    int64_t code = queue_check(connection, name, 0);
    if (code == SB_OK && (length < 1 || length > L_REPLICA_OF_BYTES_MAX))
        code = fail(SB_INVALID, "what queue '%s' is to follow takes %lld bytes, and there is room "
                    "for %d", name, (long long)length, (int)L_REPLICA_OF_BYTES_MAX);
    if (code == SB_OK)
        code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    code = replace(connection, name, position, of, length, &former);
    connection_unlock(connection);
    if (former)
        deleted_shut(former);
    return code;
}

/* Somebody else may make it meanwhile. */
static int64_t moment_make(const char *path)
{
    segment made;
    int64_t code = segment_make(&made, path, MOMENT_BYTES, MOMENT_BYTES);
    if (code == SB_OK)
        code = segment_name(&made, path);
    segment_detach(&made);
    return code == SB_EXISTS ? SB_OK : code;
}

int64_t sb_moment_open(sb_connection *connection, int64_t makes, int64_t *opened)
{
    char path[NAME_ROOM];
    int file = -1;
    int64_t code = SB_OK;
    vhost_path(path, connection->home, "moment");
    bool is_there = access(path, F_OK) == 0;
    if (!is_there && makes)
        code = moment_make(path);
    if (code == SB_OK && (is_there || makes))
        code = trusted_segment(path, O_RDWR, &connection->whose, &file);
    *opened = file;
    return code;
}
