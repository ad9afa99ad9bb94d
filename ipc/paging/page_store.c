/* The page files of one queue: 0123456789abcdef.page, numbered from 1 on, the oldest first.
 *
 *   header of 64 bytes | record | record | ...
 *   record: head of 32 bytes, as in the journal | chunk | zeros up to a multiple of 8
 *
 * A file is written from its beginning to its end, is read in the same order, and goes when it is
 * read.  Whoever is killed in the middle of a write leaves a record that the file has not all of;
 * its messages are in the inbox as well, and come again in a new file.  So a file that ends in the
 * middle of a record is no damage by itself; that messages are missing is seen by their positions,
 * which follow each other (pager.c).
 *
 * Files of a queue that is not durable are not synced: it does not outlive the machine, and what a
 * process has written is there for the next one whatever ends it.
 *
 * Those of a durable queue are synced with each write, and a new file with its folder.  A file that
 * was read stays until it is known that the journal has all of it, and is read again if the machine
 * was started anew before.  Whatever was not synced is in the inbox still, and so in the journal.
 * So what cannot be read is a torn tail, and is cut, if the next file goes on where that one ends,
 * or the inbox does; else it is damage.  A record without a message says that all below is done
 * with: it was purged.
 *
 * A pager that was stopped while another host took over may go on for a moment with what it was at
 * (fence.c).  What it writes behind a file that the other one has is no harm: it is in both.  Files
 * that it makes have an epoch below those of before, or stand where the other one makes its own:
 * they are left out.
 *
 * Space is set aside when a file is begun, so that a full disk is mostly found out there; the size
 * is that of what was written.  Files are not recycled: that would save nothing without syncs, and
 * what is read before the kernel has written it to the disk never gets there. */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "journal/format.h"
#include "paging/paging.h"
#include "vhost/vhost.h"

#define PAGE_MAGIC UINT64_C(0x6567617062687300) /* \0shbpage */
#define PAGE_VERSION 1
#define PAGE_NAME "%016llx.page"
#define PAGE_NAME_ROOM 40
#define PUT_BYTES (INT64_C(1) << 20)
#define READ_BYTES (INT64_C(256) << 10)
#define RECORD_UNIT 8

typedef struct page_header {
    uint64_t magic;
    uint32_t version, zero;
    int64_t serial;
    uint64_t salt;
    int64_t epoch;       /* of the broker that wrote it */
    int64_t boot, ahead; /* in which boot, and how far the time of day was ahead of its clock */
    uint32_t zeros, crc; /* of all before; the seed of the records */
} page_header;

_Static_assert(sizeof(page_header) == 64, "a header's size is a multiple of a record's");

typedef struct buffer {
    unsigned char *bytes;
    int64_t used, room;
} buffer;

/* A file that was read, and may be needed again. */
typedef struct kept {
    int64_t serial;
    int64_t end; /* all that it has is below this position */
    bool damaged;
} kept;

struct page_store {
    char path[PATH_MAX];
    int folder;
    int64_t page_bytes;
    page_teller told;
    void *context;
    int64_t first, next; /* serials: the file that is read, and the next that will be begun */
    int64_t bytes;
    bool syncs;
    int64_t epoch;
    int writer; /* the file before next, or -1 */
    bool is_new; /* its name is not synced */
    uint32_t writer_seed;
    int64_t written;
    buffer put;
    int reader; /* the first file, or -1 */
    uint32_t reader_seed;
    int64_t at, end; /* of the next record; of the file as it was opened */
    buffer read;     /* the file from read_at on */
    int64_t read_at, record; /* how long the record at `at` is, 0: not looked at */
    bool damaged; /* the file is kept for people */
    int64_t later; /* to be added to the expiry of what is in it */
    int64_t read_epoch; /* of the files so far */
    int64_t expected; /* the position behind the last that was read */
    int64_t backed; /* from here on the inbox has what is in files of before */
    int64_t ours;   /* the first file that is not of before */
    kept *kept;
    int64_t kept_count, kept_room;
};

static int64_t refused(const page_store *of, const char *doing, int64_t serial)
{
    return fail(is_full_disk(errno) ? SB_DISK_FULL : SB_SYSTEM, "%s, %s %s/" PAGE_NAME,
                strerror(errno), doing, of->path, (unsigned long long)serial);
}

