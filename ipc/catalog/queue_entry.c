/* The entry of a queue in the catalog, and its ring: made, filled, named. */

#define _GNU_SOURCE
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "vhost/vhost.h"

/* A row for a new queue.  Blocks name their queue by its row only, so a row whose former queue is
 * still in somebody's hands is left alone. */
static int64_t free_row(sb_connection *connection)
{
    void *catalog = connection->catalog.memory;
    for (int64_t row = sb_row_free(catalog, L_QUEUES); row >= 0 && row < L_QUEUE_ROWS; row++)
        if (row_is_deserted(connection, row))
            return row;
    return fail(SB_TABLE_FULL, "vhost '%s' has %d queues, and can have no more: delete some",
                connection->vhost, (int)L_QUEUE_ROWS);
}

/* The gate of the journal, or of the pager, is there from the beginning, in nobody's hand: nothing
 * is taken, or dropped, before the broker has adopted it and moved it. */
void ring_add_gate(void *ring, int64_t kind, int64_t position)
{
    int64_t gate = word_load(ring, L_RING_GATES_HIGH_AT);
    int64_t at = L_RING_GATES_AT + gate * L_GATE_BYTES;
    word_store(ring, at + L_GATE_KIND_AT, kind);
    word_store(ring, at,
               L_GATE_ACTIVE | (int64_t)L_GATE_LASTING << L_GATE_LIFE_SHIFT | position);
    word_store(ring, L_RING_GATES_HIGH_AT, gate + 1);
}

/* Its messages are confirmed when this gate, the journal's, has passed them. */
static void ring_begin_barrier(void *ring, int64_t gate)
{
    word_store(ring, L_RING_BARRIER_SET_AT, INT64_C(1) << gate);
    word_store(ring, L_RING_JOURNAL_GATE_AT, 1 + gate);
}

int64_t ring_begin(sb_connection *connection, segment *ring, int64_t row, int64_t slots,
                   const char *settings)
{
    int64_t ids = word_load(settings, L_SETTING_DUPLICATE_IDS_AT);
    /* duplicates.c and stream.c commit the rest */
    int64_t code = segment_make(ring, connection->home, sb_ring_bytes_all(slots, ids, L_ORIGINS),
                                sb_ring_bytes(slots));
    if (code != SB_OK)
        return code;
    bool is_inbox = word_load(settings, L_SETTING_INBOX_OF_AT); /* nobody takes from it */
    bool is_replica = word_load(settings, L_SETTING_REPLICA_AT);
    sb_ring_format(ring->memory, slots, row,
                   is_inbox ? L_RING_BROADCAST : is_replica ? L_RING_REPLICA : 0,
                   word_load(connection->catalog.memory, L_CATALOG_ARENA_AT));
    word_store(ring->memory, L_RING_IDS_AT, ids);
    word_store(ring->memory, L_RING_ORIGINS_AT, L_ORIGINS);
    word_store(ring->memory, L_RING_USED_AT, sb_system_clock());
    memcpy((char *)ring->memory + L_RING_SETTINGS_AT, settings + L_RING_SETTINGS_AT,
           (size_t)(L_RING_GATES_AT - L_RING_SETTINGS_AT));
    word_store(ring->memory, L_RING_MODE_AT, settings_mode(settings));
    bool is_durable = word_load(settings, L_SETTING_DURABLE_AT);
    if (is_durable)
        ring_add_gate(ring->memory, L_GATE_JOURNAL, 0);
    if (is_durable)
        ring_begin_barrier(ring->memory, 0);
    if (is_inbox)
        ring_add_gate(ring->memory, L_GATE_PAGER, 0);
    return SB_OK;
}

int64_t ring_name(sb_connection *connection, const segment *ring, int64_t reference)
{
    char path[NAME_ROOM];
    queue_path(path, connection->home, reference);
    unlink(path); /* left by one who died before the catalog knew of it */
    return segment_name(ring, path);
}

