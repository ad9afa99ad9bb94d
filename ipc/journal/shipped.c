/* Frames in a buffer, on their way to another journal: a head each, and records as in the file.
 *
 * What a writer has written it seals for its place there, and whoever has it elsewhere seals it
 * anew.  The chain is over the heads of the records, which have the CRCs of their bodies: so it
 * costs nothing for large messages, and both sides compute it over the same bytes. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "journal/shipped.h"

_Static_assert(sizeof(sb_shipped) % 8 == 0, "records are aligned behind it");

int64_t shipped_chain(int64_t chain, int64_t number, int64_t seal, const void *records,
                      int64_t bytes)
{
    const unsigned char *at = records, *end = at + bytes;
    uint32_t crc = (uint32_t)((uint32_t)number == 1 ? seal : chain);
    while (end - at >= HEAD) {
        record_head head;
        memcpy(&head, at, sizeof head);
        if (head.length > JOURNAL_BODY_MAX || record_bytes(head.length) > end - at)
            return -1;
        crc = crc32c(crc, &head, sizeof head);
        at += record_bytes(head.length);
    }
    return at == end ? (int64_t)crc : -1;
}

int64_t shipped_put(void *to, const sb_shipped *head, const void *records)
{
    memcpy(to, head, sizeof *head);
    memcpy((unsigned char *)to + SHIPPED_HEAD, records, (size_t)head->bytes);
    return SHIPPED_HEAD + head->bytes;
}

static int64_t next_of(sb_tail *tail)
{
    sb_end_frame *held = &tail->held;
    int64_t code = held->memory ? SB_OK : sb_end_next(tail->end, held);
    if (code != SB_OK)
        held->memory = NULL;
    return code;
}

int64_t sb_tail_read(sb_tail *tail, void *to, int64_t room)
{
    int64_t filled = 0, code;
    const sb_end_frame *held = &tail->held;
    while ((code = next_of(tail)) == SB_OK) {
        if (SHIPPED_HEAD + held->bytes > room - filled)
            return filled ? filled : SB_TOO_LARGE;
        tail->chain = shipped_chain(tail->chain, held->number, held->seal, held->records,
                                    held->bytes);
        const sb_shipped head = {held->number, held->after, held->epoch, held->seal, tail->chain,
                                 held->bytes};
        filled += shipped_put((unsigned char *)to + filled, &head, held->records);
        tail->last = held->number;
        sb_tail_close(tail);
    }
    return filled || code == SB_EMPTY ? filled : code;
}

void sb_tail_close(sb_tail *tail)
{
    sb_end_frame_free(tail->held.memory);
    tail->held.memory = NULL;
}
