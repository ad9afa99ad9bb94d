/* Compaction, as Python does it (journal.py): the few messages of a segment that are still needed
 * are staged anew, so that its file can be used again.  Here is which segment is worth it, and
 * which of its records are needed. */

#define _GNU_SOURCE

#include "base/base.h"
#include "journal/format.h"
#include "journal/journal.h"
#include "journal/writer.h"

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

int64_t sb_journal_sparse(sb_journal *journal, int64_t share, int64_t *end)
{
    if (journal->current.file < 0 || share < 0 || share > 100)
        return fail(SB_INVALID, "a share is from 0 to 100 percent, of a journal that has begun");
    segments_learn(journal);
    for (int64_t each = 0; each < journal->segment_count; each++) {
        const segment_state *of = &journal->segments[each];
        if (!is_worth_it(journal, of, share))
            continue;
        *end = of->end;
        return of->serial;
    }
    return SB_EMPTY;
}

static int64_t move(sb_journal *journal, const sb_journal_record *record, sb_journal_needed needed,
                    void *context)
{
    if (!kind_lasts(record->kind))
        return SB_OK;
    const tally_entry *retired = tally_find(&journal->heads, record->queue);
    if ((retired && record->position < retired->high) ||
        (needed && !needed(record->queue, record->position, context)))
        return SB_OK;
    return sb_journal_stage(journal, record->kind, record->queue, record->position, record->body,
                            record->length);
}

int64_t sb_journal_move(sb_journal *journal, const sb_batch *batch, int64_t most,
                        sb_journal_needed needed, void *context)
{
    int64_t at = 0;
    while (at < batch->bytes && sb_journal_staged(journal) < most) {
        const sb_journal_record record = batch_record(batch, at);
        int64_t code = move(journal, &record, needed, context);
        if (code != SB_OK)
            return at > 0 ? at : code;
        at += record_bytes(record.length);
    }
    return at;
}

void sb_journal_moved(sb_journal *journal, int64_t serial, int64_t is_all)
{
    segment_state *of = segment_with(journal, serial);
    if (!of)
        return; /* it was let go of meanwhile */
    if (is_all)
        of->moved = journal->frame.records ? journal->commits : journal->commits - 1;
    else
        of->state = SEGMENT_DAMAGED; /* what cannot be moved stays; the statistics tell of it */
}
