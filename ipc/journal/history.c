/* A journal's frames out of its files, one after the other, also while it is written.
 *
 * It begins with the oldest segment that is needed and goes on to where the writer is; each frame
 * is told with the number of the one before, so that whoever gets them sees that none is missing.
 * A frame that does not check is not there yet.  A segment has ended when a later one has a frame,
 * and then there is still nothing more in it: the next one has its name before it is needed.
 *
 * Segments may go while they are read, unless the writer keeps them (sb_journal_keep): their files
 * get other names and other contents.  So a segment counts as read only if its name still led to
 * our file after the last look. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "journal/format.h"
#include "journal/shipped.h"

struct sb_history {
    folder in;
    segment_list listed; /* when it was opened */
    bool skips;          /* only what is listed, as far as that goes */
    bool is_strict;      /* no segment is missing */
    reader segment;
    bool reading;
    int64_t serial;         /* that is read, or the last that was */
    int64_t offset, number; /* of its next frame, and how it counts there */
    sb_place last;
    int64_t after; /* the number of the last frame that was told */
    sb_place repeated; /* by the last frame; number 0: none */
};

/* --- its segments ----------------------------------------------------------------------------- */

/* The next serial to be read after this one, 0: there is none yet. */
static int64_t next_serial(const sb_history *of, int64_t after, int64_t *serial)
{
    int64_t *serials, count = folder_segments(&of->in, &serials), last = 0;
    if (count < 0)
        return count;
    *serial = 0;
    if (of->listed.count > 0)
        last = of->listed.entries[of->listed.count - 1].serial;
    for (int64_t each = 0; of->skips && each < of->listed.count && *serial == 0; each++)
        if (of->listed.entries[each].serial > after)
            *serial = of->listed.entries[each].serial;
    for (int64_t each = 0; each < count && *serial == 0; each++)
        if (serials[each] > after && (!of->skips || serials[each] > last))
            *serial = serials[each];
    free(serials);
    return SB_OK;
}

static int64_t is_gone(const sb_history *of, int64_t serial)
{
    return fail(SB_GONE, "%s: segment %016llx was let go of: what it had is in no file any more",
                of->in.path, (unsigned long long)serial);
}

/* SB_EMPTY: it is named, and has no frame yet. */
static int64_t open_segment(const sb_history *of, int64_t serial, reader *opened)
{
    int wrong;
    int64_t bad, code = reader_open(opened, &of->in, serial, false);
    if (code != SB_OK)
        return code == SB_NOT_FOUND ? is_gone(of, serial) : code;
    reader_beside_writer(opened);
    if (reader_frame(opened, JOURNAL_PAGE, 1, &bad, &wrong))
        return SB_OK;
    reader_close(opened);
    return SB_EMPTY;
}

/* The next segment that has a frame; SB_EMPTY: there is none yet.  A writer that was killed leaves
 * one behind that it had not begun. */
static int64_t open_next(const sb_history *of, reader *opened)
{
    int64_t code = SB_EMPTY, at = of->serial, serial;
    while (code == SB_EMPTY) {
        code = next_serial(of, at, &serial);
        if (code != SB_OK || serial == 0)
            return code == SB_OK ? SB_EMPTY : code;
        if (of->is_strict && serial != at + 1)
            return is_gone(of, at + 1);
        code = open_segment(of, serial, opened);
        at = serial;
    }
    return code;
}

static void begin(sb_history *of, const reader *segment)
{
    of->segment = *segment;
    of->reading = true;
    of->serial = segment->serial;
    of->offset = JOURNAL_PAGE;
    of->number = 1;
}

static void end(sb_history *of)
{
    if (of->reading)
        reader_close(&of->segment);
    of->reading = false;
}

