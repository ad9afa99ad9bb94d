/* Preloaded: lets calls on files fail, as long as a list says so.
 *
 * FAULTS: the list, a line each: part of a path, and an error's number.  Each call that writes to
 * such a file, makes it, renames it to that name or syncs it answers with the error.  The list is
 * read at each call, so whoever writes it makes errors come and go. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define REAL(call) ((__typeof__(&call))dlsym(RTLD_NEXT, #call))
#define LIST_BYTES 4096

static const char *list_of_faults; /* whoever forks clears or sets the environment as it likes */

__attribute__((constructor)) static void begin(void)
{
    list_of_faults = getenv("FAULTS");
}

/* The error that calls on this path answer with, or 0. */
static int fault_of(const char *path)
{
    char list[LIST_BYTES], part[512];
    int error, used, file = list_of_faults ? (int)syscall(SYS_open, list_of_faults, O_RDONLY) : -1;
    if (file < 0)
        return 0;
    ssize_t length = syscall(SYS_read, file, list, sizeof list - 1);
    syscall(SYS_close, file);
    list[length > 0 ? length : 0] = 0;
    for (const char *at = list; sscanf(at, "%511s %d\n%n", part, &error, &used) == 2; at += used)
        if (strstr(path, part))
            return error;
    return 0;
}

static int fails(const char *path)
{
    int error = path ? fault_of(path) : 0;
    if (error)
        errno = error;
    return error != 0;
}

static int fails_at(int file)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    return fails(path);
}

#define OPENS(name)                                                                                \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;                    \
        va_end(rest);                                                                              \
        bool makes = flags & O_CREAT && access(path, F_OK) != 0;                                   \
        return makes && fails(path) ? -1 : REAL(name)(path, flags, mode);                          \
    }
OPENS(open)
OPENS(open64)

ssize_t write(int file, const void *bytes, size_t count)
{
    return fails_at(file) ? -1 : REAL(write)(file, bytes, count);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at)
{
    return fails_at(file) ? -1 : REAL(pwrite)(file, bytes, count, at);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off_t at)
{
    return fails_at(file) ? -1 : REAL(pwrite64)(file, bytes, count, at);
}

int fsync(int file)
{
    return fails_at(file) ? -1 : REAL(fsync)(file);
}

int fdatasync(int file)
{
    return fails_at(file) ? -1 : REAL(fdatasync)(file);
}

int rename(const char *from, const char *to)
{
    return fails(to) ? -1 : REAL(rename)(from, to);
}

int posix_fallocate64(int file, off_t at, off_t count)
{
    return fails_at(file) ? errno : REAL(posix_fallocate64)(file, at, count);
}
