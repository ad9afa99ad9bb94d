/* How a queue becomes a replica, and ceases to be one.
 *
 * A replica is a new ring from its beginning: it begins at a position of the original, is closed
 * (core/closed.py), and its page of settings says what it follows.  So whoever finds the queue,
 * after whatever death, finds a replica, and knows of what. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "commit/commit.h"
#include "queue_replica/queue_replica.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

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
    int64_t slots = queue->slots;
    atomic_fetch_add(&queue->looks, 1);
    *former = queue;
    queue_remove(connection, reference);
    reference = queue_add(connection, name, slots, page, 0);
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

int64_t sb_replica_of(sb_queue *queue, void *buffer, int64_t capacity)
{
    int64_t length;
    if (!queue_look(queue, &length))
        return length;
    length = setting(queue, L_SETTING_REPLICA_OF_AT);
    if (setting(queue, L_SETTING_REPLICA_AT) == 0)
        length = 0;
    else if (length < 0 || length > L_REPLICA_OF_BYTES_MAX)
        length = SB_DAMAGED;
    else if (length > capacity)
        length = SB_TOO_SMALL;
    else
        memcpy(buffer, (const char *)queue->ring.memory + L_SETTING_REPLICA_OF_AT + 8,
               (size_t)length);
    queue_looked(queue);
    return length;
}

int64_t sb_replica_deletable(sb_queue *queue, int64_t deletable)
{
    int64_t code;
    if (!queue_look(queue, &code))
        return code;
    if (word_load(queue->ring.memory, L_RING_CLOSED_AT))
        word_store(queue->ring.memory, L_RING_CLOSED_AT, deletable ? L_DELETABLE : L_CLOSED);
    queue_looked(queue);
    return SB_OK;
}

int64_t sb_replica_detach(sb_queue *queue)
{
    sb_port port;
    int64_t code;
    if (!queue_look(queue, &code))
        return code;
    code = port_to_look(queue, &port);
    if (code == SB_OK && queue->last_value) {
        code = sb_port_latest_repair(&port);
        code = code < 0 ? code : SB_OK;
    }
    if (code == SB_OK)
        code = sb_port_replica_open(&port);
    expiry_unknown(queue);
    if (code == SB_OK && queue->durable) {
        /* the journaler declares it anew, in the next frame (broker/snapshot.c) */
        code = sb_commit_count(queue->connection->transactions.memory);
        follower_rouse(queue->connection, L_FOLLOWER_JOURNALER);
    }
    queue_looked(queue);
    return code;
}

int64_t sb_replica_detached(sb_connection *connection, int64_t stamp, int64_t timeout_ns)
{
    return commit_gate_await(connection, stamp, -1, timeout_ns);
}
