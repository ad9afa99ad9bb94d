/* The journaler: one thread of the broker that follows all durable queues and writes what is new
 * into the journal.  Gather, one write, one sync, then the gates move: whatever came meanwhile is
 * in the next frame, so commits are shared by nature.  A large frame is handed to the disk bit by
 * bit while it is gathered, so that both work at once; the sync is one, at its end.
 *
 * This file has the thread, its beginning and its end; journaler.h says what is in the others.
 *
 * All that a turn writes stood in the rings at one moment at which no transaction was half way
 * (commit/gate.c): each queue up to its tail, and what was retired then.  If a transaction was
 * committed since the last turn, all of that is one frame, however large, with what is done with
 * above the heads.
 *
 * What is retired is written with or after the messages (snapshot.c).  But a message is never
 * written before the head that made room for it, so that a reader needs no more slots than the ring
 * has.
 *
 * Whoever was stopped for so long that another host took over finds that out at its fence
 * (base/fence.c), before it writes, each time, and after the sync.
 *
 * Whoever is live by a lease writes and confirms until that runs out, and looks at its end at the
 * same two places.  A lease that has run out is over, also if its end is moved afterwards: whoever
 * moves it cannot know that we have not looked in between.
 *
 * All of it is done in this thread; the others look at `code`, and move `control` to wake it. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "broker/broker.h"
#include "broker/journaler.h"
#include "commit/commit.h"
#include "journal/audit.h"
#include "journal/end.h"
#include "journal/format.h"
#include "journal/journal.h"
#include "repair/repair.h"
#include "vhost/vhost.h"

#define IDLE_NS 100000000
#define SPIN_NS 50000      /* after work: about as long as being woken takes */

void journaler_beat(sb_journaler *journaler)
{
    if (journaler->beat)
        atomic_store_explicit(journaler->beat, sb_system_clock(), memory_order_relaxed);
}

void journaler_told(sb_journaler *journaler, int64_t code)
{
    if (atomic_exchange(&journaler->code, code) != code)
        sb_system_wake((int64_t)(intptr_t)&journaler->code, INT32_MAX);
}

/* --- the thread ------------------------------------------------------------------------------- */

/* The bell is armed: is there something to do?  (core/bell.py has the handshake.) */
static bool is_quiet(sb_journaler *journaler)
{
    bool quiet = true;
    ready_take_rung(&journaler->ready);
    for (int64_t each = journaler->ready.count - 1; each >= 0 && quiet; each--) {
        followed *one = journaler->ready.ready[each]->of;
        quiet = followed_is_held_back(journaler, one) ||
                ready_rest(&journaler->ready, &one->ready, &one->cursor);
    }
    return quiet && commit_gate_begun(journaler->connection) == journaler->whole &&
           !following_is_behind(&journaler->following);
}

/* Between two long sleeps somebody has to look after the queues: these are as good as any. */
static void repair_queues(sb_journaler *journaler)
{
    for (int64_t each = 0; each < journaler->count; each++)
        journaler->waits[each] = (sb_wait){.queue = journaler->queues[each]->queue};
    rings_repair(journaler->waits, journaler->count);
}

static void rest(sb_journaler *journaler)
{
    int64_t seen = atomic_load(&journaler->control), now = sb_system_clock();
    int64_t overdue = ends_drop_overdue(journaler->ends, now);
    int64_t until = overdue < now + IDLE_NS ? overdue : now + IDLE_NS;
    bool is_full = !ends_have_room(journaler->ends);
    const standing_look asked = standing_seen(journaler);
    bool is_stuck = is_full || asked.is_held;
    const system_word words[] = {{(int64_t)(intptr_t)&journaler->control, seen},
                                 ready_armed(&journaler->ready)};
    if ((!is_stuck && !is_quiet(journaler)) || replicas_have_news(journaler) ||
        asked.is_new || (asked.has_hold && !is_full) || asked.serves_again ||
        atomic_load(&journaler->stopping))
        return;
    if (system_wait_any(words, is_stuck ? 1 : 2, until) != SB_EMPTY)
        return;
    repair_queues(journaler);
    if (fence_check(&journaler->fence) != SB_OK)
        return;
    journal_rests(journaler->journal);
    if (journaler->cleared == journaler->commits)
        return; /* nothing can have become dead */
    journaler->cleared = journal_is_known(journaler->journal) ? journaler->commits : -1;
    /* others may need the room; if it fails, a commit says so */
    sb_journal_clear(journaler->journal);
}

