/* Appending what a journal has to rings that nobody else uses yet: of a vhost that is restored, or
 * of a replica, which goes on with frames as they come (applier.h).
 *
 * Each ring is filled before the catalog knows of it, at the positions that its messages had
 * (core/restore.py), so that nobody meets one that is half full.  Every message counts as delivered
 * before: the journal does not know.
 *
 * A journal has more queues than there are: such as were deleted later.  Where it says so, their
 * rings, rows and memory are given back, so that it takes what is there, and not what ever was.  No
 * file stays open: a ring has its name in the file system from the beginning, and is opened again
 * if need be.
 *
 * Nothing is decided here: what is retired, replaced or moved comes as records (copied.c has frames
 * of another journal, as they come).
 *
 * Expiry is in monotonic time of the former boot; each declaration has a moment by both clocks.
 *
 * The schedule of a queue is a queue of its own here too, until all is named: then it is told which
 * row its queue has.  What is in it was not delivered, and says itself at what time of day it is
 * due. */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "broker/applier.h"
#include "journal/format.h"
#include "journal/journal.h"
#include "schedule/schedule.h"
#include "vhost/vhost.h"

restored **applier_place(sb_applier *all, int64_t number)
{
    restored **at = &all->queues[(uint64_t)number % HASHES];
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

/* --- what is gone ----------------------------------------------------------------------------- */

/* Free the memory of messages of queues that are gone: all at once, for it takes a look at the
 * whole arena. */
static void marked_drop(sb_applier *all)
{
    blocks_drop_marked(all->connection, all->marks);
    while (all->marked_count > 0) {
        int32_t row = all->marked[--all->marked_count];
        all->marks[row / 64] &= ~(INT64_C(1) << row % 64);
        all->spare[all->spare_count++] = row;
    }
}

static void row_give_back(sb_applier *all, const restored *queue)
{
    if (!queue->has_chunks) {
        all->spare[all->spare_count++] = (int32_t)queue->row;
        return;
    }
    all->marks[queue->row / 64] |= (int64_t)(UINT64_C(1) << queue->row % 64);
    all->marked[all->marked_count++] = (int32_t)queue->row;
}

static int64_t row_take(sb_applier *all)
{
    if (all->spare_count == 0 && all->rows == L_QUEUE_ROWS && all->marked_count > 0)
        marked_drop(all);
    if (all->spare_count > 0)
        return all->spare[--all->spare_count];
    return all->rows < L_QUEUE_ROWS
               ? all->rows++
               : fail(SB_TABLE_FULL, "the journal has more than %d queues", (int)L_QUEUE_ROWS);
}

void applier_path(const sb_applier *all, const restored *queue, char *path)
{
    queue_path(path, all->connection->home, row_next_reference(all->connection, queue->row));
}

static void restored_free(sb_applier *all, restored *freed)
{
    char path[NAME_ROOM];
    if (freed->ring.memory && !freed->is_closed)
        sb_port_close(&freed->port);
    if (!freed->is_there) {
        applier_path(all, freed, path);
        unlink(path);
        row_give_back(all, freed);
    }
    dedup_read_end(&freed->once);
    segment_detach(&freed->ring);
    free(freed);
}

void applier_forget(sb_applier *all, restored **at)
{
    restored *gone = *at;
    *at = gone->next;
    restored_free(all, gone);
}

/* These queues are there, and no others: what is declared later follows. */
static int64_t queues_listed(sb_applier *all, const sb_journal_record *record)
{
    const char *body = record->body;
    if (record->length % 8)
        return fail(SB_JOURNAL_DAMAGED,
                    "segment %llx, byte %lld: a list of queues contradicts itself",
                    (long long)record->serial, (long long)record->offset);
    all->lists++;
    for (int64_t at = 0; at < record->length; at += 8) {
        restored *queue = *applier_place(all, word_load(body, at));
        if (queue)
            queue->listed = all->lists;
    }
    for (int hash = 0; hash < HASHES; hash++)
        for (restored **at = &all->queues[hash]; *at;)
            if ((*at)->listed != all->lists)
                applier_forget(all, at);
            else
                at = &(*at)->next;
    return SB_UNDECIDED;
}

/* --- records ---------------------------------------------------------------------------------- */

static void id_given(restored *queue, int64_t id)
{
    queue->how.last_id = id > queue->how.last_id ? id : queue->how.last_id;
}

/* Its ring, under its name and mapped; or nothing of it. */
static int64_t ring_made(sb_applier *all, restored *made, const char *page)
{
    sb_connection *connection = all->connection;
    segment *ring = &made->ring;
    int64_t code = ring_begin(connection, ring, made->row, made->head.slots, page);
    if (code == SB_OK)
        code = ring_name(connection, ring, row_next_reference(connection, made->row));
    if (code != SB_OK) {
        segment_detach(ring);
        return code;
    }
    close(ring->file); /* a file for each queue is more than a process may have */
    ring->file = -1;
    code = sb_port_open(&made->port, ring->memory, ring->bytes, connection->arena.memory,
                        connection->arena.bytes, connection->id);
    if (code != SB_OK) {
        char path[NAME_ROOM];
        applier_path(all, made, path);
        unlink(path);
        segment_detach(ring);
    }
    return code;
}

/* An inbox knows its queue by its number.  What a member has written itself as live it reads again,
 * and has the pages; of another one it has not. */
static int64_t pages(sb_applier *all, const declaration_head *inbox)
{
    const restored *of = *applier_place(all, inbox->identity[0] & INT64_MAX);
    return fail(SB_INVALID, "queue '%s' pages, and pages are not replicated: the replica would not "
                "have what is in them", of ? of->name : "");
}

/* To be added to its expiries, which are in monotonic time of when it was written. */
static int64_t later_by(const declaration_head *head)
{
    return head->realtime - head->monotonic - realtime_ns() + sb_system_clock();
}

/* It does not follow a queue of another broker any more. */
static void detached(restored *queue)
{
    int64_t mode = word_load(queue->ring.memory, L_RING_MODE_AT);
    word_store(queue->ring.memory, L_SETTING_REPLICA_AT, 0);
    word_store(queue->ring.memory, L_RING_MODE_AT, mode & ~(int64_t)L_MODE_REPLICA);
}

static int64_t declare(sb_applier *all, int64_t number, const declaration_head *head,
                       const char *name, const char *page, int64_t position)
{
    sb_connection *connection = all->connection;
    restored **at = applier_place(all, number), *made = NULL;
    if (posix_memalign((void **)&made, 128, sizeof *made) != 0)
        return fail_system("memory for queue '%s'", name);
    memset(made, 0, sizeof *made);
    made->head = *head;
    made->number = number;
    made->how.later = later_by(head);
    made->how.is_schedule = (head->flags & L_QUEUE_SCHEDULE) != 0;
    made->of = word_load(page, L_SETTING_SCHEDULE_OF_AT);
    id_given(made, word_load(page, L_SETTING_SCHEDULED_AT));
    strcpy(made->name, name);
    made->ring.file = -1;
    int64_t code = made->row = row_take(all);
    if (code >= 0)
        code = ring_made(all, made, page);
    if (code != SB_OK) {
        free(made);
        return code;
    }
    made->port.file = connection->arena.file;
    word_store(made->ring.memory, L_RING_GATES_HIGH_AT, 1); /* another one is not in our way */
    dedup_read_begin(&made->once, word_load(made->ring.memory, L_RING_IDS_AT),
                       word_load(made->ring.memory, L_SETTING_WHEN_FULL_AT) == L_PAGE);
    sb_port_restore_begin(&made->port, position);
    *at = made;
    return SB_OK;
}

static int64_t declared(sb_applier *all, const sb_journal_record *record)
{
    char page[L_RING_GATES_AT], name[L_NAME_BYTES_MAX + 1];
    declaration_head head;
    restored **at = applier_place(all, record->queue);
    int64_t code = declaration_read(record->body, record->length, &head, name, page);
    if (code != SB_OK)
        return fail(code, "segment %llx, byte %lld: a queue's declaration contradicts itself",
                    (long long)record->serial, (long long)record->offset);
    if (all->is_replica && !all->reads && head.flags & L_QUEUE_INBOX &&
        replicate_is_all(word_load(page, L_SETTING_REPLICATE_AT)))
        return pages(all, &head);
    if (*at) {
        (*at)->how.later = later_by(&head);
        if (!word_load(page, L_SETTING_REPLICA_AT))
            detached(*at);
        id_given(*at, word_load(page, L_SETTING_SCHEDULED_AT));
        return sb_port_restore_head(&(*at)->port, record->position);
    }
    return declare(all, record->queue, &head, name, page, record->position);
}

int64_t sb_applier_declare(sb_applier *all, int64_t number, const void *body, int64_t length)
{
    return declared(all, &(sb_journal_record){.queue = number, .body = body, .length = length});
}

static int64_t no_slot(const restored *queue, const sb_journal_record *record)
{
    return fail(SB_JOURNAL_DAMAGED,
                "segment %llx, byte %lld: message %lld of queue '%s' does not fit "
                "into its %lld slots",
                (long long)record->serial, (long long)record->offset, (long long)record->position,
                queue->name, (long long)queue->head.slots);
}

/* Of what the time of day may have become since. */
static sb_appending *how(restored *queue)
{
    if (queue->how.is_schedule)
        queue->how.ahead = realtime_ns() - sb_system_clock();
    return &queue->how;
}

int64_t applier_chunk(restored *queue, sb_port *port, const void *body, int64_t length)
{
    return sb_port_append_chunk(port, body, length, how(queue));
}

static int64_t append(restored *queue, const sb_journal_record *record)
{
    return sb_port_append_message(&queue->port, record->position, record->body, record->length,
                                  how(queue));
}

static bool has_place(int64_t code)
{
    return code >= 0 || code == SB_DUPLICATE;
}

static int64_t message_restored(sb_applier *all, restored *queue, const sb_journal_record *record)
{
    queue->has_chunks = true;
    int64_t code = append(queue, record);
    if (!has_place(code) && code != SB_JOURNAL_DAMAGED && code != SB_FULL &&
        all->marked_count > 0) {
        marked_drop(all); /* there was room when it was published */
        code = append(queue, record);
    }
    if (has_place(code))
        return dedup_read_note(&queue->once, &queue->port, record->position, record->body);
    if (code == SB_FULL)
        return no_slot(queue, record);
    if (code == SB_JOURNAL_DAMAGED)
        return fail(code, "segment %llx, byte %lld: message %lld of queue '%s' contradicts itself",
                    (long long)record->serial, (long long)record->offset,
                    (long long)record->position, queue->name);
    return fail(code, "restoring message %lld of queue '%s': %s", (long long)record->position,
                queue->name, sb_strerror(code));
}

static int64_t retired(restored *queue, const sb_journal_record *record)
{
    int64_t code = sb_port_append_retired(&queue->port, record->position, record->body,
                                          record->length, &queue->how);
    return code == SB_OK ? code : no_slot(queue, record);
}

void applier_reached(sb_applier *all, const sb_place *place)
{
    all->number = place->number;
    all->chain = place->chain;
    all->epoch = place->epoch;
    all->seal = place->seal;
}

/* Of its own journal: the frame is that one of the original. */
static int64_t place_read(sb_applier *all, const sb_journal_record *record)
{
    sb_place place;
    if (record->length != sizeof place)
        return fail(SB_JOURNAL_DAMAGED, "segment %llx, byte %lld: no place of a frame",
                    (long long)record->serial, (long long)record->offset);
    memcpy(&place, record->body, sizeof place);
    applier_reached(all, &place);
    return SB_OK;
}

int64_t applier_record(sb_applier *all, const sb_journal_record *record)
{
    if (record->kind == SB_RECORD_MESSAGE) { /* most of them are */
        restored *of = *applier_place(all, record->queue);
        return of ? message_restored(all, of, record) : SB_OK;
    }
    if (record->kind == SB_RECORD_QUEUE)
        return declared(all, record);
    if (record->kind == SB_RECORD_QUEUES)
        return queues_listed(all, record);
    if (record->kind == SB_RECORD_CATALOG || record->kind == SB_RECORD_UNPLACED ||
        record->kind == SB_RECORD_STANDING)
        return SB_UNDECIDED;
    if (record->kind == SB_RECORD_COPIED && all->reads)
        return place_read(all, record);
    /* a list of ids goes by its queue's number with the sign bit */
    restored **at = applier_place(all, record->queue & INT64_MAX), *queue = *at;
    if (!queue)
        return SB_OK; /* a queue that was deleted; what it had is not needed */
    if (record->kind == SB_RECORD_RETIRED)
        return retired(queue, record);
    if (record->kind == SB_RECORD_IDS)
        return dedup_read_ids(&queue->once, record);
    if (record->kind == SB_RECORD_PRODUCERS)
        return dedup_read_producers(&queue->port, record);
    if (record->kind == SB_RECORD_ORIGINS)
        return origin_read_record(&queue->once.origins, record);
    if (record->kind == SB_RECORD_QUEUE_GONE)
        applier_forget(all, at);
    return SB_OK;
}

void applier_forget_gone(sb_applier *all)
{
    if (all->marked_count > 0) /* a takeover waits, and a full arena is large */
        marked_drop(all);
}

/* --- beginning and end ------------------------------------------------------------------------ */

static int64_t make(sb_connection *connection, sb_applier **made)
{
    int64_t code = change_code(connection);
    if (code != SB_OK)
        return code;
    if (sb_row_next(connection->catalog.memory, L_QUEUES, 0) >= 0)
        return fail(SB_EXISTS, "vhost '%s' has queues already: only a new one can be restored",
                    connection->vhost);
    sb_applier *all = calloc(1, sizeof *all);
    if (!all)
        return fail_system("memory for restoring");
    all->connection = connection;
    all->event = -1;
    *made = all;
    return SB_OK;
}

int64_t sb_applier_open(sb_connection *connection, sb_journal *journal, int64_t number,
                        sb_applier **made)
{
    if (!connection->restores)
        return fail(SB_INVALID, "vhost '%s' is there for others: frames are applied to one that is "
                    "being restored", connection->vhost);
    int64_t code = make(connection, made);
    if (code != SB_OK)
        return code;
    (*made)->number = number;
    if (journal)
        applier_journals(*made, journal);
    return SB_OK;
}

int64_t sb_applier_open_alone(sb_connection *connection, sb_applier **made)
{
    int64_t code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    code = make(connection, made);
    if (code == SB_OK)
        (*made)->is_locked = true;
    else
        connection_unlock(connection);
    return code;
}

void applier_failed(sb_applier *all, int64_t code)
{
    snprintf(all->why, sizeof all->why, "%s", sb_detail(code));
    all->failed = code;
}

void sb_applier_close(sb_applier *all)
{
    sb_applier_unlock(all);
    for (int hash = 0; hash < HASHES; hash++)
        while (all->queues[hash])
            applier_forget(all, &all->queues[hash]);
    free(all);
}