static void tell(const page_store *of, int64_t offset, const char *what)
{
    char text[256];
    const char *folder = strrchr(of->path, '/'); /* a line in the log is not long */
    snprintf(text, sizeof text, "%.40s/" PAGE_NAME ", offset %lld: %s",
             folder ? folder + 1 : of->path, (unsigned long long)of->first, (long long)offset,
             what);
    of->told(of->context, text);
}

static void *room_for(buffer *in, int64_t bytes)
{
    if (in->used + bytes > in->room) {
        int64_t room = in->used + bytes > 2 * in->room ? in->used + bytes : 2 * in->room;
        void *moved = realloc(in->bytes, (size_t)room);
        if (!moved)
            return NULL;
        in->bytes = moved;
        in->room = room;
    }
    return in->bytes + in->used;
}

static bool serial_of(const char *name, int64_t *serial)
{
    char again[PAGE_NAME_ROOM];
    unsigned long long number;
    if (sscanf(name, "%16llx.page", &number) != 1 || number == 0 || number > INT64_MAX / 2)
        return false;
    snprintf(again, sizeof again, PAGE_NAME, number);
    *serial = (int64_t)number;
    return strcmp(again, name) == 0;
}

/* --- beginning and end ------------------------------------------------------------------------ */

static int64_t folder_made(const char *path, bool syncs)
{
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%s/..", path);
    if (mkdir(path, 0700) != 0)
        return errno == EEXIST ? SB_OK : SB_SYSTEM;
    int folder = syncs ? open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool synced = !syncs || (folder >= 0 && fsync(folder) == 0);
    if (folder >= 0)
        close(folder);
    return synced ? SB_OK : SB_SYSTEM;
}

/* Which files there are, and how large they are. */
static int64_t count_files(page_store *of)
{
    DIR *directory = opendir(of->path);
    if (!directory)
        return fail_system("opening %s", of->path);
    struct dirent *each;
    struct stat status;
    int64_t serial;
    of->first = of->next = 1;
    bool any = false;
    while ((each = readdir(directory))) {
        if (!serial_of(each->d_name, &serial) || fstatat(of->folder, each->d_name, &status, 0) != 0)
            continue;
        of->first = !any || serial < of->first ? serial : of->first;
        of->next = !any || serial >= of->next ? serial + 1 : of->next;
        any = true;
        if (status.st_size > (off_t)sizeof(page_header))
            of->bytes += status.st_size - (off_t)sizeof(page_header);
    }
    closedir(directory);
    return SB_OK;
}

int64_t page_store_open(const char *path, int64_t page_bytes, const page_safety *safety,
                        page_teller told, void *context, page_store **opened)
{
    page_store *made = calloc(1, sizeof *made);
    if (!made)
        return fail_system("memory for pages");
    *made = (page_store){.page_bytes = page_bytes, .told = told, .context = context, .writer = -1,
                         .reader = -1};
    if (safety) {
        made->syncs = true;
        made->epoch = safety->epoch;
        made->expected = safety->next;
        made->backed = safety->backed;
    }
    snprintf(made->path, sizeof made->path, "%s", path);
    if (folder_made(path, made->syncs) != SB_OK)
        made->folder = -1;
    else
        made->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int64_t code = made->folder < 0 ? fail(is_full_disk(errno) ? SB_DISK_FULL : SB_SYSTEM,
                                           "the folder %s: %s", path, strerror(errno))
                                    : count_files(made);
    if (code != SB_OK) {
        page_store_close(made);
        return code;
    }
    made->ours = made->next;
    *opened = made;
    return SB_OK;
}

void page_store_close(page_store *closed)
{
    if (closed->writer >= 0)
        close(closed->writer);
    if (closed->reader >= 0)
        close(closed->reader);
    if (closed->folder >= 0)
        close(closed->folder);
    free(closed->put.bytes);
    free(closed->read.bytes);
    free(closed->kept);
    free(closed);
}

void page_store_remove(const char *path)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *directory = folder >= 0 ? fdopendir(folder) : NULL;
    struct dirent *each;
    int64_t serial;
    while (directory && (each = readdir(directory)))
        if (serial_of(each->d_name, &serial))
            unlinkat(dirfd(directory), each->d_name, 0);
    if (directory)
        closedir(directory);
    rmdir(path); /* unless something is kept there for people */
}

