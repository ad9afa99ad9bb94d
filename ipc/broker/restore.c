/* Restoring a vhost from its journal, after the machine was started anew.
 *
 * The journal is read once.  Each queue's ring is filled before the catalog knows of it, at the
 * positions that its messages had (core/restore.py), so that nobody meets one that is half full;
 * all of them get their rows at the end.  Every message counts as delivered before: the journal
 * does not know.
 *
 * A journal has more queues than there are: such as were deleted later.  Where it says so, their
 * rings, rows and memory are given back, so that a start takes what is there, and not what ever
 * was.  No file stays open: a ring has its name in the file system from the beginning, and is
 * opened again if need be.
 *
 * Expiry is in monotonic time of the former boot; each declaration has a moment by both clocks.
 *
 * The schedule of a queue is a queue of its own here too, until all is read: then it is told which
 * row its queue has.  What is in it was not delivered, and says itself at what time of day it is
 * due. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "broker/broker.h"
#include "catalog/catalog.h"
#include "journal/format.h"
#include "paging/paging.h"
#include "ring/ring.h"
#include "schedule/schedule.h"
#include "vhost/vhost.h"

#define TELL_BYTES (INT64_C(16) << 20)

typedef struct restored {
    struct restored *next; /* of the same hash */
    declaration_head head;
    int64_t number, row;
    int64_t later; /* to be added to an expiry of that boot */
    bool gone, is_schedule;
    bool has_chunks; /* blocks of the arena name its row */
    bool is_there;   /* the catalog has it */
    int64_t listed;  /* the number of the last list of queues that names it */
    /* of a schedule: the number of its queue, and the last id that was given */
    int64_t of, last_id;
    char name[L_NAME_BYTES_MAX + 1];
    segment ring;
    dedup_read once;
    sb_port port;
} restored;

typedef struct catalog_body {
    struct catalog_body *next;
    int64_t length;
    char bytes[];
} catalog_body;

#define HASHES 4096

typedef struct restoration {
    sb_connection *connection;
    restored *queues[HASHES];
    catalog_body *bodies, **last;
    int64_t messages, lists;
    int64_t rows, spare_count, marked_count;
    int32_t spare[L_QUEUE_ROWS];           /* rows of queues that are gone */
    int32_t marked[L_QUEUE_ROWS];          /* the same, but blocks of the arena still name them */
    int64_t marks[(L_QUEUE_MASK + 1) / 64]; /* a bit for each of the latter */
} restoration;

static restored **place_of(restoration *all, int64_t number)
{
    restored **at = &all->queues[(uint64_t)number % HASHES];
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

/* --- what is gone ----------------------------------------------------------------------------- */

/* Free the memory of messages of queues that are gone: all at once, for it takes a look at the
 * whole arena. */
static void marked_drop(restoration *all)
{
    blocks_drop_marked(all->connection, all->marks);
    while (all->marked_count > 0) {
        int32_t row = all->marked[--all->marked_count];
        all->marks[row / 64] &= ~(INT64_C(1) << row % 64);
        all->spare[all->spare_count++] = row;
    }
}

static void row_give_back(restoration *all, const restored *queue)
{
    if (!queue->has_chunks) {
        all->spare[all->spare_count++] = (int32_t)queue->row;
        return;
    }
    all->marks[queue->row / 64] |= (int64_t)(UINT64_C(1) << queue->row % 64);
    all->marked[all->marked_count++] = (int32_t)queue->row;
}

static int64_t row_take(restoration *all)
{
    if (all->spare_count == 0 && all->rows == L_QUEUE_ROWS && all->marked_count > 0)
        marked_drop(all);
    if (all->spare_count > 0)
        return all->spare[--all->spare_count];
    return all->rows < L_QUEUE_ROWS
               ? all->rows++
               : fail(SB_TABLE_FULL, "the journal has more than %d queues", (int)L_QUEUE_ROWS);
}

static void restored_path(const restoration *all, const restored *queue, char *path)
{
    queue_path(path, all->connection->home, row_next_reference(all->connection, queue->row));
}

static void restored_free(restoration *all, restored *freed)
{
    char path[NAME_ROOM];
    if (freed->ring.memory)
        sb_port_close(&freed->port);
    if (!freed->is_there) {
        restored_path(all, freed, path);
        unlink(path);
        row_give_back(all, freed);
    }
    dedup_read_end(&freed->once);
    segment_detach(&freed->ring);
    free(freed);
}

static void forget(restoration *all, restored **at)
{
    restored *gone = *at;
    *at = gone->next;
    restored_free(all, gone);
}

static void forget_if(restoration *all, bool (*is_gone)(const restoration *, const restored *))
{
    for (int hash = 0; hash < HASHES; hash++)
        for (restored **at = &all->queues[hash]; *at;)
            if (is_gone(all, *at))
                forget(all, at);
            else
                at = &(*at)->next;
}

static bool is_marked_gone(const restoration *all, const restored *queue)
{
    (void)all;
    return queue->gone;
}

static bool is_not_listed(const restoration *all, const restored *queue)
{
    return queue->listed != all->lists;
}

/* These queues are there, and no others: what is declared later follows. */
static int64_t queues_listed(restoration *all, const sb_journal_record *record)
{
    const char *body = record->body;
    if (record->length % 8)
        return fail(SB_JOURNAL_DAMAGED,
                    "segment %llx, byte %lld: a list of queues contradicts itself",
                    (long long)record->serial, (long long)record->offset);
    all->lists++;
    for (int64_t at = 0; at < record->length; at += 8) {
        restored *queue = *place_of(all, word_load(body, at));
        if (queue)
            queue->listed = all->lists;
    }
    forget_if(all, is_not_listed);
    return SB_OK;
}

/* --- records ---------------------------------------------------------------------------------- */

static void id_given(restored *queue, int64_t id)
{
    queue->last_id = id > queue->last_id ? id : queue->last_id;
}

/* Its ring, under its name and mapped; or nothing of it. */
static int64_t ring_made(restoration *all, restored *made, const char *page)
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
        restored_path(all, made, path);
        unlink(path);
        segment_detach(ring);
    }
    return code;
}

