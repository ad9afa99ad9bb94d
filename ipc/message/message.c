/* What a message has of its own: key, properties, times. */

#define _GNU_SOURCE

#include "base/base.h"

/* --- messages --------------------------------------------------------------------------------- */

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
