/* Frames that the disk has and that some replica does not have yet, the oldest first.
 *
 * The journal's gates move when the disk has a frame, and those of a replica when it is done with
 * it (replica.c).  So of each frame it is remembered where gates go, and how many transactions are
 * whole with it.  With the disk alone it is forgotten at once.  What only the files of the journal
 * need is done when it is noted: which messages they need no more, and which ids they list. */

#define _GNU_SOURCE
#include <stdlib.h>

#include "base/base.h"
#include "broker/broker.h"
#include "broker/journaler.h"
#include "commit/commit.h"
#include "journal/end.h"
#include "journal/journal.h"
#include "vhost/vhost.h"

static void free_all(unfinished *first)
{
    while (first) {
        unfinished *freed = first;
        first = freed->next;
        free(freed->moves);
        free(freed);
    }
}

static unfinished *taken_from_spares(sb_journaler *journaler)
{
    unfinished *made = journaler->spare_frames;
    if (!made)
        return calloc(1, sizeof *made);
    journaler->spare_frames = made->next;
    made->next = NULL;
    made->count = 0;
    return made;
}

static void note_queue(sb_journaler *journaler, followed *each, unfinished *frame)
{
    if (each->cursor.position != each->written) {
        each->written = each->cursor.position;
        frame->moves[frame->count++] = (gate_move){each, each->written};
        followed_count_durable(each);
    }
    dedup_log_committed(&each->once, journaler->journal);
    if (each->retired > 0)
        sb_journal_retire(journaler->journal, each->number, each->retired);
}

static void append(sb_journaler *journaler, unfinished *made)
{
    if (journaler->last_frame)
        journaler->last_frame->next = made;
    else
        journaler->first_frame = made;
    journaler->last_frame = made;
    for (int64_t each = 0; each < REPLICAS_MAX; each++)
        if (journaler->replicas[each].has_gates && !journaler->replicas[each].next)
            journaler->replicas[each].next = made;
}

int64_t unfinished_note(sb_journaler *journaler)
{
    unfinished *made = taken_from_spares(journaler);
    if (!made || !ROOM_FOR(made->moves, made->room, journaler_concerned(journaler))) {
        free_all(made);
        return fail_system("memory for a frame in flight");
    }
    journaler->noted = made->number = journal_last_frame(journaler->journal);
    made->whole = journaler->begun;
    for (int64_t each = 0; each < journaler_concerned(journaler); each++)
        note_queue(journaler, journaler_concerns(journaler, each), made);
    append(journaler, made);
    journaler->synced = made;
    return SB_OK;
}

int64_t unfinished_note_all(sb_journaler *journaler)
{
    unfinished *made = taken_from_spares(journaler);
    if (!made || !ROOM_FOR(made->moves, made->room, journaler->count)) {
        free_all(made);
        return fail_system("memory for a frame in flight");
    }
    made->number = journaler->noted;
    made->whole = journaler->last_frame ? journaler->last_frame->whole : journaler->durable;
    for (int64_t each = 0; each < journaler->count; each++)
        made->moves[made->count++] =
            (gate_move){journaler->queues[each], journaler->queues[each]->written};
    append(journaler, made);
    return SB_OK;
}

static void tell_levels(sb_journaler *journaler)
{
    commit_gate_journaled(&journaler->commit_gate, journaler->durable, replicas_whole(journaler));
}

void unfinished_whole(sb_journaler *journaler)
{
    journaler->durable = journaler->begun;
    if (journaler->last_frame)
        journaler->last_frame->whole = journaler->begun;
    for (int64_t each = 0; each < REPLICAS_MAX; each++)
        if (!journaler->replicas[each].next)
            journaler->replicas[each].whole = journaler->begun;
    tell_levels(journaler);
}

/* What the disk has. */
static int64_t move_gates(sb_journaler *journaler, const unfinished *frame)
{
    for (int64_t each = 0; each < frame->count; each++) {
        followed *moved = frame->moves[each].queue;
        sb_cursor at = moved->cursor;
        at.position = frame->moves[each].position;
        if (sb_cursor_release(&at) < 0)
            return fail(SB_STALE, "queue '%s': its gate was taken from us", moved->queue->name);
        moved->safe = at.position;
        sb_port_gate_moved(&moved->port);
    }
    journaler->durable = frame->whole;
    return SB_OK;
}

static bool is_wanted(const sb_journaler *journaler, const unfinished *frame)
{
    for (int64_t each = 0; each < REPLICAS_MAX; each++)
        if (journaler->replicas[each].next == frame)
            return true;
    return false;
}

/* Those that all have; replicas are done with them in order. */
static void let_go(sb_journaler *journaler)
{
    unfinished *frame;
    while ((frame = journaler->first_frame) && !is_wanted(journaler, frame)) {
        journaler->first_frame = frame->next;
        if (!journaler->first_frame)
            journaler->last_frame = NULL;
        frame->next = journaler->spare_frames;
        journaler->spare_frames = frame;
    }
}

int64_t unfinished_confirm(sb_journaler *journaler)
{
    /* first: who counts by now has a say in the last frame */
    int64_t code = replicas_look(journaler);
    if (code == SB_OK && journaler->synced)
        code = move_gates(journaler, journaler->synced);
    journaler->synced = NULL;
    if (code != SB_OK)
        return code;
    replicas_move(journaler);
    let_go(journaler);
    tell_levels(journaler);
    return SB_OK;
}

int64_t unfinished_look(sb_journaler *journaler)
{
    char line[END_LINE_ROOM];
    ends_drop_overdue(journaler->ends, sb_system_clock());
    while (ends_dropped(journaler->ends, line))
        log_note(journaler->connection, "journal: %s; what waited for it alone goes on", line);
    if (!replicas_have_news(journaler))
        return SB_OK;
    int64_t code = fence_check(&journaler->fence);
    return code == SB_OK ? unfinished_confirm(journaler) : code;
}

void unfinished_forget(sb_journaler *journaler, const followed *gone)
{
    for (unfinished *frame = journaler->first_frame; frame; frame = frame->next)
        for (int64_t each = 0; each < frame->count; each++)
            if (frame->moves[each].queue == gone)
                frame->moves[each].queue = NULL;
}

void unfinished_free(sb_journaler *journaler)
{
    free_all(journaler->first_frame);
    free_all(journaler->spare_frames);
    journaler->first_frame = journaler->last_frame = journaler->spare_frames = NULL;
    journaler->synced = NULL;
}
