/* Frames in a buffer, on their way to another journal: a head each, and records as in the file
 * (checking.py).  What a writer has written it seals for its place there, and whoever has it
 * elsewhere seals it anew. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"

_Static_assert(sizeof(sb_shipped) % 8 == 0, "records are aligned behind it");

static int64_t put(void *to, const sb_shipped *head, const void *records)
{
    memcpy(to, head, sizeof *head);
    memcpy((unsigned char *)to + L_SHIPPED_HEAD_BYTES, records, (size_t)head->bytes);
    return L_SHIPPED_HEAD_BYTES + head->bytes;
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
        if (L_SHIPPED_HEAD_BYTES + held->bytes > room - filled)
            return filled ? filled : SB_TOO_LARGE;
        tail->chain = sb_shipped_chain(tail->chain, held->number, held->seal, held->records,
                                       held->bytes);
        const sb_shipped head = {held->number, held->after, held->epoch, held->seal, tail->chain,
                                 held->bytes};
        filled += put((unsigned char *)to + filled, &head, held->records);
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
