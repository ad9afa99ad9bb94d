/* What the journal has lost, found by its audit (audit.c) and written anew, a frame at a time. */

#define _GNU_SOURCE

#include "base/base.h"
#include "broker/broker.h"
#include "broker/journaler.h"
#include "journal/audit.h"
#include "vhost/vhost.h"

void journaler_found(int64_t queue, int64_t first, int64_t last, void *context)
{
    sb_journaler *journaler = context;
    audit_found(&journaler->audit, queue, first, last);
}

void journaler_found_damage(const char *what, void *context)
{
    sb_journaler *journaler = context;
    journaler->audit.damaged++;
    log_note(journaler->connection, "journal: %s: what is needed of it is written anew from memory",
             what);
}

int64_t journaler_begin_audit(sb_journaler *journaler)
{
    int64_t code = SB_OK;
    for (int64_t index = 0; index < journaler->count && code == SB_OK; index++) {
        const followed *each = journaler->queues[index];
        int64_t head = retired_head(each->queue), least = each->adopted - each->queue->slots;
        code = audit_add(&journaler->audit, each->number, head > least ? head : least,
                         each->adopted);
    }
    audit_begin(&journaler->audit);
    return code;
}

/* Lists of ids that a damaged segment had are in no other. */
static int64_t stage_lists(sb_journaler *journaler)
{
    int64_t code = SB_OK;
    journaler->passes = true;
    for (int64_t index = 0; index < journaler->count && code == SB_OK; index++) {
        followed *each = journaler->queues[index];
        dedup_log_again(&each->once);
        code = dedup_log_stage(&each->once, &each->port, each->cursor.position,
                                journaler->journal);
    }
    return code;
}

static void end_audit(sb_journaler *journaler)
{
    journal_audit_done(journaler->journal);
    journaler->lists_anew = true;
    audit_end(&journaler->audit);
}

int64_t journaler_stage_lost(sb_journaler *journaler)
{
    audit *audit = &journaler->audit;
    int64_t code = SB_OK;
    if (!audit->runs)
        return SB_OK;
    if (!audit->is_read) {
        audit->is_read = journal_audit(journaler->journal);
        if (audit->is_read && audit->damaged)
            code = stage_lists(journaler);
    }
    if (!audit->is_read)
        return SB_OK;
    int64_t most = sb_journal_staged(journaler->journal) + FRAME_BYTES;
    for (int64_t index = 0; index < journaler->count && code == SB_OK; index++) {
        followed *each = journaler->queues[index];
        code = audit_stage(audit, each->queue, &each->port, each->number, journaler->journal, most);
    }
    if (code == SB_OK)
        end_audit(journaler);
    return code == SB_EMPTY ? SB_OK : code;
}

/* It is committed.  From now on the ends of all segments of before are known, also to whoever comes
 * after us. */
int64_t journaler_list_anew(sb_journaler *journaler)
{
    if (!journaler->lists_anew)
        return SB_OK;
    if (journaler->audit.missed)
        log_note(journaler->connection, "journal: %lld confirmed messages were missing in it, and "
                 "are written anew from memory", (long long)journaler->audit.missed);
    journaler->audit.missed = 0;
    int64_t code = fence_check(&journaler->fence);
    if (code == SB_OK)
        code = journal_list_anew(journaler->journal);
    journaler->lists_anew = code == SB_DISK_FULL;
    return code == SB_DISK_FULL ? SB_OK : code;
}
