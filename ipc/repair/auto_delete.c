/* Queues that are deleted when they are empty and nobody has used them for a while.
 *
 * Every use leaves its time in the ring.  The repair looks, marks the ring (core/deletion.py), and
 * looks again. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "queue/queue.h"
#include "repair/repair.h"
#include "ring/ring.h"

#define LOOKS 64 /* rows that one waiting call looks at between two sleeps */

static bool is_unused(const sb_queue *queue)
{
    return queue->auto_delete_ns > 0 &&
           sb_system_clock() - word_load(queue->ring.memory, L_RING_USED_AT) >=
               queue->auto_delete_ns;
}

/* Under the catalog's lock. */
static bool is_over(sb_queue *queue)
{
    if (!is_unused(queue) || word_load(queue->ring.memory, L_RING_CLOSED_AT))
        return false;
    if (!doomed_if_empty(queue))
        return false;
    bool is_unused_yet = is_unused(queue);
    if (!is_unused_yet)
        sb_deletion_unmark(queue->ring.memory);
    return is_unused_yet;
}

static void look_at(sb_connection *connection, int64_t row)
{
    void *catalog = connection->catalog.memory;
    int64_t flags = word_load(catalog, sb_catalog_entry_at(L_QUEUES, row) + L_QUEUE_FLAGS_AT);
    int64_t reference = sb_row_reference(catalog, L_QUEUES, row);
    sb_queue *queue = NULL;
    if (!(flags & L_QUEUE_AUTO_DELETE) || reference < 0)
        return;
    if (queue_find(connection, reference, &queue) != SB_OK)
        return;
    char name[L_NAME_BYTES_MAX + 1] = "";
    if (is_unused(queue) && is_promised(queue))
        queue_used(queue); /* by a transaction; and it is not looked at again soon */
    else if (is_unused(queue))
        strcpy(name, queue->name);
    queue_looked(queue);
    if (*name)
        queue_delete_if(connection, name, is_over);
}

void auto_delete(sb_connection *connection, int64_t looks)
{
    static _Atomic int64_t turn;
    if (connection->id == 0)
        return;
    int64_t row = looks == 0 ? 0 : atomic_load(&turn);
    for (int64_t look = 0; looks == 0 || look < looks; look++) {
        row = sb_row_next(connection->catalog.memory, L_QUEUES, row);
        if (row < 0)
            break;
        look_at(connection, row++);
    }
    if (looks)
        atomic_store(&turn, row < 0 ? 0 : row);
}

void auto_delete_some(sb_connection *connection)
{
    auto_delete(connection, LOOKS);
}
