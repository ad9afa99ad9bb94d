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
 * The folder is made with the first file: what has room in memory does not need it, and a full disk
 * has no room for it.
 *
 * Space is set aside when a file is begun, so that a full disk is mostly found out there; the size
 * is that of what was written.  Files are not recycled: that would save nothing without syncs, and
 * what is read before the kernel has written it to the disk never gets there. */

#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "journal/format.h"
#include "paging/page_file.h"
#include "paging/page_store.h"

int64_t page_refused(const page_store *of, const char *doing, int64_t serial)
{
    return fail(is_full_disk(errno) ? SB_DISK_FULL : SB_SYSTEM, "%s, %s %s/" PAGE_NAME,
                strerror(errno), doing, of->path, (unsigned long long)serial);
}

void page_tell(const page_store *of, int64_t offset, const char *what)
{
    char text[256];
    const char *folder = strrchr(of->path, '/'); /* a line in the log is not long */
    snprintf(text, sizeof text, "%.40s/" PAGE_NAME ", offset %lld: %s",
             folder ? folder + 1 : of->path, (unsigned long long)of->first, (long long)offset,
             what);
    of->told(of->context, text);
}

void *buffer_room(buffer *in, int64_t bytes)
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

static int open_folder(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

int64_t page_make_folder(page_store *of)
{
    char parent[PATH_MAX];
    if (of->folder >= 0)
        return SB_OK;
    snprintf(parent, sizeof parent, "%s/..", of->path);
    bool made = mkdir(of->path, 0700) == 0 || errno == EEXIST;
    int folder = made ? open_folder(parent) : -1;
    if (folder >= 0 && (!of->syncs || fsync(folder) == 0))
        of->folder = open_folder(of->path);
    int64_t code = of->folder >= 0 ? SB_OK : page_refused(of, "making the folder of", of->next);
    if (folder >= 0)
        close(folder);
    return code;
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
    *made = (page_store){.page_bytes = page_bytes, .told = told, .context = context, .first = 1,
                         .next = 1, .writer = -1, .reader = -1};
    if (safety) {
        made->syncs = true;
        made->epoch = safety->epoch;
        made->expected = safety->next;
        made->backed = safety->backed;
    }
    snprintf(made->path, sizeof made->path, "%s", path);
    made->folder = open_folder(path);
    int64_t code = SB_OK;
    if (made->folder >= 0)
        code = count_files(made);
    else if (errno != ENOENT)
        code = fail_system("opening the folder %s", path);
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

int64_t page_store_clear(page_store *of, int64_t position)
{
    if (!of->syncs) {
        while (!page_store_is_empty(of))
            page_drop_file(of);
        return SB_OK;
    }
    /* first that they are not needed, then they go: what is missing afterwards was dropped */
    const paged_message none = {.position = position};
    int64_t last = of->next;
    if (of->writer >= 0)
        page_end_file(of);
    int64_t code = page_store_put(of, &none);
    if (code == SB_OK)
        code = page_store_write(of);
    if (code != SB_OK)
        page_store_forget(of);
    if (code != SB_OK && code != SB_DISK_FULL) /* then dropping is what makes room */
        return code;
    while (of->first < last)
        page_drop_file(of);
    of->bytes = page_store_is_empty(of) ? 0 : HEAD;
    page_store_journaled(of, INT64_MAX);
    bool synced = of->folder < 0 || fsync(of->folder) == 0;
    return synced ? SB_OK : page_refused(of, "syncing the folder of", last);
}

bool page_store_is_empty(const page_store *of)
{
    return of->first == of->next;
}

int64_t page_store_bytes(const page_store *of)
{
    return of->bytes;
}

/* The file that is read. */
bool page_is_being_written(const page_store *of)
{
    return of->writer >= 0 && of->first == of->next - 1;
}

/* How far the time of day is ahead of the clock of this boot: expiry is by that. */
int64_t page_ahead_ns(void)
{
    return realtime_ns() - sb_system_clock();
}
