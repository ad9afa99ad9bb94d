/* Subscribers: they see each message of a queue without taking it. */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"

int64_t sb_subscribe(sb_queue *queue, sb_cursor *cursor, int64_t from_now, int64_t lossy)
{
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    if ((code = read_only_code(queue)) != SB_OK) {
        lane_leave(in);
        cursor->port = NULL;
        return code;
    }
    sb_port *port = &in->port;
    atomic_store(&in->busy, ON_LOAN);
    if (queue->non_destructive)
        queue_note_use(queue, L_USE_CONSUMES | L_USE_TAKES_ANY);
    code = lossy ? sb_cursor_open_lossy(cursor, port, from_now)
                 : sb_cursor_open(cursor, port, SB_GATE_FLEETING, from_now);
    if (code == SB_OK && !lossy)
        word_store(queue->ring.memory,
                   L_RING_GATES_AT + cursor->gate * L_GATE_BYTES + L_GATE_SINCE_AT, realtime_ns());
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
        deleted_some(queue->connection);
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
        queue->connection->duties->repair_ring(queue, cursor->port);
        if (queue->connection->waits_in_slices)
            return SB_INTERRUPTED;
    }
    if (code == SB_OK && !queue_is_usable(queue, &code))
        return code;
    return code;
}

/* Of a copied message, where nothing is taken: what is done with was replaced, dropped or
 * expired. */
static bool is_to_see(const sb_message *message, const void *copied)
{
    int64_t expiry = sb_chunk_expiry(copied);
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
