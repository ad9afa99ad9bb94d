/* The journal's writer: frames into segments, and which segments are still needed.
 *
 * What is staged stays staged until a commit has written and synced it, also what is written ahead
 * of it: so that the disk works while the rest of a large frame is gathered.  What is written ahead
 * and then goes elsewhere is the torn end of its segment.  A frame that the segment has no room for
 * goes to the next one, behind the list of the segments that are needed and what the snapshot
 * stages, all in one frame: so a segment with one whole frame can be read by itself. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "journal/audit.h"
#include "journal/end.h"
#include "journal/format.h"
#include "journal/journal.h"
#include "journal/store.h"
#include "journal/writer.h"

#define SEGMENT_BYTES (INT64_C(64) << 20)
#define SEGMENT_BYTES_MIN (4 * JOURNAL_PAGE)
#define SPARES 2
#define KEPT_SHARE 8
#define BEGIN_TRIES 16 /* a stale live gets its next segment ready, and then does not use it */

/* --- open and close --------------------------------------------------------------------------- */

int64_t sb_journal_prepare(const char *folder, const sb_journal_options *options, sb_journal **made)
{
    sb_journal *journal = calloc(1, sizeof *journal);
    if (!journal)
        return fail_system("memory for a journal");
    if (options)
        journal->options = *options;
    sb_journal_options *with = &journal->options;
    with->segment_bytes = with->segment_bytes ? with->segment_bytes : SEGMENT_BYTES;
    with->spares = with->spares ? with->spares : SPARES;
    journal->current.file = journal->in.file = -1;
    atomic_init(&journal->keeps_from, INT64_MAX);
    sync_begin(journal);
    int64_t code = SB_OK;
    if (with->segment_bytes < SEGMENT_BYTES_MIN || with->segment_bytes % JOURNAL_PAGE ||
        with->segment_bytes > JOURNAL_BYTES_MAX || with->spares < 0)
        code = fail(SB_INVALID, "a segment has a multiple of 4096 bytes, at least %lld; there are "
                    "no less than 0 spares", (long long)SEGMENT_BYTES_MIN);
    if (code == SB_OK)
        code = folder_open(&journal->in, folder);
    if (code == SB_OK)
        code = ends_make(&journal->ends);
    if (code == SB_OK)
        code = store_start(&journal->store, &journal->in, with);
    if (code != SB_OK) {
        sb_journal_close(journal);
        return code;
    }
    *made = journal;
    return SB_OK;
}

static const uint8_t *node_of(const sb_journal *journal)
{
    static const uint8_t none[16];
    return journal->options.node ? journal->options.node : none;
}

/* Another that has begun after us has a higher epoch, and it is the one that may write. */
static int64_t newest_check(const sb_journal *journal, int64_t serial, int64_t epoch)
{
    reader newest;
    int64_t code = reader_open(&newest, &journal->in, serial), theirs = newest.epoch;
    if (code != SB_OK)
        return SB_OK; /* whoever reads it will say what is wrong; we only write behind it */
    char path[sizeof newest.path];
    strcpy(path, newest.path);
    bool is_foreign = !node_fits(newest.node, node_of(journal));
    reader_close(&newest);
    if (theirs <= epoch || is_foreign)
        return SB_OK;
    return fail(SB_STALE, "%s was begun with epoch %lld, and this is epoch %lld: this one must end",
                path, (long long)theirs, (long long)epoch);
}

/* What is there and on no list is not needed. */
static int64_t account_for(sb_journal *journal, const int64_t *serials, int64_t count)
{
    for (int64_t each = 0; each < count; each++) {
        if (segment_with(journal, serials[each]))
            continue;
        segment_state *unneeded = segment_note(journal, serials[each]);
        if (!unneeded)
            return fail_system("memory for a list of segments");
        unneeded->state = SEGMENT_UNNEEDED;
    }
    return SB_OK;
}

