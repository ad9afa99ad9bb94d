/* Expiry: a message that has one is never delivered after it.
 *
 * Whoever takes a message looks (decide.c); so what follows only has to happen some time: expired
 * messages leave the ring, also those behind others.  The ring remembers a time before which none
 * expires, so that looking costs nothing while there are none.  It may be too early, never too late:
 * it is lowered before the message is published, and raised only from what it was when the search
 * began. */

#include "shared.h"

static _Atomic int64_t *next_expiry(sb_queue *queue)
{
    return (_Atomic int64_t *)((char *)queue->ring.memory + L_RING_NEXT_EXPIRY_AT);
}

static void lower(_Atomic int64_t *at, int64_t expiry)
{
    int64_t seen = atomic_load(at);
    while ((seen == 0 || seen > expiry) && !atomic_compare_exchange_weak(at, &seen, expiry))
        ;
}

void expiry_note(sb_queue *queue, int64_t expiry)
{
    lower(next_expiry(queue), expiry);
}

static int64_t expiry_of(const sb_message *message)
{
    if (!(message->mark & L_CHUNK_EXTENDED << L_MARK_FLAGS_SHIFT))
        return 0;
    return word_load(message->chunk, L_CHUNK_EXPIRY_AT);
}

bool is_expired(const sb_message *message)
{
    int64_t expiry = expiry_of(message);
    return expiry > 0 && expiry <= sb_system_clock();
}

int64_t queue_expire(sb_queue *queue, sb_port *port)
{
    int64_t now = sb_system_clock(), seen = atomic_load(next_expiry(queue)), next = 0, buried = 0;
    if (seen == 0 || seen > now)
        return 0;
    int64_t tail = sb_port_true_tail(port);
    int64_t head = word_load(queue->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
    if (tail - head > queue->slots) /* head has moved on since, or the memory is damaged */
        head = tail - queue->slots;
    for (int64_t position = head; position < tail; position++) {
        sb_message message;
        if (sb_port_look(port, position, &message) != SB_OK)
            continue;
        int64_t expiry = expiry_of(&message);
        if (expiry <= 0)
            continue;
        bool over = expiry <= now;
        if (over && sb_port_take_seen(port, &message) == SB_OK) {
            if (bury(queue, port, &message, EXPIRED) == SB_OK) {
                buried++;
                continue;
            }
            sb_port_give_back(port, &message); /* no room where it belongs: later */
        }
        if (!over && (next == 0 || expiry < next))
            next = expiry;
    }
    /* those in somebody's hand may come back: he who gives them back is looked after by is_expired */
    atomic_compare_exchange_strong(next_expiry(queue), &seen, next);
    return buried;
}