/* The file that is read. */
static bool is_being_written(const page_store *of)
{
    return of->writer >= 0 && of->first == of->next - 1;
}

/* --- writing ---------------------------------------------------------------------------------- */

static int64_t write_out(page_store *to, const void *bytes, int64_t count, int64_t at)
{
    while (count > 0) {
        ssize_t wrote = pwrite(to->writer, bytes, (size_t)count, at);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return refused(to, "writing", to->next - 1);
        bytes = (const char *)bytes + wrote;
        count -= wrote;
        at += wrote;
    }
    return SB_OK;
}

/* How far the time of day is ahead of the clock of this boot: expiry is by that. */
static int64_t ahead_ns(void)
{
    return realtime_ns() - sb_system_clock();
}

static int make_file(page_store *to, const char *name)
{
    const int how = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int made = openat(to->folder, name, how, 0600);
    if (made >= 0 || errno != EEXIST || !to->syncs)
        return made;
    unlinkat(to->folder, name, 0); /* by one who was replaced: we know of all others */
    return openat(to->folder, name, how, 0600);
}

static int64_t begin_file(page_store *to)
{
    char name[PAGE_NAME_ROOM];
    page_header header = {.magic = PAGE_MAGIC, .version = PAGE_VERSION, .serial = to->next,
                          .epoch = to->epoch, .boot = boot_hash(), .ahead = ahead_ns()};
    if (getrandom(&header.salt, sizeof header.salt, 0) != sizeof header.salt)
        return fail_system("random numbers");
    header.crc = crc32c(0, &header, offsetof(page_header, crc));
    snprintf(name, sizeof name, PAGE_NAME, (unsigned long long)to->next);
    to->writer = make_file(to, name);
    if (to->writer < 0)
        return refused(to, "making", to->next);
    to->next++;
    int64_t code = SB_OK;
    if (fallocate(to->writer, FALLOC_FL_KEEP_SIZE, 0, to->page_bytes) != 0 &&
        errno != EOPNOTSUPP && errno != EINTR)
        code = refused(to, "setting space aside for", to->next - 1);
    if (code == SB_OK)
        code = write_out(to, &header, sizeof header, 0);
    if (code != SB_OK) {
        unlinkat(to->folder, name, 0);
        close(to->writer);
        to->writer = -1;
        to->next--;
        return code;
    }
    to->writer_seed = header.crc;
    to->written = sizeof header;
    to->is_new = true;
    return SB_OK;
}

static void end_file(page_store *to)
{
    if (is_being_written(to))
        to->end = to->written; /* for its reader */
    close(to->writer);
    to->writer = -1;
}

/* Of the durable: what was written is there after a power loss, under its name. */
static int64_t sync_file(page_store *to)
{
    if (!to->syncs)
        return SB_OK;
    if (fdatasync(to->writer) != 0 || (to->is_new && fsync(to->folder) != 0))
        return refused(to, "syncing", to->next - 1);
    to->is_new = false;
    return SB_OK;
}

bool page_store_is_due(const page_store *of)
{
    return of->put.used >= PUT_BYTES ||
           (of->writer >= 0 && of->written + of->put.used >= of->page_bytes);
}

int64_t page_store_put(page_store *to, const paged_message *message)
{
    int64_t code = SB_OK, bytes = record_bytes(message->length);
    if (page_store_is_due(to))
        code = page_store_write(to);
    if (code == SB_OK && to->writer < 0)
        code = begin_file(to);
    if (code != SB_OK)
        return code;
    unsigned char *at = room_for(&to->put, bytes);
    if (!at)
        return fail_system("memory for a message");
    record_head head = {
        .length = (uint32_t)message->length,
        .where = (uint64_t)message->position |
                 (uint64_t)(message->chunk ? SB_RECORD_MESSAGE : SB_RECORD_RETIRED) << KIND_SHIFT,
    };
    memset(at + bytes - 8, 0, 8);
    if (message->chunk)
        head.body_crc = crc32c_copy(0, at + HEAD, message->chunk, (size_t)message->length);
    head.crc = record_crc(to->writer_seed, to->written + to->put.used, &head);
    memcpy(at, &head, sizeof head);
    to->put.used += bytes;
    return SB_OK;
}

