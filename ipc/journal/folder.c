/* The folder of a journal: names, and which files are whose.
 *
 * A file that is to become a segment is called RANDOM.spare, and whoever has it holds a lock on it:
 * so what the dead have left can be told from what a living backup has got ready. */

#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "journal/format.h"

#define SERIAL_DIGITS 16
#define SEGMENT_SUFFIX ".journal"
#define SPARE_SUFFIX ".spare"
#define RESERVE_SUFFIX ".reserve.spare" /* it was not written over */

int64_t folder_open(folder *opened, const char *path)
{
    opened->file = -1;
    if (strlen(path) >= sizeof opened->path)
        return fail(SB_INVALID, "the name of the journal's folder is too long");
    strcpy(opened->path, path);
    opened->file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened->file < 0)
        return fail_system("opening the journal's folder %s", path);
    opened->whose = trust_in(opened->file);
    return SB_OK;
}

void folder_close(folder *opened)
{
    if (opened->file >= 0)
        close(opened->file);
    opened->file = -1;
}

int64_t folder_sync(const folder *in)
{
    if (fsync(in->file) == 0)
        return SB_OK;
    return fail(is_full_disk(errno) ? SB_DISK_FULL : SB_JOURNAL_FAILED, "syncing the folder %s: %s",
                in->path, strerror(errno));
}

void segment_file_name(char *name, int64_t serial)
{
    snprintf(name, SEGMENT_NAME_ROOM, "%016llx" SEGMENT_SUFFIX, (unsigned long long)serial);
}

/* The serial of a segment's name, 0 if it is none. */
static int64_t serial_of(const char *name)
{
    int64_t serial = 0;
    for (int digit = 0; digit < SERIAL_DIGITS; digit++) {
        char each = name[digit];
        if (!isdigit((unsigned char)each) && !(each >= 'a' && each <= 'f'))
            return 0;
        serial = serial * 16 + (each <= '9' ? each - '0' : each - 'a' + 10);
        if (serial > INT64_MAX / 32)
            return 0;
    }
    return strcmp(name + SERIAL_DIGITS, SEGMENT_SUFFIX) == 0 ? serial : 0;
}

static int ascending(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* A listing of its own: the folder's descriptor has one place only. */
static DIR *listing(const folder *in)
{
    int file = openat(in->file, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = file >= 0 ? fdopendir(file) : NULL;
    if (!names && file >= 0)
        close(file);
    return names;
}

int64_t folder_segments(const folder *in, int64_t **serials)
{
    int64_t count = 0, room = 0;
    *serials = NULL;
    DIR *names = listing(in);
    if (!names)
        return fail_system("listing %s", in->path);
    for (struct dirent *entry; (entry = readdir(names));) {
        int64_t serial = serial_of(entry->d_name);
        if (serial == 0)
            continue;
        if (!ROOM_FOR(*serials, room, count + 1)) {
            closedir(names);
            free(*serials);
            *serials = NULL;
            return fail_system("memory for the names in %s", in->path);
        }
        (*serials)[count++] = serial;
    }
    closedir(names);
    if (count > 0)
        qsort(*serials, (size_t)count, sizeof **serials, ascending);
    return count;
}

bool spare_lock(int file)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t length = strlen(name), end = strlen(suffix);
    return length > end && length < SEGMENT_NAME_ROOM && strcmp(name + length - end, suffix) == 0;
}

int64_t spare_name(char *name, bool is_reserve)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return fail_system("random numbers");
    snprintf(name, SEGMENT_NAME_ROOM, "%016llx%s", (unsigned long long)random,
             is_reserve ? RESERVE_SUFFIX : SPARE_SUFFIX);
    return SB_OK;
}

static int claim(const folder *in, const char *name, int64_t bytes)
{
    struct stat status;
    int file;
    if (trusted_open(in->file, in->path, name, O_RDWR, &in->whose, &file) != SB_OK)
        return -1;
    /* with two names it is a segment: whoever named it was killed before the other one was gone */
    if (spare_lock(file) && fstat(file, &status) == 0 && status.st_nlink == 1 &&
        status.st_size == bytes && status.st_blocks * 512 >= bytes)
        return file;
    close(file);
    return -1;
}

int folder_claim(const folder *in, int64_t bytes, bool is_reserve, char *name)
{
    int file = -1;
    DIR *names = listing(in);
    if (!names)
        return -1;
    for (struct dirent *entry; file < 0 && (entry = readdir(names));)
        if (ends_with(entry->d_name, SPARE_SUFFIX) &&
            ends_with(entry->d_name, RESERVE_SUFFIX) == is_reserve &&
            (file = claim(in, entry->d_name, bytes)) >= 0)
            strcpy(name, entry->d_name);
    closedir(names);
    return file;
}

static void remove_if_left(const folder *in, const char *name)
{
    int file = openat(in->file, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return;
    if (spare_lock(file))
        unlinkat(in->file, name, 0);
    close(file);
}

void folder_clear(const folder *in)
{
    DIR *names = listing(in);
    if (!names)
        return;
    for (struct dirent *entry; (entry = readdir(names));)
        if (ends_with(entry->d_name, SPARE_SUFFIX))
            remove_if_left(in, entry->d_name);
    closedir(names);
}
