/* The verbs of a queue: what is done through a port, for any thread, with waiting and time-outs. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "latency/latency.h"
#include "message/message.h"
#include "paging/paging.h"
#include "queue/queue.h"
#include "schedule/schedule.h"
#include "settings/settings.h"
#include "vhost/vhost.h"

#define COUNT_TRIES 8 /* a full ring may take longer than the pager lets it be */
#define TAIL_TRIES 1000
#define CHUNK_OVERHEAD (L_CHUNK_HEADER_BYTES + L_CHUNK_EXTENSION_BYTES + L_CHUNK_ONCE_BYTES) /* at most */

static int64_t *field(sb_port *port, int64_t at)
{
    return (int64_t *)((char *)port + at);
}

/* --- lanes --------------------------------------------------------------------------------------- */

/* Open the port of a lane, with what it has beside that of a bare ring. */
static int64_t lane_open_port(sb_queue *queue, lane *opened)
{
    sb_connection *connection = queue->connection;
    sb_port *port = &opened->port;
    opened->recorder = (recorder){.queue = queue, .kinds = L_KINDS_COMMITTED};
    int64_t code = sb_port_open(port, queue->ring.memory, queue->ring.bytes,
                                connection->arena.memory, connection->arena.bytes, connection->id);
    port->file = connection->arena.file;
    *field(port, L_PORT_QUEUE_HANDLE) = (int64_t)(intptr_t)queue;
    *field(port, L_PORT_MESSAGES_MAX) = queue->max_messages;
    *field(port, L_PORT_RANK) = atomic_load(&queue->rank);
    *field(port, L_PORT_SHARE) = queue->max_producer_bytes;
    *field(port, L_PORT_RECORDING) = (int64_t)(intptr_t)&opened->recorder;
    return code;
}

/* A lane with its port open; the mutex is held. */
static lane *lane_open(sb_queue *queue, int64_t count, int64_t *code)
{
    sb_connection *connection = queue->connection;
    if (!queue_is_usable(queue, code))
        return NULL;
    if (connection->id == 0)
        *code = fail(SB_INVALID, "the connection only observes: connect to publish or take");
    else if (count >= LANES)
        *code = fail(SB_TOO_MANY, "more than %d threads and loans of this process in one queue",
                     LANES);
    lane *made = *code == SB_OK ? lane_new(connection, code) : NULL;
    if (!made)
        return NULL;
    participant_uses(connection, queue->reference, 0);
    sb_spinning_begin(made->for_message.words);
    sb_spinning_begin(made->for_room.words);
    *code = lane_open_port(queue, made);
    if (*code == SB_OK)
        return made;
    lane_drop(connection, made);
    return NULL;
}

static lane *lane_make(sb_queue *queue, int64_t *code)
{
    pthread_mutex_lock(&queue->connection->mutex);
    int64_t count = atomic_load(&queue->lanes_made);
    lane *made = lane_open(queue, count, code);
    if (made) {
        atomic_store(&made->busy, IN);
        atomic_store(&queue->lanes[count], made);
        atomic_store(&queue->lanes_made, count + 1);
    }
    pthread_mutex_unlock(&queue->connection->mutex);
    return made;
}

int64_t queue_unusable(sb_queue *queue)
{
    int64_t code = atomic_load_explicit(&queue->connection->closed, memory_order_acquire);
    if (code == SB_OK)
        code = atomic_load_explicit(&queue->gone, memory_order_acquire);
    if (code == SB_OK)
        code = SB_NOT_FOUND;
    return code == SB_NOT_FOUND ? fail(code, "queue '%s' was deleted", queue->name) : code;
}

lane *lane_refuse(sb_queue *queue)
{
    if (atomic_load(&queue->connection->closed) == SB_SLOW)
        sb_disconnect(queue->connection); /* who noticed was in a lane, and could not leave */
    return NULL;
}

lane *lane_search(sb_queue *queue, int64_t *code)
{
    if (!queue_is_usable(queue, code))
        return lane_refuse(queue);
    int64_t count = atomic_load_explicit(&queue->lanes_made, memory_order_acquire);
    for (int64_t index = 0; index < count; index++) {
        lane *each = atomic_load_explicit(&queue->lanes[index], memory_order_relaxed);
        int64_t idle = IDLE;
        if (atomic_load_explicit(&each->busy, memory_order_relaxed) != IDLE ||
            !atomic_compare_exchange_strong(&each->busy, &idle, IN))
            continue;
        if (queue_is_usable(queue, code))
            return each;
        lane_leave(each);
        return NULL;
    }
    return lane_make(queue, code);
}

/* --- handles ------------------------------------------------------------------------------------- */

int64_t queue_map(sb_connection *connection, int64_t reference, sb_queue **mapped)
{
    char path[NAME_ROOM], entry[L_ENTRY_BYTES];
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
    queue_path(path, connection->vhost, reference);
    int64_t code = segment_attach(&queue->ring, path, 1, &connection->whose);
    if (code == SB_SYSTEM && sb_row_of(connection->catalog.memory, L_QUEUES, reference) < 0)
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
    if (code != SB_OK) {
        queue_free(queue);
        return code;
    }
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
    queue->durable = word_load(queue->ring.memory, L_RING_BARRIER_AT) > 0;
    last_value_limit(queue);
    queue->pages = queue->when_full == L_PAGE;
    if (queue->pages && queue->max_bytes == 0) /* what is in memory is bounded, with the inbox to a half */
        queue->max_bytes = connection->arena.bytes / 4;
    if (setting(queue, L_SETTING_AUTO_DELETE_AT))
        queue->auto_delete_ns = setting(queue, L_SETTING_AUTO_DELETE_DELAY_AT);
    queue->redelivery_ns = setting(queue, L_SETTING_REDELIVERY_DELAY_AT);
    queue->plain = (queue->max_messages | queue->max_bytes | queue->ttl_ns | queue->ttl_max_ns |
                    queue->last_value | queue->auto_delete_ns | queue->pages) == 0;
    *mapped = queue;
    return SB_OK;
}

int64_t port_to_look(sb_queue *queue, sb_port *port)
{
    sb_connection *connection = queue->connection;
    int64_t code = sb_port_open(port, queue->ring.memory, queue->ring.bytes,
                                connection->arena.memory, connection->arena.bytes,
                                connection->id ? connection->id : 1); /* an observer takes nothing */
    port->file = connection->arena.file;
    return code;
}

int64_t queue_sweep(sb_queue *queue, int64_t dead, bool publishes)
{
    sb_port port;
    uint64_t alive[L_PARTICIPANTS / 64];
    int64_t code = port_to_look(queue, &port);
    if (code != SB_OK)
        return code;
    memset(alive, 0xFF, sizeof alive);
    alive[dead / 64] &= ~(UINT64_C(1) << (dead % 64));
    code = publishes ? sb_port_sweep_messages(&port, alive) : sb_port_sweep(&port, alive, 0, 0);
    if (code >= 0 && queue->last_value)
        sb_port_latest_repair(&port);
    expiry_unknown(queue);
    schedule_unknown(queue);
    if (queue->buckets)
        sb_port_groups_touch(&port);
    latency_sweep(queue, dead);
    if (code > 0)
        sb_port_wake_all(&port);
    return code;
}