int64_t page_store_write(page_store *to)
{
    if (to->put.used == 0)
        return SB_OK;
    int64_t code = write_out(to, to->put.bytes, to->put.used, to->written);
    if (code == SB_OK)
        code = sync_file(to);
    if (code != SB_OK)
        return code;
    to->written += to->put.used;
    to->bytes += to->put.used;
    to->put.used = 0;
    if (to->writer >= 0 && to->written >= to->page_bytes)
        end_file(to);
    return SB_OK;
}

void page_store_forget(page_store *to)
{
    to->put.used = 0;
    /* a part of a record may be there, and would look like damage behind shorter ones */
    if (to->writer >= 0 && (ftruncate(to->writer, to->written) != 0 || to->syncs))
        end_file(to); /* also if a sync failed: nothing is put behind what may be lost */
}

/* --- reading ---------------------------------------------------------------------------------- */

static int64_t end_of(const page_store *of)
{
    return is_being_written(of) ? of->written : of->end;
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
    if (!room_for(&from->read, wanted)) {
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
            *code = refused(from, "reading", from->first);
        if (got <= 0)
            break;
        from->read.used += got;
    }
    return *code == SB_OK && from->read.used >= count ? from->read.bytes : NULL;
}

static void damage(page_store *in, const char *what)
{
    tell(in, in->at, what);
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
static void drop_file(page_store *of)
{
    if (of->syncs)
        keep_file(of);
    else
        remove_file(of, of->first, of->damaged);
    of->bytes -= end_of(of) > of->at ? end_of(of) - of->at : 0;
    if (is_being_written(of)) {
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
    drop_file(of);
}

/* There is less of the file than there should be. */
static void skip_short(page_store *of)
{
    if (of->syncs && (of->at == 0 || of->at < end_of(of)))
        skip_rest(of, "the file ends in the middle of a record");
    else
        drop_file(of); /* read to its end, or to where a killed one has torn it */
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
            tell(from, 0, "the file is missing");
        from->first++;
        return SB_GONE;
    }
    if (from->reader < 0 || fstat(from->reader, &status) != 0)
        return refused(from, "opening", from->first);
    from->end = status.st_size;
    ssize_t got = pread(from->reader, &header, sizeof header, 0);
    if (got >= 0 && got < (ssize_t)sizeof header) { /* who began it was killed */
        skip_short(from);
        return SB_GONE;
    }
    if (got < 0)
        return refused(from, "reading", from->first);
    if (!header_checks(&header, from->first)) {
        skip_rest(from, "its header does not check: none of it can be read");
        return SB_GONE;
    }
    if (header.epoch < from->read_epoch) { /* of one who was replaced */
        drop_file(from);
        return SB_GONE;
    }
    from->read_epoch = header.epoch;
    from->later = from->syncs && header.boot != boot_hash() ? header.ahead - ahead_ns() : 0;
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
        drop_file(of);
        return;
    }
    damage(of, "the head of a record does not check");
    if (!find_record(of))
        drop_file(of);
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
            drop_file(from);
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

int64_t page_store_clear(page_store *of, int64_t position)
{
    if (!of->syncs) {
        while (!page_store_is_empty(of))
            drop_file(of);
        return SB_OK;
    }
    /* first that they are not needed, then they go: what is missing afterwards was dropped */
    const paged_message none = {.position = position};
    int64_t last = of->next;
    if (of->writer >= 0)
        end_file(of);
    int64_t code = page_store_put(of, &none);
    if (code == SB_OK)
        code = page_store_write(of);
    if (code != SB_OK)
        page_store_forget(of);
    if (code != SB_OK && code != SB_DISK_FULL) /* then dropping is what makes room */
        return code;
    while (of->first < last)
        drop_file(of);
    of->bytes = page_store_is_empty(of) ? 0 : HEAD;
    page_store_journaled(of, INT64_MAX);
    return fsync(of->folder) == 0 ? SB_OK : refused(of, "syncing the folder of", last);
}

bool page_store_is_empty(const page_store *of)
{
    return of->first == of->next;
}

int64_t page_store_bytes(const page_store *of)
{
    return of->bytes;
}
