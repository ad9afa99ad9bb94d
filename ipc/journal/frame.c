/* A frame: the records that one commit writes. */

#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "journal/format.h"

#define ROOM_FIRST (INT64_C(256) << 10)

int64_t sb_frame_text(int64_t number, char *text)
{
    uint64_t serial = (uint64_t)number >> SB_FRAME_BITS, in_segment = (uint32_t)number;
    return snprintf(text, SB_FRAME_TEXT_BYTES, "%" PRIx64 ":%" PRIu64, serial, in_segment);
}

static int64_t make_room(frame *in, int64_t bytes)
{
    int64_t wanted = frame_written_bytes(in->filled + bytes), room = in->room;
    if (wanted <= room)
        return SB_OK;
    while (room < wanted)
        room = room ? 2 * room : ROOM_FIRST;
    unsigned char *made = aligned_alloc((size_t)JOURNAL_PAGE, (size_t)room);
    if (!made)
        return fail_system("memory for a frame of %lld bytes", (long long)room);
    if (in->filled)
        memcpy(made, in->memory, (size_t)in->filled);
    free(in->memory);
    in->memory = made;
    in->room = room;
    return SB_OK;
}

static void added(frame *to, int64_t bytes)
{
    to->last = to->filled;
    to->filled += bytes;
    to->records++;
}

/* The head is completed by frame_seal, when it is known where the record will be. */
int64_t frame_add(frame *to, const record_parts *parts)
{
    int64_t length = parts->length, bytes = record_bytes(length);
    int64_t code = make_room(to, bytes);
    if (code == SB_OK && kind_lasts(parts->kind))
        code = tally_add(&to->tally, parts->queue, parts->position, bytes);
    if (code != SB_OK)
        return code;
    unsigned char *at = to->memory + to->filled, *body = at + HEAD;
    memset(at + bytes - 8, 0, 8); /* the zeros behind the body, before it comes */
    uint32_t crc = 0;
    if (length)
        crc = crc32c_copy(crc, body, parts->body, (size_t)length);
    if (length % 8)
        crc = crc32c(crc, body + length, (size_t)(bytes - HEAD - length));
    record_head head = {
        .body_crc = crc,
        .length = (uint32_t)length,
        .queue = (uint64_t)parts->queue,
        .where = (uint64_t)parts->position | (uint64_t)parts->kind << KIND_SHIFT,
    };
    memcpy(at, &head, sizeof head);
    added(to, bytes);
    return SB_OK;
}

int64_t frame_add_record(frame *to, const record_head *head, int64_t bytes)
{
    int64_t code = make_room(to, bytes);
    if (code != SB_OK)
        return code;
    unsigned char *at = to->memory + to->filled;
    memcpy(at, head, sizeof *head);
    if (crc32c_copy(0, at + HEAD, (const unsigned char *)head + HEAD, (size_t)(bytes - HEAD)) !=
        head->body_crc)
        return SB_JOURNAL_DAMAGED;
    if (kind_lasts(record_kind(head)))
        code = tally_add(&to->tally, (int64_t)head->queue, record_position(head), bytes);
    if (code == SB_OK)
        added(to, bytes);
    return code;
}

void frame_empty(frame *emptied)
{
    emptied->filled = emptied->sealed = emptied->start;
    emptied->records = emptied->ahead = 0;
    tally_clear(&emptied->tally);
}

int64_t frame_append(frame *to, const frame *more)
{
    int64_t bytes = more->filled - more->start, code = make_room(to, bytes);
    if (code == SB_OK)
        code = tally_merge(&to->tally, &more->tally);
    if (code != SB_OK || bytes == 0)
        return code;
    memcpy(to->memory + to->filled, more->memory + more->start, (size_t)bytes);
    to->last = to->filled + more->last - more->start;
    to->filled += bytes;
    to->records += more->records;
    return SB_OK;
}

static void seal_below(frame *sealed, int64_t end, const frame_place *place)
{
    for (int64_t at = sealed->sealed, next; at < end; at = next) {
        record_head *head = (record_head *)(void *)(sealed->memory + at);
        next = at + record_bytes(head->length);
        head->frame = (uint32_t)place->number;
        head->where &= ~(RECORD_LAST | RECORD_BEHIND);
        head->where |= next == sealed->filled ? RECORD_LAST : 0;
        head->where |= (uint64_t)place->behind << RECORD_BEHIND_SHIFT;
        head->crc = record_crc(place->seed, place->page_at + at, head);
        sealed->sealed = next;
    }
}

int64_t frame_seal_begun(frame *begun, const frame_place *place)
{
    if (begun->records > 0)
        seal_below(begun, begun->last, place);
    return begun->sealed & -JOURNAL_PAGE;
}

void frame_seal(frame *sealed, const frame_place *place)
{
    seal_below(sealed, sealed->filled, place);
    sealed->sealed = sealed->last; /* more may come, if it cannot be written now */
    int64_t written = frame_written_bytes(sealed->filled);
    memset(sealed->memory + sealed->filled, 0, (size_t)(written - sealed->filled));
}

void frame_follow(frame *next)
{
    int64_t page = next->filled & -JOURNAL_PAGE;
    next->start = next->filled - page;
    if (page)
        memmove(next->memory, next->memory + page, (size_t)next->start);
    frame_empty(next);
}

int64_t frame_beside(frame *made, const frame *other)
{
    *made = (frame){0};
    int64_t code = make_room(made, other->start);
    if (code != SB_OK)
        return code;
    if (other->start)
        memcpy(made->memory, other->memory, (size_t)other->start);
    made->start = made->filled = made->sealed = other->start;
    return SB_OK;
}

void frame_free(frame *freed)
{
    free(freed->memory);
    tally_free(&freed->tally);
    *freed = (frame){0};
}