/* Of a queue whose ring may be gone: only the arena is looked at. */
static sb_port port_of_arena(sb_connection *connection, int64_t row)
{
    sb_port port = {0};
    *field(&port, L_PORT_ARENA) = (int64_t)(intptr_t)connection->arena.memory;
    *field(&port, L_PORT_BLOCKS) = word_load(connection->arena.memory, L_ARENA_BLOCKS_AT);
    *field(&port, L_PORT_QUEUE) = row;
    return port;
}

void blocks_drop(sb_connection *connection, int64_t row)
{
    sb_port port = port_of_arena(connection, row);
    sb_port_blocks_drop(&port);
}

void blocks_drop_marked(sb_connection *connection, const int64_t *marks)
{
    sb_port port = port_of_arena(connection, 0);
    sb_port_blocks_drop_marked(&port, (int64_t)(intptr_t)marks);
}

void queue_shut(sb_queue *queue)
{
    const struct timespec pause = {0, 1000000};
    int64_t open = 0;
    if (!atomic_compare_exchange_strong(&queue->shut, &open, 1)) {
        while (atomic_load(&queue->shut) != 2) /* another thread is at it */
            nanosleep(&pause, NULL);
        return;
    }
    sb_port port;
    bool wakes = port_to_look(queue, &port) == SB_OK;
    int64_t count = atomic_load(&queue->lanes_made);
    for (int64_t index = 0; index < count; index++)
        word_store(&atomic_load(&queue->lanes[index])->port, L_PORT_STOP, 1);
    if (wakes)
        sb_port_wake_all(&port); /* subscribers too, whose lanes are not waited for */
    for (int64_t index = 0; index < count; index++) {
        lane *each = atomic_load(&queue->lanes[index]);
        int64_t idle = IDLE;
        while (!atomic_compare_exchange_strong(&each->busy, &idle, SHUT) && idle != ON_LOAN &&
               idle != SHUT) {
            idle = IDLE;
            if (wakes)
                sb_port_wake_all(&port);
            nanosleep(&pause, NULL);
        }
        if (idle == IDLE)
            lane_shut(each);
    }
    atomic_store(&queue->shut, 2);
}

