/* Messages that were taken, as records of the journal's format: for a program on another host.
 *
 * Such a record says in its head how often the message was delivered before, and when it expires it
 * says by how long it may still be delivered: clocks differ between hosts. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "journal/format.h"
#include "queue/queue.h"

static int64_t length_of(const sb_message *message)
{
    return (const char *)message->body + message->length - (const char *)message->chunk;
}

int64_t sb_records_room(const sb_message *messages, int64_t count)
{
    int64_t bytes = 0;
    for (int64_t each = 0; each < count; each++)
        bytes += record_bytes(length_of(&messages[each]));
    return bytes;
}

static void expiry_left(char *chunk, int64_t now)
{
    int64_t flags = word_load(chunk, L_CHUNK_MARK_AT) >> L_MARK_FLAGS_SHIFT & L_MARK_FLAGS_MASK;
    if (!(flags & L_CHUNK_EXTENDED))
        return;
    int64_t expiry = word_load(chunk, L_CHUNK_EXPIRY_AT);
    if (expiry > 0)
        word_store(chunk, L_CHUNK_EXPIRY_AT, expiry > now ? expiry - now : 1);
}

void sb_records_of(const sb_message *messages, int64_t count, void *buffer)
{
    char *at = buffer;
    int64_t now = sb_system_clock();
    for (const sb_message *each = messages; each < messages + count; each++) {
        int64_t length = length_of(each), bytes = record_bytes(length);
        const record_head head = {
            .length = (uint32_t)length,
            .frame = (uint32_t)sb_message_deliveries(each),
            .where = (uint64_t)each->position | (uint64_t)SB_RECORD_MESSAGE << KIND_SHIFT,
        };
        memcpy(at, &head, sizeof head);
        memset(at + bytes - 8, 0, 8); /* the zeros behind the chunk, before it comes */
        memcpy(at + HEAD, each->chunk, (size_t)length);
        expiry_left(at + HEAD, now);
        at += bytes;
    }
}