static int64_t declared(restoration *all, const sb_journal_record *record)
{
    char page[L_RING_GATES_AT], name[L_NAME_BYTES_MAX + 1];
    declaration_head head;
    sb_connection *connection = all->connection;
    restored **at = place_of(all, record->queue), *made = NULL;
    int64_t code = declaration_read(record->body, record->length, &head, name, page);
    if (code != SB_OK)
        return fail(code, "segment %llx, byte %lld: a queue's declaration contradicts itself",
                    (long long)record->serial, (long long)record->offset);
    int64_t later = head.realtime - head.monotonic - realtime_ns() + sb_system_clock();
    if (*at) {
        (*at)->later = later;
        id_given(*at, word_load(page, L_SETTING_SCHEDULED_AT));
        return sb_port_restore_head(&(*at)->port, record->position);
    }
    if (posix_memalign((void **)&made, 128, sizeof *made) != 0)
        return fail_system("memory for queue '%s'", name);
    memset(made, 0, sizeof *made);
    made->head = head;
    made->number = record->queue;
    made->later = later;
    made->is_schedule = head.flags & L_QUEUE_SCHEDULE;
    made->of = word_load(page, L_SETTING_SCHEDULE_OF_AT);
    id_given(made, word_load(page, L_SETTING_SCHEDULED_AT));
    strcpy(made->name, name);
    made->ring.file = -1;
    code = made->row = row_take(all);
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
    sb_port_restore_begin(&made->port, record->position);
    *at = made;
    return SB_OK;
}

static int64_t no_slot(const restored *queue, const sb_journal_record *record)
{
    return fail(SB_JOURNAL_DAMAGED,
                "segment %llx, byte %lld: message %lld of queue '%s' does not fit "
                "into its %lld slots",
                (long long)record->serial, (long long)record->offset, (long long)record->position,
                queue->name, (long long)queue->head.slots);
}

/* By the time of day, for what is scheduled was perhaps so in another boot. */
static int64_t due_again(restored *queue, char *chunk, const char *body)
{
    int64_t mark = word_load(chunk, L_CHUNK_MARK_AT);
    int64_t length = word_load(chunk, L_CHUNK_SHAPE_AT) >> L_SHAPE_BODY_SHIFT;
    if (!(mark & L_CHUNK_EXTENDED << L_MARK_FLAGS_SHIFT) || length < L_SCHEDULED_BYTES)
        return SB_JOURNAL_DAMAGED;
    id_given(queue, word_load(body, L_SCHEDULED_ID_AT));
    int64_t due = word_load(body, L_SCHEDULED_DUE_AT);
    /* below 0 if it was before this boot: what was due earlier is delivered earlier */
    word_store(chunk, L_CHUNK_NOT_BEFORE_AT, due > 0 ? due - realtime_ns() + sb_system_clock() : 1);
    return SB_OK;
}

/* A chunk as long as its record, reserved and filled: its offset. */
static int64_t chunk_restored(restored *queue, const sb_journal_record *record)
{
    int64_t chunk = chunk_reserved_for(&queue->port, record->body, record->length);
    if (chunk < 0)
        return chunk;
    char *to = (char *)sb_port_arena_data(&queue->port) + chunk;
    int64_t expiry = expiry_of_chunk(to);
    if (expiry)
        word_store(to, L_CHUNK_EXPIRY_AT, expiry + queue->later > 0 ? expiry + queue->later : 1);
    if (queue->is_schedule &&
        due_again(queue, to, sb_port_loan_body(&queue->port, chunk)) != SB_OK) {
        sb_port_unreserve(&queue->port, chunk);
        return SB_JOURNAL_DAMAGED;
    }
    return chunk;
}