void lane_shut(lane *idle)
{
    recorder_close(&idle->recorder);
    sb_port_close(&idle->port); /* and it stays busy: nobody enters again */
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

/* --- waiting ------------------------------------------------------------------------------------- */

/* For a sweep that takes nobody for dead: hints are put right, and what is done is reclaimed. */
static const uint64_t *all_alive(void)
{
    static uint64_t alive[L_PARTICIPANTS / 64];
    if (!alive[0])
        memset(alive, 0xFF, sizeof alive);
    return alive;
}

void queue_upkeep(sb_port *port)
{
    if (sb_port_sweep(port, all_alive(), 0, 0) > 0)
        sb_port_wake_all(port);
}

void queue_look_after(sb_queue *queue, sb_port *port)
{
    queue_used(queue);
    queue_upkeep(port);
    queue_expire(queue, port);
    slow_look(queue, port);
    slow_find_out(queue->connection);
    clerk_look(queue);
    sb_repair(queue->connection);
    auto_delete_some(queue->connection);
}

/* Wait in a lane: SB_OK to try again, or what to answer.  Between two sleeps the waiter repairs
 * what the dead have left: one of them may hold what it waits for. */
static int64_t wait_on(sb_queue *queue, sb_port *port, wait_for kernel, int64_t deadline,
                       bool in_slices)
{
    int64_t code;
    while ((code = kernel(port, deadline)) == SB_SLEPT) {
        if (!queue_is_usable(queue, &code))
            return code;
        queue_look_after(queue, port);
        if (in_slices)
            return SB_INTERRUPTED;
        if (kernel == sb_port_wait_for_head)
            return SB_OK; /* bytes may have become free although head stands: look again */
    }
    if (code == SB_OK && !queue_is_usable(queue, &code))
        return code;
    return code;
}

int64_t wait_in(sb_queue *queue, sb_port *port, wait_for kernel, int64_t deadline)
{
    return wait_on(queue, port, kernel, deadline, queue->connection->waits_in_slices);
}

int64_t queue_wait_for_room(sb_queue *queue, lane *in, int64_t deadline)
{
    return wait_on(queue, &in->port, wait_kernel(queue), deadline, false);
}

/* --- publishing ---------------------------------------------------------------------------------- */

int64_t queue_expiry(const sb_queue *queue, int64_t ttl_ns)
{
    if (ttl_ns <= 0)
        ttl_ns = queue->ttl_ns;
    if (ttl_ns > 0 && ttl_ns < queue->ttl_min_ns)
        ttl_ns = queue->ttl_min_ns;
    if (queue->ttl_max_ns > 0 && (ttl_ns <= 0 || ttl_ns > queue->ttl_max_ns))
        ttl_ns = queue->ttl_max_ns;
    return ttl_ns > 0 ? monotonic_deadline(ttl_ns) : 0;
}

static int64_t bytes_of(const sb_outgoing *message)
{
    return message->length + message->key_length + message->properties_length + CHUNK_OVERHEAD;
}

/* Whether the limits of the queue's settings leave room for one more that takes so many bytes of the
 * arena: SB_OK, SB_FULL or SB_TOO_LARGE.  Several producers that look at once may each find the same
 * room; its bytes are counted again after an eighth of what was left. */
static int64_t within_limits(sb_queue *queue, lane *in, const sb_outgoing *message)
{
    sb_port *port = &in->port;
    int64_t length = bytes_of(message);
    if (queue->last_value) {
        int64_t code = last_value_room(queue, port, message->key, message->key_length);
        if (code != SB_OK)
            return code;
    } else if (queue->max_messages > 0 && sb_port_window(port) >= queue->max_messages)
        return SB_FULL;
    if (queue->max_bytes > 0 && (in->bytes_left -= length) < 0) {
        int64_t left = queue->max_bytes - sb_port_bytes_held(port);
        if (length > queue->max_bytes)
            return SB_TOO_LARGE;
        if (left < length)
            return SB_FULL;
        in->bytes_left = (left - length) / 8;
    }
    return SB_OK;
}

static bool is_limited(const sb_queue *queue)
{
    return (queue->max_messages | queue->max_bytes) > 0;
}

/* Return memory of ours that holds no message: how many runs of blocks. */
static int64_t share_trim(sb_connection *connection)
{
    int64_t trimmed = 0;
    pthread_mutex_lock(&connection->mutex);
    for (int64_t row = 0; row < L_QUEUE_ROWS; row++) {
        sb_queue *queue = connection->queues[row];
        int64_t count = queue ? atomic_load(&queue->lanes_made) : 0;
        for (int64_t index = 0; index < count; index++) {
            lane *each = atomic_load(&queue->lanes[index]);
            int64_t idle = IDLE;
            if (!atomic_compare_exchange_strong(&each->busy, &idle, IN))
                continue;
            trimmed += sb_port_trim(&each->port);
            lane_leave(each);
        }
    }
    pthread_mutex_unlock(&connection->mutex);
    return trimmed;
}

int64_t queue_within(sb_queue *queue, lane *in, const sb_outgoing *message)
{
    return is_limited(queue) ? within_limits(queue, in, message) : SB_OK;
}

bool queue_make_room(sb_queue *queue, lane *in, const sb_outgoing *message)
{
    return queue_expire(queue, &in->port) > 0 ||
           last_value_carry(queue, &in->port, message->key, message->key_length) ||
           (queue->when_full == L_DROP_OLDEST && sb_port_drop_oldest(&in->port) > 0);
}

static bool is_worth_trying(sb_queue *queue, lane *in, const sb_outgoing *message, int64_t code)
{
    return code == SB_FULL ? queue_make_room(queue, in, message)
                           : code == SB_OVER_SHARE && share_trim(queue->connection) > 0;
}

wait_for wait_kernel(const sb_queue *queue)
{
    /* a schedule is full before its ring is; and where messages are carried, room is made by who
     * looks again, so they must not all sleep until there is some */
    return queue->max_bytes | queue->max_producer_bytes | queue->last_value ||
                   setting(queue, L_SETTING_SCHEDULE_OF_AT)
               ? sb_port_wait_for_head : sb_port_wait_for_room;
}

/* What a chunk has beyond its header, with its expiry there already; NULL if that is nothing. */
static const int64_t *extended(const sb_queue *queue, const sb_outgoing *message,
                               int64_t extension[4])
{
    if (queue->grouped)
        extension[1] = group_of(message->properties, message->properties_length);
    return extension[0] | extension[1] ? extension : NULL;
}

static int64_t publish_in(sb_queue *queue, lane *in, const sb_outgoing *message)
{
    int64_t code = is_limited(queue) ? within_limits(queue, in, message) : SB_OK;
    if (code != SB_OK)
        return code == SB_FULL ? once_refused(queue, &in->port, message) : code;
    *field(&in->port, L_PORT_PUBLISHED) = stamp_ns(&in->recorder.clock);
    int64_t extension[4] = {queue_expiry(queue, message->ttl_ns)};
    const int64_t checked = message->id_length | message->producer;
    if ((message->key_length | message->properties_length | message->priority | extension[0] |
         checked | queue->last_value) == 0)
        return sb_port_publish(&in->port, message->body, message->length);
    const int64_t *more = extended(queue, message, extension);
    code = checked ? once_publish(queue, &in->port, message, more)
                   : sb_port_publish_with(&in->port, message, more);
    if (code >= 0 && extension[0])
        expiry_note(queue, extension[0]);
    return code;
}

int64_t queue_offer(sb_queue *queue, lane *in, const sb_outgoing *message)
{
    int64_t code;
    do
        code = publish_in(queue, in, message);
    while (code < 0 && is_worth_trying(queue, in, message, code));
    return code;
}

/* The queue, or this participant's part of the arena. */
static bool has_no_room(int64_t code)
{
    return code < 0 && (code == SB_FULL || code == SB_OVER_SHARE);
}

static int64_t publish_slowly(sb_queue *queue, lane *in, const sb_outgoing *message,
                              int64_t timeout_ns)
{
    sb_port *port = &in->port;
    int64_t deadline = monotonic_deadline(timeout_ns), code = SB_FULL;
    int64_t times = spinning_times(queue->connection, &in->for_room), looks = 0;
    if (times > 0) {
        for (; looks < times * queue->connection->spins && has_no_room(code); looks += 32) {
            sb_port_room_wait(port);
            code = publish_in(queue, in, message);
        }
        spinning_tell(queue->connection, &in->for_room, !has_no_room(code),
                      looks <= queue->connection->spins);
    }
    while (has_no_room(code)) {
        int64_t waited = wait_in(queue, port, wait_kernel(queue), deadline);
        if (waited != SB_OK)
            return waited == SB_FULL ? code : waited;
        code = queue_offer(queue, in, message);
    }
    return code;
}

int64_t explained(sb_queue *queue, int64_t code)
{
    int64_t looking;
    if (code == SB_FULL && queue_look(queue, &looking)) {
        bool is_inbox = setting(queue, L_SETTING_INBOX_OF_AT);
        int64_t told = is_inbox ? inbox_explain(queue) : code;
        queue_looked(queue);
        if (is_inbox)
            return told;
    }
    if (code == SB_FULL)
        return queue->max_messages | queue->max_bytes
                   ? fail(code, "queue '%s' is full: it may hold %lld messages and %lld bytes "
                          "(0: no such limit) in %lld slots", queue->name,
                          (long long)queue->max_messages, (long long)queue->max_bytes,
                          (long long)queue->slots)
                   : fail(code, "queue '%s' is full: its %lld slots hold messages that nobody has "
                          "acknowledged, or that a subscriber has not seen", queue->name,
                          (long long)queue->slots);
    if (code == SB_OVER_SHARE)
        return fail(SB_FULL, "queue '%s': this participant holds as much of the arena as a producer "
                    "may (max_producer_bytes %lld): what it has published is to be acknowledged "
                    "first", queue->name, (long long)queue->max_producer_bytes);
    if (code == SB_TOO_LARGE && queue->max_producer_bytes > 0)
        return fail(code, "queue '%s': a message has at most a quarter of the arena, and no more than "
                    "max_producer_bytes %lld or max_bytes %lld (0: no such limit)", queue->name,
                    (long long)queue->max_producer_bytes, (long long)queue->max_bytes);
    if (code == SB_TOO_LARGE && queue->max_bytes > 0)
        return fail(code, "queue '%s' holds at most %lld bytes, and a message at most a quarter of the "
                    "arena", queue->name, (long long)queue->max_bytes);
    if (code == SB_TOO_LARGE) {
        int64_t quarter = queue->connection->arena.bytes / 4, most = L_BODY_BYTES_MAX;
        return fail(code, "queue '%s': a message has at most %lld bytes with all that belongs to it: %s",
                    queue->name, (long long)(quarter < most ? quarter : most),
                    quarter < most ? "a quarter of the arena" : "what a record of a journal may have");
    }
    if (code == SB_ARENA_FULL || code == SB_NO_MEMORY || code == SB_DAMAGED) {
        log_note(queue->connection, "queue '%s': %s", queue->name, sb_strerror(code));
        return fail(code, "queue '%s': %s", queue->name, sb_strerror(code));
    }
    return code;
}

int64_t ring_publish(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns)
{
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    queue_note_use(queue, L_USE_PRODUCES);
    code = queue_offer(queue, in, message);
    if (has_no_room(code) && timeout_ns != 0 && queue->when_full != L_FAIL)
        code = publish_slowly(queue, in, message, timeout_ns);
    code = queue_published(queue, code);
    lane_leave(in);
    return code < 0 ? explained(queue, code) : code;
}

static int64_t publish_at_once(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns)
{
    return queue->pages ? inbox_publish(queue, message, timeout_ns)
                        : ring_publish(queue, message, timeout_ns);
}

int64_t publish_receipt(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns,
                        sb_receipt *where)
{
    if (is_scheduled(message)) {
        int64_t due = schedule_due(message);
        if (due != 0)
            return due < 0 ? due : schedule_publish(queue, message, due, timeout_ns, where);
    }
    int64_t code = publish_at_once(queue, message, timeout_ns);
    *where = (sb_receipt){queue, code};
    return code;
}

int64_t sb_publish_receipt(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns,
                           sb_receipt *where)
{
    int64_t code = outgoing_check(message);
    return code == SB_OK ? publish_receipt(queue, message, timeout_ns, where) : code;
}

int64_t sb_publish_message(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns)
{
    sb_receipt where;
    return sb_publish_receipt(queue, message, timeout_ns, &where);
}

/* A message with nothing of its own, in a queue that looks at nothing: its position.  Below 0 it has
 * to go the whole way. */
static inline __attribute__((always_inline)) int64_t
publish_plain(sb_queue *queue, const void *body, int64_t length)
{
    int64_t code = SB_FULL;
    lane *in = queue->plain ? lane_enter(queue, &code) : NULL;
    if (!in)
        return SB_FULL;
    queue_note_use(queue, L_USE_PRODUCES);
    *field(&in->port, L_PORT_PUBLISHED) = stamp_ns(&in->recorder.clock);
    code = sb_port_publish(&in->port, body, length);
    lane_leave(in);
    return code;
}

int64_t sb_publish_now(sb_queue *queue, const void *body, int64_t length)
{
    int64_t code = publish_plain(queue, body, length);
    if (code >= 0)
        return code;
    const sb_outgoing message = {.body = body, .length = length};
    if (queue->pages)
        return inbox_publish(queue, &message, 0);
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    queue_note_use(queue, L_USE_PRODUCES);
    code = queue_published(queue, queue_offer(queue, in, &message));
    lane_leave(in);
    return code < 0 ? explained(queue, code) : code;
}

int64_t sb_publish_with(sb_queue *queue, const void *body, int64_t length, const void *key,
                        int64_t key_length, const void *properties, int64_t properties_length,
                        int64_t ttl_ns, int64_t priority, const void *id, int64_t id_length,
                        int64_t timeout_ns)
{
    const sb_outgoing message = {body, length, key, key_length, properties, properties_length,
                                 ttl_ns, priority, id, id_length, 0, 0, 0, 0};
    int64_t code = outgoing_check(&message);
    if (code != SB_OK)
        return code;
    return publish_at_once(queue, &message, timeout_ns);
}

int64_t sb_publish(sb_queue *queue, const void *body, int64_t length, int64_t timeout_ns)
{
    int64_t position = publish_plain(queue, body, length);
    if (position >= 0)
        return position;
    const sb_outgoing message = {.body = body, .length = length};
    return publish_at_once(queue, &message, timeout_ns);
}

static const sb_outgoing NOTHING; /* in particular: no key */

/* As many as there is room for; one by one where each has to be looked at. */
static int64_t publish_several(sb_queue *queue, lane *in, const char *bodies,
                               const int64_t *lengths, int64_t count)
{
    if ((queue->max_messages | queue->max_bytes | queue->ttl_ns | queue->ttl_max_ns |
         queue->max_producer_bytes | queue->when_full) == 0)
        return sb_port_publish_many(&in->port, bodies, lengths, count);
    int64_t code = SB_OK, done = 0;
    while (done < count) {
        const sb_outgoing message = {.body = bodies, .length = lengths[done]};
        code = queue_offer(queue, in, &message);
        if (code < 0)
            break;
        bodies += lengths[done++];
    }
    return done > 0 ? done : code;
}

int64_t ring_publish_many(sb_queue *queue, const void *bodies, const int64_t *lengths,
                          int64_t count, int64_t timeout_ns)
{
    int64_t code, done = 0;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    queue_note_use(queue, L_USE_PRODUCES);
    int64_t deadline = timeout_ns ? monotonic_deadline(timeout_ns) : 0;
    *field(&in->port, L_PORT_PUBLISHED) = stamp_ns(&in->recorder.clock);
    code = SB_OK;
    while (done < count) {
        code = publish_several(queue, in, bodies, lengths + done, count - done);
        if (code == SB_FULL && queue_make_room(queue, in, &NOTHING))
            continue;
        if (has_no_room(code) && timeout_ns != 0 && queue->when_full != L_FAIL) {
            int64_t waited = wait_in(queue, &in->port, wait_kernel(queue), deadline);
            if (waited == SB_OK)
                continue;
            if (waited != SB_FULL)
                code = waited;
        }
        if (code < 0)
            break;
        for (int64_t each = 0; each < code; each++)
            bodies = (const char *)bodies + lengths[done + each];
        done += code;
    }
    if (done > 0 && (code = queue_published(queue, done)) < 0)
        done = 0;
    lane_leave(in);
    return done > 0 || code >= 0 ? done : explained(queue, code);
}

int64_t sb_publish_many(sb_queue *queue, const void *bodies, const int64_t *lengths, int64_t count,
                        int64_t timeout_ns)
{
    return queue->pages ? inbox_publish_many(queue, bodies, lengths, count, timeout_ns)
                        : ring_publish_many(queue, bodies, lengths, count, timeout_ns);
}

/* --- loans --------------------------------------------------------------------------------------- */

int64_t queue_reserve(sb_queue *queue, sb_port *port, const sb_outgoing *shape)
{
    int64_t extension[4] = {queue_expiry(queue, shape->ttl_ns)};
    const int64_t *more = extended(queue, shape, extension);
    if (shape->id_length | shape->producer)
        return once_reserve(queue, port, shape, more);
    return sb_port_loan_with(port, shape, more);
}

int64_t sb_loan_take(sb_queue *queue, const sb_outgoing *shape, sb_loan *loan)
{
    int64_t code = outgoing_check(shape);
    if (code == SB_OK && queue->pages)
        code = inbox_admits(queue, shape);
    lane *in = code == SB_OK ? lane_enter(queue, &code) : NULL;
    if (!in)
        return code;
    queue_note_use(queue, L_USE_PRODUCES);
    int64_t chunk = is_scheduled(shape) ? fail(SB_INVALID, "what is lent cannot be scheduled: publish "
                                               "a copy")
                                        : queue_reserve(queue, &in->port, shape);
    if (chunk < 0) {
        lane_leave(in);
        return explained(queue, chunk);
    }
    *loan = (sb_loan){.lane = in, .chunk = chunk, .body = sb_port_loan_body(&in->port, chunk),
                      .length = shape->length};
    atomic_store(&in->busy, ON_LOAN); /* the chunk is of this port: nobody else enters it */
    return SB_OK;
}

static lane *loan_enter(sb_queue *queue, sb_loan *loan, int64_t *code)
{
    lane *in = loan->lane;
    int64_t lent = ON_LOAN;
    if (!in) {
        *code = fail(SB_INVALID, "the loan was published or dropped before");
        return NULL;
    }
    if (in->recorder.queue != queue) {
        *code = fail(SB_INVALID, "the loan is one of another queue than '%s'", queue->name);
        return NULL;
    }
    *code = atomic_load(&queue->connection->closed);
    if (*code != SB_OK)
        return NULL;
    if (!atomic_compare_exchange_strong(&in->busy, &lent, IN)) {
        *code = fail(SB_INVALID, "the loan is in use by another thread, or none any more");
        return NULL;
    }
    if (queue_is_usable(queue, code))
        return in;
    /* nobody will see it: it ends with its queue */
    if (*code == SB_NOT_FOUND)
        loan->lane = NULL;
    atomic_store(&in->busy, *code == SB_NOT_FOUND ? IDLE : ON_LOAN);
    if (*code == SB_NOT_FOUND)
        departed_some(queue->connection);
    return NULL;
}

/* What is on loan, as far as a limit looks at it. */
static sb_outgoing lent(const sb_loan *loan, const void *chunk)
{
    const sb_message message = {.chunk = chunk, .shape = word_load(chunk, L_CHUNK_SHAPE_AT),
                                .mark = word_load(chunk, L_CHUNK_MARK_AT)};
    sb_outgoing shape = {.length = loan->length};
    shape.key = sb_message_key(&message, &shape.key_length);
    return shape;
}

static int64_t loan_offer(sb_queue *queue, lane *in, const sb_loan *loan, const void *memory)
{
    int64_t code;
    const sb_outgoing shape = lent(loan, memory);
    do {
        code = is_limited(queue) ? within_limits(queue, in, &shape) : SB_OK;
        if (code == SB_OK)
            code = is_once(memory) ? once_publish_loan(queue, &in->port, loan->chunk, memory)
                                   : sb_port_publish_chunk(&in->port, loan->chunk);
        else if (code == SB_FULL)
            code = once_refused_loan(queue, &in->port, loan->chunk, memory);
    } while (code == SB_FULL && queue_make_room(queue, in, &shape));
    return code;
}

/* There is no room where it was lent. */
static int64_t loan_copy(sb_queue *queue, lane *in, sb_loan *loan, const char *chunk,
                         int64_t timeout_ns)
{
    int64_t mark = word_load(chunk, L_CHUNK_MARK_AT), expiry = expiry_of_chunk(chunk);
    const sb_message lies = {.chunk = chunk, .mark = mark,
                             .shape = word_load(chunk, L_CHUNK_SHAPE_AT)};
    sb_outgoing copy = {.body = loan->body, .length = loan->length,
                        .priority = (mark >> L_MARK_PRIORITY_SHIFT) & L_MARK_PRIORITY_MASK};
    copy.key = sb_message_key(&lies, &copy.key_length);
    copy.properties = sb_message_properties(&lies, &copy.properties_length);
    if (expiry > 0)
        copy.ttl_ns = expiry > sb_system_clock() ? expiry - sb_system_clock() : 1;
    int64_t code = inbox_publish(queue, &copy, timeout_ns);
    if (code >= 0)
        sb_port_unreserve(&in->port, loan->chunk);
    atomic_store(&in->busy, code >= 0 ? IDLE : ON_LOAN);
    if (code >= 0)
        loan->lane = NULL;
    return code;
}

int64_t sb_loan_publish(sb_queue *queue, sb_loan *loan, int64_t timeout_ns)
{
    int64_t code;
    lane *in = loan_enter(queue, loan, &code);
    if (!in)
        return code;
    char *chunk = (char *)(intptr_t)*field(&in->port, L_PORT_DATA) + loan->chunk;
    int64_t expiry = expiry_of_chunk(chunk);
    word_store(chunk, L_CHUNK_PUBLISHED_AT, realtime_ns());
    code = is_paging(queue) ? SB_FULL : loan_offer(queue, in, loan, chunk);
    if (code == SB_FULL && queue->pages)
        return loan_copy(queue, in, loan, chunk, timeout_ns);
    int64_t deadline = code == SB_FULL && timeout_ns ? monotonic_deadline(timeout_ns) : 0;
    while (code == SB_FULL && timeout_ns && queue->when_full != L_FAIL) {
        code = wait_in(queue, &in->port, wait_kernel(queue), deadline);
        if (code != SB_OK)
            break;
        code = loan_offer(queue, in, loan, chunk);
    }
    if (code >= 0 && expiry)
        expiry_note(queue, expiry);
    bool is_published = code >= 0 || code == SB_DUPLICATE;
    code = queue_published(queue, code);
    atomic_store(&in->busy, is_published ? IDLE : ON_LOAN);
    if (is_published)
        loan->lane = NULL;
    return code < 0 ? explained(queue, code) : code;
}

int64_t sb_loan_drop(sb_queue *queue, sb_loan *loan)
{
    int64_t code;
    lane *in = loan_enter(queue, loan, &code);
    if (!in)
        return code;
    sb_port_unreserve(&in->port, loan->chunk);
    loan->lane = NULL;
    lane_leave(in);
    return SB_OK;
}

/* --- taking -------------------------------------------------------------------------------------- */

/* What is wanted of a take: one of these, and what it is called with. */
typedef struct wanted {
    sb_message *messages;
    int64_t count;
    sb_room *room;
} wanted;

typedef int64_t (*take_kernel)(sb_port *port, const wanted *what, int64_t looks);

static int64_t take_one(sb_port *port, const wanted *what, int64_t looks)
{
    return sb_port_take_wait(port, what->messages, looks);
}

static int64_t take_several(sb_port *port, const wanted *what, int64_t looks)
{
    (void)looks; /* who wants several is in no hurry */
    return sb_port_take_many(port, what->messages, what->count);
}

static int64_t receive_one(sb_port *port, const wanted *what, int64_t looks)
{
    sb_room *room = what->room;
    return sb_port_receive_wait(port, room->messages, room->buffer, room->capacity, looks);
}

static int64_t receive_several(sb_port *port, const wanted *what, int64_t looks)
{
    sb_room *room = what->room;
    return sb_port_receive_many_wait(port, room->messages, what->count, room->buffer,
                                     room->capacity, room->ends, looks);
}

/* Who looks in vain may be the only one who is there for what is scheduled, or set aside. */
static __attribute__((noinline, cold)) int64_t found_nothing(sb_queue *queue, sb_port *port)
{
    clerk_look(queue);
    if (aside_is_due(queue))
        queue_expire(queue, port);
    if (queue->pages)
        inbox_look(queue);
    return nothing_taken(queue);
}

int64_t nothing_taken(const sb_queue *queue)
{
    if (!queue->non_destructive)
        return SB_EMPTY;
    return fail(SB_INVALID, "queue '%s' is non_destructive: nothing is taken from it, each consumer "
                "looks at all messages (consume, browse, sb_subscribe)", queue->name);
}

/* Look so many times, if spinning pays, then sleep until there is something to take or the time is
 * over.  Who does not wait has said how often to look, and is not asked whether that pays. */
static inline __attribute__((always_inline)) int64_t
take_by(take_kernel kernel, sb_queue *queue, wanted what, int64_t looks, int64_t timeout_ns)
{
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    queue_note_use(queue, L_USE_CONSUMES);
    code = kernel(&in->port, &what, timeout_ns ? 0 : looks);
    int64_t times = code == SB_EMPTY && timeout_ns && looks
                        ? spinning_times(queue->connection, &in->for_message) : 0;
    if (times > 0) {
        code = kernel(&in->port, &what, looks);
        bool soon = code != SB_EMPTY;
        if (!soon && times > 1)
            code = kernel(&in->port, &what, (times - 1) * looks);
        spinning_tell(queue->connection, &in->for_message, code != SB_EMPTY, soon);
    }
    if (code == SB_EMPTY)
        code = found_nothing(queue, &in->port);
    if (code == SB_EMPTY && timeout_ns != 0) {
        int64_t deadline = monotonic_deadline(timeout_ns);
        do {
            code = wait_in(queue, &in->port, sb_port_wait_for_message, deadline);
            if (code != SB_OK)
                break;
            code = kernel(&in->port, &what, 0);
            /* empty: others are quicker, and may be so for as long as we look */
        } while (code == SB_EMPTY && sb_system_clock() < deadline);
    }
    lane_leave(in);
    return code < 0 && code != SB_EMPTY ? explained(queue, code) : code;
}

/* Take without waiting: the body's length; up to L_COPIED_BYTES of it are copied into the room's buffer. */
int64_t sb_look_and_copy(sb_queue *queue, sb_message *message, sb_room *room, int64_t looks)
{
    int64_t code = take_by(take_one, queue, (wanted){message, 1, NULL}, looks, 0);
    if (code != SB_OK)
        return code;
    if (message->length <= L_COPIED_BYTES && message->length <= room->capacity)
        memcpy(room->buffer, (const void *)message->body, (size_t)message->length);
    return message->length;
}

int64_t sb_look_and_receive(sb_queue *queue, sb_room *room, int64_t looks)
{
    return take_by(receive_one, queue, (wanted){room->messages, 1, room}, looks, 0);
}

static int64_t looks_for(const sb_queue *queue, int64_t timeout_ns)
{
    return timeout_ns ? queue->connection->spins : 0;
}

int64_t sb_get(sb_queue *queue, sb_message *message, int64_t timeout_ns)
{
    return take_by(take_one, queue, (wanted){message, 1, NULL}, looks_for(queue, timeout_ns),
                   timeout_ns);
}

int64_t sb_get_many(sb_queue *queue, sb_message *messages, int64_t count, int64_t timeout_ns)
{
    return take_by(take_several, queue, (wanted){messages, count, NULL}, 0, timeout_ns);
}

int64_t sb_receive(sb_queue *queue, sb_room *room, int64_t timeout_ns)
{
    return take_by(receive_one, queue, (wanted){room->messages, 1, room},
                   looks_for(queue, timeout_ns), timeout_ns);
}

int64_t sb_receive_many(sb_queue *queue, sb_room *room, int64_t count, int64_t timeout_ns)
{
    return take_by(receive_several, queue, (wanted){room->messages, count, room},
                   looks_for(queue, timeout_ns), timeout_ns);
}

typedef int64_t (*verdict_kernel)(sb_port *port, sb_message *message);

/* The message is dealt with in this way, also if it was no longer ours. */
static inline __attribute__((always_inline)) int64_t
deal_with(verdict_kernel kernel, sb_queue *queue, sb_message *message)
{
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in) {
        if (code == SB_NOT_FOUND) {
            departed_dealt_with(queue, message);
            message->word = 0;
        }
        return code;
    }
    code = message->word ? kernel(&in->port, message) : SB_REVOKED;
    message->word = 0;
    lane_leave(in);
    return code;
}

