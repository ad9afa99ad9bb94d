/* Preloaded: writes down what a program does to the files of one folder and of those in it, in the
 * order in which it happened, and lets calls fail.  The tests make of that what a disk may have
 * after a power loss.
 *
 * STORAGE_FOLDER: the folder.  STORAGE_TRACE: where it is written down.  Nothing is really synced:
 * what that would have made sure of is reckoned from the trace.  STORAGE_SYNC_US: so long a sync of
 * a file takes whose name has "journal" in it, that others can be ahead of it.  The program under
 * test may call storage_*, by way of dlsym. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MADE, WRITTEN, SYNCED, LINKED, UNLINKED, RENAMED, FOLDER_SYNCED, MARKED, FOLDER_MADE };
enum { OPENAT, PWRITE, FDATASYNC, FSYNC, LINKAT, UNLINKAT, RENAMEAT, FALLOCATE, CALLS };

struct entry {
    int64_t kind, inode, offset, length;
    char name[128], other[128]; /* below the folder */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int trace = -1;
static char folder[4096];
static useconds_t sync_us;
static struct {
    int64_t after, times; /* so many calls are well, and then so many (-1: all) are not */
    int error;
} failures[CALLS];
static int64_t room = -1; /* how many bytes files may still grow by, -1: no matter */

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("STORAGE_TRACE"), *where = getenv("STORAGE_FOLDER");
    if (!where || !realpath(where, folder))
        return;
    const char *slow = getenv("STORAGE_SYNC_US");
    sync_us = slow ? (useconds_t)atoi(slow) : 0;
    if (path)
        trace = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* Where this descriptor's file is below our folder; false: it is not. */
static int below(int file, char *path, size_t room)
{
    char link[64], whole[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, whole, sizeof whole - 1);
    size_t prefix = strlen(folder);
    if (length < 0 || prefix == 0)
        return 0;
    whole[length] = 0;
    if (strncmp(whole, folder, prefix) != 0 || (whole[prefix] != 0 && whole[prefix] != '/'))
        return 0;
    snprintf(path, room, "%s", whole[prefix] ? whole + prefix + 1 : "");
    return 1;
}

static void put_name(char *to, size_t room, int at, const char *name)
{
    char path[4096] = "";
    if (at >= 0)
        below(at, path, sizeof path);
    snprintf(to, room, "%s%s%s", path, *path && *name ? "/" : "", name);
}

/* Names in the folder `at`, if it is one. */
static void note(struct entry *entry, int at, const char *name, const char *other, const void *data)
{
    if (trace < 0)
        return;
    if (name)
        put_name(entry->name, sizeof entry->name, at, name);
    if (other)
        put_name(entry->other, sizeof entry->other, at, other);
    if (syscall(SYS_write, trace, entry, sizeof *entry) != sizeof *entry ||
        (data && syscall(SYS_write, trace, data, entry->length) != entry->length))
        abort();
}

/* Whether this call is to fail: errno is set then. */
static int fails(int call)
{
    if (failures[call].times == 0 || failures[call].after-- > 0)
        return 0;
    failures[call].after = 0;
    failures[call].times -= failures[call].times > 0;
    errno = failures[call].error;
    return 1;
}

static int is_ours(int file, int *is_folder)
{
    char path[4096];
    struct stat status;
    *is_folder = fstat(file, &status) == 0 && S_ISDIR(status.st_mode);
    return below(file, path, sizeof path);
}

static int is_our_folder(int file)
{
    int is_folder;
    return is_ours(file, &is_folder) && is_folder;
}

static int64_t inode_of(int file)
{
    struct stat status;
    return fstat(file, &status) == 0 ? (int64_t)status.st_ino : -1;
}

#define REAL(call) ((__typeof__(&call))dlsym(RTLD_NEXT, #call))

void storage_mark(int64_t number)
{
    pthread_mutex_lock(&mutex);
    note(&(struct entry){.kind = MARKED, .offset = number}, -1, NULL, NULL, NULL);
    pthread_mutex_unlock(&mutex);
}

void storage_fail(int call, int64_t after, int64_t times, int error)
{
    pthread_mutex_lock(&mutex);
    failures[call].after = after;
    failures[call].times = times;
    failures[call].error = error;
    pthread_mutex_unlock(&mutex);
}

void storage_room(int64_t bytes)
{
    pthread_mutex_lock(&mutex);
    room = bytes;
    pthread_mutex_unlock(&mutex);
}

int mkdir(const char *path, mode_t mode)
{
    size_t prefix = strlen(folder);
    int is_ours = prefix > 0 && strncmp(path, folder, prefix) == 0 && path[prefix] == '/';
    pthread_mutex_lock(&mutex);
    int answer = REAL(mkdir)(path, mode);
    if (answer == 0 && is_ours)
        note(&(struct entry){.kind = FOLDER_MADE}, -1, path + prefix + 1, NULL, NULL);
    pthread_mutex_unlock(&mutex);
    return answer;
}

int openat(int at, const char *name, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (at < 0 || !is_our_folder(at))
        return REAL(openat)(at, name, flags, mode);
    pthread_mutex_lock(&mutex);
    int file = -1;
    if (!(flags & O_CREAT) || !fails(OPENAT))
        file = REAL(openat)(at, name, flags, mode);
    if (file >= 0 && flags & O_CREAT)
        note(&(struct entry){.kind = MADE, .inode = inode_of(file)}, at, name, NULL, NULL);
    pthread_mutex_unlock(&mutex);
    return file;
}

