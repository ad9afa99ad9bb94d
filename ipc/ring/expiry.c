/* When messages expire: noted by whoever publishes, looked at by whoever takes. */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"

bool aside_is_due(sb_queue *queue)
{
    return sb_aside_is_due(queue->ring.memory, sb_system_clock());
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
