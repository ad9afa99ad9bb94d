/* A file that becomes a segment: made, written over, named; and what a segment becomes that no list
 * has: a spare again, the reserve, or nothing. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "journal/format.h"
#include "journal/spare.h"
#include "journal/store.h"

#define WRITE_OVER_BYTES ((int64_t)1 << 20)

/* What errno says: a full disk is no failure. */
static int64_t refused(const char *what, const char *name)
{
    return fail(is_full_disk(errno) ? SB_DISK_FULL : SB_JOURNAL_FAILED, "%s %s: %s", what, name,
                strerror(errno));
}

int64_t write_all(int file, const unsigned char *bytes, int64_t count, int64_t at)
{
    while (count > 0) {
        ssize_t wrote = pwrite(file, bytes, (size_t)count, at);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return refused("writing", "the journal");
        bytes += wrote;
        count -= wrote;
        at += wrote;
    }
    return SB_OK;
}

void spare_drop(const store *of, spare *dropped)
{
    unlinkat(of->in.file, dropped->name, 0);
    close(dropped->file);
}

void spare_give(const store *of, spare *given)
{
    if (atomic_load(&of->leaves))
        close(given->file);
    else
        spare_drop(of, given);
}

/* Appending costs the file system's own journal at each sync, overwriting does not.  Whoever syncs
 * rarely saves writing everything twice. */
static int64_t write_over(const store *of, int file, int64_t bytes)
{
    unsigned char *zeros = calloc(1, (size_t)WRITE_OVER_BYTES);
    if (!zeros)
        return fail_system("memory for zeros");
    int64_t code = SB_OK;
    for (int64_t at = 0; at < bytes && code == SB_OK; at += WRITE_OVER_BYTES) {
        int64_t left = bytes - at;
        if (atomic_load(&of->stop)) {
            code = fail(SB_CLOSED, "the journal is closed");
            break;
        }
        code = write_all(file, zeros, left < WRITE_OVER_BYTES ? left : WRITE_OVER_BYTES, at);
        /* piece by piece: who is killed dies only when the sync that it is in has ended, and its
         * backup waits for that */
        sync_file_range(file, at, WRITE_OVER_BYTES,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                            SYNC_FILE_RANGE_WAIT_AFTER);
    }
    free(zeros);
    if (code == SB_OK && fdatasync(file) != 0)
        code = refused("syncing", "a new segment");
    return code;
}