/* The ring of a replica is closed before others can find it (core/replica.py). */
static int64_t ring_replicates(sb_connection *connection, const segment *ring, const char *settings)
{
    sb_port port;
    int64_t begins = word_load(settings, L_SETTING_REPLICA_AT);
    if (!begins)
        return SB_OK;
    int64_t code = sb_port_open(&port, ring->memory, ring->bytes, connection->arena.memory,
                                connection->arena.bytes, connection->id);
    return code == SB_OK ? sb_port_replica_begin(&port, begins - 1) : code;
}

static int64_t entry_begin(sb_connection *connection, int64_t row)
{
    void *catalog = connection->catalog.memory;
    int64_t entry = sb_catalog_entry_at(L_QUEUES, row);
    int64_t code = sb_system_allocate(connection->catalog.file, entry, L_ENTRY_BYTES);
    if (code != SB_OK)
        return fail_system("memory for the catalog of vhost '%s'", connection->vhost);
    memset((char *)catalog + entry, 0, L_ENTRY_BYTES);
    return entry;
}

int64_t queue_put(sb_connection *connection, int64_t row, const char *name,
                  const declaration_head *declared)
{
    int64_t code = entry_begin(connection, row);
    if (code < 0)
        return code;
    return sb_queue_put(connection->catalog.memory, row, name, (int64_t)strlen(name),
                        declared->slots, declared->flags, declared->created, declared->identity[0],
                        declared->identity[1]);
}

/* `replaced`: a queue that goes when all is there for the new one; below 0: none. */
static int64_t add(sb_connection *connection, const char *name, int64_t slots,
                   const char *settings, int64_t flags, int64_t replaced)
{
    void *catalog = connection->catalog.memory;
    segment ring;
    int64_t identity[2];
    int64_t row = free_row(connection);
    if (row < 0)
        return row;
    int64_t entry = entry_begin(connection, row);
    if (entry < 0)
        return entry;
    int64_t code = ring_begin(connection, &ring, row, slots, settings);
    if (code != SB_OK)
        return code;
    word_store(ring.memory, L_SETTING_REPLICATE_AT,
               settings_replicate(connection, settings, flags));
    code = ring_replicates(connection, &ring, settings);
    if (code == SB_OK)
        code = ring_name(connection, &ring, row_next_reference(connection, row));
    segment_detach(&ring);
    if (code != SB_OK)
        return code;
    if (getrandom(identity, sizeof identity, 0) != sizeof identity)
        return fail_system("random numbers");
    if (flags & L_QUEUE_INBOX)
        identity[0] = inbox_identity(connection, settings);
    if (word_load(settings, L_SETTING_AUTO_DELETE_AT))
        flags |= L_QUEUE_AUTO_DELETE;
    if (word_load(settings, L_SETTING_SLOW_CONSUMER_THRESHOLD_AT))
        flags |= L_QUEUE_SLOW;
    if (word_load(settings, L_SETTING_DURABLE_AT))
        flags |= L_QUEUE_DURABLE;
    /* who closes deals with what it owns under this lock, after it has set `closed` */
    if (ownership_begins_with(flags) && usable_code(connection) != SB_OK)
        return usable_code(connection);
    if (ownership_begins_with(flags))
        ownership_give(connection, entry, connection->id);
    if (replaced >= 0)
        queue_remove(connection, replaced);
    code = sb_queue_put(catalog, row, name, (int64_t)strlen(name), slots, flags, realtime_ns(),
                        identity[0], identity[1]);
    if (flags & L_QUEUE_DURABLE)
        sb_follower_rouse(connection, L_FOLLOWER_JOURNALER);
    followers_rouse(connection);
    return code;
}

int64_t queue_add(sb_connection *connection, const char *name, int64_t slots, const char *settings,
                  int64_t flags)
{
    return add(connection, name, slots, settings, flags, SB_NOT_FOUND);
}

int64_t queue_replace(sb_connection *connection, int64_t replaced, const char *name, int64_t slots,
                      const char *settings)
{
    return add(connection, name, slots, settings, 0, replaced);
}

int64_t reference_of(sb_connection *connection, const char *name)
{
    return sb_reference_find(connection->catalog.memory, L_QUEUES, name, (int64_t)strlen(name));
}
