/* A frame of its own for the list of the segments that are needed, when one can go before the next
 * segment begins. */

#define _GNU_SOURCE
#include <stdlib.h>

#include "base/base.h"
#include "journal/format.h"
#include "journal/journal.h"
#include "journal/writer.h"

/* What was written ahead of a frame that goes elsewhere is not to be found behind the one that
 * comes in its place. */
static int64_t blank_ahead(const sb_journal *journal, const frame *staged)
{
    static const unsigned char zeros[JOURNAL_PAGE];
    int64_t code = SB_OK, page_at = journal->end & -JOURNAL_PAGE;
    for (int64_t at = JOURNAL_PAGE; at < staged->ahead && code == SB_OK; at += JOURNAL_PAGE)
        code = write_all(journal->current.file, zeros, JOURNAL_PAGE, page_at + at);
    return code;
}

static const tally no_heads;

/* A frame of its own, ahead of what is staged, with these heads and the list of what is needed
 * then. */
static int64_t write_list(sb_journal *journal, const tally *heads)
{
    frame alone, staged = journal->frame;
    int64_t code = frame_beside(&alone, &staged);
    for (int64_t each = 0; each < heads->count && code == SB_OK; each++)
        if (heads->entries[each].high < SB_JOURNAL_ALL)
            code = frame_add(&alone, &(record_parts){.kind = SB_RECORD_RETIRED, .body = "",
                                                     .queue = heads->entries[each].queue,
                                                     .position = heads->entries[each].high});
    if (code == SB_OK)
        code = list_stage(journal, &alone);
    int64_t bytes = (journal->end & -JOURNAL_PAGE) + frame_written_bytes(alone.filled);
    if (code == SB_OK && bytes > journal->current.bytes)
        code = SB_EMPTY; /* no room for it here: the next segment's list will do */
    if (code == SB_OK)
        code = blank_ahead(journal, &staged);
    if (code == SB_OK) {
        journal->frame.ahead = 0;
        code = journal_write_frame(journal, &alone);
    }
    if (code == SB_OK)
        code = journal_sync(journal);
    if (code != SB_OK) {
        frame_free(&alone);
        return code;
    }
    code = frame_append(&alone, &staged);
    if (code != SB_OK) { /* it cannot be staged where it must be now, and is not to be lost */
        frame_free(&alone);
        journal->failed = SB_JOURNAL_FAILED;
        return journal_fatal(journal, fail(SB_JOURNAL_FAILED, "no memory to move what is staged"));
    }
    journal->frame = alone;
    frame_free(&staged);
    return SB_OK;
}

int64_t sb_journal_clear(sb_journal *journal)
{
    int64_t code = journal_usable(journal);
    if (code != SB_OK)
        return code;
    segments_learn(journal);
    if (journal->fresh || journal->in_snapshot || segments_dead(journal) == 0)
        return 0;
    code = write_list(journal, &no_heads);
    if (code != SB_OK)
        return code == SB_EMPTY ? 0 : code;
    return segments_recycle(journal);
}

int64_t journal_relieve(sb_journal *journal)
{
    tally before = {0};
    int64_t code = journal_usable(journal);
    if (code != SB_OK)
        return code;
    segments_learn(journal);
    if (journal->fresh || journal->in_snapshot)
        return 0;
    code = heads_advance(journal, &before, false);
    if (code != SB_OK)
        return code;
    bool any = segments_dead(journal) > 0;
    code = any ? write_list(journal, &journal->then) : SB_EMPTY;
    if (code != SB_OK) {
        heads_restore(journal, &before);
        return code == SB_EMPTY || code == SB_DISK_FULL ? 0 : code;
    }
    tally_free(&before);
    return segments_recycle(journal);
}

int64_t journal_list_anew(sb_journal *journal)
{
    int64_t code = journal_usable(journal);
    segments_learn(journal);
    if (code != SB_OK || journal->fresh || journal->in_snapshot)
        return code;
    code = write_list(journal, &no_heads);
    if (code != SB_OK)
        return code == SB_EMPTY ? SB_OK : code;
    segments_recycle(journal);
    return SB_OK;
}
