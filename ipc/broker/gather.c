/* What a turn writes, staged: all that was there at one moment (moment.c).
 *
 * Each queue has its share of a frame, so that none waits for another's; but with a transaction,
 * all of the moment is one frame, and of a last-value queue all always is.  What is gathered of a
 * large one is handed to the disk meanwhile. */

#define _GNU_SOURCE

#include "base/base.h"
#include "broker/broker.h"
#include "broker/journaler.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define SHARE_BYTES (INT64_C(16) << 10) /* of it at least for each queue that has something */
#define ALL_BYTES (INT64_C(1) << 62)
#define AHEAD_BYTES (INT64_C(256) << 10) /* handed to the disk while the rest is gathered */
#define RETIRE_NS 10000000 /* how long what is retired may wait for a frame of its own */
#define RETIRE_ABOVE_NS 100000000 /* and what is done with behind a message that is not */
#define PASS_NS 100000000 /* all queues are looked at, rung or not */
#define FEW 64 /* are always looked at: that costs less than a frame for what is retired */

/* A large frame is on its way to the disk before all of it is gathered. */
static int64_t write_ahead(sb_journaler *journaler)
{
    int64_t code = fence_check(&journaler->fence);
    if (code == SB_OK)
        code = sb_journal_ahead(journaler->journal);
    journaler->ahead = sb_journal_staged(journaler->journal);
    return code;
}

bool followed_comes_out_of_pages(const followed *each)
{
    return each->queue->pages;
}

bool followed_is_held_back(const sb_journaler *journaler, const followed *each)
{
    bool whole = journaler->begun != journaler->whole;
    return !whole && journaler->owes && journaler->inboxes && !followed_comes_out_of_pages(each);
}

bool followed_keeps_head(const sb_journaler *journaler, const followed *each)
{
    return each->queue->last_value && followed_is_held_back(journaler, each);
}

/* What may be gathered of a queue: its share, or all that stood there at the moment, if a
 * transaction is in it, or newer values of older ones that its head has passed. */
static int64_t most_of(const followed *each, bool whole, int64_t share)
{
    return whole || each->queue->last_value ? ALL_BYTES : share;
}

static int64_t gather(sb_journaler *journaler, followed *each, int64_t share)
{
    sb_message message;
    int64_t staged = sb_journal_staged(journaler->journal), end = staged + share;
    bool records = recorder_is_asked(&each->recorder);
    while (staged < end) {
        if (each->cursor.position >= each->tail)
            return SB_OK;
        int64_t code = sb_cursor_next(&each->cursor, &message);
        if (code == SB_EMPTY)
            return SB_OK;
        if (code == SB_DAMAGED) {
            log_note(journaler->connection, "queue '%s': message %lld is damaged, and not in the "
                     "journal", each->queue->name, (long long)each->cursor.position);
            each->cursor.position++;
            continue;
        }
        if (code != SB_OK)
            return fail(SB_STALE, "queue '%s': its gate was taken from us", each->queue->name);
        const int64_t position = message.position; /* duplicates were passed over */
        if (position >= each->tail) {
            each->cursor.position = position;
            return SB_OK;
        }
        if (each->retired < 0 || position - each->retired >= each->queue->slots)
            code = followed_stage_retired(journaler, each);
        if (code == SB_OK && journaler->unplaced)
            code = unplaced_has_place(journaler, each, message.chunk);
        if (code == SB_OK)
            code = dedup_log_note(&each->once, &each->port, &message, journaler->journal);
        if (code == SB_OK)
            code = sb_journal_stage(journaler->journal, SB_RECORD_MESSAGE, each->number, position,
                                    message.chunk,
                                    (const char *)message.body + message.length -
                                        (const char *)message.chunk);
        if (code != SB_OK) {
            each->cursor.position = position;
            return code;
        }
        if (records)
            followed_note_published(each, &message);
        journaler->messages++;
        journaler->bytes += message.length;
        staged = sb_journal_staged(journaler->journal);
        if (staged - journaler->ahead >= AHEAD_BYTES && (code = write_ahead(journaler)) != SB_OK)
            return code;
    }
    return SB_OK;
}