/* Behind what there is now.  SB_EXISTS: one more is there meanwhile. */
static int64_t begin_behind(sb_journal *journal, int64_t epoch)
{
    segment_list list = {0};
    const listed reached = reached_read(&journal->in);
    /* then no message waits for much reading */
    const bool is_audited = journal->auditor.found != NULL;
    int64_t *serials, count = folder_segments(&journal->in, &serials), code = SB_OK;
    if (count < 0)
        return count;
    int64_t highest = count > 0 ? serials[count - 1] : 0;
    if (highest > 0)
        code = newest_check(journal, highest, epoch);
    highest = highest > reached.serial ? highest : reached.serial;
    if (code == SB_OK && !journal->adopted) {
        code = list_inherit(&journal->in, node_of(journal), serials, count, reached, is_audited,
                            &list);
        code = code == SB_OK ? segments_inherit(journal, &list) : code;
    }
    if (code == SB_OK)
        code = account_for(journal, serials, count);
    if (code == SB_OK) {
        code = store_begin(journal->store, epoch, highest + 1, &journal->current);
        code = code == SB_STALE ? SB_EXISTS : code;
    }
    if (code == SB_OK)
        store_learn(journal->store, list.entries, list.count, is_audited);
    list_free(&list);
    free(serials);
    return code;
}

int64_t sb_journal_begin(sb_journal *journal, int64_t epoch)
{
    if (journal->current.file >= 0 || epoch < 0)
        return fail(SB_INVALID, "the journal has begun already, or its epoch is below 0");
    int64_t code = SB_EXISTS;
    for (int tries = 0; code == SB_EXISTS && tries < BEGIN_TRIES; tries++)
        code = begin_behind(journal, epoch);
    if (code == SB_EXISTS)
        return fail(SB_STALE, "another goes on writing in %s", journal->in.path);
    if (code != SB_OK)
        return code;
    journal->fresh = true;
    journal->borrowed = store_is_tight(journal->store);
    journal->first_serial = journal->current.serial;
    journal->end = JOURNAL_PAGE;
    journal->number = 1;
    journal->epoch = epoch;
    return SB_OK;
}

int64_t sb_journal_prepared(sb_journal *journal)
{
    return store_prepared(journal->store);
}

void sb_journal_leave(sb_journal *journal)
{
    store_leave(journal->store);
}

void sb_journal_quiet(sb_journal *journal)
{
    store_quiet(journal->store);
}

void sb_journal_close(sb_journal *journal)
{
    char name[SEGMENT_NAME_ROOM];
    if (!journal)
        return;
    if (sync_behind(journal) > 0)
        journal_sync(journal);
    journal_rests(journal);
    if (journal->store)
        store_stop(journal->store);
    if (journal->current.file >= 0) {
        segment_file_name(name, journal->current.serial);
        if (journal->fresh && !journal->failed)
            unlinkat(journal->in.file, name, 0);
        close(journal->current.file);
    }
    ends_free(journal->ends);
    frame_free(&journal->frame);
    segments_free(journal);
    tally_free(&journal->written);
    tally_free(&journal->heads);
    tally_free(&journal->then);
    folder_close(&journal->in);
    sync_end(journal);
    free(journal);
}

/* --- writing ---------------------------------------------------------------------------------- */

int64_t journal_fatal(sb_journal *journal, int64_t code)
{
    if (code != SB_JOURNAL_FAILED && code != SB_STALE)
        return code;
    journal->failed = code;
    strncpy(journal->text, sb_detail(code), sizeof journal->text - 1);
    return code;
}

int64_t journal_usable(const sb_journal *journal)
{
    if (journal->failed)
        return fail(journal->failed, "%s", journal->text);
    if (journal->current.file < 0)
        return fail(SB_INVALID, "the journal was prepared and has not begun yet");
    return SB_OK;
}

static frame_place place_of(sb_journal *journal)
{
    return (frame_place){.seed = journal->current.seed, .page_at = journal->end & -JOURNAL_PAGE,
                         .number = journal->number, .behind = sync_behind(journal)};
}

int64_t journal_last_frame(const sb_journal *journal)
{
    return journal->last;
}

ends *journal_ends(const sb_journal *journal)
{
    return journal->ends;
}

int64_t sb_journal_attach(sb_journal *journal, const sb_end_options *options, sb_end **end)
{
    return ends_attach(journal->ends, options, end);
}

/* To all ends but the disk, which works meanwhile. */
static void offer(sb_journal *journal, const frame *out)
{
    ends_offer(journal->ends, &(sb_end_frame){
        .number = frame_number(journal->current.serial, journal->number), .epoch = journal->epoch,
        .seal = journal->current.seed,
        .records = out->memory + out->start, .bytes = out->filled - out->start});
}

