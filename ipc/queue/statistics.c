/* What a queue has seen and holds, in numbers. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "paging/paging.h"
#include "queue/queue.h"
#include "ring/ring.h"
#include "schedule/schedule.h"
#include "vhost/vhost.h"

#define COUNT_TRIES 8 /* a full ring may take longer than the pager lets it be */

#define TAIL_TRIES 1000

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
    int64_t code = sb_port_to_look(queue, &port);
    if (code != SB_OK)
        return code;
    sb_queue *inbox = queue->pages ? inbox_of(queue, false, &code) : NULL;
    count_ring(queue, inbox, &port, told, &passed);
    if (inbox && sb_port_to_look(inbox, &in) == SB_OK) {
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

int64_t sb_changes(sb_queue *queue, sb_queue_changes *told)
{
    int64_t code;
    sb_port port;
    if (!queue_look(queue, &code))
        return code;
    code = sb_port_to_look(queue, &port);
    if (code == SB_OK)
        *told = (sb_queue_changes){
            .head = word_load(queue->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK,
            .tail = sb_port_true_tail(&port),
            .given_back = word_load(queue->ring.memory, L_COUNTER_GIVEN_BACK_AT),
            .revoked = word_load(queue->ring.memory, L_COUNTER_REVOKED_AT),
            .consumers = participant_users(queue->connection, queue->reference, L_USE_CONSUMES),
        };
    queue_looked(queue);
    return code;
}

bool queue_is_empty(sb_queue *queue)
{
    sb_port port;
    return sb_port_to_look(queue, &port) == SB_OK && sb_port_slots_in(&port, L_READY) == 0 &&
           sb_port_slots_in(&port, L_LEASED) == 0 && schedule_is_empty(queue) &&
           inbox_is_empty(queue);
}

int64_t sb_glance(sb_connection *connection, int64_t reference, int64_t *head, int64_t *tail,
                  int64_t *paused)
{
    char path[NAME_ROOM];
    int64_t hints[(L_RING_GATES_HIGH_AT - L_RING_TAIL_AT) / 8];
    queue_path(path, connection->home, reference);
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