/* How many. */
static int64_t has_news(const sb_journaler *journaler)
{
    int64_t busy = 0;
    for (int64_t index = 0; index < journaler->ready.count; index++) {
        const followed *each = journaler->ready.ready[index]->of;
        busy += each->cursor.position < each->tail && !followed_is_held_back(journaler, each);
    }
    return busy;
}

static int64_t share_of_each(const sb_journaler *journaler)
{
    int64_t busy = has_news(journaler);
    int64_t share = busy > 1 ? journaler->frame_bytes / busy : journaler->frame_bytes;
    return share > SHARE_BYTES ? share : SHARE_BYTES;
}

/* Numbers of streams that moved without a message are written when all that stood there is: else
 * later. */
static int64_t stage_origins(sb_journaler *journaler)
{
    int64_t code = SB_OK;
    for (int64_t index = 0; index < journaler->ready.count; index++) {
        const followed *each = journaler->ready.ready[index]->of;
        if (each->cursor.position < each->tail)
            return SB_OK;
    }
    for (int64_t each = 0; each < journaler->count && code == SB_OK; each++)
        code = origin_log_stage_seen(&journaler->queues[each]->once.origins, journaler->journal);
    return code;
}

/* Those that have rung, if they have news; all of them when it is time. */
static int64_t see(sb_journaler *journaler, bool all, bool above, int64_t now)
{
    int64_t since = now - journaler->passed_at;
    bool passes = all || journaler->count <= FEW || since >= PASS_NS;
    int64_t code = journaler_see_a_moment(journaler, passes, above);
    if (code == SB_OK && !journaler->passes && since >= RETIRE_NS && !has_news(journaler))
        code = journaler_see_a_moment(journaler, true, above);
    if (journaler->passes)
        journaler->passed_at = now;
    return code;
}

/* Who has had nothing for so long costs nothing until it rings. */
static void rest_some(sb_journaler *journaler)
{
    for (int64_t index = journaler->ready.count - 1; index >= 0; index--) {
        followed *each = journaler->ready.ready[index]->of;
        bool is_written = each->is_declared && each->written == each->cursor.position;
        if (is_written && each->cursor.position >= each->tail)
            ready_rest(&journaler->ready, &each->ready, &each->cursor);
    }
}

static int64_t stage_ready(sb_journaler *journaler, bool whole)
{
    int64_t code = unplaced_stage(journaler);
    for (int64_t each = 0; each < journaler_concerned(journaler) && code == SB_OK; each++)
        code = followed_stage_news(journaler, journaler_concerns(journaler, each));
    int64_t share = share_of_each(journaler);
    for (int64_t index = 0; index < journaler->ready.count && code == SB_OK; index++) {
        followed *each = journaler->ready.ready[index]->of;
        if (!followed_is_held_back(journaler, each))
            code = gather(journaler, each, most_of(each, whole, share));
    }
    return code == SB_OK ? unplaced_stage_over(journaler) : code;
}

int64_t journaler_stage_all(sb_journaler *journaler, bool all, int64_t now)
{
    bool above = all || now - journaler->above_at >= RETIRE_ABOVE_NS;
    int64_t code = see(journaler, all, above, now);
    if (code == SB_OK)
        code = journaler_stage_catalog(journaler);
    bool whole = journaler->begun != journaler->whole, passes = journaler->passes;
    if (code == SB_OK && passes && journaler->count > FEW)
        rest_some(journaler);
    if (code == SB_OK)
        code = stage_ready(journaler, whole);
    if (code == SB_OK && passes)
        code = stage_origins(journaler);
    if (code == SB_OK)
        code = journaler_stage_lost(journaler);
    bool is_time = above || whole || now - journaler->retired_at >= RETIRE_NS;
    if (code != SB_OK || !passes ||
        (!is_time && !sb_journal_staged(journaler->journal)))
        return code;
    for (int64_t each = 0; each < journaler->count && code == SB_OK; each++)
        code = above || whole ? followed_stage_retired_above(journaler, journaler->queues[each])
                              : followed_stage_retired(journaler, journaler->queues[each]);
    journaler->retired_at = now;
    journaler->above_at = above ? now : journaler->above_at;
    return code;
}
