/* Compaction: the few messages of a segment that are still needed are staged anew, so that its file
 * can be used again.  A bit at a time, between other commits. */

#define _GNU_SOURCE

#include "base/base.h"
#include "journal/format.h"
#include "journal/writer.h"

void compaction_end(sb_journal *journal)
{
    if (journal->compaction.reading)
        reader_close(&journal->compaction.segment);
    journal->compaction.reading = false;
}

static bool is_worth_it(const sb_journal *journal, const segment_state *of, int64_t share)
{
    bool needed;
    if (of->state != SEGMENT_KNOWN || of->moved != NOT_MOVED)
        return false;
    int64_t live = tally_live(&of->tally, &journal->heads, &needed);
    if (share == 100 && of->serial >= journal->first_serial)
        return false; /* what was compacted would be, again and again */
    return needed && live * 100 <= (of->end - JOURNAL_PAGE) * share;
}

/* The oldest that is worth it: SB_EMPTY if none is. */
static int64_t begin(sb_journal *journal, int64_t share)
{
    for (int64_t each = 0; each < journal->segment_count; each++) {
        segment_state *of = &journal->segments[each];
        if (!is_worth_it(journal, of, share))
            continue;
        int64_t code = reader_open(&journal->compaction.segment, &journal->in, of->serial);
        if (code != SB_OK) {
            of->state = SEGMENT_DAMAGED;
            continue;
        }
        reader_beside_writer(&journal->compaction.segment);
        journal->compaction.reading = true;
        journal->compaction.offset = journal->compaction.frame_end = JOURNAL_PAGE;
        journal->compaction.number = 1;
        journal->compaction.end = of->end;
        return SB_OK;
    }
    return SB_EMPTY;
}

static int64_t move(sb_journal *journal, const record_head *head, sb_journal_needed needed,
                    void *context)
{
    int64_t queue = (int64_t)head->queue, position = record_position(head);
    if (!kind_lasts(record_kind(head)))
        return SB_OK;
    const tally_entry *retired = tally_find(&journal->heads, queue);
    if ((retired && position < retired->high) || (needed && !needed(queue, position, context)))
        return SB_OK;
    return sb_journal_stage(journal, record_kind(head), queue, position,
                            (const unsigned char *)head + HEAD, head->length);
}

int64_t sb_journal_compact(sb_journal *journal, int64_t share, int64_t bytes,
                           sb_journal_needed needed, void *context)
{
    int64_t bad, code = SB_OK;
    int wrong;
    if (journal->current.file < 0 || share < 0 || share > 100)
        return fail(SB_INVALID, "a share is from 0 to 100 percent, of a journal that has begun");
    segments_learn(journal);
    if (!journal->compaction.reading)
        code = begin(journal, share);
    int64_t most = sb_journal_staged(journal) + bytes;
    while (code == SB_OK && sb_journal_staged(journal) < most) {
        reader *in = &journal->compaction.segment;
        int64_t at = journal->compaction.offset;
        segment_state *of = segment_with(journal, in->serial);
        if (!of || at == journal->compaction.end) { /* or it was let go of meanwhile */
            if (of)
                of->moved = journal->frame.records ? journal->commits : journal->commits - 1;
            compaction_end(journal);
            return SB_OK;
        }
        if (at == journal->compaction.frame_end) {
            int64_t end = reader_frame(in, at, journal->compaction.number++, &bad, &wrong);
            if (end == 0) { /* what cannot be moved stays, and is told of by the statistics */
                of->state = SEGMENT_DAMAGED;
                compaction_end(journal);
                return SB_OK;
            }
            journal->compaction.frame_end = end;
        }
        const record_head *head = reader_again(in, at);
        code = move(journal, head, needed, context);
        if (code == SB_OK)
            journal->compaction.offset += record_bytes(head->length);
    }
    return code;
}
