/* Reading page files, the oldest first; what cannot be read is a torn tail or damage
 * (page_store.c). */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "journal/format.h"
#include "paging/page_file.h"
#include "paging/page_store.h"
#include "vhost/vhost.h"

#define READ_BYTES (INT64_C(256) << 10)
#define RECORD_UNIT 8

static int64_t end_of(const page_store *of)
{
    return page_is_being_written(of) ? of->written : of->end;
}

/* So many bytes of the file from `at` on, as far as it has them; NULL: it has not, or an error. */
static const unsigned char *bytes_at(page_store *from, int64_t count, int64_t *code)
{
    *code = SB_OK;
    if (from->at + count > end_of(from))
        return NULL;
    if (from->at >= from->read_at && from->at + count <= from->read_at + from->read.used)
        return from->read.bytes + (from->at - from->read_at);
    int64_t wanted = count > READ_BYTES ? count : READ_BYTES, left = end_of(from) - from->at;
    wanted = wanted < left ? wanted : left;
    from->read.used = 0;
    if (!buffer_room(&from->read, wanted)) {
        *code = fail_system("memory for a page");
        return NULL;
    }
    from->read_at = from->at;
    while (from->read.used < wanted) {
        ssize_t got = pread(from->reader, from->read.bytes + from->read.used,
                            (size_t)(wanted - from->read.used), from->at + from->read.used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            *code = page_refused(from, "reading", from->first);
        if (got <= 0)
            break;
        from->read.used += got;
    }
    return *code == SB_OK && from->read.used >= count ? from->read.bytes : NULL;
}

static void damage(page_store *in, const char *what)
{
    page_tell(in, in->at, what);
    in->damaged = true;
}

/* It is not needed any more; one that is damaged gets another name. */
static void remove_file(const page_store *of, int64_t serial, bool damaged)
{
    char name[PAGE_NAME_ROOM], other[PAGE_NAME_ROOM + 16];
    snprintf(name, sizeof name, PAGE_NAME, (unsigned long long)serial);
    snprintf(other, sizeof other, "%s.damaged", name);
    if (damaged)
        renameat(of->folder, name, of->folder, other);
    else
        unlinkat(of->folder, name, 0);
}

/* Until the journal has all of it.  Without memory it is kept until it is opened again. */
static void keep_file(page_store *of)
{
    if (of->kept_count == of->kept_room) {
        int64_t room = of->kept_room ? 2 * of->kept_room : 16;
        kept *moved = realloc(of->kept, (size_t)room * sizeof *moved);
        if (!moved)
            return;
        of->kept = moved;
        of->kept_room = room;
    }
    of->kept[of->kept_count++] = (kept){of->first, of->expected, of->damaged};
}

void page_store_journaled(page_store *of, int64_t position)
{
    int64_t gone = 0;
    while (gone < of->kept_count && of->kept[gone].end <= position) {
        remove_file(of, of->kept[gone].serial, of->kept[gone].damaged);
        gone++;
    }
    of->kept_count -= gone;
    if (gone)
        memmove(of->kept, of->kept + gone, (size_t)of->kept_count * sizeof *of->kept);
}

/* The file was read. */
void page_drop_file(page_store *of)
{
    if (of->syncs)
        keep_file(of);
    else
        remove_file(of, of->first, of->damaged);
    of->bytes -= end_of(of) > of->at ? end_of(of) - of->at : 0;
    if (page_is_being_written(of)) {
        close(of->writer);
        of->writer = -1;
    }
    if (of->reader >= 0)
        close(of->reader);
    of->reader = -1;
    of->read.used = of->record = of->at = of->end = 0;
    of->damaged = false;
    of->first++;
    if (page_store_is_empty(of))
        of->bytes = 0;
}

static bool header_checks(const page_header *header, int64_t serial)
{
    return header->magic == PAGE_MAGIC && header->version == PAGE_VERSION &&
           header->serial == serial && header->crc == crc32c(0, header, offsetof(page_header, crc));
}

/* The first record of a file: false if it has none that can be read. */
static bool begins_with(const page_store *of, int64_t serial, record_head *head)
{
    char name[PAGE_NAME_ROOM];
    page_header header;
    snprintf(name, sizeof name, PAGE_NAME, (unsigned long long)serial);
    const trust whose = trust_in(of->folder);
    int file;
    if (trusted_open(of->folder, of->path, name, O_RDONLY, &whose, &file) != SB_OK)
        return false;
    bool is_there = pread(file, &header, sizeof header, 0) == sizeof header &&
                    pread(file, head, sizeof *head, sizeof header) == sizeof *head;
    close(file);
    return is_there && header_checks(&header, serial) &&
           head->crc == record_crc(header.crc, sizeof header, head);
}

/* What cannot be read is no damage: it was not synced, so whoever came next has found it in the
 * inbox, and begun the next file with it; or it is there still. */
static bool is_torn(const page_store *of)
{
    record_head head;
    if (!of->syncs || of->first >= of->ours)
        return false;
    for (int64_t serial = of->first + 1; serial < of->next; serial++)
        if (begins_with(of, serial, &head))
            return record_kind(&head) != SB_RECORD_MESSAGE ||
                   record_position(&head) <= of->expected;
    return of->expected >= of->backed;
}

static void skip_rest(page_store *of, const char *what)
{
    if (!is_torn(of))
        damage(of, what);
    page_drop_file(of);
}

/* There is less of the file than there should be. */
static void skip_short(page_store *of)
{
    if (of->syncs && (of->at == 0 || of->at < end_of(of)))
        skip_rest(of, "the file ends in the middle of a record");
    else
        page_drop_file(of); /* read to its end, or to where a killed one has torn it */
}

/* Open the first file: SB_OK, SB_GONE if it is left out. */
static int64_t open_file(page_store *from)
{
    char name[PAGE_NAME_ROOM];
    page_header header;
    struct stat status;
    snprintf(name, sizeof name, PAGE_NAME, (unsigned long long)from->first);
    from->at = from->end = 0;
    from->read.used = from->record = 0;
    const trust whose = trust_in(from->folder);
    if (trusted_open(from->folder, from->path, name, O_RDONLY, &whose, &from->reader) ==
        SB_UNTRUSTED)
        return SB_UNTRUSTED;
    if (from->reader < 0 && errno == ENOENT) {
        if (!is_torn(from)) /* else it was not needed any more, and one before it is back */
            page_tell(from, 0, "the file is missing");
        from->first++;
        return SB_GONE;
    }
    if (from->reader < 0 || fstat(from->reader, &status) != 0)
        return page_refused(from, "opening", from->first);
    from->end = status.st_size;
    ssize_t got = pread(from->reader, &header, sizeof header, 0);
    if (got >= 0 && got < (ssize_t)sizeof header) { /* who began it was killed */
        skip_short(from);
        return SB_GONE;
    }
    if (got < 0)
        return page_refused(from, "reading", from->first);
    if (!header_checks(&header, from->first)) {
        skip_rest(from, "its header does not check: none of it can be read");
        return SB_GONE;
    }
    if (header.epoch < from->read_epoch) { /* of one who was replaced */
        page_drop_file(from);
        return SB_GONE;
    }
    from->read_epoch = header.epoch;
    from->later = from->syncs && header.boot != boot_hash() ? header.ahead - page_ahead_ns() : 0;
    from->reader_seed = header.crc;
    from->at = sizeof header;
    return SB_OK;
}

/* The next record that checks, behind one whose length nobody knows. */
static bool find_record(page_store *in)
{
    record_head head;
    int64_t code, begin = in->at;
    for (in->at += RECORD_UNIT; in->at + HEAD <= end_of(in); in->at += RECORD_UNIT) {
        const unsigned char *bytes = bytes_at(in, HEAD, &code);
        if (!bytes)
            break;
        memcpy(&head, bytes, sizeof head);
        if (head.crc != record_crc(in->reader_seed, in->at, &head) ||
            record_position(&head) < in->expected)
            continue;
        bytes = bytes_at(in, record_bytes(head.length), &code);
        if (bytes && head.body_crc == crc32c(0, bytes + HEAD, head.length)) {
            in->bytes -= in->at - begin;
            return true;
        }
    }
    in->at = begin;
    return false;
}

/* What a damaged head was before is lost with its message; what is behind it is not. */
static void skip_head(page_store *of)
{
    if (is_torn(of)) {
        page_drop_file(of);
        return;
    }
    damage(of, "the head of a record does not check");
    if (!find_record(of))
        page_drop_file(of);
}

int64_t page_store_look(page_store *from, paged_message *message)
{
    record_head head;
    int64_t code;
    for (;;) {
        if (page_store_is_empty(from))
            return SB_EMPTY;
        if (from->reader < 0 && (code = open_file(from)) != SB_OK) {
            if (code != SB_GONE)
                return code;
            continue;
        }
        const unsigned char *bytes = bytes_at(from, HEAD, &code);
        if (code != SB_OK)
            return code;
        if (!bytes) {
            skip_short(from);
            continue;
        }
        memcpy(&head, bytes, sizeof head);
        if (head.crc != record_crc(from->reader_seed, from->at, &head)) {
            skip_head(from);
            continue;
        }
        from->record = record_bytes(head.length);
        bytes = bytes_at(from, from->record, &code);
        if (code != SB_OK)
            return code;
        if (!bytes) {
            skip_short(from);
            continue;
        }
        bool is_good = head.body_crc == crc32c(0, bytes + HEAD, head.length);
        if (!is_good && is_torn(from)) {
            page_drop_file(from);
            continue;
        }
        if (from->expected <= record_position(&head))
            from->expected = record_position(&head) + 1;
        if (!is_good) {
            damage(from, "the body of a record does not check");
            page_store_pass(from);
            continue;
        }
        bool is_message = record_kind(&head) == SB_RECORD_MESSAGE;
        *message = (paged_message){.position = record_position(&head), .length = head.length,
                                   .chunk = is_message ? bytes + HEAD : NULL, .later = from->later};
        return SB_OK;
    }
}

void page_store_pass(page_store *from)
{
    from->at += from->record;
    from->bytes -= from->record;
    from->record = 0;
}
