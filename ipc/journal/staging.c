/* Staging: records into the frame that the next commit writes. */

#define _GNU_SOURCE

#include "base/base.h"
#include "journal/format.h"
#include "journal/journal.h"
#include "journal/writer.h"

static int64_t stage(sb_journal *journal, const record_parts *parts)
{
    int64_t code = journal_usable(journal);
    if (code != SB_OK)
        return code;
    if (parts->kind <= SB_RECORD_SEGMENTS || parts->kind > SB_RECORD_KINDS_MAX ||
        parts->position < 0 || parts->position >= SB_JOURNAL_ALL || parts->length < 0)
        return fail(SB_INVALID, "a record has a kind from 1 to 255, a position from 0 to 2^48 - 1");
    if (parts->length > JOURNAL_BODY_MAX)
        return fail(SB_TOO_LARGE, "a record has at most %lld bytes", (long long)JOURNAL_BODY_MAX);
    return frame_add(&journal->frame, parts);
}

int64_t sb_journal_stage(sb_journal *journal, int64_t kind, int64_t queue, int64_t position,
                         const void *body, int64_t length)
{
    return stage(journal, &(record_parts){kind, queue, position, body, length});
}

int64_t sb_journal_stage_many(sb_journal *journal, int64_t queue, int64_t position,
                              const void *bodies, const int64_t *lengths, int64_t count)
{
    const char *body = bodies;
    for (int64_t each = 0; each < count; body += lengths[each++]) {
        int64_t code = stage(journal, &(record_parts){SB_RECORD_MESSAGE, queue, position + each,
                                                      body, lengths[each]});
        if (code != SB_OK)
            return each > 0 ? each : code;
    }
    return count;
}

int64_t journal_stage_record(sb_journal *journal, const void *record, int64_t bytes)
{
    int64_t code = journal_usable(journal);
    return code == SB_OK ? frame_add_record(&journal->frame, record, bytes) : code;
}

void journal_stage_nothing(sb_journal *journal)
{
    frame_empty(&journal->frame);
}

int64_t sb_journal_staged(sb_journal *journal)
{
    return journal->frame.filled - journal->frame.start;
}
