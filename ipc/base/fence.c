/* The fence: what says that another broker has taken over meanwhile.
 *
 * A file in the shared directory begins with the epoch of who may write.  Whoever is live by a
 * lease may do so until that runs out, by a clock that goes on while the machine sleeps.  Whoever
 * writes looks before, so that it leaves the files alone, and after the sync, so that it confirms
 * nothing that the other one may not have read.
 *
 * A file system that is unmounted while its files are open goes on taking what is written to them,
 * where nobody else finds it.  So now and then it is looked whether what is open is what its path
 * says. */

#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

#define LOOK_NS 250000000 /* whether the files are at their paths */

void fence_begin(fence *made, int64_t epoch)
{
    snprintf(made->epoch, sizeof made->epoch, "%0*llx", EPOCH_DIGITS, (long long)epoch);
}

int64_t fence_lease(const fence *at)
{
    if (!at->lease || boottime_ns() < atomic_load(at->lease))
        return SB_OK;
    return fail(SB_STALE, "the lease on being live has run out: another broker may be live");
}

int64_t fence_place(fence *at, int file, const char *path)
{
    struct stat status;
    if (at->place_count == PLACES_MAX)
        return fail(SB_INVALID, "a fence has %d places at most", PLACES_MAX);
    if (fstat(file, &status) != 0)
        return fail_system("looking at %s", path);
    open_path made = {.path = strdup(path), .device = status.st_dev, .inode = status.st_ino};
    if (!made.path)
        return fail_system("memory for the name %s", path);
    at->places[at->place_count++] = made;
    return SB_OK;
}

void fence_end(fence *at)
{
    while (at->place_count > 0)
        free(at->places[--at->place_count].path);
}

/* A disk that fails is told by what is written to it. */
static bool is_there(const open_path *at, const char **why)
{
    struct stat status;
    if (stat(at->path, &status) != 0) {
        *why = strerror(errno);
        return errno == EIO;
    }
    *why = "another one is there";
    return status.st_dev == at->device && status.st_ino == at->inode;
}

int64_t fence_look(fence *at)
{
    int64_t now = sb_system_clock();
    const char *why;
    if (at->place_count == 0 || now - at->looked_at < LOOK_NS)
        return SB_OK;
    for (int64_t each = 0; each < at->place_count; each++)
        if (!is_there(&at->places[each], &why))
            return fail(SB_JOURNAL_FAILED, "unmounted, moved or deleted (%s): %s is not what this "
                        "broker has open, and nobody would find what is written; put it back, and "
                        "start again", why, at->places[each].path);
    at->looked_at = now; /* what is wrong is found by whoever asks next, too */
    return SB_OK;
}

int64_t fence_check(fence *at)
{
    char now[EPOCH_DIGITS];
    int64_t code = fence_lease(at);
    if (code == SB_OK)
        code = fence_look(at);
    if (code != SB_OK || at->file < 0)
        return code;
    if (pread(at->file, now, sizeof now, 0) != sizeof now)
        return fail(SB_STALE,
                    "the epoch in the shared directory cannot be read: nothing is written");
    if (memcmp(now, at->epoch, sizeof now) == 0)
        return SB_OK;
    for (size_t each = 0; each < sizeof now; each++)
        if (!isxdigit((unsigned char)now[each]))
            return fail(SB_STALE,
                        "the file that says who is live (live.lock) is damaged: it does not "
                        "begin with an epoch, so nothing is written; ours was %s",
                        at->epoch);
    return fail(SB_STALE, "another broker is live: the epoch is %.16s (hexadecimal), ours was %s",
                now, at->epoch);
}
