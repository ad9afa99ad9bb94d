/* Balanced sets, as the broker makes, changes and removes them (core/balance.py). */

#define _GNU_SOURCE

#include "base/base.h"
#include "catalog/catalog.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

typedef struct wanted_set {
    const int64_t *members;
    int64_t count, eligible;
    const void *selectors;
    int64_t length;
} wanted_set;

/* In a page of its own.  What is left of a former one stays: its version goes on, for who reads it
 * still. */
static int64_t made(sb_connection *connection, const wanted_set *wanted)
{
    void *catalog = connection->catalog.memory;
    int64_t row = sb_row_free(catalog, L_BALANCES);
    if (row < 0)
        return fail(row, "vhost '%s' has %d balanced queues, and can have no more",
                    connection->vhost, (int)L_BALANCE_ROWS);
    int64_t entry = sb_catalog_entry_at(L_BALANCES, row);
    if (sb_system_allocate(connection->catalog.file, entry, L_BALANCE_ENTRY_BYTES) != SB_OK)
        return fail_system("memory for the catalog of vhost '%s'", connection->vhost);
    return sb_balance_put(catalog, row, wanted->members, wanted->count, wanted->eligible,
                          wanted->selectors, wanted->length);
}

static void removed(sb_connection *connection, int64_t set)
{
    void *catalog = connection->catalog.memory;
    if (sb_row_of(catalog, L_BALANCES, set) >= 0)
        sb_row_remove(catalog, L_BALANCES, set & L_REFERENCE_INDEX_MASK);
}

static int64_t balanced(sb_queue *queue, const wanted_set *wanted)
{
    sb_connection *connection = queue->connection;
    void *catalog = connection->catalog.memory, *ring = queue->ring.memory;
    int64_t set = sb_balance_of(ring);
    if (set && sb_row_of(catalog, L_BALANCES, set) < 0)
        set = 0; /* of a broker that is gone */
    if (wanted->count == 0) {
        sb_balance_tell(ring, 0); /* first: who sees it removed sees that, too */
        removed(connection, set);
        return 0;
    }
    if (set) {
        int64_t code = sb_balance_change(catalog, set, wanted->members, wanted->count,
                                         wanted->eligible, wanted->selectors, wanted->length);
        return code == SB_OK ? set : code;
    }
    set = made(connection, wanted);
    if (set >= 0)
        sb_balance_tell(ring, set);
    return set;
}

int64_t sb_queue_balance(sb_queue *queue, const int64_t *members, int64_t count, int64_t eligible,
                         const void *selectors, int64_t length)
{
    const wanted_set wanted = {members, count, eligible, selectors, length};
    int64_t code = change_begin(queue->connection, NULL, NULL);
    if (code != SB_OK)
        return code;
    if (queue_look(queue, &code)) {
        code = balanced(queue, &wanted);
        queue_looked(queue);
    }
    connection_unlock(queue->connection);
    return code;
}

int64_t sb_balances_forget(sb_connection *connection, int64_t set)
{
    void *catalog = connection->catalog.memory;
    int64_t code = change_begin(connection, NULL, NULL);
    if (code != SB_OK)
        return code;
    if (set)
        removed(connection, set);
    for (int64_t row = 0; !set && (row = sb_row_next(catalog, L_BALANCES, row)) >= 0; row++)
        sb_row_remove(catalog, L_BALANCES, row);
    connection_unlock(connection);
    return SB_OK;
}