int64_t sb_ack(sb_queue *queue, sb_message *message)
{
    return deal_with(sb_port_ack, queue, message);
}

/* The last delivery that it may have: it goes where the dead go, unless there is no room. */
static int64_t give_back_or_bury(sb_port *port, sb_message *message)
{
    sb_queue *queue = (sb_queue *)(intptr_t)*field(port, L_PORT_QUEUE_HANDLE);
    int64_t most = setting(queue, L_SETTING_MAX_DELIVERIES_AT);
    int64_t deliveries = sb_message_deliveries(message) + 1;
    if (!message->chunk && sb_port_reread(port, message) != SB_OK)
        return sb_port_give_back(port, message); /* it is no longer ours, or not to be read */
    if (most > 0 && deliveries >= most) {
        int64_t code = bury(queue, port, message, SPENT, deliveries);
        if (code == SB_FULL) {
            code = dead_aside(queue, port, message, true);
            if (code == SB_OK)
                ring_count(queue, L_COUNTER_GIVEN_BACK_AT);
        }
        return code;
    } else if (queue->redelivery_ns) {
        int64_t code = delay_redelivery(queue, port, message, deliveries);
        if (code == SB_OK)
            ring_count(queue, L_COUNTER_GIVEN_BACK_AT);
        if (code == SB_OK || code == SB_REVOKED)
            return code;
    }
    int64_t expiry = expiry_of_chunk(message->chunk), code = sb_port_give_back(port, message);
    if (code == SB_OK && expiry)
        expiry_note(queue, expiry);
    return code;
}

