/* Reading a journal: all records of the segments that are needed, in order, each checked.
 *
 * A frame is checked as a whole before its first record is told.  What does not check is cut off if
 * a crash can have left it so: if nobody knows where the segment ends, and no record behind it says
 * that it was synced.  Anything else is damage.  A salvage tells every record that checks. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "journal/format.h"

struct sb_replay {
    folder in;
    bool salvage;
    segment_list list; /* an end that was not known is noted here, once it is found */
    tally *tallies;    /* of each segment of the list */
    int64_t index;     /* which one of it is read */
    reader segment;
    bool reading;
    int64_t offset, number; /* of the next record, and of its frame */
    int64_t frame_end;      /* 0: the next frame is still to be checked */
    int64_t lost_at;        /* of a salvage: where nothing checks any more, else 0 */
    int64_t done_bytes, all_bytes;
    uint8_t node[16]; /* of the segments so far */
    int64_t failed;
    char text[512];
    sb_journal_report report;
};

int64_t sb_replay_open(const char *folder, int64_t salvage, sb_replay **made)
{
    sb_replay *replay = calloc(1, sizeof *replay);
    if (!replay)
        return fail_system("memory to read a journal");
    replay->salvage = salvage;
    int64_t code = folder_open(&replay->in, folder);
    if (code == SB_OK)
        code = list_read(&replay->in, replay->salvage, &replay->list);
    if (code == SB_OK) {
        replay->tallies = calloc((size_t)replay->list.count + 1, sizeof *replay->tallies);
        if (!replay->tallies)
            code = fail_system("memory to read a journal");
    }
    for (int64_t each = 0; code == SB_OK && each < replay->list.count; each++) {
        char name[SEGMENT_NAME_ROOM];
        struct stat status;
        segment_file_name(name, replay->list.entries[each].serial);
        if (fstatat(replay->in.file, name, &status, 0) == 0)
            replay->all_bytes += status.st_size;
    }
    replay->report.ignored = replay->list.ignored > 0 ? replay->list.ignored : 0;
    if (code != SB_OK) {
        sb_replay_close(replay);
        return code;
    }
    *made = replay;
    return SB_OK;
}

void sb_replay_close(sb_replay *replay)
{
    if (!replay)
        return;
    if (replay->reading)
        reader_close(&replay->segment);
    for (int64_t each = 0; replay->tallies && each < replay->list.count; each++)
        tally_free(&replay->tallies[each]);
    free(replay->tallies);
    list_free(&replay->list);
    folder_close(&replay->in);
    free(replay);
}

int64_t sb_replay_progress(sb_replay *replay, int64_t *bytes)
{
    *bytes = replay->all_bytes;
    return replay->done_bytes + (replay->reading ? replay->offset : 0);
}

void sb_replay_report(const sb_replay *replay, sb_journal_report *report)
{
    *report = replay->report;
}

int64_t replay_found(const sb_replay *replay, const segment_list **list, const tally **tallies)
{
    if (replay->salvage || replay->failed || replay->index < replay->list.count)
        return fail(SB_INVALID,
                    "only a replay that was read to its end, without salvage and damage, "
                    "knows what a journal has");
    *list = &replay->list;
    *tallies = replay->tallies;
    return SB_OK;
}

/* --- what is wrong ---------------------------------------------------------------------------- */

/* Nothing is told after damage, but by a salvage. */
static int64_t damaged(sb_replay *replay, int64_t code)
{
    if (replay->salvage) {
        replay->report.damages++;
        return code;
    }
    replay->failed = code;
    snprintf(replay->text, sizeof replay->text, "%s", sb_detail(code));
    return code;
}

static int64_t damaged_at(sb_replay *replay, int64_t offset, const char *what)
{
    return damaged(replay, fail(SB_JOURNAL_DAMAGED, "%s, offset %lld: %s; it was synced, so the "
                                "file was damaged later; shmbroker journal export reads the rest",
                                replay->segment.path, (long long)offset, what));
}

static int64_t torn_at(sb_replay *replay, int64_t offset)
{
    char frame[SB_FRAME_TEXT_BYTES];
    sb_frame_text(frame_number(replay->segment.serial, replay->number), frame);
    replay->report.torn++;
    return fail(SB_TORN, "%s, offset %lld: frame %s was half written when a crash came: nobody "
                "was told that it is there, and it is cut off", replay->segment.path,
                (long long)offset, frame);
}

/* --- from one segment to the next ------------------------------------------------------------- */

static void read_ahead(const sb_replay *replay)
{
    char name[SEGMENT_NAME_ROOM];
    if (replay->index + 1 >= replay->list.count)
        return;
    segment_file_name(name, replay->list.entries[replay->index + 1].serial);
    int file = openat(replay->in.file, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file >= 0) {
        posix_fadvise(file, 0, 0, POSIX_FADV_WILLNEED);
        close(file);
    }
}

static void end_segment(sb_replay *replay, int64_t end)
{
    replay->list.entries[replay->index].end = end;
    replay->done_bytes += replay->segment.file_bytes;
    reader_close(&replay->segment);
    replay->reading = false;
    replay->index++;
}

