/* Ownership: queues that belong to a participant, which its end does not leave behind.
 *
 * A temporary queue is deleted when its owner leaves or dies; a shared one goes to another of its
 * consumers, as long as there is one.  A subscription that is not shared belongs to whoever
 * consumes it, and to nobody after that.
 *
 * The owner's entry says that it owns something before the row of the queue does, so that most
 * deaths cost no search.  Whoever repairs a death comes here first, while the id cannot be given
 * away.  From then on nothing is given to it: an heir that is itself being repaired would keep a
 * queue for ever. */

#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "vhost/vhost.h"

bool ownership_begins_with(int64_t flags)
{
    return flags & L_QUEUE_TEMPORARY ||
           (flags & (L_QUEUE_SUBSCRIPTION | L_QUEUE_SHARED)) == L_QUEUE_SUBSCRIPTION;
}

void ownership_give(sb_connection *connection, int64_t entry, int64_t id)
{
    if (id)
        word_store(participant_entry(connection, id), L_PARTICIPANT_OWNS_AT,
                   word_load(participant_entry(connection, id), L_PARTICIPANT_OWNS_AT) |
                       L_OWNS_QUEUES);
    word_store(connection->catalog.memory, entry + L_QUEUE_OWNER_AT, id);
}

bool ownership_give_up(sb_connection *connection, int64_t row, int64_t id)
{
    void *catalog = connection->catalog.memory;
    int64_t entry = sb_catalog_entry_at(L_QUEUES, row);
    int64_t flags = word_load(catalog, entry + L_QUEUE_FLAGS_AT);
    int64_t reference = sb_row_reference(catalog, L_QUEUES, row);
    int64_t heir = flags & L_QUEUE_SHARED ? participant_heir(connection, reference, id) : 0;
    if (heir || !(flags & L_QUEUE_TEMPORARY)) {
        ownership_give(connection, entry, heir);
        return false;
    }
    if (!connection->remains)
        queue_remove(connection, reference);
    return true;
}

int64_t ownership_end(sb_connection *connection, int64_t id)
{
    void *catalog = connection->catalog.memory, *entry = participant_entry(connection, id);
    int64_t code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    int64_t owns = word_load(entry, L_PARTICIPANT_OWNS_AT), row = 0;
    word_store(entry, L_PARTICIPANT_OWNS_AT, owns | L_OWNS_NO_MORE);
    while (owns & L_OWNS_QUEUES && (row = sb_row_next(catalog, L_QUEUES, row)) >= 0) {
        if (word_load(catalog, sb_catalog_entry_at(L_QUEUES, row) + L_QUEUE_OWNER_AT) == id)
            ownership_give_up(connection, row, id);
        row++;
    }
    connection_unlock(connection);
    return SB_OK;
}

/* One of this name that is there is ours, or goes first, as its owner is dead. */
static int64_t former_code(sb_connection *connection, const char *name)
{
    void *catalog = connection->catalog.memory;
    int64_t row = sb_row_find(catalog, L_QUEUES, name, (int64_t)strlen(name));
    int64_t entry = row < 0 ? 0 : sb_catalog_entry_at(L_QUEUES, row);
    int64_t owner = row < 0 ? 0 : word_load(catalog, entry + L_QUEUE_OWNER_AT);
    if (row >= 0 && !(word_load(catalog, entry + L_QUEUE_FLAGS_AT) & L_QUEUE_TEMPORARY))
        return fail(SB_DIFFERENT, "queue '%s' exists and is not temporary: choose another name",
                    name);
    if (row < 0 || owner == connection->id)
        return SB_OK;
    if ((owner && participant_runs(connection, owner)) ||
        !ownership_give_up(connection, row, owner))
        return fail(SB_IN_USE, "queue '%s' is temporary, and belongs to participant %lld", name,
                    (long long)owner);
    return SB_OK;
}

int64_t sb_temporary_queue_as(sb_connection *connection, const char *name, int64_t slots,
                              const sb_settings *settings, sb_queue **queue)
{
    int64_t code = queue_check(connection, name, slots);
    if (code == SB_OK)
        code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    code = former_code(connection, name);
    if (code == SB_OK)
        code = queue_declare(connection, name, slots, settings, L_QUEUE_TEMPORARY);
    connection_unlock(connection);
    return code < 0 ? code : sb_open_queue(connection, name, queue);
}

int64_t sb_temporary_queue(sb_connection *connection, int64_t slots, const sb_settings *settings,
                           sb_queue **queue)
{
    char name[64 + L_CATALOG_NODE_BYTES], end[L_CATALOG_NODE_BYTES];
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return fail_system("random numbers");
    int64_t code = sb_node_end(connection, end);
    if (code != SB_OK)
        return code;
    snprintf(name, sizeof name, "tmp.%lld.%016llx%s", (long long)connection->id,
             (unsigned long long)number, end);
    return sb_temporary_queue_as(connection, name, slots, settings, queue);
}