int64_t sb_give_back(sb_queue *queue, sb_message *message)
{
    return deal_with(give_back_or_bury, queue, message);
}

static int64_t bury_rejected(sb_port *port, sb_message *message)
{
    sb_queue *queue = (sb_queue *)(intptr_t)*field(port, L_PORT_QUEUE_HANDLE);
    int64_t code = bury(queue, port, message, REJECTED, sb_message_deliveries(message) + 1);
    if (code != SB_FULL)
        return code;
    sb_port_give_back(port, message); /* nothing is lost: it will be rejected again */
    return fail(code, "the dead-letter queue of '%s' is full: the message was given back",
                queue->name);
}

int64_t sb_reject(sb_queue *queue, sb_message *message)
{
    return deal_with(bury_rejected, queue, message);
}

int64_t sb_expire(sb_queue *queue)
{
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    expiry_unknown(queue); /* who asks wants it now, also what is to be tried again later */
    code = queue_expire(queue, &in->port);
    lane_leave(in);
    return code;
}

int64_t sb_ack_many(sb_queue *queue, sb_message *messages, int64_t count)
{
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    code = sb_port_ack_many(&in->port, messages, count);
    lane_leave(in);
    return code;
}

/* --- looking and managing ------------------------------------------------------------------------ */

int64_t sb_browse(sb_queue *queue, int64_t position, sb_message *message, void *buffer,
                  int64_t capacity)
{
    int64_t code;
    sb_port port;
    if (!queue_look(queue, &code))
        return code;
    code = port_to_look(queue, &port);
    if (code == SB_OK)
        code = sb_port_peek_whole(&port, position, message, buffer, capacity);
    queue_looked(queue);
    return code;
}