/* Whether it pays to go on: some end may be further, or is dropped when its time is over. */
static bool await_ends(sb_journaler *journaler)
{
    int64_t seen = atomic_load(&journaler->control), now = sb_system_clock();
    int64_t overdue = ends_drop_overdue(journaler->ends, now);
    int64_t left = overdue < now + IDLE_NS ? overdue - now : IDLE_NS;
    if (!journaler->first_frame && ends_have_room(journaler->ends))
        return false;
    if (!replicas_have_news(journaler) && overdue != INT64_MAX)
        sb_system_wait((int64_t)(intptr_t)&journaler->control, seen, left);
    return true;
}

/* Publishers may go on, and what comes meanwhile is the next one's. */
void journaler_mark(sb_journaler *journaler)
{
    for (int64_t each = 0; each < journaler->count; each++) {
        followed *one = journaler->queues[each];
        one->until = queue_is_gone(one->queue) ? 0 : sb_port_true_tail(&one->port);
    }
}

bool journaler_is_behind(const sb_journaler *journaler)
{
    bool behind = false;
    for (int64_t each = 0; each < journaler->count; each++)
        behind |= journaler->queues[each]->safe < journaler->queues[each]->until;
    return behind;
}

/* Write what is there now. */
static int64_t drain(sb_journaler *journaler)
{
    if (standing_seen(journaler).hold)
        return SB_OK; /* what is not written is for nobody */
    journaler_mark(journaler);
    int64_t code;
    do
        code = journaler_turn(journaler, true);
    while ((code > 0 || (code == SB_OK && await_ends(journaler))) &&
           journaler_is_behind(journaler));
    int64_t last = journaler->noted;
    while (code >= 0 && journaler->first_frame && journaler->first_frame->number <= last) {
        await_ends(journaler);
        code = unfinished_look(journaler);
    }
    return code;
}

/* A segment to write into, as soon as there is room for one; then all that a start does. */
static int64_t begin_late(sb_journaler *journaler)
{
    int64_t code;
    while ((code = sb_journal_begin(journaler->journal, journaler->beginning.epoch)) ==
           SB_DISK_FULL)
        if ((code = journaler_wait_for_room(journaler, code)) != SB_OK)
            return code;
    journaler->owes = code == SB_OK && journal_owes(journaler->journal);
    if (code == SB_OK)
        code = journaler_turn(journaler, false);
    return code >= 0 && journaler->audits ? journaler_begin_audit(journaler) : code;
}

static void *work(void *context)
{
    sb_journaler *journaler = context;
    int64_t code = journaler->begins ? begin_late(journaler) : SB_OK, spin_end = 0;
    while (code >= SB_OK && !atomic_load(&journaler->stopping)) {
        code = journaler_turn(journaler, false);
        int64_t now = sb_system_clock();
        if (code > 0 && !journaler->first_frame) /* else the threads that answer need it more */
            spin_end = now + journaler->spin_ns;
        else if (code == SB_OK && now >= spin_end)
            rest(journaler);
    }
    if (code >= 0)
        code = drain(journaler);
    if (code < 0) {
        log_note(journaler->connection, "journal: %s: %s", sb_strerror(code), sb_detail(code));
        snprintf(journaler->why, sizeof journaler->why, "%s", sb_detail(code));
    }
    replicas_put_down(journaler);
    ends_close(journaler->ends, code < 0 ? sb_detail(code) : "the journaler was stopped");
    /* stopped while the disk is full: what is not written is not confirmed, and waits in the
     * rings */
    journaler_told(journaler, code < 0 && code != SB_DISK_FULL ? code : SB_CLOSED);
    return NULL;
}

