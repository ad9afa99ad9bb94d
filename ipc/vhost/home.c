/* The home of a vhost: what the paths of its segments begin with.
 *
 *     /dev/shm/shmbroker.NAME.    of one user: segments of mode 0600 beside those of other vhosts
 *     /dev/shm/shmbroker.NAME/    of a group: a folder of mode 2770, segments of mode 0660
 *
 * A group needs a folder.  In /dev/shm itself only its owner may remove a file, and each member has
 * to remove what others have made: the ring of a queue that is deleted, or of one that died.
 *
 * A vhost has one home.  Somebody else may put the other one there later; so what belongs to us or
 * to root in /dev/shm itself comes first, then a folder. */

#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "vhost/vhost.h"

void home_private(char *home, const char *vhost)
{
    snprintf(home, NAME_ROOM, "/dev/shm/shmbroker.%s.", vhost);
}

void home_shared(char *home, const char *vhost)
{
    snprintf(home, NAME_ROOM, "/dev/shm/shmbroker.%s/", vhost);
}

void vhost_path(char *path, const char *home, const char *kind)
{
    snprintf(path, NAME_ROOM, "%s%s", home, kind);
}

void queue_path(char *path, const char *home, int64_t reference)
{
    snprintf(path, NAME_ROOM, "%squeue-%lld-%lld", home,
             (long long)(reference & L_REFERENCE_INDEX_MASK),
             (long long)(reference >> L_REFERENCE_INDEX_BITS));
}

int64_t home_find(char *home, const char *vhost, trust *whose)
{
    char path[NAME_ROOM];
    struct stat status;
    home_private(home, vhost);
    vhost_path(path, home, "catalog");
    if (lstat(path, &status) == 0 && (status.st_uid == geteuid() || status.st_uid == 0))
        return SB_OK;
    snprintf(path, sizeof path, "/dev/shm/shmbroker.%s", vhost);
    if (lstat(path, &status) != 0 || !S_ISDIR(status.st_mode))
        return SB_OK;
    home_shared(home, vhost);
    return trust_folder(path, whose);
}

const char *home_prefix(const char *home)
{
    return strrchr(home, '/') + 1;
}

static size_t folder_length(const char *home)
{
    return (size_t)(home_prefix(home) - home);
}

/* Not through a link, which another user could have put there. */
DIR *home_open(const char *home)
{
    char path[NAME_ROOM];
    snprintf(path, sizeof path, "%.*s", (int)folder_length(home) - 1, home);
    int file = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = file >= 0 ? fdopendir(file) : NULL;
    if (!folder && file >= 0)
        close(file);
    return folder;
}

const char *home_next(const char *home, DIR *folder)
{
    const char *begin = home_prefix(home);
    struct dirent *each;
    while (folder && (each = readdir(folder)))
        if (each->d_name[strspn(each->d_name, ".")] &&
            strncmp(each->d_name, begin, strlen(begin)) == 0)
            return each->d_name + strlen(begin);
    return NULL;
}

int64_t sb_vhost_home(const char *vhost, int64_t looks, char *home, int64_t *group)
{
    trust whose = trust_segments;
    whose.looks = looks;
    if (!vhost_name_is_good(vhost))
        return vhost_name_refusal();
    int64_t code = home_find(home, vhost, &whose);
    *group = whose.group;
    return code;
}
