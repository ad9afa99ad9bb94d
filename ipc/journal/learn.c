/* What is in segments of before, of which it is not known: their frames are read, in the thread of
 * the store. */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "journal/format.h"
#include "journal/spare.h"
#include "journal/store.h"

static int64_t run_add(runs_found *to, int64_t queue, int64_t position)
{
    run_found *last = to->count ? &to->all[to->count - 1] : NULL;
    if (last && last->queue == queue && last->last + 1 == position) {
        last->last = position;
        return SB_OK;
    }
    if (!ROOM_FOR(to->all, to->room, to->count + 1))
        return fail_system("memory for what a segment has");
    to->all[to->count++] = (run_found){queue, position, position};
    return SB_OK;
}

static int64_t learn_record(learnt *told, const record_head *head, bool with_runs)
{
    int64_t queue = (int64_t)head->queue, position = record_position(head), code = SB_OK;
    if (kind_lasts(record_kind(head)))
        code = tally_add(&told->tally, queue, position, record_bytes(head->length));
    if (code == SB_OK && with_runs && record_kind(head) == SB_RECORD_MESSAGE)
        code = run_add(&told->runs, queue, position);
    return code;
}

/* The name alone: a line of the log is short. */
static const char *name_of(const reader *in)
{
    const char *name = strrchr(in->path, '/');
    return name ? name + 1 : in->path;
}

static int64_t learn_damaged(const reader *in, int64_t offset, const char *what)
{
    return fail(SB_JOURNAL_DAMAGED, "%s, offset %lld: %s", name_of(in), (long long)offset, what);
}

/* Its frames, up to the end that is known, or to where they end. */
static int64_t learn_frames(reader *in, learnt *told, int64_t known, bool with_runs)
{
    int64_t bad = 0, number = 1, end = JOURNAL_PAGE, code = SB_OK, next;
    int wrong = RECORD_GOOD;
    while (end != known && (next = reader_frame(in, end, number, &bad, &wrong))) {
        for (; end < next && code == SB_OK; end += record_bytes(reader_again(in, end)->length))
            code = learn_record(told, reader_again(in, end), with_runs);
        if (code != SB_OK)
            return code;
        number++;
    }
    told->end = end;
    if (end == known)
        return SB_OK;
    if (end_is_known(known) || end < end_reached(known) ||
        reader_was_synced(in, bad, number))
        return learn_damaged(in, bad, record_wrong(wrong));
    if (in->file_bytes < in->bytes)
        return learn_damaged(in, in->file_bytes, "the file is shorter than its header says");
    return SB_OK;
}

/* A frame that its writer was killed before it had synced it counts from now on: so it is
 * synced. */
static int64_t learn(const store *of, learnt *told, int64_t known)
{
    reader segment;
    int64_t code = reader_open(&segment, &of->in, told->serial);
    if (code == SB_NOT_FOUND) {
        reader_close(&segment);
        return known == UNKNOWN_END
                   ? code
                   : fail(SB_JOURNAL_DAMAGED, "%s is missing", name_of(&segment));
    }
    if (code != SB_OK)
        return code;
    if (!node_fits(segment.node, of->node))
        code = learn_damaged(&segment, 0, "it is a segment of another store");
    else if (fdatasync(segment.file) != 0)
        code = learn_damaged(&segment, 0, strerror(errno));
    else
        code = learn_frames(&segment, told, known, of->with_runs);
    reader_close(&segment);
    return code;
}

void store_learn_one(store *of)
{
    learnt told = {.serial = serials_pop(&of->unknown)};
    int64_t known = serials_pop(&of->unknown);
    pthread_mutex_unlock(&of->mutex);
    told.code = learn(of, &told, known);
    snprintf(told.text, sizeof told.text, "%s", sb_detail(told.code));
    pthread_mutex_lock(&of->mutex);
    if (!ROOM_FOR(of->found, of->found_room, of->found_count + 1)) {
        tally_free(&told.tally); /* it stays unknown, and is kept */
        free(told.runs.all);
        return;
    }
    of->found[of->found_count++] = told;
}
