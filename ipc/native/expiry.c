/* Expiry: a message that has one is never delivered after it.
 *
 * Whoever takes a message looks (dead_letter.c); so what follows only has to happen some time: expired
 * messages leave the ring, also those behind others.  The ring remembers a time before which none
 * expires, so that looking costs nothing while there are none.  A search begins by forgetting it;
 * whoever publishes or gives back notes the message's after that is done.  So a message is either
 * there when a search looks, or noted after it began.  Who dies in between is swept, and then nothing
 * is known: the next search looks. */

#include "shared.h"

static _Atomic int64_t *next_expiry(sb_queue *queue)
{
    return (_Atomic int64_t *)((char *)queue->ring.memory + L_RING_NEXT_EXPIRY_AT);
}

void expiry_note(sb_queue *queue, int64_t expiry)
{
    _Atomic int64_t *at = next_expiry(queue);
    int64_t seen = atomic_load(at);
    while ((seen == 0 || seen > expiry) && !atomic_compare_exchange_weak(at, &seen, expiry))
        ;
}

void expiry_unknown(sb_queue *queue)
{
    atomic_store(next_expiry(queue), 1);
}

int64_t expiry_of_chunk(const void *chunk)
{
    int64_t mark = word_load(chunk, L_CHUNK_MARK_AT);
    if (!(mark & L_CHUNK_EXTENDED << L_MARK_FLAGS_SHIFT))
        return 0;
    return word_load(chunk, L_CHUNK_EXPIRY_AT);
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

/* What is expired at this position is buried: 1.  Else 0, and *next is when it expires at the latest. */
static int64_t expire_at(sb_queue *queue, sb_port *port, int64_t position, int64_t now, int64_t *next)
{
    sb_message message;
    if (sb_port_look(port, position, &message) != SB_OK)
        return 0; /* one in somebody's hand: if it is given back, that is noted */
    int64_t expiry = expiry_of(&message);
    if (expiry <= 0)
        return 0;
    if (expiry <= now && sb_port_take_seen(port, &message) == SB_OK) {
        if (bury(queue, port, &message, EXPIRED, sb_message_deliveries(&message)) != SB_FULL)
            return 1;
        sb_port_give_back(port, &message); /* no room where it belongs: later */
    }
    if (*next == 0 || expiry < *next)
        *next = expiry;
    return 0;
}

int64_t queue_expire(sb_queue *queue, sb_port *port)
{
    int64_t now = sb_system_clock(), seen = atomic_load(next_expiry(queue)), next = 0, buried = 0;
    if (seen == 0 || seen > now || burying() ||
        setting(queue, L_SETTING_SCHEDULE_OF_AT) || setting(queue, L_SETTING_INBOX_OF_AT) || /* it expires where it is to be delivered */
        !atomic_compare_exchange_strong(next_expiry(queue), &seen, 0))
        return 0;
    int64_t tail = sb_port_true_tail(port);
    int64_t head = word_load(queue->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
    if (tail - head > queue->slots) /* head has moved on since, or the memory is damaged */
        head = tail - queue->slots;
    for (int64_t position = head; position < tail; position++)
        buried += expire_at(queue, port, position, now, &next);
    if (next)
        expiry_note(queue, next);
    return buried;
}
