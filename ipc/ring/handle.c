/* A handle of a queue: its ring is mapped, found to be deleted, let go of. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

int64_t *port_field(sb_port *port, int64_t at)
{
    return (int64_t *)((char *)port + at);
}

int64_t queue_unusable(sb_queue *queue)
{
    int64_t code = atomic_load_explicit(&queue->connection->closed, memory_order_acquire);
    if (code == SB_OK)
        code = atomic_load_explicit(&queue->gone, memory_order_acquire);
    if (code == SB_OK || code == SB_NOT_FOUND || code == SB_MOVED) {
        int64_t moved = moved_code(queue->connection);
        code = moved == SB_OK && code == SB_OK ? SB_NOT_FOUND : moved == SB_OK ? code : moved;
    }
    return code == SB_NOT_FOUND ? fail(code, "queue '%s' was deleted", queue->name) : code;
}

int64_t ring_allocate(sb_queue *queue, int64_t start, int64_t bytes, const char *what)
{
    char path[NAME_ROOM];
    queue_path(path, queue->connection->home, queue->reference);
    int file;
    int64_t code = trusted_segment(path, O_RDWR, &queue->connection->whose, &file);
    if (code == SB_SYSTEM && errno == ENOENT)
        return fail(SB_NOT_FOUND, "queue '%s' was deleted", queue->name);
    if (code != SB_OK)
        return code;
    code = sb_system_allocate(file, start, bytes);
    close(file);
    return code == SB_OK ? code : fail_system("memory for the %s of queue '%s'", what, queue->name);
}

bool ring_is_lost(sb_connection *connection, int64_t code, const char *who)
{
    bool is_gone = code == SB_SYSTEM && errno == ENOENT;
    if (!is_gone && code != SB_DAMAGED && code != SB_NOT_A_SEGMENT && code != SB_OTHER_VERSION &&
        code != SB_TRUNCATED && code != SB_WRONG_ARENA && code != SB_INVALID)
        return false;
    log_note(connection, "%s leaves out a queue: %s", who,
             is_gone ? sb_detail(code) : sb_strerror(code));
    return true;
}

/* --- handles ---------------------------------------------------------------------------------- */

/* Map its ring, and look whether it is that of the queue. */
static int64_t attach_ring(sb_queue *queue)
{
    char path[NAME_ROOM];
    sb_connection *connection = queue->connection;
    int64_t row = queue->reference & L_REFERENCE_INDEX_MASK;
    queue_path(path, connection->home, queue->reference);
    int64_t code = segment_attach(&queue->ring, path, 1, &connection->whose);
    if (code == SB_SYSTEM && sb_row_of(connection->catalog.memory, L_QUEUES, queue->reference) < 0)
        code = fail(SB_NOT_FOUND, "queue '%s' was deleted just now", queue->name);
    if (code == SB_OK) {
        close(queue->ring.file); /* 10,000 queues would be as many descriptors */
        queue->ring.file = -1;
        code = sb_ring_check(queue->ring.memory, queue->ring.bytes);
        if (code != SB_OK)
            fail(code, "the ring of queue '%s' cannot be used: %s", queue->name, sb_strerror(code));
    }
    if (code == SB_OK && word_load(queue->ring.memory, L_RING_ARENA_AT) !=
                             word_load(connection->catalog.memory, L_CATALOG_ARENA_AT))
        code = fail(SB_WRONG_ARENA, "the ring of queue '%s' belongs to another vhost", queue->name);
    if (code == SB_OK && word_load(queue->ring.memory, L_RING_QUEUE_AT) != row)
        code = fail(SB_NOT_A_SEGMENT, "%s is the ring of another queue: was it renamed?", path);
    return code;
}

