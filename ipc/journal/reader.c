/* Reading one segment: through a window, by pread, so that a bad sector or a file that is cut
 * while we read is an answer and not a signal. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "journal/format.h"

#define WINDOW_BYTES (INT64_C(1) << 20)

/* --- the file --------------------------------------------------------------------------------- */

static int64_t read_header(reader *in)
{
    journal_header header;
    struct stat status;
    if (fstat(in->file, &status) != 0)
        return fail_system("looking at %s", in->path);
    in->file_bytes = status.st_size;
    if (!S_ISREG(status.st_mode))
        return fail(SB_JOURNAL_DAMAGED, "%s is no file", in->path);
    ssize_t got = pread(in->file, &header, sizeof header, 0);
    if (got < 0)
        return fail(SB_JOURNAL_DAMAGED, "%s, offset 0: %s", in->path, strerror(errno));
    if (got < (ssize_t)sizeof header)
        return fail(SB_JOURNAL_DAMAGED, "%s has %lld bytes: it was cut short", in->path,
                    (long long)status.st_size);
    int64_t code = header_check(&header, in->path, in->serial, in->file_bytes);
    in->seed = header.crc;
    in->epoch = header.epoch;
    memcpy(in->node, header.node, sizeof in->node);
    in->bytes = header.bytes;
    return code == SB_TRUNCATED ? SB_OK : code;
}

int64_t reader_open(reader *opened, const folder *in, int64_t serial)
{
    char name[SEGMENT_NAME_ROOM];
    segment_file_name(name, serial);
    *opened = (reader){.serial = serial, .keep = INT64_MAX};
    snprintf(opened->path, sizeof opened->path, "%s/%s", in->path, name);
    int64_t code = trusted_open(in->file, in->path, name, O_RDONLY, &in->whose, &opened->file);
    if (code == SB_SYSTEM && errno == ENOENT)
        return fail(SB_NOT_FOUND, "%s is missing", opened->path);
    if (code != SB_OK)
        return code;
    code = read_header(opened);
    if (code != SB_OK)
        reader_close(opened);
    return code;
}

void reader_close(reader *closed)
{
    if (closed->file >= 0)
        close(closed->file);
    free(closed->window);
    closed->window = NULL;
    closed->file = -1;
}

/* --- the window ------------------------------------------------------------------------------- */

static int64_t limit(const reader *in)
{
    return in->bytes < in->file_bytes ? in->bytes : in->file_bytes;
}

static bool make_room(reader *in, int64_t bytes)
{
    if (bytes <= in->room)
        return true;
    unsigned char *made = realloc(in->window, (size_t)bytes);
    if (!made)
        return false;
    in->window = made;
    in->room = bytes;
    return true;
}

static bool fill(reader *in, int64_t from, int64_t bytes)
{
    if (!make_room(in, bytes))
        return false;
    in->at = from;
    in->held = 0;
    while (in->held < bytes) {
        ssize_t got = pread(in->file, in->window + in->held, (size_t)(bytes - in->held),
                            from + in->held);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false; /* an error, or the file was cut while we read */
        in->held += got;
    }
    return true;
}

/* So many bytes from there on, all within the limit; NULL if they cannot be read. */
static const unsigned char *view(reader *in, int64_t offset, int64_t bytes)
{
    if (offset < in->at || offset + bytes > in->at + in->held) {
        int64_t from = offset < in->keep ? offset : in->keep;
        int64_t needed = offset + bytes - from, wanted = 2 * needed;
        wanted = wanted > WINDOW_BYTES ? wanted : WINDOW_BYTES;
        if (wanted > limit(in) - from)
            wanted = limit(in) - from;
        if (!fill(in, from, wanted) && !fill(in, offset, bytes)) {
            in->held = 0;
            return NULL;
        }
    }
    return in->window + (offset - in->at);
}

/* --- records ---------------------------------------------------------------------------------- */

static bool is_blank(const unsigned char *bytes)
{
    static const unsigned char zeros[sizeof(record_head)];
    return memcmp(bytes, zeros, sizeof zeros) == 0;
}

int reader_record(reader *in, int64_t offset, const record_head **head)
{
    record_head seen;
    if (offset > limit(in) - HEAD)
        return RECORD_BEYOND;
    const unsigned char *bytes = view(in, offset, HEAD);
    if (!bytes)
        return RECORD_UNREAD;
    if (is_blank(bytes))
        return RECORD_BLANK;
    memcpy(&seen, bytes, sizeof seen);
    if (seen.crc != record_crc(in->seed, offset, &seen) || seen.length > JOURNAL_BODY_MAX)
        return RECORD_BAD_HEAD;
    int64_t whole = record_bytes(seen.length);
    if (whole > limit(in) - offset)
        return RECORD_BEYOND;
    bytes = view(in, offset, whole);
    if (!bytes)
        return RECORD_UNREAD;
    *head = (const record_head *)(const void *)bytes;
    if (seen.body_crc != crc32c(0, bytes + HEAD, (size_t)(whole - HEAD)))
        return RECORD_BAD_BODY;
    return RECORD_GOOD;
}

int64_t reader_frame(reader *in, int64_t offset, int64_t number, int64_t *bad, int *wrong)
{
    const record_head *head;
    in->keep = offset;
    for (int64_t at = offset;;) {
        *wrong = reader_record(in, at, &head);
        if (*wrong == RECORD_GOOD && head->frame != number)
            *wrong = RECORD_BAD_HEAD; /* of this segment and this place, and not of this frame */
        if (*wrong != RECORD_GOOD) {
            *bad = at;
            in->keep = INT64_MAX;
            return 0;
        }
        at += record_bytes(head->length);
        if (head->where & RECORD_LAST) {
            in->keep = INT64_MAX;
            return at;
        }
    }
}

/* The window has it: reader_frame kept all of the frame in there. */
const record_head *reader_again(reader *in, int64_t offset)
{
    return (const record_head *)(const void *)(in->window + (offset - in->at));
}

/* Somewhere behind there is a record of a later frame, by whose number, less how many frames its
 * writer was ahead of the disk, this one was synced. */
bool reader_was_synced(reader *in, int64_t offset, int64_t number)
{
    int64_t highest = number + 1 + in->file_bytes / HEAD; /* no segment has more frames */
    for (offset = (offset + 7) & -8; offset <= limit(in) - HEAD; offset += 8) {
        record_head head;
        const unsigned char *bytes = view(in, offset, HEAD);
        if (!bytes) {
            offset = (offset | (JOURNAL_PAGE - 1)) + 1 - 8; /* the rest of the page is no better */
            continue;
        }
        memcpy(&head, bytes, sizeof head);
        int64_t synced = head.frame - record_behind(&head);
        if (synced > number && synced <= highest && head.crc == record_crc(in->seed, offset, &head))
            return true;
    }
    return false;
}

const char *record_wrong(int wrong)
{
    switch (wrong) {
    case RECORD_BLANK: return "there are zeros instead of a record";
    case RECORD_BAD_HEAD: return "no record begins here: its head does not check";
    case RECORD_BAD_BODY: return "the record's body does not check";
    case RECORD_BEYOND: return "the file ends before the record does";
    case RECORD_UNREAD: return "the disk cannot read it";
    default: return "it is good";
    }
}
