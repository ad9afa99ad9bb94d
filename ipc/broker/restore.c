/* Restoring a vhost from its journal, after the machine was started anew: the journal is read once,
 * and applied batch by batch (journaler.py, applier.c).  Then all queues get their rows, exchanges
 * and bindings follow, and the vhost is there for others.  What was applied frame by frame gets its
 * names here, too. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    if (is_closed_ring(queue) || !sb_port_restore_has_holes(&queue->port, queue->holes_below))
        return SB_OK;
    queue->has_chunks = true;
    int64_t chunk = sb_port_loan_once(&queue->port, &empty, NULL, none);
    return chunk < 0 ? chunk : sb_port_restore_duplicates(&queue->port, chunk);
}

/* Tell a schedule and its queue of each other.  A schedule without its queue went with it. */
static int64_t schedule_linked(sb_applier *all, restored *schedule)
{
    restored *queue = *applier_place(all, schedule->of);
    schedule->gone |= !queue || queue->gone || queue->is_schedule;
    if (schedule->gone)
        return SB_OK;
    if (word_load(queue->ring.memory, L_RING_SCHEDULE_AT))
        return fail(SB_JOURNAL_DAMAGED, "queue '%s' has two schedules in the journal", queue->name);
    int64_t reference = row_next_reference(all->connection, queue->row);
    word_store(queue->ring.memory, L_RING_SCHEDULE_AT,
               row_next_reference(all->connection, schedule->row));
    schedule_restored(&schedule->ring, reference, schedule->last_id);
    beside_name(schedule->name, L_QUEUE_SCHEDULE, reference);
    return SB_OK;
}

static int64_t schedules_linked(sb_applier *all)
{
    int64_t code = SB_OK;
    for (int hash = 0; hash < HASHES; hash++)
        for (restored *each = all->queues[hash]; each && code == SB_OK; each = each->next)
            if (each->is_schedule && !each->gone)
                code = schedule_linked(all, each);
    return code;
}

static int64_t open_again(const sb_applier *all, restored *queue)
{
    char path[NAME_ROOM];
    applier_path(all, queue, path);
    return trusted_segment(path, O_RDWR, &all->connection->whose, &queue->ring.file);
}

static int64_t put(sb_applier *all, restored *queue)
{
    bool follows = word_load(queue->ring.memory, L_SETTING_REPLICA_AT);
    bool last_value = word_load(queue->ring.memory, L_SETTING_LAST_VALUE_AT) && !follows;
    sb_port_restore_end(&queue->port);
    if (follows)
        sb_port_replica_restored(&queue->port);
    /* their chains are in no journal, and perhaps not yet what was replaced */
    int64_t code = last_value ? sb_port_latest_repair(&queue->port) : SB_OK;
    sb_expiry_unknown(queue->ring.memory); /* what was noted went with the rings of before */
    all->messages += all->counts ? sb_port_restore_count(&queue->port) : 0;
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
    return code < 0 ? code : SB_OK;
}

/* A binding or an alternate may need what comes behind it: again, until nothing more can be
 * done. */
static int64_t catalog_restored(sb_applier *all)
{
    for (bool progress = true; progress && all->bodies;) {
        catalog_body **at = &all->bodies;
        progress = false;
        while (*at) {
            int64_t code = catalog_declare(all->connection, (*at)->bytes, (*at)->length);
            if (code != SB_OK && code != SB_NOT_FOUND)
                return code;
            if (code == SB_NOT_FOUND) {
                at = &(*at)->next;
                continue;
            }
            catalog_body *done = *at;
            *at = done->next;
            free(done);
            progress = true;
        }
    }
    return SB_OK; /* what is left leads to what is no more */
}

/* An inbox knows its queue by its reference, which is another one now. */
static void inbox_joined(sb_applier *all, restored *inbox)
{
    sb_connection *connection = all->connection;
    restored *queue = *applier_place(all, inbox->head.identity[0] & INT64_MAX);
    inbox->gone = !queue || queue->gone;
    if (!inbox->gone)
        inbox_restored(inbox->ring.memory, row_next_reference(connection, inbox->row), inbox->name,
                       queue->ring.memory, row_next_reference(connection, queue->row));
}

static int64_t queues_put(sb_applier *all)
{
    int64_t code = SB_OK;
    for (int hash = 0; hash < HASHES; hash++)
        for (restored *each = all->queues[hash]; each; each = each->next)
            if (!each->gone && each->head.flags & L_QUEUE_INBOX)
                inbox_joined(all, each);
    applier_forget_gone(all);
    for (int hash = 0; hash < HASHES; hash++)
        for (restored *each = all->queues[hash]; each && code == SB_OK; each = each->next)
            code = put(all, each);
    return code;
}

static int64_t queues_named(sb_applier *all)
{
    int64_t code = schedules_linked(all);
    return code == SB_OK ? queues_put(all) : code;
}

/* Everything is there: now others may come. */
static int64_t made_visible(sb_applier *all)
{
    int64_t code = catalog_restored(all);
    if (code != SB_OK)
        return code;
    word_store(all->connection->catalog.memory, L_CATALOG_RESTORING_AT, 0);
    code = unpublished_commit(all);
    return code;
}

int64_t sb_applier_finish(sb_applier *all, int64_t takes_over)
{
    if (all->failed)
        return fail(all->failed, "%s", all->why);
    int64_t code = connection_lock(all->connection);
    if (code != SB_OK)
        return code;
    code = all->journal ? journal_sync(all->journal) : SB_OK;
    if (code == SB_OK && takes_over)
        code = applier_takes_over(all);
    if (code == SB_OK)
        code = queues_named(all);
    connection_unlock(all->connection);
    if (code == SB_OK)
        code = made_visible(all);
    all->failed = SB_CLOSED;
    snprintf(all->why, sizeof all->why, "the vhost has its names, and nothing more is applied");
    return code;
}

/* Rows are given out as they come: nobody else may declare anything before all have theirs. */
int64_t sb_restoring(sb_connection *connection, sb_applier **made)
{
    int64_t code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    code = applier_make(connection, made);
    if (code == SB_OK)
        (*made)->restores = (*made)->counts = true;
    else
        connection_unlock(connection);
    return code;
}

void applier_unlock(sb_applier *all)
{
    if (all->restores)
        connection_unlock(all->connection);
    all->restores = false;
}

int64_t sb_restored(sb_applier *all)
{
    int64_t code = queues_named(all);
    applier_unlock(all);
    if (code == SB_OK)
        code = made_visible(all);
    return code == SB_OK ? all->messages : code;
}