/* One write, one sync, if that is not done later. */
int64_t journal_write_frame(sb_journal *journal, frame *out)
{
    written *to = &journal->current;
    int64_t records = out->records, ahead = out->ahead;
    int64_t code = sync_make_room(journal);
    if (code != SB_OK)
        return code;
    const frame_place place = place_of(journal);
    frame_seal(out, &place);
    code = tally_make_room(&journal->written, &out->tally);
    if (code == SB_OK)
        code = write_all(to->file, out->memory + ahead, frame_written_bytes(out->filled) - ahead,
                         place.page_at + ahead);
    if (code != SB_OK)
        return journal_fatal(journal, code);
    sync_written(journal, out->filled - out->start);
    offer(journal, out);
    if (journal->told_written)
        journal->told_written(journal->told_context);
    tally_merge(&journal->written, &out->tally); /* there is memory for it */
    journal->end += out->filled - out->start;
    journal->last = frame_number(to->serial, journal->number++);
    code = journal->sync.is_later ? SB_OK : journal_sync(journal);
    if (code != SB_OK)
        return code;
    journal->counts.frames++;
    journal->counts.records += records;
    frame_follow(out);
    return SB_OK;
}

/* What is left free of each segment, for a list and for heads: with these, a disk that is full can
 * be freed of what is dead.  If there are so many queues that it would be much, heads need the
 * reserve. */
static int64_t kept_room(const sb_journal *journal)
{
    int64_t heads = journal->heads.count * record_bytes(0);
    int64_t most = journal->options.segment_bytes / KEPT_SHARE;
    return room_beside(list_bytes(journal) + (heads < most ? heads : most));
}

static bool fits(const sb_journal *journal, const frame *out)
{
    int64_t page_at = journal->end & -JOURNAL_PAGE;
    return page_at + frame_written_bytes(out->filled) + kept_room(journal) <=
           journal->current.bytes;
}

/* How the disk writes it is not asked before the sync: that tells of all errors. */
int64_t sb_journal_ahead(sb_journal *journal)
{
    frame *out = &journal->frame;
    int64_t code = journal_usable(journal);
    if (code != SB_OK || journal->fresh || journal->in_snapshot || !fits(journal, out))
        return code;
    const frame_place place = place_of(journal);
    int64_t end = frame_seal_begun(out, &place), bytes = end - out->ahead;
    int64_t at = place.page_at + out->ahead;
    if (bytes <= 0)
        return SB_OK;
    code = write_all(journal->current.file, out->memory + out->ahead, bytes, at);
    if (code == SB_DISK_FULL)
        return SB_OK; /* the commit will say so */
    if (code != SB_OK)
        return journal_fatal(journal, code);
    sync_file_range(journal->current.file, at, bytes, SYNC_FILE_RANGE_WRITE);
    out->ahead = end;
    return SB_OK;
}

/* How large a segment must be that begins with a list and this frame; a snapshot comes on top of
 * it. */
static int64_t bytes_for(const sb_journal *journal, const frame *out)
{
    int64_t bytes = out->filled - out->start + list_bytes(journal);
    return JOURNAL_PAGE + frame_written_bytes(bytes) + kept_room(journal);
}

/* The next segment, if one is ready, or when it is.  Where even the reserve is used, it makes room
 * for itself: what is written then makes another segment dead. */
static int64_t turn_over(sb_journal *journal, reserve_use opens)
{
    written next;
    int64_t code = journal_sync(journal); /* the next one lists where it ends */
    if (code != SB_OK)
        return code;
    segment_state *done = segment_note(journal, journal->current.serial);
    if (!done)
        return fail_system("memory for a list of segments");
    code =
        store_take(journal->store, bytes_for(journal, &journal->frame), opens, &next);
    if (code != SB_OK) {
        segment_forget(journal, journal->current.serial);
        return journal_fatal(journal, code);
    }
    done->state = SEGMENT_KNOWN;
    done->end = journal->end;
    done->tally = journal->written;
    journal->written = (tally){0};
    sync_turn_over(journal, &next);
    journal->fresh = true;
    journal->turns = false;
    journal->end = JOURNAL_PAGE;
    journal->number = 1;
    return SB_OK;
}

void journal_turn_over(sb_journal *journal)
{
    journal->turns = !journal->fresh;
}

void journal_tell_written(sb_journal *journal, void (*told)(void *), void *context)
{
    journal->told_written = told;
    journal->told_context = context;
}

