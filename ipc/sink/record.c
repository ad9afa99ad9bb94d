/* Records of the journal's format, in the caller's memory; lengths are checked before they are
 * followed. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "journal/format.h"
#include "message/message.h"
#include "sink/sink.h"

int64_t record_next(const char *at, const char *end, poured_record *record)
{
    record_head head;
    if (at == end)
        return SB_EMPTY;
    if (end - at < HEAD)
        return fail(SB_INVALID, "a record to be poured is cut off");
    memcpy(&head, at, sizeof head);
    if (end - at < record_bytes(head.length))
        return fail(SB_INVALID, "a record to be poured has %u bytes, and %lld are left",
                    head.length, (long long)(end - at - HEAD));
    *record = (poured_record){.chunk = at + HEAD, .next = at + record_bytes(head.length),
                              .length = head.length, .queue = (int64_t)head.queue,
                              .sequence = record_position(&head) + 1,
                              .is_message = record_kind(&head) == SB_RECORD_MESSAGE};
    if (record->is_message && record->sequence > L_SEQUENCE_MASK)
        return fail(SB_INVALID, "a record to be poured has a position that no message can have");
    return SB_OK;
}

/* What is left of a time to live; at least something, so that it expires where it goes. */
static int64_t ttl_left(int64_t expiry, int64_t later)
{
    int64_t now = sb_system_clock();
    return expiry <= 0 ? 0 : expiry + later > now ? expiry + later - now : 1;
}

int64_t record_outgoing(const poured_record *record, int64_t later, sb_outgoing *message)
{
    const char *chunk = record->chunk;
    if (record->length < L_CHUNK_HEADER_BYTES)
        return SB_INVALID;
    int64_t shape = word_load(chunk, L_CHUNK_SHAPE_AT), mark = word_load(chunk, L_CHUNK_MARK_AT);
    int64_t flags = (mark >> L_MARK_FLAGS_SHIFT) & L_MARK_FLAGS_MASK;
    int64_t key = shape >> L_SHAPE_KEY_SHIFT & L_SHAPE_LENGTH_MASK;
    int64_t properties = shape & L_SHAPE_LENGTH_MASK;
    int64_t start = L_CHUNK_HEADER_BYTES +
                    (flags & L_CHUNK_EXTENDED ? L_CHUNK_EXTENSION_BYTES : 0) +
                    (flags & L_CHUNK_ONCE ? L_CHUNK_ONCE_BYTES : 0);
    int64_t body = start + ((key + properties + 15) & -16), length = shape >> L_SHAPE_BODY_SHIFT;
    if (shape < 0 || mark >> L_MARK_MAGIC_SHIFT != L_MARK_MAGIC || body + length != record->length)
        return SB_INVALID;
    *message = (sb_outgoing){
        .body = chunk + body, .length = length,
        .key = chunk + start, .key_length = key,
        .properties = chunk + start + key, .properties_length = properties,
        .priority = (mark >> L_MARK_PRIORITY_SHIFT) & L_MARK_PRIORITY_MASK,
        .deliveries = (mark & L_MARK_DELIVERIES_MASK) > 0,
    };
    if (flags & L_CHUNK_EXTENDED) {
        message->ttl_ns = ttl_left(word_load(chunk, L_CHUNK_EXPIRY_AT), later);
        message->target = word_load(chunk, L_CHUNK_TARGET_AT);
    }
    return outgoing_check(message);
}

int64_t sb_records_doubt(void *records, int64_t bytes)
{
    char *at = records;
    const char *end = at + bytes;
    int64_t code;
    poured_record record;
    while ((code = record_next(at, end, &record)) == SB_OK) {
        int64_t mark = record.length < L_CHUNK_HEADER_BYTES ? 0
                                                            : word_load(at + HEAD, L_CHUNK_MARK_AT);
        if (record.is_message && mark >> L_MARK_MAGIC_SHIFT == L_MARK_MAGIC &&
            (mark & L_MARK_DELIVERIES_MASK) == 0)
            word_store(at + HEAD, L_CHUNK_MARK_AT, mark + 1);
        at += record.next - at;
    }
    return code == SB_EMPTY ? SB_OK : code;
}

int64_t sb_records_number(void *records, int64_t bytes, int64_t first)
{
    char *at = records;
    const char *end = at + bytes;
    int64_t count = 0, code = SB_OK, now = realtime_ns();
    for (poured_record record; at < end; at += record.next - at, count++) {
        code = record_next(at, end, &record);
        if (code != SB_OK)
            return code;
        if (!record.is_message || first + count >= (int64_t)L_POSITION_MASK)
            return fail(SB_INVALID, "record %lld of a publish is no message", (long long)count);
        word_store(at, L_RECORD_WHERE_AT,
                   (first + count) | (int64_t)SB_RECORD_MESSAGE << L_RECORD_KIND_SHIFT);
        if (record.length >= L_CHUNK_HEADER_BYTES)
            word_store(at + HEAD, L_CHUNK_PUBLISHED_AT, now);
    }
    return count;
}
