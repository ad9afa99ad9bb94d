/* One turn of the journaler: gather, one write, one sync, then the journal's gates move, and those
 * of replicas when they answer (unfinished.c).
 *
 * The fence is looked at before the disk is written and after it was synced (journaler.c).
 *
 * While an end that counts has too much in flight, nothing is written but who is live and in sync:
 * that may say that this end counts no more, and there are few such records, all of them small. */

#define _GNU_SOURCE

#include "base/base.h"
#include "broker/broker.h"
#include "broker/journaler.h"
#include "commit/commit.h"
#include "journal/end.h"
#include "journal/journal.h"

/* Programs on other hosts have put it there by a connection of their own. */
static void unmap_what_was_read(sb_journaler *journaler)
{
    if (journaler->bytes - journaler->mapped < MAPPED_BYTES)
        return;
    connections_unmap();
    journaler->mapped = journaler->bytes;
}

static int64_t commit(sb_journaler *journaler)
{
    int64_t code = fence_check(&journaler->fence);
    if (code == SB_OK)
        code = sb_journal_commit(journaler->journal);
    while (code == SB_DISK_FULL) {
        /* nothing is lost: it stays staged, publishers wait, and what they publish waits in
         * rings */
        code = journaler_wait_for_room(journaler, code);
        if (code == SB_OK) /* consumers of what is confirmed make room */
            code = unfinished_look(journaler);
        if (code != SB_OK) /* also if it is stopped, and the disk still full */
            break;
        code = journaler_make_room(journaler);
        if (code == SB_OK)
            code = journal_commit_full(journaler->journal, journaler_may_borrow(journaler));
    }
    if (code == SB_OK)
        code = fence_check(&journaler->fence);
    if (code != SB_OK)
        return code;
    journaler_tell_room(journaler); /* before whoever waits goes on */
    journaler->commits++;
    unplaced_committed(journaler);
    code = unfinished_note(journaler);
    if (code == SB_OK)
        standing_committed(journaler);
    if (code == SB_OK)
        code = unfinished_confirm(journaler);
    unmap_what_was_read(journaler);
    return code;
}

/* Write what is new: how many bytes of the log, or a code. */
int64_t journaler_turn(sb_journaler *journaler, bool all)
{
    journaler_beat(journaler);
    const standing_look asked = standing_seen(journaler);
    standing_serves(journaler);
    int64_t code = fence_lease(&journaler->fence); /* also if nothing is to be done */
    if (code == SB_OK)
        code = fence_look(&journaler->fence);
    if (code == SB_OK)
        code = unfinished_look(journaler);
    bool is_full = code == SB_OK && !ends_have_room(journaler->ends);
    if (is_full && !asked.is_new)
        return SB_OK; /* until one is further, or dropped */
    if (code == SB_OK)
        code = standing_stage(journaler);
    if (code == SB_OK && !is_full && !asked.is_held)
        code = journaler_stage_all(journaler, all || asked.hold, sb_system_clock());
    if (code != SB_OK)
        return code;
    if (asked.hold && !is_full && journaler->marked != asked.hold) {
        journaler->marked = asked.hold;
        journaler_mark(journaler);
    }
    int64_t staged = sb_journal_staged(journaler->journal);
    code = staged ? commit(journaler) : SB_OK;
    if (code == SB_OK && is_full)
        return staged; /* nothing else is written, so it is not known that nothing else is there */
    if (code == SB_OK)
        code = journaler_list_anew(journaler);
    if (code != SB_OK)
        return code;
    if (!staged && journaler->owes)
        journaler_tell_room(journaler);
    journaler->ahead = 0;
    if (!asked.hold || !staged || !journaler_is_behind(journaler)) /* it may take several frames */
        standing_rests(journaler, asked.hold);
    journaler->whole = journaler->begun;
    unfinished_whole(journaler);
    return staged;
}
