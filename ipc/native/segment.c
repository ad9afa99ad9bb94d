/* Segments: files in /dev/shm that programs map.
 *
 * A segment is made under a temporary name, with memory behind all that is not committed later,
 * its magic written last, and then linked to its own name: nobody ever sees half of one. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shared.h"

static int64_t map(segment *mapped)
{
    mapped->memory = mmap(NULL, (size_t)mapped->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                          mapped->file, 0);
    if (mapped->memory != MAP_FAILED)
        return SB_OK;
    mapped->memory = NULL;
    return fail_system("mapping %lld bytes", (long long)mapped->bytes);
}

int64_t segment_make(segment *made, char *temporary, int64_t bytes, int64_t committed)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return fail_system("random numbers");
    snprintf(temporary, NAME_ROOM, "/dev/shm/.shmbroker-%016llx", (unsigned long long)random);
    *made = (segment){.bytes = bytes};
    made->file = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (made->file < 0)
        return fail_system("making %s", temporary);
    int64_t code = SB_OK;
    if (ftruncate(made->file, bytes) != 0)
        code = fail_system("making %s with %lld bytes", temporary, (long long)bytes);
    if (code == SB_OK)
        code = sb_system_allocate(made->file, 0, committed);
    if (code == SB_OK)
        code = map(made);
    if (code != SB_OK) {
        unlink(temporary);
        segment_detach(made);
    }
    return code;
}

int64_t segment_name(const char *temporary, const char *path)
{
    int64_t code = SB_OK;
    if (link(temporary, path) != 0)
        code = errno == EEXIST ? fail(SB_EXISTS, "%s exists already", path)
                               : fail_system("naming %s", path);
    unlink(temporary);
    return code;
}

int64_t segment_attach(segment *attached, const char *path, int64_t bytes_min)
{
    struct stat status;
    *attached = (segment){0};
    attached->file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (attached->file < 0) {
        *attached = (segment){.file = -1};
        return fail_system("opening %s", path);
    }
    int64_t code = SB_OK;
    if (fstat(attached->file, &status) != 0)
        code = fail_system("looking at %s", path);
    else if (!S_ISREG(status.st_mode) || status.st_size == 0)
        code = fail(SB_NOT_A_SEGMENT, "%s is empty, or no file: not a segment of shmbroker", path);
    else if (status.st_size < bytes_min)
        code = fail(SB_TRUNCATED, "%s has %lld bytes and should have %lld: it was cut short", path,
                    (long long)status.st_size, (long long)bytes_min);
    attached->bytes = code == SB_OK ? status.st_size : 0;
    if (code == SB_OK)
        code = map(attached);
    if (code != SB_OK)
        segment_detach(attached);
    return code;
}

void segment_detach(segment *attached)
{
    if (attached->memory)
        munmap(attached->memory, (size_t)attached->bytes);
    if (attached->file >= 0)
        close(attached->file);
    *attached = (segment){.file = -1};
}

int64_t realtime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int64_t monotonic_deadline(int64_t timeout_ns)
{
    if (timeout_ns < 0 || timeout_ns >= SB_FOREVER)
        return SB_FOREVER;
    return timeout_ns == 0 ? 0 : sb_system_clock() + timeout_ns;
}