int64_t sb_browse_ahead(sb_queue *queue, int64_t position, sb_message *message, void *buffer,
                        int64_t capacity)
{
    int64_t code;
    sb_port port;
    if (!queue_look(queue, &code))
        return code;
    code = port_to_look(queue, &port);
    if (code == SB_OK)
        code = sb_port_peek_ahead(&port, position, message, buffer, capacity);
    queue_looked(queue);
    return code;
}

static int64_t purge(sb_queue *queue)
{
    int64_t code, paged = queue->pages ? inbox_purge(queue) : 0; /* first: it would fill the ring */
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    code = sb_port_purge(&in->port);
    sb_port_wake_all(&in->port);
    lane_leave(in);
    if (paged < 0 || code < 0)
        return paged < 0 ? paged : code;
    return code + paged + schedule_purge(queue);
}

int64_t sb_purge(sb_queue *queue)
{
    int64_t code;
    if (!queue_look(queue, &code))
        return code;
    code = purge(queue);
    queue_looked(queue);
    return code;
}

int64_t sb_pause(sb_queue *queue, int64_t paused)
{
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    _Atomic int64_t *mode = (_Atomic int64_t *)((char *)queue->ring.memory + L_RING_MODE_AT);
    if (paused)
        atomic_fetch_or(mode, L_MODE_PAUSED);
    else
        atomic_fetch_and(mode, ~(int64_t)L_MODE_PAUSED);
    sb_port_wake_all(&in->port);
    lane_leave(in);
    return SB_OK;
}