/* Who is inside a commit may wait for room, and that for who takes what ends are done with.  What
 * is wrong is found again by the turn. */
static void look_at_ends(void *context)
{
    unfinished_look(context);
}

/* --- beginning and end ------------------------------------------------------------------------ */

int64_t sb_journaler_prepare(const char *folder, int64_t segment_bytes, const void *node,
                             sb_journaler **made)
{
    sb_journaler *journaler = calloc(1, sizeof *journaler);
    if (!journaler)
        return fail_system("memory for a journaler");
    const sb_journal_options options = {.segment_bytes = segment_bytes, .node = node,
                                        .snapshot = journaler_snapshot,
                                        .context = journaler,
                                        .reserve = 1};
    int64_t code = sb_journal_prepare(folder, &options, &journaler->journal);
    if (code != SB_OK) {
        free(journaler);
        return code;
    }
    journal_audited_by(journaler->journal,
                       &(journal_auditor){journaler_found, journaler_found_damage, journaler});
    pthread_mutex_init(&journaler->standing.mutex, NULL);
    journaler->standing.event = -1;
    journaler->ends = journal_ends(journaler->journal);
    ends_wake(journaler->ends, &journaler->control);
    journaler->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    journaler->fence.file = -1;
    journaler->frame_bytes = FRAME_BYTES;
    if (segment_bytes > 0 && segment_bytes / 2 < FRAME_BYTES)
        journaler->frame_bytes = segment_bytes / 2;
    journaler->spin_ns = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? SPIN_NS : 0;
    *made = journaler;
    return SB_OK;
}

void sb_journaler_watched(sb_journaler *journaler, int fence, int64_t *beat)
{
    journaler->fence.file = fence;
    journaler->beat = (_Atomic int64_t *)beat;
}

int64_t sb_journaler_placed(sb_journaler *journaler, const char *folder, const char *fence)
{
    fence_end(&journaler->fence); /* of a start that failed */
    int64_t code = fence_place(&journaler->fence, journaler->folder, folder);
    return code == SB_OK ? fence_place(&journaler->fence, journaler->fence.file, fence) : code;
}

void sb_journaler_leased(sb_journaler *journaler, const int64_t *until_ns)
{
    journaler->fence.lease = (const _Atomic int64_t *)until_ns;
}

sb_journal *sb_journaler_journal(sb_journaler *journaler)
{
    return journaler->journal;
}

static void *begin(void *context)
{
    sb_journaler *journaler = context;
    int64_t code = sb_journal_begin(journaler->journal, journaler->beginning.epoch);
    snprintf(journaler->beginning.why, sizeof journaler->beginning.why, "%s", sb_detail(code));
    journaler->beginning.code = code;
    return NULL;
}

int64_t sb_journaler_begin(sb_journaler *journaler, int64_t epoch)
{
    if (journaler->runs || journaler->beginning.runs)
        return fail(SB_INVALID, "the journaler has begun already");
    journaler->beginning.epoch = epoch;
    int64_t code = thread_start(&journaler->beginning.thread, begin, journaler,
                                "the journal's beginning");
    journaler->beginning.runs = code == SB_OK;
    return code;
}

static int64_t has_begun(sb_journaler *journaler, int64_t epoch)
{
    if (!journaler->beginning.runs)
        return sb_journal_begin(journaler->journal, epoch);
    pthread_join(journaler->beginning.thread, NULL);
    journaler->beginning.runs = false;
    if (journaler->beginning.code != SB_OK)
        return fail(journaler->beginning.code, "%s", journaler->beginning.why);
    if (journaler->beginning.epoch != epoch)
        return fail(SB_INVALID, "the journaler has begun with another epoch");
    return SB_OK;
}

int64_t sb_journaler_lock(sb_journaler *journaler, sb_connection *connection)
{
    if (journaler->runs)
        return fail(SB_INVALID, "the journaler runs already");
    if (!participant_lock_journal(connection))
        return fail(SB_IN_USE, "another broker writes the journal of vhost '%s' already",
                    connection->vhost);
    return SB_OK;
}

