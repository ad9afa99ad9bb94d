/* A full disk: the journaler waits, and what was acknowledged makes room. */

#define _GNU_SOURCE
#include <stdio.h>

#include "base/base.h"
#include "broker/journaler.h"
#include "commit/commit.h"
#include "journal/journal.h"
#include "vhost/vhost.h"

#define DISK_FULL_NS 100000000

/* Heads that have moved on since the moment of the frame that waits.  As long as no queue was
 * deleted meanwhile, no value was replaced by a newer one, and nothing was copied from one queue to
 * another, by a transaction or as a dead letter, they need nothing that came since. */
static bool see_heads(sb_journaler *journaler)
{
    bool replaced = false;
    for (int64_t index = 0; index < journaler->count; index++) {
        followed *each = journaler->queues[index];
        if (queue_is_gone(each->queue))
            continue;
        while (sb_port_reclaim(&each->port) > 0)
            continue;
        bool keeps = followed_keeps_head(journaler, each);
        each->seen = keeps ? each->head : retired_head(each->queue);
        replaced |= each->queue->last_value && each->seen > each->head;
    }
    return !replaced && commit_gate_begun(journaler->connection) == journaler->begun &&
           !following_is_behind(&journaler->following);
}

/* Otherwise a head goes only with all that was published before it moved: into the same frame. */
static int64_t stage_heads(sb_journaler *journaler, bool suffice)
{
    if (!suffice)
        return journaler_stage_all(journaler, true, sb_system_clock());
    int64_t code = SB_OK;
    for (int64_t index = 0; index < journaler->count && code == SB_OK; index++)
        code = followed_stage_retired(journaler, journaler->queues[index]);
    return code;
}

/* What was acknowledged makes segments dead.  It is written ahead of what waits, where each segment
 * keeps room for that; or together with it, into the reserve, and so if that has a transaction. */
int64_t journaler_make_room(sb_journaler *journaler)
{
    int64_t code = SB_OK;
    bool suffice = see_heads(journaler), ahead = suffice && journaler->begun == journaler->whole;
    for (int64_t index = 0; index < journaler->count && suffice && code == SB_OK; index++) {
        followed *each = journaler->queues[index];
        each->head = each->seen > each->head ? each->seen : each->head;
        code = journal_retire_then(journaler->journal, each->number, each->head);
    }
    if (code == SB_OK && ahead && journal_relieve(journaler->journal) > 0)
        return SB_OK;
    if (code == SB_OK)
        code = stage_heads(journaler, suffice);
    for (int64_t index = 0; index < journaler->count && code == SB_OK; index++) {
        followed *each = journaler->queues[index];
        code = journal_retire_then(journaler->journal, each->number, each->retired);
    }
    return code;
}

bool journaler_may_borrow(sb_journaler *journaler)
{
    for (int64_t index = 0; index < journaler->count && journaler->inboxes; index++) {
        followed *each = journaler->queues[index];
        if (followed_comes_out_of_pages(each) && !queue_is_gone(each->queue) &&
            sb_port_true_tail(&each->port) > each->written)
            return true;
    }
    return false;
}

void journaler_tell_room(sb_journaler *journaler)
{
    int64_t now = sb_system_clock();
    if (!journaler->owes || now - journaler->owes_at >= DISK_FULL_NS) {
        journaler->owes_at = now;
        journaler->owes = journaler->inboxes && journal_owes(journaler->journal);
    }
    if (journaler->owes && atomic_load(&journaler->code) != SB_DISK_FULL)
        snprintf(journaler->why, sizeof journaler->why,
                 "only what comes out of pages is written, in the "
                 "room that was set aside for it");
    journaler_told(journaler, journaler->owes ? SB_DISK_FULL : SB_OK);
}

int64_t journaler_wait_for_room(sb_journaler *journaler, int64_t code)
{
    if (atomic_load(&journaler->code) != SB_DISK_FULL) {
        log_note(journaler->connection, "journal: %s", sb_detail(code));
        snprintf(journaler->why, sizeof journaler->why, "%s", sb_detail(code));
    }
    journaler_told(journaler, SB_DISK_FULL);
    if (atomic_load(&journaler->stopping))
        return code;
    sb_system_wait((int64_t)(intptr_t)&journaler->control, atomic_load(&journaler->control),
                   DISK_FULL_NS);
    journaler_beat(journaler);
    return fence_check(&journaler->fence);
}
