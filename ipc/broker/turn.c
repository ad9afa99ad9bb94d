/* One turn of the journaler: gather, one write, one sync, then the gates move.
 *
 * The fence is looked at before the disk is written and after it was synced (journaler.c). */

#define _GNU_SOURCE
#include <sys/mman.h>

#include "base/base.h"
#include "broker/broker.h"
#include "broker/journaler.h"
#include "commit/commit.h"
#include "journal/journal.h"

#define MAPPED_BYTES (INT64_C(16) << 20)

static int64_t move_gates(sb_journaler *journaler)
{
    for (int64_t index = 0; index < journaler_concerned(journaler); index++) {
        followed *each = journaler_concerns(journaler, index);
        if (each->cursor.position != each->safe) {
            if (sb_cursor_release(&each->cursor) < 0)
                return fail(SB_STALE, "queue '%s': its gate was taken from us", each->queue->name);
            each->safe = each->cursor.position;
            sb_port_gate_moved(&each->port);
            followed_count_durable(each);
        }
        dedup_log_committed(&each->once, journaler->journal);
        if (each->retired > 0)
            sb_journal_retire(journaler->journal, each->number, each->retired);
    }
    return SB_OK;
}

/* What was read is in our page tables, and if we are killed without an exit helper the kernel takes
 * it out before it lets go of our locks: 70 ms a GiB, in which nobody is live.  With one, it takes
 * the processor from who takes over.  So we do it bit by bit; the memory stays. */
static void unmap_what_was_read(sb_journaler *journaler)
{
    segment *arena = &journaler->connection->arena;
    if (journaler->bytes - journaler->mapped < MAPPED_BYTES)
        return;
    madvise(arena->memory, (size_t)arena->bytes, MADV_DONTNEED);
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
    code = move_gates(journaler);
    unmap_what_was_read(journaler);
    return code;
}

/* Write what is new: how many bytes of the log, or a code. */
int64_t journaler_turn(sb_journaler *journaler, bool all)
{
    journaler_beat(journaler);
    int64_t code = fence_lease(&journaler->fence); /* also if nothing is to be done */
    if (code == SB_OK)
        code = fence_look(&journaler->fence);
    if (code == SB_OK)
        code = journaler_stage_all(journaler, all, sb_system_clock());
    if (code != SB_OK)
        return code;
    int64_t staged = sb_journal_staged(journaler->journal);
    code = staged ? commit(journaler) : SB_OK;
    if (code == SB_OK)
        code = journaler_list_anew(journaler);
    if (code != SB_OK)
        return code;
    if (!staged && journaler->owes)
        journaler_tell_room(journaler);
    journaler->ahead = 0;
    journaler->whole = journaler->begun;
    commit_gate_journaled(&journaler->commit_gate, journaler->whole);
    return staged;
}