static int64_t spare_open(store *of, spare *made, bool is_reserve)
{
    struct stat status;
    for (;;) {
        int64_t code = spare_name(made->name, is_reserve);
        if (code != SB_OK)
            return code;
        made->file = openat(of->in.file, made->name,
                            O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (made->file < 0)
            return refused("making a segment in", of->in.path);
        /* whoever clears the folder may have taken it for a left-over before it was locked */
        if (spare_lock(made->file) && fstat(made->file, &status) == 0 && status.st_nlink > 0)
            return SB_OK;
        close(made->file);
    }
}

int64_t spare_make(store *of, int64_t bytes, spare *made)
{
    bool is_blank = atomic_load(&of->syncs_rarely);
    int64_t code = spare_open(of, made, is_blank);
    if (code != SB_OK)
        return code;
    made->bytes = bytes;
    /* asked first, so that a full disk costs nothing however often it is looked at */
    if (fallocate(made->file, FALLOC_FL_KEEP_SIZE, 0, bytes) != 0 && is_full_disk(errno))
        code = refused("making a segment in", of->in.path);
    bool is_enough = is_blank && fallocate(made->file, 0, 0, bytes) == 0;
    if (code == SB_OK && !is_enough)
        code = write_over(of, made->file, bytes);
    if (code != SB_OK)
        spare_give(of, made);
    return code;
}

/* --- the reserve ------------------------------------------------------------------------------ */

bool reserve_is_whole(const store *of)
{
    return of->reserve_count >= of->reserve_wanted;
}

/* Its blocks are set aside; it is written over when it is used. */
bool reserve_make(store *of)
{
    spare made;
    if (spare_open(of, &made, true) != SB_OK)
        return false;
    made.bytes = of->segment_bytes;
    if (fallocate(made.file, 0, 0, made.bytes) != 0) {
        spare_drop(of, &made);
        return false;
    }
    of->reserve[of->reserve_count++] = made;
    return true;
}

static bool claim(const store *of, spare *claimed, bool is_reserve)
{
    claimed->bytes = of->segment_bytes;
    claimed->file = folder_claim(&of->in, of->segment_bytes, is_reserve, claimed->name);
    return claimed->file >= 0;
}

/* To write over a file takes long, and to remove one holds up every sync where the disk is told
 * what is free. */
void spares_claim(store *of)
{
    while (!reserve_is_whole(of) && claim(of, &of->reserve[of->reserve_count], true))
        of->reserve_count++;
    while (of->spare_count <= of->spares_max && claim(of, &of->spares[of->spare_count], false))
        of->spare_count++;
}

int64_t spare_find(store *of, reserve_use opens, spare *found)
{
    bool is_begun = of->serial > 0;
    if (!is_begun && !claim(of, found, false) && !claim(of, found, true)) {
        folder_clear(&of->in);
        return spare_make(of, of->segment_bytes, found);
    }
    if (is_begun) {
        if (opens == RESERVE_NONE || of->reserve_count <= (opens == RESERVE_BUT_LAST))
            return SB_DISK_FULL;
        *found = of->reserve[--of->reserve_count];
    }
    of->owes_reserve = of->keeps_reserve;
    int64_t code = write_over(of, found->file, found->bytes);
    if (code != SB_OK)
        spare_drop(of, found);
    return code;
}

/* --- segments --------------------------------------------------------------------------------- */

int64_t spare_become(store *of, const spare *from, int64_t serial, written *made)
{
    static const char zeros[sizeof(journal_header)];
    struct {
        journal_header header;
        char blank[sizeof zeros]; /* what was here before does not look like a torn frame */
    } pages = {.header = {
        .magic = JOURNAL_MAGIC, .version = JOURNAL_VERSION, .page = JOURNAL_PAGE,
        .serial = serial, .epoch = of->epoch, .bytes = from->bytes,
    }};
    char name[SEGMENT_NAME_ROOM];
    memcpy(pages.header.node, of->node, sizeof of->node);
    if (getrandom(&pages.header.salt, sizeof pages.header.salt, 0) != sizeof pages.header.salt)
        return fail_system("random numbers");
    pages.header.crc = header_crc(&pages.header);
    segment_file_name(name, serial);
    int64_t code = write_all(from->file, (unsigned char *)&pages, sizeof pages, 0);
    if (code == SB_OK && fdatasync(from->file) != 0)
        code = refused("syncing the header of", name);
    if (code != SB_OK)
        return code;
    if (linkat(of->in.file, from->name, of->in.file, name, 0) != 0)
        return errno == EEXIST ? fail(SB_STALE, "%s/%s exists: another has begun it, and this one "
                                      "must end", of->in.path, name)
                               : refused("naming", name);
    if (unlinkat(of->in.file, from->name, 0) != 0)
        code = refused("renaming to", name);
    if (code == SB_OK)
        code = folder_sync(&of->in);
    if (code == SB_DISK_FULL) /* nothing is in it yet: another one has its name later, if it goes */
        of->skips_serial = unlinkat(of->in.file, name, 0) != 0;
    *made = (written){from->file, serial, from->bytes, pages.header.crc};
    return code;
}

/* The name goes for good before the file is written to: a list of before may still have it. */
void segment_recycle(store *of, int64_t serial, bool is_awaited)
{
    spare made;
    struct stat status;
    char name[SEGMENT_NAME_ROOM];
    segment_file_name(name, serial);
    if (trusted_open(of->in.file, of->in.path, name, O_RDWR, &of->in.whose, &made.file) != SB_OK)
        return;
    spare_lock(made.file);
    bool is_reserve = !reserve_is_whole(of) && (of->owes_reserve || !is_awaited);
    int64_t most = of->is_tight && of->keeps_reserve ? is_awaited : of->spares_max;
    bool wanted = (is_reserve || of->spare_count < most) && fstat(made.file, &status) == 0 &&
                  status.st_size == of->segment_bytes &&
                  spare_name(made.name, is_reserve) == SB_OK;
    if (!wanted || renameat(of->in.file, name, of->in.file, made.name) != 0) {
        unlinkat(of->in.file, name, 0);
        close(made.file);
        of->counts.deleted++;
        return;
    }
    made.bytes = of->segment_bytes;
    if (folder_sync(&of->in) != SB_OK) {
        spare_drop(of, &made);
        return;
    }
    if (is_reserve) {
        of->reserve[of->reserve_count++] = made;
        of->owes_reserve &= !reserve_is_whole(of);
    } else
        of->spares[of->spare_count++] = made;
    of->counts.recycled++;
}

/* A damaged file is no spare, and somebody may want to look at it. */
void segment_set_aside(const store *of, int64_t serial)
{
    char name[SEGMENT_NAME_ROOM], aside[SEGMENT_NAME_ROOM];
    segment_file_name(name, serial);
    snprintf(aside, sizeof aside, "%.40s.damaged", name);
    renameat(of->in.file, name, of->in.file, aside);
}