static int64_t message_restored(restoration *all, restored *queue, const sb_journal_record *record)
{
    queue->has_chunks = true;
    int64_t chunk = chunk_restored(queue, record);
    if (chunk < 0 && chunk != SB_JOURNAL_DAMAGED && all->marked_count > 0) {
        marked_drop(all); /* there was room when it was published */
        chunk = chunk_restored(queue, record);
    }
    if (chunk == SB_JOURNAL_DAMAGED)
        return fail(chunk, "segment %llx, byte %lld: message %lld of queue '%s' contradicts itself",
                    (long long)record->serial, (long long)record->offset,
                    (long long)record->position, queue->name);
    if (chunk < 0)
        return fail(chunk, "restoring message %lld of queue '%s': %s", (long long)record->position,
                    queue->name, sb_strerror(chunk));
    int64_t code =
        sb_port_restore_message(&queue->port, record->position, chunk, !queue->is_schedule);
    if (code != SB_OK)
        sb_port_unreserve(&queue->port, chunk);
    if (code == SB_FULL)
        return no_slot(queue, record);
    if (code != SB_OK && code != SB_DUPLICATE)
        return code;
    return dedup_read_note(&queue->once, &queue->port, record->position, record->body);
}

static int64_t retired(restored *queue, const sb_journal_record *record)
{
    const unsigned char *bits = record->body;
    int64_t code = sb_port_restore_head(&queue->port, record->position);
    for (int64_t bit = 0; bit < 8 * record->length && code == SB_OK; bit++)
        if (bits[bit / 8] >> (bit % 8) & 1)
            code = sb_port_restore_retired(&queue->port, record->position + bit);
    return code == SB_OK ? code : no_slot(queue, record);
}

static void bodies_free(restoration *all)
{
    while (all->bodies) {
        catalog_body *first = all->bodies;
        all->bodies = first->next;
        free(first);
    }
    all->last = &all->bodies;
}

static int64_t catalog_noted(restoration *all, const sb_journal_record *record)
{
    if (record->position == 0) {
        bodies_free(all);
        return SB_OK;
    }
    catalog_body *made = malloc(sizeof *made + (size_t)record->length);
    if (!made)
        return fail_system("memory for the catalog");
    made->next = NULL;
    made->length = record->length;
    memcpy(made->bytes, record->body, (size_t)record->length);
    *all->last = made;
    all->last = &made->next;
    return SB_OK;
}