bool journal_begins_segment(const sb_journal *journal)
{
    return journal->fresh || !fits(journal, &journal->frame);
}

/* A frame that no usual segment has room for gets one of its own size. */
static int64_t make_fit(sb_journal *journal, const frame *out)
{
    written large;
    if (fits(journal, out))
        return SB_OK;
    int64_t bytes = JOURNAL_PAGE + frame_written_bytes(out->filled) + kept_room(journal);
    int64_t code = store_take(journal->store, bytes, RESERVE_NONE, &large);
    if (code != SB_OK)
        return journal_fatal(journal, code);
    store_recycle(journal->store, journal->current.serial); /* nothing was in it */
    sync_turn_over(journal, &large);
    return SB_OK;
}

/* The first frame of a segment: the list, the snapshot, and what was staged. */
static int64_t write_first(sb_journal *journal)
{
    frame staged = journal->frame;
    tally before = {0};
    journal->frame = (frame){0};
    journal->in_snapshot = true;
    int64_t code = heads_advance(journal, &before, true);
    bool advanced = code == SB_OK;
    if (code == SB_OK)
        code = list_stage(journal, &journal->frame);
    if (code == SB_OK && journal->options.snapshot)
        code = journal->options.snapshot(journal, journal->options.context);
    journal->in_snapshot = false;
    if (code == SB_OK)
        code = frame_append(&journal->frame, &staged);
    if (code == SB_OK)
        code = make_fit(journal, &journal->frame);
    if (code == SB_OK)
        code = journal_write_frame(journal, &journal->frame);
    if (code == SB_OK)
        code = journal_sync(journal);
    if (advanced && code == SB_OK)
        tally_free(&before);
    else if (advanced)
        heads_restore(journal, &before);
    if (code != SB_OK) {
        frame_free(&journal->frame);
        journal->frame = staged;
        return code;
    }
    frame_free(&staged);
    journal->fresh = false;
    store_go_on_soon(journal->store);
    segments_recycle(journal);
    return SB_OK;
}

static int64_t commit(sb_journal *journal, reserve_use opens)
{
    int64_t code = journal_usable(journal);
    if (code != SB_OK || (journal->frame.records == 0 && !journal->fresh))
        return code;
    if (journal->in_snapshot)
        return fail(SB_INVALID, "a snapshot stages, and does not commit");
    segments_learn(journal);
    if (!journal->fresh && (journal->turns || !fits(journal, &journal->frame))) {
        code = turn_over(journal, RESERVE_NONE);
        journal->yields = code == SB_DISK_FULL;
        if (code == SB_DISK_FULL && sb_journal_clear(journal) > 0)
            code = turn_over(journal, RESERVE_NONE);
        if (code == SB_DISK_FULL && opens != RESERVE_NONE) {
            code = turn_over(journal, opens);
            journal->borrowed |= code == SB_OK && opens == RESERVE_BUT_LAST;
        }
        if (code != SB_OK)
            return code;
    }
    code = journal->fresh ? write_first(journal) : journal_write_frame(journal, &journal->frame);
    journal->commits += code == SB_OK;
    if (code == SB_OK)
        heads_written(journal);
    return code;
}

int64_t sb_journal_commit(sb_journal *journal)
{
    return commit(journal, RESERVE_NONE);
}

/* How many segments are dead with the heads that are about to be written. */
static int64_t dead_then(sb_journal *journal)
{
    tally before = {0};
    if (heads_advance(journal, &before, true) != SB_OK)
        return 0;
    bool needed;
    int64_t dead = segments_dead(journal);
    tally_live(&journal->written, &journal->heads, &needed);
    heads_restore(journal, &before);
    return dead + !needed;
}

int64_t journal_commit_full(sb_journal *journal, bool borrows)
{
    if (journal->fresh)
        return commit(journal, RESERVE_NONE);
    if (dead_then(journal) > 0)
        return commit(journal, RESERVE_ALL);
    return commit(journal, borrows ? RESERVE_BUT_LAST : RESERVE_NONE);
}

void journal_reserves(sb_journal *journal, int64_t segments)
{
    store_reserves(journal->store, segments);
}

bool journal_owes(sb_journal *journal)
{
    if (journal->borrowed && !journal->fresh)
        journal->borrowed = !store_has_reserve(journal->store);
    return journal->borrowed;
}