/* What its settings say that is asked often. */
static void read_settings(sb_queue *queue)
{
    queue->slots = word_load(queue->ring.memory, L_RING_SLOTS_AT);
    queue->ttl_ns = setting(queue, L_SETTING_TTL_AT);
    queue->ttl_min_ns = setting(queue, L_SETTING_TTL_MIN_AT);
    queue->ttl_max_ns = setting(queue, L_SETTING_TTL_MAX_AT);
    queue->max_messages = setting(queue, L_SETTING_MAX_MESSAGES_AT);
    queue->max_bytes = setting(queue, L_SETTING_MAX_BYTES_AT);
    queue->when_full = setting(queue, L_SETTING_WHEN_FULL_AT);
    int64_t mode = setting(queue, L_RING_MODE_AT);
    queue->buckets = mode >> L_MODE_BUCKETS_SHIFT & L_MODE_BUCKETS_MASK;
    queue->grouped = queue->buckets && !(mode & L_MODE_SINGLE);
    queue->last_value = setting(queue, L_SETTING_LAST_VALUE_AT);
    queue->non_destructive = setting(queue, L_SETTING_NON_DESTRUCTIVE_AT);
    queue->max_producer_bytes = setting(queue, L_SETTING_MAX_PRODUCER_BYTES_AT);
    queue->slow_consumer_ns = setting(queue, L_SETTING_SLOW_CONSUMER_THRESHOLD_AT);
    queue->durable = word_load(queue->ring.memory, L_RING_JOURNAL_GATE_AT) > 0;
    last_value_limit(queue);
    queue->pages = queue->when_full == L_PAGE;
    /* what is in memory is bounded, with the inbox to a half */
    if (queue->pages && queue->max_bytes == 0)
        queue->max_bytes = queue->connection->arena.bytes / 4;
    if (setting(queue, L_SETTING_AUTO_DELETE_AT))
        queue->auto_delete_ns = setting(queue, L_SETTING_AUTO_DELETE_DELAY_AT);
    queue->redelivery_ns = setting(queue, L_SETTING_REDELIVERY_DELAY_AT);
    queue->plain = (queue->max_messages | queue->max_bytes | queue->ttl_ns | queue->ttl_max_ns |
                    queue->last_value | queue->auto_delete_ns | queue->pages) == 0;
}

int64_t queue_map(sb_connection *connection, int64_t reference, sb_queue **mapped)
{
    char entry[L_ENTRY_BYTES];
    int64_t row = reference & L_REFERENCE_INDEX_MASK;
    if (sb_row_copy(connection->catalog.memory, L_QUEUES, row, entry) != reference)
        return fail(SB_NOT_FOUND, "the queue was deleted");
    sb_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return fail_system("memory for a queue");
    queue->connection = connection;
    queue->reference = reference;
    queue->row = (char *)connection->catalog.memory + L_QUEUE_COLUMN_AT + (row << L_ROW_SHIFT);
    queue->live = (L_ROW_LIVE >> L_ROW_GENERATION_SHIFT) | reference >> L_REFERENCE_INDEX_BITS;
    int64_t length = word_load(entry, L_ENTRY_NAME_LENGTH_AT);
    memcpy(queue->name, entry + L_ENTRY_NAME_AT, length > 0 && length <= L_NAME_BYTES_MAX
                                                     ? (size_t)length : 0);
    queue->key[0] = word_load(entry, L_QUEUE_IDENTITY_HIGH_AT);
    queue->key[1] = word_load(entry, L_QUEUE_IDENTITY_LOW_AT);
    int64_t code = attach_ring(queue);
    if (code != SB_OK) {
        queue_free(queue);
        return code;
    }
    read_settings(queue);
    *mapped = queue;
    return SB_OK;
}

void queue_unmap(sb_queue *queue)
{
    int64_t count = atomic_load(&queue->lanes_made);
    atomic_store(&queue->lanes_made, 0);
    for (int64_t index = 0; index < count; index++) {
        lane *each = atomic_load(&queue->lanes[index]);
        recorder_free(&each->recorder);
        atomic_store(&each->busy, SHUT);
        lane_drop(queue->connection, each);
    }
    segment_detach(&queue->ring);
    free(queue->watch);
    queue->watch = NULL;
}

void queue_free(sb_queue *queue)
{
    queue_unmap(queue);
    free(queue->left);
    free(queue);
}

void queue_note_first_use(sb_queue *queue, int64_t use)
{
    pthread_mutex_lock(&queue->connection->mutex);
    if (atomic_load(&queue->connection->closed) == SB_OK)
        participant_uses(queue->connection, queue->reference, use);
    int64_t before = atomic_fetch_or(&queue->uses, use);
    pthread_mutex_unlock(&queue->connection->mutex);
    if (use & ~before & L_USE_CONSUMES)
        group_join(queue);
}

void queue_tell_selector(sb_queue *queue, const void *text, int64_t length)
{
    sb_connection *connection = queue->connection;
    pthread_mutex_lock(&connection->mutex);
    bool is_told = atomic_load(&connection->closed) != SB_OK ||
                   participant_selects(connection, queue->reference, text, length);
    pthread_mutex_unlock(&connection->mutex);
    if (!is_told)
        queue_note_use(queue, L_USE_CONSUMES | L_USE_TAKES_ANY);
}

void sb_queue_serve(sb_queue *queue)
{
    queue_note_use(queue, L_USE_SERVES);
}

const char *sb_queue_name(sb_queue *queue)
{
    return queue->name;
}

int64_t sb_queue_reference(sb_queue *queue)
{
    return queue->reference;
}

int64_t sb_queue_slots(sb_queue *queue)
{
    return queue->slots;
}
