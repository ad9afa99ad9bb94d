/* Frames that the disk has and that are confirmed when all ends that count are done with them, the
 * oldest first.
 *
 * Of each it is remembered where the gates go then, and how many transactions are whole with it.
 * With the disk alone a frame is done as soon as it is here.  What only the files of the journal
 * need is done at once: which messages they need no more, and which ids they list. */

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

static bool has_room(unfinished *frame, int64_t count)
{
    if (count <= frame->room)
        return true;
    gate_move *moved = realloc(frame->moves, (size_t)count * sizeof *moved);
    if (!moved)
        return false;
    frame->moves = moved;
    frame->room = count;
    return true;
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

int64_t unfinished_note(sb_journaler *journaler)
{
    unfinished *made = taken_from_spares(journaler);
    if (!made || !has_room(made, journaler_concerned(journaler))) {
        free_all(made);
        return fail_system("memory for a frame in flight");
    }
    made->number = journal_last_frame(journaler->journal);
    made->whole = journaler->begun;
    for (int64_t each = 0; each < journaler_concerned(journaler); each++)
        note_queue(journaler, journaler_concerns(journaler, each), made);
    if (journaler->last_frame)
        journaler->last_frame->next = made;
    else
        journaler->first_frame = made;
    journaler->last_frame = made;
    return SB_OK;
}

void unfinished_whole(sb_journaler *journaler)
{
    if (journaler->last_frame)
        journaler->last_frame->whole = journaler->begun;
    else
        commit_gate_journaled(&journaler->commit_gate, journaler->begun);
}

/* The one place where what a frame has is confirmed. */
static int64_t move_gates(sb_journaler *journaler, const unfinished *frame)
{
    for (int64_t each = 0; each < frame->count; each++) {
        followed *moved = frame->moves[each].queue;
        if (!moved)
            continue;
        sb_cursor at = moved->cursor;
        at.position = frame->moves[each].position;
        if (sb_cursor_release(&at) < 0)
            return fail(SB_STALE, "queue '%s': its gate was taken from us", moved->queue->name);
        moved->safe = at.position;
        sb_port_gate_moved(&moved->port);
    }
    commit_gate_journaled(&journaler->commit_gate, frame->whole);
    return SB_OK;
}

int64_t unfinished_confirm(sb_journaler *journaler)
{
    int64_t done = ends_done(journaler->ends), code = SB_OK;
    while (journaler->first_frame && journaler->first_frame->number <= done && code == SB_OK) {
        unfinished *frame = journaler->first_frame;
        code = move_gates(journaler, frame);
        if (code != SB_OK)
            return code;
        journaler->first_frame = frame->next;
        if (!journaler->first_frame)
            journaler->last_frame = NULL;
        frame->next = journaler->spare_frames;
        journaler->spare_frames = frame;
    }
    return SB_OK;
}

bool unfinished_is_done(sb_journaler *journaler)
{
    return journaler->first_frame && journaler->first_frame->number <= ends_done(journaler->ends);
}

int64_t unfinished_look(sb_journaler *journaler)
{
    char line[END_LINE_ROOM];
    ends_drop_overdue(journaler->ends, sb_system_clock());
    while (ends_dropped(journaler->ends, line))
        log_note(journaler->connection, "journal: %s; what waited for it alone goes on", line);
    if (!unfinished_is_done(journaler))
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
}