/* How many of these bytes the disk still has room for. */
static size_t that_fit(int file, size_t count, off_t at)
{
    struct stat status;
    if (room < 0 || fstat(file, &status) != 0 || at + (off_t)count <= status.st_size)
        return count;
    int64_t growth = at + (int64_t)count - status.st_size;
    if (growth <= room) {
        room -= growth;
        return count;
    }
    int64_t fit = (int64_t)count - (growth - room);
    room = fit > 0 ? 0 : room;
    return fit > 0 ? (size_t)fit : 0;
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at)
{
    int is_folder;
    if (!is_ours(file, &is_folder))
        return REAL(pwrite)(file, bytes, count, at);
    pthread_mutex_lock(&mutex);
    ssize_t wrote = -1;
    if (!fails(PWRITE)) {
        size_t fit = that_fit(file, count, at);
        errno = ENOSPC;
        if (fit > 0)
            wrote = REAL(pwrite)(file, bytes, fit, at);
    }
    if (wrote > 0)
        note(&(struct entry){.kind = WRITTEN, .inode = inode_of(file), .offset = at,
                             .length = wrote}, -1, NULL, NULL, bytes);
    pthread_mutex_unlock(&mutex);
    return wrote;
}

/* So Python calls them. */
int openat64(int at, const char *name, int flags, ...) __attribute__((alias("openat")));
ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at)
    __attribute__((alias("pwrite")));

/* Room is taken by what is written: what is only set aside is looked at, and left to that. */
int fallocate(int file, int mode, off_t at, off_t count)
{
    int is_folder;
    if (!is_ours(file, &is_folder))
        return REAL(fallocate)(file, mode, at, count);
    pthread_mutex_lock(&mutex);
    struct stat status;
    int64_t before = room, end = at + count;
    int answer = -1, grows = fstat(file, &status) == 0 && status.st_size < end;
    if (!fails(FALLOCATE)) {
        size_t fit = that_fit(file, (size_t)count, at);
        errno = ENOSPC;
        if (fit == (size_t)count)
            answer = REAL(fallocate)(file, mode, at, count);
    }
    room = mode & FALLOC_FL_KEEP_SIZE || answer != 0 ? before : room;
    /* its last byte says how long it is */
    if (answer == 0 && grows && !(mode & FALLOC_FL_KEEP_SIZE))
        note(&(struct entry){.kind = WRITTEN, .inode = inode_of(file), .offset = end - 1,
                             .length = 1}, -1, NULL, NULL, "");
    pthread_mutex_unlock(&mutex);
    return answer;
}

static int synced(int file, int call, int (*real)(int))
{
    int is_folder = 0, ours = is_ours(file, &is_folder);
    if (!ours)
        return real(file);
    char path[4096];
    if (sync_us > 0 && below(file, path, sizeof path) && strstr(path, "journal"))
        usleep(sync_us);
    pthread_mutex_lock(&mutex);
    int answer = fails(call) ? -1 : 0;
    if (answer == 0)
        note(&(struct entry){.kind = is_folder ? FOLDER_SYNCED : SYNCED, .inode = inode_of(file)},
             file, is_folder ? "" : NULL, NULL, NULL);
    pthread_mutex_unlock(&mutex);
    return answer;
}

int fdatasync(int file)
{
    return synced(file, FDATASYNC, REAL(fdatasync));
}

int fsync(int file)
{
    return synced(file, FSYNC, REAL(fsync));
}

int linkat(int from, const char *name, int to, const char *other, int flags)
{
    if (!is_our_folder(from))
        return REAL(linkat)(from, name, to, other, flags);
    pthread_mutex_lock(&mutex);
    int answer = fails(LINKAT) ? -1 : REAL(linkat)(from, name, to, other, flags);
    if (answer == 0)
        note(&(struct entry){.kind = LINKED}, from, name, other, NULL);
    pthread_mutex_unlock(&mutex);
    return answer;
}

int unlinkat(int at, const char *name, int flags)
{
    struct stat status;
    if (!is_our_folder(at))
        return REAL(unlinkat)(at, name, flags);
    pthread_mutex_lock(&mutex);
    int64_t freed = fstatat(at, name, &status, 0) == 0 && status.st_nlink == 1 ? status.st_size : 0;
    int answer = fails(UNLINKAT) ? -1 : REAL(unlinkat)(at, name, flags);
    if (answer == 0) {
        room += room >= 0 ? freed : 0;
        note(&(struct entry){.kind = UNLINKED}, at, name, NULL, NULL);
    }
    pthread_mutex_unlock(&mutex);
    return answer;
}

int renameat(int from, const char *name, int to, const char *other)
{
    if (!is_our_folder(from))
        return REAL(renameat)(from, name, to, other);
    pthread_mutex_lock(&mutex);
    int answer = fails(RENAMEAT) ? -1 : REAL(renameat)(from, name, to, other);
    if (answer == 0)
        note(&(struct entry){.kind = RENAMED}, from, name, other, NULL);
    pthread_mutex_unlock(&mutex);
    return answer;
}