/* A segment of an unknown end may have been recycled by who wrote before, and is missing then. */
static int64_t begin_segment(sb_replay *replay)
{
    const listed *entry = &replay->list.entries[replay->index];
    int64_t code = reader_open(&replay->segment, &replay->in, entry->serial, replay->salvage);
    if (code == SB_NOT_FOUND) {
        reader_close(&replay->segment);
        replay->index++;
        if (entry->end == UNKNOWN_END)
            return SB_OK;
        return damaged(replay, fail(SB_JOURNAL_DAMAGED, "%s is missing, and has messages that are "
                                    "needed: %lld bytes", replay->segment.path,
                                    (long long)end_reached(entry->end)));
    }
    if (code != SB_OK && !replay->salvage)
        return damaged(replay, code);
    replay->reading = true;
    replay->report.segments++;
    replay->offset = JOURNAL_PAGE;
    replay->number = 1;
    replay->frame_end = replay->lost_at = 0;
    if (code != SB_OK)
        return damaged(replay, code);
    if (!node_fits(replay->segment.node, replay->node))
        return damaged_at(replay, 0, "it is a segment of another store than those before");
    if (memcmp(replay->segment.node, (const uint8_t[16]){0}, sizeof replay->node) != 0)
        memcpy(replay->node, replay->segment.node, sizeof replay->node);
    if (replay->segment.epoch < replay->report.epoch)
        return damaged_at(replay, 0, "its epoch is lower than that of a segment before");
    replay->report.epoch = replay->segment.epoch;
    read_ahead(replay);
    return SB_OK;
}

/* --- records ---------------------------------------------------------------------------------- */

static int64_t tell(sb_replay *replay, const record_head *head, sb_journal_record *record)
{
    *record = (sb_journal_record){
        .kind = record_kind(head),
        .queue = (int64_t)head->queue,
        .position = record_position(head),
        .body = (const unsigned char *)head + HEAD,
        .length = head->length,
        .serial = replay->segment.serial,
        .offset = replay->offset,
        .frame = frame_number(replay->segment.serial, head->frame),
        .last = (head->where & RECORD_LAST) != 0,
    };
    int64_t bytes = record_bytes(head->length);
    replay->offset += bytes;
    replay->report.records++;
    replay->report.frames += record->last;
    replay->report.frame = record->last ? record->frame : replay->report.frame;
    replay->report.bytes += bytes;
    if (!kind_lasts(record->kind))
        return SB_OK;
    replay->report.messages += record->kind == SB_RECORD_MESSAGE;
    return tally_add(&replay->tallies[replay->index], record->queue, record->position, bytes);
}

/* No whole frame begins here. */
static int64_t end_of_frames(sb_replay *replay, int64_t bad, int wrong)
{
    reader *in = &replay->segment;
    int64_t offset = replay->offset;
    int64_t known = replay->list.entries[replay->index].end;
    if (end_is_known(known) || offset < end_reached(known))
        return damaged_at(replay, bad, record_wrong(wrong));
    if (reader_was_synced(in, bad, replay->number))
        return damaged_at(replay, bad, record_wrong(wrong));
    if (in->file_bytes < in->bytes)
        return damaged_at(replay, in->file_bytes, "the file is shorter than its header says");
    bool torn = bad > offset || wrong != RECORD_BLANK ||
                reader_search(in, offset, replay->number, replay->number);
    int64_t code = torn ? torn_at(replay, offset) : SB_OK;
    end_segment(replay, offset);
    return code;
}

/* Between two frames: SB_OK to go on, or what to answer. */
static int64_t next_frame(sb_replay *replay)
{
    int64_t end = replay->list.entries[replay->index].end, bad;
    int wrong;
    if (replay->offset == end) {
        end_segment(replay, end); /* what is behind, a stale live may have written */
        return SB_OK;
    }
    replay->frame_end =
        reader_frame(&replay->segment, replay->offset, replay->number, &bad, &wrong);
    if (replay->frame_end == 0)
        return end_of_frames(replay, bad, wrong);
    if (end_is_known(end) && replay->frame_end > end)
        return damaged_at(replay, replay->offset, "a frame goes beyond the end of its segment");
    return SB_OK;
}

/* --- salvage ---------------------------------------------------------------------------------- */

/* The next record that checks, in whatever frame. */
static int64_t salvage_next(sb_replay *replay, sb_journal_record *record)
{
    reader *in = &replay->segment;
    const record_head *head;
    int64_t known = replay->list.entries[replay->index].end, at = replay->offset;
    int64_t end = end_is_known(known) ? known : UNKNOWN_END;
    int wrong = reader_record(in, at, &head);
    if (wrong == RECORD_GOOD && (end == UNKNOWN_END || at < end)) {
        replay->number = head->frame;
        return tell(replay, head, record);
    }
    if (at == end) {
        end_segment(replay, end);
        return SB_EMPTY;
    }
    int64_t beyond = wrong == RECORD_BAD_BODY ? at + record_bytes(head->length) : at + 8;
    int64_t found = reader_search(in, beyond, replay->number, INT64_MAX);
    if (found && (end == UNKNOWN_END || found < end)) {
        replay->offset = found;
        return damaged_at(replay, at, record_wrong(wrong));
    }
    bool is_end = wrong == RECORD_BLANK && end == UNKNOWN_END && at >= end_reached(known) &&
                  in->file_bytes >= in->bytes;
    int64_t code = is_end ? SB_EMPTY : damaged_at(replay, at, record_wrong(wrong));
    end_segment(replay, at);
    return code;
}

int64_t sb_replay_next(sb_replay *replay, sb_journal_record *record)
{
    int64_t code = SB_OK;
    if (replay->failed)
        return fail(replay->failed, "%s", replay->text);
    while (code == SB_OK) {
        if (replay->reading && replay->salvage) {
            code = salvage_next(replay, record);
            if (code != SB_EMPTY)
                return code;
            code = SB_OK;
        } else if (replay->reading && replay->offset < replay->frame_end)
            return tell(replay, reader_again(&replay->segment, replay->offset), record);
        else if (replay->reading) {
            if (replay->frame_end) {
                replay->number++;
                replay->frame_end = 0;
            }
            code = next_frame(replay);
        } else if (replay->index < replay->list.count)
            code = begin_segment(replay);
        else
            return SB_EMPTY;
    }
    return code;
}
