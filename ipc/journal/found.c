/* What is in the segments of a journal, as somebody has read it batch by batch: what its next
 * writer would have to look for else. */

#define _GNU_SOURCE
#include <stdlib.h>

#include "base/base.h"
#include "journal/format.h"

sb_journal_record batch_record(const sb_batch *batch, int64_t at)
{
    const unsigned char *bytes = (const unsigned char *)batch->records + at;
    const record_head *head = (const record_head *)(const void *)bytes;
    return (sb_journal_record){
        .kind = record_kind(head), .queue = (int64_t)head->queue,
        .position = record_position(head), .body = bytes + HEAD, .length = head->length,
        .serial = batch->serial, .offset = batch->offset + at,
        .frame = frame_number(batch->serial, head->frame),
        .last = (head->where & RECORD_LAST) != 0,
    };
}

int64_t sb_found_open(sb_found **found)
{
    *found = calloc(1, sizeof **found);
    return *found ? SB_OK : fail_system("memory to read a journal");
}

int64_t sb_found_add(sb_found *found, const sb_batch *batch)
{
    sb_found_counts *counts = &found->counts;
    for (int64_t at = 0; at < batch->bytes;) {
        const sb_journal_record record = batch_record(batch, at);
        int64_t bytes = record_bytes(record.length), code = SB_OK;
        counts->records++;
        counts->frames += record.last;
        counts->frame = record.last ? record.frame : counts->frame;
        counts->messages += record.kind == SB_RECORD_MESSAGE;
        counts->bytes += bytes;
        if (kind_lasts(record.kind))
            code = tally_add(&found->next, record.queue, record.position, bytes);
        if (code != SB_OK)
            return code;
        at += bytes;
    }
    return SB_OK;
}

int64_t sb_found_end(sb_found *found, int64_t serial, int64_t end)
{
    if (!ROOM_FOR(found->segments, found->room, found->count + 1))
        return fail_system("memory to read a journal");
    found->segments[found->count++] = (segment_found){serial, end, found->next};
    found->next = (tally){0};
    return SB_OK;
}

void sb_found_counted(const sb_found *found, sb_found_counts *counts)
{
    *counts = found->counts;
}

void sb_found_close(sb_found *found)
{
    for (int64_t each = 0; each < found->count; each++)
        tally_free(&found->segments[each].tally);
    free(found->segments);
    tally_free(&found->next);
    free(found);
}
