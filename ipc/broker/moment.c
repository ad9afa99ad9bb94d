/* One moment: each queue up to its tail, and what was retired then, seen while no transaction is
 * half way (commit/gate.c).  All that a turn writes stood in the rings at that moment.
 *
 * Most turns look only at queues that have rung.  All are looked at
 *
 *     after a transaction     it is whole in the rings, but who has finished it for another may be
 *                             still about to ring
 *     when heads are written  a message that was dropped was made into another one before, perhaps
 *                             by somebody who is still about to ring
 *     every PASS_NS           somebody was killed before he rang (gather.c)
 *
 * A durable queue that came meanwhile may have a part of a transaction, or what somebody has made
 * of a message that is done with: then it is tried again.  What else is declared and deleted has
 * nothing to do with it, however often that is. */

#define _GNU_SOURCE

#include "base/base.h"
#include "broker/journaler.h"
#include "commit/commit.h"

#define TRIES 4 /* to see a moment without asking others to wait */

static int64_t see_tail(followed *each)
{
    int64_t tail = sb_port_true_tail(&each->port);
    return tail < 0 ? INT64_MAX : tail; /* if it is wrong, the cursor tells */
}

/* A queue that follows one of another broker may begin anew at a later position, once all that it
 * had is confirmed: below that nothing is to be written. */
static void see_head(const sb_journaler *journaler, followed *each)
{
    if (followed_keeps_head(journaler, each))
        return;
    each->head = retired_head(each->queue);
    if (each->cursor.position < each->head)
        each->cursor.position = each->head;
}

/* What was retired, then heads, then tails.  So what has replaced a message, or was made of it
 * before it was dropped, is in the frame that retires it, or was before.  A message that came since
 * may be more than a ring ahead of the head that is written: it has to wait, for there is no slot
 * for it.  None of a transaction is: nobody has committed since. */
static int64_t see_all(sb_journaler *journaler, bool above, bool all)
{
    int64_t code = SB_OK;
    for (int64_t index = 0; index < journaler->count && code == SB_OK; index++)
        code = origin_log_see(&journaler->queues[index]->once.origins);
    for (int64_t index = 0; index < journaler->count && code == SB_OK && above; index++)
        if (!followed_keeps_head(journaler, journaler->queues[index]))
            code = followed_look_above(journaler->queues[index], all);
    for (int64_t index = 0; index < journaler->count; index++)
        see_head(journaler, journaler->queues[index]);
    for (int64_t index = 0; index < journaler->count; index++) {
        followed *each = journaler->queues[index];
        int64_t tail = see_tail(each), most = each->head + each->queue->slots;
        each->tail = tail < most || tail == INT64_MAX ? tail : most;
        if (each->cursor.position < each->tail)
            ready_mark(&journaler->ready, &each->ready);
    }
    return code;
}

/* Whether that is enough: not if a message needs the slot of one that is to be retired first. */
static bool see_rung(sb_journaler *journaler)
{
    ready_take_rung(&journaler->ready);
    for (int64_t index = 0; index < journaler->ready.count; index++) {
        followed *each = journaler->ready.ready[index]->of;
        each->tail = see_tail(each);
        if (each->retired < 0 || each->tail - each->retired > each->queue->slots)
            return false;
    }
    return true;
}

static int64_t see(sb_journaler *journaler, bool passes, bool above, bool all)
{
    journaler->passes = passes || !see_rung(journaler);
    return journaler->passes ? see_all(journaler, above, all) : SB_OK;
}

/* See queues at a moment at which no transaction is half way. */
int64_t journaler_see_a_moment(sb_journaler *journaler, bool passes, bool above)
{
    sb_connection *connection = journaler->connection;
    for (int tries = 0;; tries++) {
        int64_t code = journaler_look_at_queues(journaler);
        int64_t changes = journaler->following.changes;
        if (tries >= TRIES)
            commit_gate_close(&journaler->commit_gate);
        int64_t begun = journaler->begun = commit_gate_begun(connection);
        bool whole = begun != journaler->whole;
        if (code == SB_OK && whole)
            commit_gate_clear(&journaler->commit_gate);
        if (code == SB_OK && whole && begun != commit_gate_begun(connection))
            continue;
        if (code == SB_OK && (whole || journaler->unplaced))
            code = unplaced_see(journaler, above); /* before the tails */
        if (code == SB_OK)
            code = see(journaler, passes || whole, above || whole, above);
        bool is_one = begun == commit_gate_begun(connection);
        if (code == SB_OK && is_one)
            code = journaler_look_at_queues(journaler);
        if (code == SB_OK && (!is_one || changes != journaler->following.changes))
            continue;
        commit_gate_open(&journaler->commit_gate);
        return code;
    }
}