static bool has_its_name(const sb_history *of)
{
    char name[SEGMENT_NAME_ROOM];
    struct stat ours, named;
    segment_file_name(name, of->serial);
    return fstat(of->segment.file, &ours) == 0 &&
           fstatat(of->in.file, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
}

/* --- its frames ------------------------------------------------------------------------------- */

/* Where the next one ends; 0: it is not there. */
static int64_t frame_end(sb_history *of)
{
    int64_t bad;
    int wrong;
    int64_t end = reader_frame(&of->segment, of->offset, of->number, &bad, &wrong);
    if (end)
        return end;
    of->segment.held = 0; /* the writer goes on: what was read before is of the past */
    return reader_frame(&of->segment, of->offset, of->number, &bad, &wrong);
}

/* Where the next frame ends, in whatever segment; 0: there is none yet. */
static int64_t find(sb_history *of, int64_t *found)
{
    reader next;
    *found = of->reading ? frame_end(of) : 0;
    while (!*found) {
        int64_t code = open_next(of, &next);
        if (code != SB_OK)
            return code == SB_EMPTY ? SB_OK : code;
        *found = of->reading ? frame_end(of) : 0; /* the writer is done with it: what is left? */
        bool is_ours = *found || !of->reading || has_its_name(of);
        if (*found || !is_ours)
            reader_close(&next);
        if (!is_ours)
            return is_gone(of, of->serial);
        if (*found)
            return SB_OK;
        end(of);
        begin(of, &next);
        *found = frame_end(of);
    }
    return SB_OK;
}

static void note_repeated(sb_history *of, const record_head *head)
{
    if (record_kind(head) == SB_RECORD_COPIED && head->length == sizeof of->repeated)
        memcpy(&of->repeated, (const unsigned char *)head + HEAD, sizeof of->repeated);
}

/* The frame that was found: it is the last one now. */
static void pass(sb_history *of, int64_t found)
{
    sb_place *last = &of->last;
    const unsigned char *records = (const unsigned char *)reader_again(&of->segment, of->offset);
    int64_t bytes = found - of->offset;
    *last = (sb_place){
        .number = frame_number(of->serial, of->number), .epoch = of->segment.epoch,
        .seal = of->segment.seed,
        .chain = shipped_chain(last->chain, of->number, of->segment.seed, records, bytes)};
    of->repeated = (sb_place){0};
    for (int64_t at = 0; at < bytes;) {
        const record_head *head = (const record_head *)(const void *)(records + at);
        note_repeated(of, head);
        at += record_bytes(head->length);
    }
    of->offset = found;
    of->number++;
}

int64_t sb_history_read(sb_history *of, void *to, int64_t room, int64_t *wanted)
{
    int64_t filled = 0, found, code;
    while ((code = find(of, &found)) == SB_OK && found) {
        int64_t bytes = found - of->offset, at = of->offset;
        if (SHIPPED_HEAD + bytes > room - filled) {
            *wanted = SHIPPED_HEAD + bytes;
            return filled ? filled : SB_TOO_LARGE;
        }
        pass(of, found);
        const sb_shipped head = {of->last.number, of->after, of->last.epoch, of->last.seal,
                                 of->last.chain, bytes};
        filled += shipped_put((unsigned char *)to + filled, &head,
                              reader_again(&of->segment, at));
        of->after = of->last.number;
    }
    return filled || code == SB_OK ? filled : code;
}

/* --- finding a frame -------------------------------------------------------------------------- */

static bool is_same(const sb_place *one, const sb_place *other)
{
    return one->number == other->number && one->epoch == other->epoch &&
           one->seal == other->seal && one->chain == other->chain;
}

/* Read on until a frame is this one, or repeats it: not beyond the segment `until`. */
static int64_t look_for(sb_history *of, const sb_place *place, int64_t until)
{
    int64_t code, found;
    while ((code = find(of, &found)) == SB_OK && found && of->serial <= until) {
        pass(of, found);
        if (is_same(&of->last, place) || is_same(&of->repeated, place)) {
            of->after = of->last.number;
            of->is_strict = true;
            return SB_OK;
        }
    }
    return code == SB_OK ? SB_GONE : code;
}

static void from(sb_history *of, int64_t serial)
{
    end(of);
    of->serial = serial - 1;
    of->last = of->repeated = (sb_place){0};
}

/* All from that segment on is to be there, not only what is needed. */
int64_t sb_history_seek(sb_history *of, const sb_place *place)
{
    char name[SB_FRAME_TEXT_BYTES];
    int64_t serial = (int64_t)((uint64_t)place->number >> SB_FRAME_BITS), code = SB_GONE;
    of->skips = false;
    if (place->number > 0) {
        from(of, serial);
        code = look_for(of, place, serial);
        if (code != SB_OK && code != SB_SYSTEM) {
            from(of, 1);
            code = look_for(of, place, INT64_MAX);
        }
    }
    if (code == SB_OK || code == SB_SYSTEM)
        return code;
    sb_frame_text(place->number, name);
    return fail(SB_GONE, "%s: frame %s of epoch %lld is not in these files", of->in.path, name,
                (long long)place->epoch);
}

/* Its segment may not be needed any more: then what was listed behind it is next. */
int64_t sb_history_resume(sb_history *of, const sb_place *place)
{
    int64_t serial = (int64_t)((uint64_t)place->number >> SB_FRAME_BITS);
    of->skips = true;
    from(of, serial);
    int64_t code = look_for(of, place, serial);
    of->is_strict = false;
    if (code != SB_GONE)
        return code;
    from(of, serial + 1);
    return SB_OK;
}

void sb_history_place(const sb_history *of, sb_place *place)
{
    *place = of->last;
}

int64_t sb_history_serial(const sb_history *of)
{
    return of->reading ? of->serial : of->serial + 1;
}

/* --- open and close --------------------------------------------------------------------------- */

int64_t sb_history_open(const char *path, sb_history **made)
{
    sb_history *of = calloc(1, sizeof *of);
    if (!of)
        return fail_system("memory to read a journal");
    of->in.file = -1;
    of->skips = true;
    int64_t code = folder_open(&of->in, path);
    if (code == SB_OK)
        code = list_read(&of->in, false, &of->listed);
    if (code != SB_OK) {
        sb_history_close(of);
        return code;
    }
    *made = of;
    return SB_OK;
}

void sb_history_close(sb_history *of)
{
    end(of);
    list_free(&of->listed);
    if (of->in.file >= 0)
        folder_close(&of->in);
    free(of);
}

/* It is in one of the newest segments: the newest may have no frame. */
int64_t sb_journal_last_place(const char *path, sb_place *place, sb_place *repeated)
{
    sb_history *of;
    int64_t *serials, count, found, code = sb_history_open(path, &of);
    *place = *repeated = (sb_place){0};
    if (code != SB_OK)
        return code;
    of->skips = false;
    count = folder_segments(&of->in, &serials);
    code = count < 0 ? count : SB_OK;
    for (int64_t each = count - 1; each >= 0 && code == SB_OK && !place->number; each--) {
        from(of, serials[each]);
        while ((code = find(of, &found)) == SB_OK && found) {
            pass(of, found);
            *place = of->last;
            *repeated = of->repeated;
        }
    }
    if (count >= 0)
        free(serials);
    sb_history_close(of);
    return code;
}