void sb_journaler_unlock(sb_connection *connection)
{
    participant_unlock_journal(connection);
}

int64_t sb_journaler_start(sb_journaler *journaler, sb_connection *connection, int64_t epoch,
                           const sb_found *found)
{
    int64_t code;
    journaler->connection = connection;
    participant_repairs(connection);
    journaler->whole = journaler->durable = commit_gate_whole(connection);
    if (unplaced_was_left(connection))
        journaler->whole = -1; /* what the former one did not have as messages is one frame again */
    journaler->begun = 0; /* no moment was seen yet */
    journaler->commit_gate.connection = connection;
    journaler->commit_gate.meanwhile = look_at_ends;
    journaler->commit_gate.context = journaler;
    journaler->commit_gate.is_closed = true; /* by a former one, perhaps */
    fence_begin(&journaler->fence, epoch);
    atomic_store(&journaler->stopping, 0);
    atomic_store(&journaler->code, SB_OK);
    code = journaler_follow(journaler);
    if (code == SB_OK && found)
        code = sb_journal_adopt(journaler->journal, found);
    if (code == SB_OK)
        code = has_begun(journaler, epoch);
    journaler->begins = code == SB_DISK_FULL;
    if (journaler->begins) {
        journaler->beginning.epoch = epoch;
        code = SB_OK;
    }
    /* what is done with above the heads is in the segments of before, as far as it must be: to look
     * through all that is queued can wait, publishers cannot */
    journaler->above_at = sb_system_clock();
    if (code == SB_OK && !journaler->begins) {
        journaler->owes = journal_owes(journaler->journal);
        atomic_store(&journaler->stopping, 1); /* a full disk is waited for by the thread */
        /* what is wrong is told to the caller, not to the log */
        code = journaler_turn(journaler, false);
        atomic_store(&journaler->stopping, 0);
        code = code == SB_DISK_FULL ? SB_OK : code;
    }
    journaler->audits = !found;
    if (code >= 0 && !journaler->begins && journaler->audits)
        code = journaler_begin_audit(journaler);
    if (code >= 0)
        code = thread_start(&journaler->thread, work, journaler, "the journaler");
    if (code < 0) {
        replicas_put_down(journaler);
        participant_unlock_journal(connection);
        return code;
    }
    journaler->runs = true;
    return SB_OK;
}

int64_t sb_journaler_code(sb_journaler *journaler)
{
    return atomic_load(&journaler->code);
}

int64_t sb_journaler_await(sb_journaler *journaler, int64_t seen, int64_t timeout_ns)
{
    if (atomic_load(&journaler->code) == seen)
        sb_system_wait((int64_t)(intptr_t)&journaler->code, seen, timeout_ns);
    return atomic_load(&journaler->code);
}

const char *sb_journaler_why(sb_journaler *journaler)
{
    return journaler->why;
}

int64_t sb_journaler_stop(sb_journaler *journaler)
{
    if (!journaler->runs)
        return SB_OK;
    atomic_store(&journaler->stopping, 1);
    atomic_fetch_add(&journaler->control, 1);
    sb_system_wake((int64_t)(intptr_t)&journaler->control, 1);
    pthread_join(journaler->thread, NULL);
    journaler->runs = false;
    participant_unlock_journal(journaler->connection);
    int64_t code = atomic_load(&journaler->code);
    return code == SB_CLOSED ? SB_OK : code;
}

void sb_journaler_free(sb_journaler *journaler)
{
    sb_journaler_stop(journaler);
    if (journaler->beginning.runs)
        pthread_join(journaler->beginning.thread, NULL);
    for (int64_t each = 0; each < journaler->count; each++)
        followed_free(journaler->queues[each]);
    following_end(&journaler->following);
    ready_end(&journaler->ready);
    unfinished_free(journaler);
    unplaced_forget(journaler, NULL);
    standing_free(journaler);
    sb_journal_close(journaler->journal);
    audit_end(&journaler->audit);
    fence_end(&journaler->fence);
    if (journaler->folder >= 0)
        close(journaler->folder);
    free(journaler->queues);
    free(journaler->waits);
    free(journaler);
}