static int64_t levels_of(const sb_queue *queue)
{
    int64_t levels = setting(queue, L_RING_MODE_AT) >> L_MODE_LEVELS_SHIFT & L_MODE_LEVELS_MASK;
    return levels < L_LEVELS ? levels : L_LEVELS;
}

/* Who waits at which level, and since when: with strict priorities the low ones may starve. */
static void count_levels(sb_port *port, sb_queue_statistics *told)
{
    sb_message message;
    for (int64_t position = told->head; position < told->tail; position++) {
        if (sb_port_look(port, position, &message) != SB_OK)
            continue;
        int64_t code = (message.mark >> L_MARK_PRIORITY_SHIFT) & L_MARK_PRIORITY_MASK;
        int64_t level = code ? code - 1 : L_LEVEL_DEFAULT;
        if (level >= told->levels)
            level = told->levels - 1;
        if (told->waiting[level]++ == 0)
            told->waiting_since[level] = sb_message_published_at(&message);
    }
}

/* The tail of the ring, and of an inbox up to which position all is below that. */
static int64_t tail_of(sb_queue *inbox, sb_port *port, int64_t *passed)
{
    int64_t tail = 0, before = -1;
    *passed = 0;
    for (int tries = 0; tries < TAIL_TRIES && before != *passed; tries++) {
        before = inbox ? inbox_passed(inbox, port) : 0;
        tail = sb_port_true_tail(port);
        *passed = inbox ? inbox_passed(inbox, port) : 0;
    }
    return tail;
}

/* What is in the ring, and has been. */
static void count_ring(sb_queue *queue, sb_queue *inbox, sb_port *port, sb_queue_statistics *told,
                       int64_t *passed)
{
    void *ring = queue->ring.memory;
    int64_t tail = 0, ready = 0, leased = 0;
    /* what the pager has moved meanwhile would be counted twice, or not at all */
    for (int tries = 0; tries < COUNT_TRIES; tries++) {
        tail = tail_of(inbox, port, passed);
        ready = sb_port_slots_in(port, L_READY);
        leased = sb_port_slots_in(port, L_LEASED);
        if (!inbox || inbox_passed(inbox, port) == *passed)
            break;
    }
    *told = (sb_queue_statistics){
        .slots = queue->slots,
        .head = word_load(ring, L_RING_HEAD_AT) & L_POSITION_MASK,
        .tail = tail,
        .ready = ready,
        .leased = leased,
        .bytes = sb_port_bytes_held(port),
        .given_back = word_load(ring, L_COUNTER_GIVEN_BACK_AT),
        .revoked = word_load(ring, L_COUNTER_REVOKED_AT),
        .expired = word_load(ring, L_COUNTER_EXPIRED_AT),
        .dropped = word_load(ring, L_COUNTER_DROPPED_AT),
        .rejected = word_load(ring, L_COUNTER_REJECTED_AT),
        .carried = word_load(ring, L_COUNTER_CARRIED_AT),
        .replaced = word_load(ring, L_COUNTER_REPLACED_AT),
        .slow = word_load(ring, L_COUNTER_SLOW_AT),
        .damaged = word_load(ring, L_COUNTER_DAMAGED_AT),
        .duplicates = word_load(ring, L_COUNTER_DUPLICATES_AT),
        .withdrawn = word_load(ring, L_COUNTER_WITHDRAWN_AT),
        .paused = word_load(ring, L_RING_MODE_AT) & L_MODE_PAUSED,
        .recording = word_load(ring, L_RING_RECORDING_AT) != 0,
        .histograms = word_load(ring, L_RING_HISTOGRAMS_AT),
        .delayed = word_load(ring, L_COUNTER_DELAYED_AT),
        .scheduled = schedule_count(queue),
        .aside = sb_port_asides_in(port),
        .consumers = participant_users(queue->connection, queue->reference, L_USE_CONSUMES),
        .producers = participant_users(queue->connection, queue->reference, L_USE_PRODUCES),
    };
    told->levels = levels_of(queue);
    if (told->levels > 0)
        count_levels(port, told);
}

static int64_t count_all(sb_queue *queue, sb_queue_statistics *told)
{
    int64_t passed;
    sb_port port, in;
    int64_t code = port_to_look(queue, &port);
    if (code != SB_OK)
        return code;
    sb_queue *inbox = queue->pages ? inbox_of(queue, false, &code) : NULL;
    count_ring(queue, inbox, &port, told, &passed);
    if (inbox && port_to_look(inbox, &in) == SB_OK) {
        told->paged = inbox_count(&in, passed);
        told->paged_bytes = word_load(inbox->ring.memory, L_RING_PAGED_BYTES_AT);
        told->missing = word_load(inbox->ring.memory, L_COUNTER_MISSING_AT);
        told->purged = word_load(inbox->ring.memory, L_COUNTER_PURGED_AT);
    }
    return SB_OK;
}

int64_t sb_statistics(sb_queue *queue, sb_queue_statistics *told)
{
    int64_t code;
    if (!queue_look(queue, &code))
        return code;
    code = count_all(queue, told);
    queue_looked(queue);
    return code;
}

bool queue_is_empty(sb_queue *queue)
{
    sb_port port;
    return port_to_look(queue, &port) == SB_OK && sb_port_slots_in(&port, L_READY) == 0 &&
           sb_port_slots_in(&port, L_LEASED) == 0 && schedule_is_empty(queue) &&
           inbox_is_empty(queue);
}

int64_t sb_glance(sb_connection *connection, int64_t reference, int64_t *head, int64_t *tail,
                  int64_t *paused)
{
    char path[NAME_ROOM];
    int64_t hints[(L_RING_GATES_HIGH_AT - L_RING_TAIL_AT) / 8];
    queue_path(path, connection->vhost, reference);
    int file;
    int64_t code = trusted_segment(path, O_RDONLY, &connection->whose, &file);
    if (code != SB_OK)
        return code;
    ssize_t got = pread(file, hints, sizeof hints, L_RING_TAIL_AT);
    close(file);
    if (got != sizeof hints)
        return fail(SB_TRUNCATED, "%s was cut short", path);
    *tail = hints[0] & L_POSITION_MASK;
    *head = hints[(L_RING_HEAD_AT - L_RING_TAIL_AT) / 8] & L_POSITION_MASK;
    *paused = hints[(L_RING_MODE_AT - L_RING_TAIL_AT) / 8] & L_MODE_PAUSED;
    return SB_OK;
}

bool queue_needs_upkeep(sb_connection *connection, int64_t reference)
{
    char path[NAME_ROOM];
    int64_t expiry = 0;
    queue_path(path, connection->vhost, reference);
    int file;
    if (trusted_segment(path, O_RDONLY, &connection->whose, &file) != SB_OK)
        return false;
    bool read = pread(file, &expiry, sizeof expiry, L_RING_NEXT_EXPIRY_AT) == sizeof expiry;
    close(file);
    return read && expiry != 0 && expiry <= sb_system_clock();
}

