/* The repair of the catalog after its lock's holder died.
 *
 * The one store that makes a row live, or not, is the change; what a deleted queue or exchange had
 * besides its row is removed afterwards, and what a new one needs is made before.  A death in
 * between leaves segments, blocks and bindings that no row accounts for.  The next who gets the
 * lock finds the mark of the dead one in the catalog, and removes them. */

#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "repair/repair.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

/* Segments of this kind, of queues that were deleted or never came to be. */
static void repair_segments(sb_connection *connection, const char *kind)
{
    char path[NAME_ROOM];
    size_t length = strlen(kind);
    DIR *directory = home_open(connection->home);
    const char *each;
    while ((each = home_next(connection->home, directory))) {
        long long row, generation;
        if (strncmp(each, kind, length) != 0 ||
            sscanf(each + length, "-%lld-%lld", &row, &generation) != 2 || row < 0 ||
            row >= L_QUEUE_ROWS || generation < 0 || generation > L_ROW_GENERATION_MASK)
            continue;
        int64_t reference = (int64_t)generation << L_REFERENCE_INDEX_BITS | row;
        if (sb_row_of(connection->catalog.memory, L_QUEUES, reference) >= 0)
            continue;
        vhost_path(path, connection->home, each);
        unlink(path);
    }
    if (directory)
        closedir(directory);
}

/* Bindings of queues and exchanges that were deleted. */
static void repair_bindings(sb_connection *connection)
{
    void *catalog = connection->catalog.memory;
    int64_t row = 0;
    while ((row = sb_row_next(catalog, L_BINDINGS, row)) >= 0) {
        int64_t entry = sb_catalog_entry_at(L_BINDINGS, row);
        int64_t kind = word_load(catalog, entry + L_BINDING_KIND_AT);
        int64_t source = word_load(catalog, entry + L_BINDING_SOURCE_AT);
        int64_t destination = word_load(catalog, entry + L_BINDING_DESTINATION_AT);
        if (sb_row_of(catalog, L_EXCHANGES, source) < 0 ||
            sb_row_of(catalog, kind == L_EXCHANGES ? L_EXCHANGES : L_QUEUES, destination) < 0)
            sb_row_remove(catalog, L_BINDINGS, row);
        row++;
    }
}

/* Blocks of queues that were deleted. */
static void repair_blocks(sb_connection *connection)
{
    int64_t blocks = word_load(connection->arena.memory, L_ARENA_BLOCKS_AT), kept = -1;
    int64_t committed = word_load(connection->arena.memory, L_ARENA_COMMITTED_AT);
    for (int64_t block = 0; block < committed && block < blocks; block++) {
        int64_t word = word_load(connection->arena.memory,
                                 L_ARENA_TABLE_AT + (block << L_BLOCK_ENTRY_SHIFT));
        int64_t row = (word >> L_BLOCK_QUEUE_SHIFT) & L_QUEUE_MASK;
        if (((word >> L_BLOCK_STATE_SHIFT) & L_STATE_MASK) == L_BLOCK_FREE || row == kept)
            continue;
        if (row < L_QUEUE_ROWS && row_is_deserted(connection, row))
            blocks_drop(connection, row);
        else
            kept = row; /* neighbours are mostly of the same queue */
    }
}

void catalog_repair(sb_connection *connection)
{
    patterns_repair(connection);
    beside_repair(connection);
    repair_segments(connection, "queue");
    repair_segments(connection, "latency");
    repair_bindings(connection);
    repair_blocks(connection);
    sb_catalog_changed(connection->catalog.memory);
}
