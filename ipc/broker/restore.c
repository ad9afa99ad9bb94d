/* What becomes of the rings that an applier has filled: a schedule and an inbox are told whose they
 * are, then all get their rows, and the vhost is there for others.  What is done in which order,
 * and with all that is no queue, is Python's (restoring.py). */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "broker/applier.h"
#include "journal/journal.h"
#include "paging/paging.h"
#include "schedule/schedule.h"
#include "vhost/vhost.h"

/* It follows a queue of another broker, or has: what never came there is known as such. */
static bool is_closed_ring(const restored *queue)
{
    return word_load(queue->ring.memory, L_RING_FLAGS_AT) & L_RING_REPLICA;
}

/* Second copies were in the ring, and are not in the journal. */
static int64_t duplicates_restored(restored *queue)
{
    const int64_t none[2] = {0, 0};
    const sb_outgoing empty = {0};
    if (is_closed_ring(queue) || !sb_port_restore_has_holes(&queue->port, queue->how.holes_below))
        return SB_OK;
    queue->has_chunks = true;
    int64_t chunk = sb_port_loan_once(&queue->port, &empty, NULL, none);
    return chunk < 0 ? chunk : sb_port_restore_duplicates(&queue->port, chunk);
}

static int64_t open_again(const sb_applier *all, restored *queue)
{
    char path[NAME_ROOM];
    applier_path(all, queue, path);
    return trusted_segment(path, O_RDWR, &all->connection->whose, &queue->ring.file);
}

static int64_t put(sb_applier *all, restored *queue, bool counts)
{
    bool follows = word_load(queue->ring.memory, L_SETTING_REPLICA_AT);
    bool last_value = word_load(queue->ring.memory, L_SETTING_LAST_VALUE_AT) && !follows;
    sb_port_restore_end(&queue->port);
    if (follows)
        sb_port_replica_restored(&queue->port);
    /* their chains are in no journal, and perhaps not yet what was replaced */
    int64_t code = last_value ? sb_port_latest_repair(&queue->port) : SB_OK;
    sb_expiry_unknown(queue->ring.memory); /* what was noted went with the rings of before */
    int64_t messages = counts ? sb_port_restore_count(&queue->port) : 0;
    code = code < 0 ? code : duplicates_restored(queue);
    if (code >= SB_OK && dedup_read_is_any(&queue->once))
        code = open_again(all, queue);
    if (code >= SB_OK)
        code = dedup_read_restore(&queue->once, &queue->port, &queue->ring);
    if (code != SB_OK)
        return code;
    sb_port_close(&queue->port);
    queue->is_closed = true;
    if (queue->ring.file >= 0)
        close(queue->ring.file);
    queue->ring.file = -1; /* its memory goes later: a takeover waits, and a full ring is large */
    code = queue_put(all->connection, queue->row, queue->name, &queue->head);
    queue->is_there = code >= 0;
    return code < 0 ? code : messages;
}

int64_t sb_applier_put(sb_applier *all, int64_t counts)
{
    int64_t code = SB_OK, messages = 0;
    all->failed = SB_CLOSED;
    snprintf(all->why, sizeof all->why, "the vhost has its names, and nothing more is applied");
    applier_forget_gone(all);
    for (int hash = 0; hash < HASHES; hash++)
        for (restored *each = all->queues[hash]; each && code >= 0; each = each->next) {
            code = put(all, each, counts);
            messages += code;
        }
    return code < 0 ? code : messages;
}

/* --- what Python decides ---------------------------------------------------------------------- */

int64_t sb_applier_lock(sb_applier *all)
{
    if (all->failed)
        return fail(all->failed, "%s", all->why);
    int64_t code = all->is_locked ? SB_OK : connection_lock(all->connection);
    if (code != SB_OK)
        return code;
    all->is_locked = true;
    return all->journal ? journal_sync(all->journal) : SB_OK;
}

void sb_applier_unlock(sb_applier *all)
{
    if (all->is_locked)
        connection_unlock(all->connection);
    all->is_locked = false;
}

int64_t sb_applier_queues(const sb_applier *all, sb_restored *told, int64_t room)
{
    int64_t count = 0;
    for (int hash = 0; hash < HASHES; hash++)
        for (const restored *each = all->queues[hash]; each; each = each->next, count++)
            if (count < room)
                told[count] = (sb_restored){
                    .number = each->number, .flags = each->head.flags, .slots = each->head.slots,
                    .created = each->head.created, .ring = each->ring.memory, .name = each->name,
                    .of = each->how.is_schedule ? each->of : each->head.identity[0] & INT64_MAX,
                    .replicate = word_load(each->ring.memory, L_SETTING_REPLICATE_AT),
                };
    return count;
}

void sb_applier_beside(sb_applier *all, int64_t number, int64_t of)
{
    restored *beside = *applier_place(all, number), *queue = *applier_place(all, of);
    void *ring = queue->ring.memory;
    int64_t reference = row_next_reference(all->connection, queue->row);
    int64_t own = row_next_reference(all->connection, beside->row);
    if (!beside->how.is_schedule) { /* an inbox knows its queue by its reference, another one now */
        inbox_restored(beside->ring.memory, own, beside->name, ring, reference);
        return;
    }
    word_store(ring, L_RING_SCHEDULE_AT, own);
    schedule_restored(&beside->ring, reference, beside->how.last_id);
    beside_name(beside->name, L_QUEUE_SCHEDULE, reference);
}

void sb_applier_forget(sb_applier *all, int64_t number)
{
    applier_forget(all, applier_place(all, number));
}

void sb_applier_show(sb_applier *all)
{
    word_store(all->connection->catalog.memory, L_CATALOG_RESTORING_AT, 0);
}