static int64_t record_restored(restoration *all, const sb_journal_record *record)
{
    if (record->kind == SB_RECORD_QUEUE)
        return declared(all, record);
    if (record->kind == SB_RECORD_CATALOG)
        return catalog_noted(all, record);
    if (record->kind == SB_RECORD_QUEUES)
        return queues_listed(all, record);
    /* a list of ids goes by its queue's number with the sign bit */
    restored **at = place_of(all, record->queue & INT64_MAX), *queue = *at;
    if (!queue)
        return SB_OK; /* a queue that was deleted; what it had is not needed */
    if (record->kind == SB_RECORD_MESSAGE)
        return message_restored(all, queue, record);
    if (record->kind == SB_RECORD_RETIRED)
        return retired(queue, record);
    if (record->kind == SB_RECORD_IDS)
        return dedup_read_ids(&queue->once, record);
    if (record->kind == SB_RECORD_PRODUCERS)
        return dedup_read_producers(&queue->port, record);
    if (record->kind == SB_RECORD_ORIGINS)
        return origin_read_record(&queue->once.origins, record);
    if (record->kind == SB_RECORD_QUEUE_GONE)
        forget(all, at);
    return SB_OK;
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Second copies were in the ring, and are not in the journal. */
static int64_t duplicates_restored(restored *queue)
{
    const int64_t none[2] = {0, 0};
    const sb_outgoing empty = {0};
    if (!sb_port_restore_has_holes(&queue->port))
        return SB_OK;
    queue->has_chunks = true;
    int64_t chunk = sb_port_loan_once(&queue->port, &empty, NULL, none);
    return chunk < 0 ? chunk : sb_port_restore_duplicates(&queue->port, chunk);
}

/* Tell a schedule and its queue of each other.  A schedule without its queue went with it. */
static int64_t schedule_linked(restoration *all, restored *schedule)
{
    restored *queue = *place_of(all, schedule->of);
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

static int64_t schedules_linked(restoration *all)
{
    int64_t code = SB_OK;
    for (int hash = 0; hash < HASHES; hash++)
        for (restored *each = all->queues[hash]; each && code == SB_OK; each = each->next)
            if (each->is_schedule && !each->gone)
                code = schedule_linked(all, each);
    return code;
}

static int64_t open_again(const restoration *all, restored *queue)
{
    char path[NAME_ROOM];
    restored_path(all, queue, path);
    return trusted_segment(path, O_RDWR, &all->connection->whose, &queue->ring.file);
}

static int64_t put(restoration *all, restored *queue)
{
    bool last_value = word_load(queue->ring.memory, L_SETTING_LAST_VALUE_AT);
    int64_t code, there = sb_port_restore_end(&queue->port);
    /* their chains are in no journal, and perhaps not yet what was replaced */
    int64_t replaced = last_value ? sb_port_latest_repair(&queue->port) : 0;
    all->messages += there - (replaced > 0 ? replaced : 0);
    code = replaced < 0 ? replaced : duplicates_restored(queue);
    if (code >= SB_OK && dedup_read_is_any(&queue->once))
        code = open_again(all, queue);
    if (code >= SB_OK)
        code = dedup_read_restore(&queue->once, &queue->port, &queue->ring);
    if (code != SB_OK)
        return code;
    sb_port_close(&queue->port);
    segment_detach(&queue->ring);
    code = queue_put(all->connection, queue->row, queue->name, &queue->head);
    queue->is_there = code >= 0;
    return code < 0 ? code : SB_OK;
}

/* A binding or an alternate may need what comes behind it: again, until nothing more can be
 * done. */
static int64_t catalog_restored(restoration *all)
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
static void inbox_joined(restoration *all, restored *inbox)
{
    sb_connection *connection = all->connection;
    restored *queue = *place_of(all, inbox->head.identity[0] & INT64_MAX);
    inbox->gone = !queue || queue->gone;
    if (!inbox->gone)
        inbox_restored(inbox->ring.memory, row_next_reference(connection, inbox->row), inbox->name,
                       queue->ring.memory, row_next_reference(connection, queue->row));
}

static int64_t queues_put(restoration *all)
{
    int64_t code = SB_OK;
    for (int hash = 0; hash < HASHES; hash++)
        for (restored *each = all->queues[hash]; each; each = each->next)
            if (!each->gone && each->head.flags & L_QUEUE_INBOX)
                inbox_joined(all, each);
    forget_if(all, is_marked_gone);
    marked_drop(all);
    for (int hash = 0; hash < HASHES; hash++)
        for (restored *each = all->queues[hash]; each && code == SB_OK; each = each->next)
            code = put(all, each);
    return code;
}

static void restoration_free(restoration *all)
{
    for (int hash = 0; hash < HASHES; hash++)
        while (all->queues[hash])
            forget(all, &all->queues[hash]);
    bodies_free(all);
    free(all);
}

static int64_t queues_restored(restoration *all, sb_replay *replay,
                               void (*told)(int64_t bytes, int64_t all, void *context),
                               void *context)
{
    sb_journal_record record;
    int64_t code, next = 0, bytes = 0;
    while ((code = sb_replay_next(replay, &record)) != SB_EMPTY) {
        if (code == SB_TORN) {
            log_note(all->connection, "journal: %s", sb_detail(code));
            continue;
        }
        if (code == SB_OK)
            code = record_restored(all, &record);
        if (code != SB_OK)
            return code;
        int64_t done = sb_replay_progress(replay, &bytes);
        if (told && done >= next) {
            told(done, bytes, context);
            next = done + TELL_BYTES;
        }
    }
    code = schedules_linked(all);
    return code == SB_OK ? queues_put(all) : code;
}

int64_t sb_restore(sb_connection *connection, sb_replay *replay,
                   void (*told)(int64_t bytes, int64_t all, void *context), void *context)
{
    int64_t code = change_code(connection);
    restoration *all = code == SB_OK ? calloc(1, sizeof *all) : NULL;
    if (!all)
        return code == SB_OK ? fail_system("memory for restoring") : code;
    all->connection = connection;
    all->last = &all->bodies;
    /* rows are given out as they come: nobody else may declare anything before all have theirs */
    code = connection_lock(connection);
    if (code == SB_OK) {
        code =
            sb_row_next(connection->catalog.memory, L_QUEUES, 0) >= 0
                ? fail(SB_EXISTS, "vhost '%s' has queues already: only a new one can be restored",
                       connection->vhost)
                : queues_restored(all, replay, told, context);
        connection_unlock(connection);
    }
    if (code == SB_OK)
        code = catalog_restored(all);
    int64_t messages = all->messages;
    restoration_free(all);
    if (code == SB_OK) /* everything is there: now others may come */
        word_store(connection->catalog.memory, L_CATALOG_RESTORING_AT, 0);
    return code == SB_OK ? messages : code;
}
