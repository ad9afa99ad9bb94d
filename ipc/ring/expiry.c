/* When messages expire: noted by whoever publishes, looked at by whoever takes. */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"

_Atomic int64_t *next_expiry(sb_queue *queue)
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

_Atomic int64_t *asides(sb_queue *queue)
{
    return (_Atomic int64_t *)((char *)queue->ring.memory + L_RING_ASIDE_AT);
}

void aside_note(sb_queue *queue)
{
    atomic_store(asides(queue), 1);
}

bool aside_is_due(sb_queue *queue)
{
    int64_t next = atomic_load(asides(queue)) ? atomic_load(next_expiry(queue)) : 0;
    return next != 0 && next <= sb_system_clock();
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

int64_t message_expiry(const sb_message *message)
{
    if (!(message->mark & L_CHUNK_EXTENDED << L_MARK_FLAGS_SHIFT))
        return 0;
    return word_load(message->chunk, L_CHUNK_EXPIRY_AT);
}

bool is_expired(const sb_message *message)
{
    int64_t expiry = message_expiry(message);
    return expiry > 0 && expiry <= sb_system_clock();
}