int64_t sb_queue_port(sb_queue *queue, sb_port **port)
{
    if (queue->pages)
        return fail(SB_INVALID, "queue '%s' pages: a compiled loop would publish past its pages, so "
                    "there are no ports of it", queue->name);
    int64_t code;
    sb_connection *connection = queue->connection;
    pthread_mutex_lock(&connection->mutex);
    lane *lent = lane_open(queue, queue->ports, &code);
    if (lent) {
        atomic_store(&lent->busy, ON_LOAN);
        *port = &lent->port;
        queue->ports++;
        lent->next = connection->lent;
        connection->lent = lent;
    }
    pthread_mutex_unlock(&connection->mutex);
    if (!lent)
        return code;
    queue_note_first_use(queue, L_USE_CONSUMES | L_USE_PRODUCES);
    return SB_OK;
}

/* A lane that was lent as a port is none of the queue's: who goes on with its address after this finds
 * a port that is shut, and none that others use. */
int64_t sb_queue_port_return(sb_queue *queue, sb_port *port)
{
    sb_connection *connection = queue->connection;
    lane *in = (lane *)((char *)port - offsetof(lane, port));
    int64_t code = atomic_load(&connection->closed), lent = ON_LOAN;
    if (code == SB_FORKED || code == SB_CLOSED)
        return code; /* who has left has no memory to return */
    pthread_mutex_lock(&connection->mutex);
    bool was_lent = in->recorder.queue == queue &&
                    atomic_compare_exchange_strong(&in->busy, &lent, SHUT);
    if (was_lent) {
        lane **at = &connection->lent;
        while (*at != in)
            at = &(*at)->next;
        *at = in->next;
        lane_shut(in);
        lane_drop(connection, in);
        queue->ports--;
    }
    bool is_gone = queue_is_gone(queue);
    pthread_mutex_unlock(&connection->mutex);
    if (is_gone)
        departed_some(connection);
    return was_lent ? SB_OK : fail(SB_INVALID, "this is no port that queue '%s' has lent",
                                   queue->name);
}

int64_t sb_subscribe(sb_queue *queue, sb_cursor *cursor, int64_t from_now, int64_t lossy)
{
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    sb_port *port = &in->port;
    atomic_store(&in->busy, ON_LOAN);
    if (queue->non_destructive)
        queue_note_use(queue, L_USE_CONSUMES);
    code = lossy ? sb_cursor_open_lossy(cursor, port, from_now)
                 : sb_cursor_open(cursor, port, SB_GATE_FLEETING, from_now);
    if (code != SB_OK) {
        cursor->port = port;
        cursor->gate = -1;
        sb_unsubscribe(queue, cursor);
    }
    return code;
}

int64_t sb_unsubscribe(sb_queue *queue, sb_cursor *cursor)
{
    if (!cursor->port)
        return SB_OK;
    int64_t code = atomic_load(&queue->connection->closed);
    if (code != SB_OK)
        return code;
    lane *in = (lane *)((char *)cursor->port - offsetof(lane, port));
    code = sb_cursor_close(cursor);
    sb_port_wake_all(&in->port); /* producers may have waited for this gate */
    cursor->port = NULL;
    lane_leave(in);
    if (queue_is_gone(queue)) {
        departed_some(queue->connection);
        return queue_unusable(queue);
    }
    return code;
}

static bool cursor_usable(sb_queue *queue, const sb_cursor *cursor, int64_t *code)
{
    if (!queue_is_usable(queue, code))
        return false;
    if (!cursor->port)
        *code = fail(SB_INVALID, "the subscription was closed");
    return cursor->port != NULL;
}

static int64_t cursor_wait_in(sb_queue *queue, sb_cursor *cursor, int64_t deadline)
{
    int64_t code;
    while ((code = sb_cursor_wait(cursor, deadline)) == SB_SLEPT) {
        if (!queue_is_usable(queue, &code))
            return code;
        queue_used(queue);
        sb_repair(queue->connection);
        if (queue->connection->waits_in_slices)
            return SB_INTERRUPTED;
    }
    if (code == SB_OK && !queue_is_usable(queue, &code))
        return code;
    return code;
}

/* Of a copied message, where nothing is taken: what is done with was replaced, dropped or expired. */
static bool is_to_see(const sb_message *message, const void *copied)
{
    int64_t expiry = expiry_of_chunk(copied);
    return ((message->word >> L_STATE_SHIFT) & L_STATE_MASK) != L_DONE &&
           (expiry <= 0 || expiry > sb_system_clock());
}

int64_t sb_next(sb_queue *queue, sb_cursor *cursor, sb_message *message, void *buffer,
                int64_t capacity, int64_t timeout_ns)
{
    int64_t code;
    if (!cursor_usable(queue, cursor, &code))
        return code;
    int64_t deadline = timeout_ns ? monotonic_deadline(timeout_ns) : 0;
    for (;;) {
        code = sb_cursor_copy_whole(cursor, message, buffer, capacity);
        if (code >= 0 && queue->non_destructive && !is_to_see(message, buffer))
            continue;
        if (code != SB_EMPTY || timeout_ns == 0)
            return code;
        code = cursor_wait_in(queue, cursor, deadline);
        if (code != SB_OK)
            return code;
    }
}

int64_t sb_released(sb_queue *queue, sb_cursor *cursor)
{
    int64_t code;
    if (!cursor_usable(queue, cursor, &code) || cursor->gate < 0)
        return code;
    code = sb_cursor_release(cursor);
    sb_port_tell_producers(cursor->port);
    return code < 0 ? code : SB_OK;
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

/* --- messages ------------------------------------------------------------------------------------ */

/* The lengths were checked when the message was taken, and are in our copy of its shape. */
const void *sb_message_key(const sb_message *message, int64_t *length)
{
    *length = (message->shape >> L_SHAPE_KEY_SHIFT) & L_SHAPE_LENGTH_MASK;
    int64_t flags = (message->mark >> L_MARK_FLAGS_SHIFT) & L_MARK_FLAGS_MASK;
    int64_t at = L_CHUNK_HEADER_BYTES;
    if (flags & L_CHUNK_EXTENDED)
        at += L_CHUNK_EXTENSION_BYTES;
    if (flags & L_CHUNK_ONCE)
        at += L_CHUNK_ONCE_BYTES;
    return (const char *)message->chunk + at;
}

const void *sb_message_properties(const sb_message *message, int64_t *length)
{
    int64_t key_length;
    const char *key = sb_message_key(message, &key_length);
    *length = message->shape & L_SHAPE_LENGTH_MASK;
    return key + key_length;
}

int64_t sb_message_published_at(const sb_message *message)
{
    return word_load(message->chunk, L_CHUNK_PUBLISHED_AT);
}

int64_t sb_message_deliveries(const sb_message *message)
{
    int64_t here = (message->word >> L_DELIVERIES_SHIFT) & L_DELIVERIES_MASK;
    int64_t deliveries = here + (message->mark & L_MARK_DELIVERIES_MASK);
    return deliveries < L_DELIVERIES_MASK ? deliveries : L_DELIVERIES_MASK;
}
