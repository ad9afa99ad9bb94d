/* The fence: what says that another broker has taken over meanwhile.
 *
 * A file in the shared directory begins with the epoch of who may write.  Whoever is live by a lease
 * may do so until that runs out, by a clock that goes on while the machine sleeps.  Whoever writes
 * looks before, so that it leaves the files alone, and after the sync, so that it confirms nothing
 * that the other one may not have read. */

#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shared.h"

void fence_begin(fence *made, int64_t epoch)
{
    snprintf(made->epoch, sizeof made->epoch, "%0*llx", EPOCH_DIGITS, (long long)epoch);
}

int64_t fence_lease(const fence *at)
{
    struct timespec now;
    if (!at->lease)
        return SB_OK;
    clock_gettime(CLOCK_BOOTTIME, &now);
    if (now.tv_sec * INT64_C(1000000000) + now.tv_nsec < atomic_load(at->lease))
        return SB_OK;
    return fail(SB_STALE, "the lease on being live has run out: another broker may be live");
}

int64_t fence_check(const fence *at)
{
    char now[EPOCH_DIGITS];
    int64_t code = fence_lease(at);
    if (code != SB_OK || at->file < 0)
        return code;
    if (pread(at->file, now, sizeof now, 0) != sizeof now)
        return fail(SB_STALE, "the epoch in the shared directory cannot be read: nothing is written");
    if (memcmp(now, at->epoch, sizeof now) == 0)
        return SB_OK;
    for (size_t each = 0; each < sizeof now; each++)
        if (!isxdigit((unsigned char)now[each]))
            return fail(SB_STALE, "the file that says who is live (live.lock) is damaged: it does not "
                        "begin with an epoch, so nothing is written; ours was %s", at->epoch);
    return fail(SB_STALE, "another broker is live: the epoch is %.16s (hexadecimal), ours was %s", now,
                at->epoch);
}
