/* Segments: files in /dev/shm that programs map.
 *
 * A segment is made without a name, with memory behind all that is not committed later, its magic
 * written last, and is then linked to its name: nobody ever sees half of one, and of who is killed
 * before that nothing is left. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

#define SHM "/dev/shm"
#define SEGMENT_MODE 0600
#define SHARED_MODE 0660

static int64_t map(segment *mapped)
{
    mapped->memory = mmap(NULL, (size_t)mapped->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                          mapped->file, 0);
    if (mapped->memory != MAP_FAILED)
        return SB_OK;
    mapped->memory = NULL;
    return fail_system("mapping %lld bytes", (long long)mapped->bytes);
}

/* Of a segment in this folder.  A folder with the set-group-id bit is that of a vhost that a group
 * shares (home.c): the kernel gives its group to all that is made in it. */
static mode_t mode_in(const char *folder)
{
    struct stat status;
    bool shared = stat(folder, &status) == 0 && (status.st_mode & (S_ISGID | S_ISVTX)) == S_ISGID;
    return shared ? SHARED_MODE : SEGMENT_MODE;
}

int64_t segment_make(segment *made, const char *path, int64_t bytes, int64_t committed)
{
    char folder[NAME_ROOM];
    *made = (segment){.bytes = bytes};
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    mode_t mode = mode_in(folder);
    made->file = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
    if (made->file < 0)
        return fail_system("making a segment in %s", folder);
    int64_t code = SB_OK;
    if (fchmod(made->file, mode) != 0) /* the umask may have taken some of it */
        code = fail_system("making a segment in %s", folder);
    else if (ftruncate(made->file, bytes) != 0)
        code = fail_system("making a segment of %lld bytes", (long long)bytes);
    if (code == SB_OK && sb_system_allocate(made->file, 0, committed) != SB_OK)
        code = fail_system("memory for a segment of %lld bytes in " SHM, (long long)committed);
    if (code == SB_OK)
        code = map(made);
    if (code != SB_OK)
        segment_detach(made);
    return code;
}

int64_t segment_name(const segment *made, const char *path)
{
    char self[64]; /* AT_EMPTY_PATH wants a capability, this does not */
    snprintf(self, sizeof self, "/proc/self/fd/%d", made->file);
    if (linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0)
        return SB_OK;
    return errno == EEXIST ? trust_obstacle(path) : fail_system("naming %s", path);
}

int64_t segment_attach(segment *attached, const char *path, int64_t bytes_min,
                       const trust *whose)
{
    struct stat status;
    *attached = (segment){.file = -1};
    int64_t code = trusted_segment(path, O_RDWR, whose, &attached->file);
    if (code != SB_OK)
        return code;
    if (fstat(attached->file, &status) != 0)
        code = fail_system("looking at %s", path);
    else if (status.st_size == 0)
        code = fail(SB_NOT_A_SEGMENT, "%s is empty: not a segment of shmbroker", path);
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

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int64_t realtime_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

int64_t boottime_ns(void)
{
    return clock_ns(CLOCK_BOOTTIME);
}

int64_t monotonic_deadline(int64_t timeout_ns)
{
    if (timeout_ns < 0 || timeout_ns >= SB_FOREVER)
        return SB_FOREVER;
    return timeout_ns == 0 ? 0 : sb_system_clock() + timeout_ns;
}
