/* Deleting a vhost: all segments in its home, the catalog first, because without it there is none.
 *
 * Also what is left of one that was not made, or not deleted, to the end.  Whoever is attached
 * keeps what is mapped, shares it with nobody who comes later, and changes no catalog any more
 * (lock.c): another vhost may have the name. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "vhost/vhost.h"

static bool is_folder(const char *home)
{
    return home[strlen(home) - 1] == '/';
}

static int64_t remove_failed(const char *path)
{
    struct stat status;
    if ((errno != EPERM && errno != EACCES) || lstat(path, &status) != 0)
        return fail_system("%s cannot be removed", path);
    return fail(SB_UNTRUSTED,
                "%s belongs to another user (user %u, group %u, mode %04o): it can be removed by "
                "user %u or root only", path, (unsigned)status.st_uid, (unsigned)status.st_gid,
                (unsigned)status.st_mode & 07777, (unsigned)status.st_uid);
}

/* In the open folder: root does not follow a link that another user puts there meanwhile. */
static int64_t remove_segment(const char *home, DIR *folder, const char *kind)
{
    char name[NAME_ROOM], path[NAME_ROOM];
    snprintf(name, sizeof name, "%s%s", home_prefix(home), kind);
    if (unlinkat(dirfd(folder), name, 0) == 0 || errno == ENOENT)
        return SB_OK;
    vhost_path(path, home, kind);
    return remove_failed(path);
}

int64_t home_clear(const char *home)
{
    const char *kind;
    DIR *folder = home_open(home);
    if (!folder)
        return errno == ENOENT ? SB_OK : remove_failed(home);
    int64_t code = remove_segment(home, folder, "catalog");
    while (code == SB_OK && (kind = home_next(home, folder)))
        code = remove_segment(home, folder, kind);
    closedir(folder);
    if (code == SB_OK && is_folder(home) && rmdir(home) != 0 && errno != ENOENT)
        code = remove_failed(home);
    return code;
}

static bool is_there(const char *home)
{
    DIR *folder = home_open(home);
    bool found = home_next(home, folder) || (folder && is_folder(home));
    if (folder)
        closedir(folder);
    return found || (is_folder(home) && access(home, F_OK) == 0);
}

/* Whether a participant that lives holds the lock on its byte (participant.c). */
static int64_t in_use_code(const char *vhost)
{
    char home[NAME_ROOM], path[NAME_ROOM];
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = L_PARTICIPANTS - 1};
    trust whose = trust_segments;
    int file;
    whose.looks = true;
    int64_t code = home_find(home, vhost, &whose);
    if (code != SB_OK)
        return code;
    vhost_path(path, home, "participants");
    code = trusted_segment(path, O_RDWR, &whose, &file);
    if (code != SB_OK)
        return code == SB_SYSTEM && errno == ENOENT ? SB_OK : code;
    bool used = fcntl(file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
    close(file);
    return used ? fail(SB_IN_USE, "vhost '%s' has participants: close them first, or force", vhost)
                : SB_OK;
}

/* Who may not remove the folder removes nothing: half a vhost is of no use to anybody. */
static int64_t owner_check(const char *home)
{
    struct stat status;
    uid_t we = geteuid();
    if (!is_folder(home) || stat(home, &status) != 0 || we == 0 || status.st_uid == we)
        return SB_OK;
    errno = EPERM;
    return remove_failed(home);
}

/* Its queues are gone for all who have them, also in a call that waits. */
static void retire(char *catalog)
{
    word_store(catalog, L_CATALOG_RETIRED_AT, 1);
    for (int64_t row = 0; row < L_QUEUE_ROWS; row++)
        word_store(catalog, L_QUEUE_COLUMN_AT + row * L_ROW_BYTES, 0);
}

int64_t sb_vhost_retire(const char *vhost)
{
    char home[NAME_ROOM], path[NAME_ROOM];
    trust whose = trust_segments;
    struct stat status;
    int file;
    int64_t code = home_find(home, vhost, &whose);
    if (code != SB_OK)
        return code;
    vhost_path(path, home, "catalog");
    code = trusted_segment(path, O_RDWR, &whose, &file);
    if (code != SB_OK)
        return code;
    void *memory = MAP_FAILED;
    if (fstat(file, &status) == 0 && status.st_size >= L_CATALOG_COLUMNS_END)
        memory = mmap(NULL, L_CATALOG_COLUMNS_END, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED)
        return fail_system("the catalog of vhost '%s'", vhost);
    retire(memory);
    munmap(memory, L_CATALOG_COLUMNS_END);
    return SB_OK;
}

static int64_t delete_locked(const char *vhost, int64_t force)
{
    char own[NAME_ROOM], shared[NAME_ROOM];
    home_private(own, vhost);
    home_shared(shared, vhost);
    if (!is_there(own) && !is_there(shared))
        return fail(SB_NO_VHOST, "there is no vhost '%s'", vhost);
    int64_t code = force ? SB_OK : in_use_code(vhost);
    if (code == SB_OK)
        code = owner_check(shared);
    if (code == SB_OK)
        code = home_clear(own);
    return code == SB_OK ? home_clear(shared) : code;
}

int64_t sb_vhost_delete(const char *vhost, int64_t force)
{
    int folder;
    if (!vhost_name_is_good(vhost))
        return vhost_name_refusal();
    int64_t code = vhosts_lock(&folder);
    if (code != SB_OK)
        return code;
    code = delete_locked(vhost, force);
    vhosts_unlock(folder);
    return code;
}
