/* Deleting queues. */

#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define FORCE_OF_BROKER 2 /* in the place of 1: ipc/instance/leaving.py */

void queue_remove(sb_connection *connection, int64_t reference)
{
    char path[NAME_ROOM];
    void *catalog = connection->catalog.memory;
    int64_t row = reference & L_REFERENCE_INDEX_MASK;
    sb_queue *known = connection->queues[row];
    sb_row_remove(catalog, L_QUEUES, row);
    followers_rouse(connection);
    sb_bindings_remove(catalog, L_QUEUES, reference);
    latency_remove(connection, reference);
    queue_path(path, connection->home, reference);
    unlink(path);
    if (known && known->reference == reference)
        atomic_store(&known->gone, SB_NOT_FOUND);
    int64_t schedule = beside_find(connection, L_QUEUE_SCHEDULE, reference);
    if (schedule >= 0)
        queue_remove(connection, schedule);
    int64_t inbox = beside_find(connection, L_QUEUE_INBOX, reference);
    if (inbox >= 0)
        queue_remove(connection, inbox);
}

/* A queue that ships what was taken out of others; its publishers see the mark. */
static int64_t shipped_code(sb_queue *queue)
{
    if (!is_on_its_way(queue->name) || doomed_if_empty(queue))
        return SB_OK;
    return fail(SB_INVALID, "queue '%s' has messages that are on their way to another broker: it "
                "is deleted when it is empty", queue->name);
}

static int64_t delete_locked(sb_connection *connection, const char *name, int64_t force,
                             bool (*condition)(sb_queue *), sb_queue **deleted)
{
    sb_queue *queue;
    void *catalog = connection->catalog.memory;
    if (connection->remains)
        return fail(SB_MOVED, "the broker of vhost '%s' is leaving: queue '%s' stays as it is",
                    connection->vhost, name);
    int64_t row = sb_row_find(catalog, L_QUEUES, name, (int64_t)strlen(name));
    if (row < 0)
        return fail(SB_NOT_FOUND, "there is no queue '%s' in vhost '%s'", name, connection->vhost);
    if (leads_to_node(name))
        return fail(SB_INVALID, "queue '%s' has what goes to another node of the cluster: it is "
                    "never deleted", name);
    if (has_routes(name) && force != FORCE_OF_BROKER)
        return fail(SB_INVALID, "queue '%s' has where the groups of the cluster go: the broker "
                    "deletes it when its file has no [grouping.NAME] any more", name);
    if (goes_to_successor(name) && force != FORCE_OF_BROKER && !condition)
        return fail(SB_INVALID, "queue '%s' has what is acknowledged in an open transaction of a "
                    "program on another host: the broker deletes it when that has ended", name);
    int64_t reference = sb_row_reference(catalog, L_QUEUES, row);
    int64_t users = participant_others(connection, reference);
    if (users > 0 && !force)
        return fail(SB_IN_USE, "queue '%s' is in use by %lld other participant%s: close it there "
                    "first, or force", name, (long long)users, users == 1 ? "" : "s");
    int64_t code = queue_handle(connection, reference, &queue);
    if (condition && (code != SB_OK || !condition(queue)))
        return SB_IN_USE;
    if (code == SB_OK && word_load(queue->ring.memory, L_RING_CLOSED_AT) == L_CLOSED)
        return read_only_code(queue);
    if (code == SB_OK && (code = shipped_code(queue)) != SB_OK)
        return code;
    queue_remove(connection, reference);
    if (code == SB_OK) { /* else its ring was damaged or gone: now the rest of it is gone too */
        *deleted = queue;
        atomic_fetch_add(&queue->looks, 1);
    }
    return SB_OK;
}

static int64_t delete_queue(sb_connection *connection, const char *name, int64_t force,
                            bool (*condition)(sb_queue *))
{
    int64_t code = change_begin(connection, "queue", name);
    if (code != SB_OK)
        return code;
    sb_queue *deleted = NULL;
    code = delete_locked(connection, name, force, condition, &deleted);
    connection_unlock(connection);
    if (!deleted)
        return code;
    deleted_shut(deleted);
    return code;
}

int64_t sb_delete_queue(sb_connection *connection, const char *name, int64_t force)
{
    return delete_queue(connection, name, force, NULL);
}

int64_t queue_delete_if(sb_connection *connection, const char *name, bool (*condition)(sb_queue *))
{
    return delete_queue(connection, name, 1, condition);
}
