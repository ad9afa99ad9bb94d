/* Whether the content of a file may be believed.
 *
 * /dev/shm is a folder in which every user may make files, and a vhost is found there by its name.
 * So who made a file, and who else may write it, is looked at before anything in it is read.  A
 * file is believed if
 *
 *     it is a regular file, and was not reached through a link;
 *     it belongs to us or to root, or to whom else the caller expects;
 *     its mode gives others nothing that the caller does not expect: a segment has 0600, and the
 *     files of a store may be read, not written.
 *
 * A vhost that a group shares is a folder of that group, with mode 2770.  Who is in the group may
 * do with it whatever its owner may, so what any of them has made there is believed by all.
 *
 * In Python the same is asked in ipc/base/trust.py. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

#define OF_OTHERS 07
#define OF_GROUP 070
#define WRITABLE 022 /* by group or others */
#define SHARED_FOLDER_MODE 02770
#define TRUST_PATH_ROOM 4400 /* a folder's path and a name */

const trust trust_segments = {.owner = NOBODY, .group = NOBODY, .refused = OF_GROUP | OF_OTHERS};

trust trust_in(int folder)
{
    struct stat status;
    trust made = {.owner = NOBODY, .group = NOBODY, .refused = WRITABLE};
    if (fstat(folder, &status) == 0)
        made.owner = status.st_uid;
    return made;
}

static bool is_owner(const struct stat *status, const trust *whose)
{
    uid_t we = geteuid();
    return status->st_uid == we || status->st_uid == 0 || (int64_t)status->st_uid == whose->owner ||
           (whose->looks && we == 0) ||
           (whose->shared && (int64_t)status->st_gid == whose->group);
}

static mode_t refused_bits(const struct stat *status, const trust *whose)
{
    bool is_of_group = (int64_t)status->st_gid == whose->group;
    return status->st_mode & whose->refused & (is_of_group ? OF_OTHERS : OF_GROUP | OF_OTHERS);
}

static int64_t believe(const struct stat *status, const char *path, const trust *whose)
{
    unsigned mode = status->st_mode & 07777;
    if (!S_ISREG(status->st_mode))
        return fail(SB_UNTRUSTED, "%s is no regular file: user %u has put it there; remove it: rm "
                    "-r %s", path, (unsigned)status->st_uid, path);
    if (!is_owner(status, whose))
        return fail(SB_UNTRUSTED,
                    "%s belongs to user %u (mode %04o), not to us (user %u) or root, so "
                    "what is in it is not believed: run this as user %u, or remove it: rm %s",
                    path, (unsigned)status->st_uid, mode, (unsigned)geteuid(),
                    (unsigned)status->st_uid, path);
    if (refused_bits(status, whose))
        return fail(SB_UNTRUSTED,
                    "%s belongs to user %u and has mode %04o: others may have changed "
                    "or read it; if you know that nobody has: chmod %o %s",
                    path, (unsigned)status->st_uid, mode, mode & 0700, path);
    return SB_OK;
}

static int64_t refusal(int folder, const char *name, const char *path)
{
    struct stat status;
    int error = errno;
    int64_t code;
    if (error == ELOOP) {
        code = fail(SB_UNTRUSTED, "%s is a link, and could lead anywhere: remove it: rm %s", path,
                    path);
    } else if (error == EACCES && fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        code = fail(SB_UNTRUSTED, "%s belongs to another user (user %u, mode %04o), and may not be "
                    "opened by us (user %u): run this as user %u", path, (unsigned)status.st_uid,
                    (unsigned)status.st_mode & 07777, (unsigned)geteuid(), (unsigned)status.st_uid);
    } else {
        errno = error;
        return fail_system("opening %s", path);
    }
    errno = error;
    return code;
}

int64_t trusted_open(int folder, const char *in, const char *name, int how, const trust *whose,
                     int *file)
{
    char path[TRUST_PATH_ROOM];
    struct stat status;
    snprintf(path, sizeof path, "%s%s%s", in ? in : "", in ? "/" : "", name);
    how |= O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK; /* a pipe would have us wait */
    *file = openat(folder, name, how, 0600);
    if (*file < 0)
        return refusal(folder, name, path);
    int64_t code = fstat(*file, &status) == 0 ? believe(&status, path, whose)
                                              : fail_system("looking at %s", path);
    if (code != SB_OK) {
        close(*file);
        *file = -1;
        errno = EACCES;
    }
    return code;
}

static bool is_member(gid_t group)
{
    int count = getgroups(0, NULL);
    gid_t *all = count > 0 ? malloc((size_t)count * sizeof *all) : NULL;
    bool found = group == getegid();
    count = all ? getgroups(count, all) : 0;
    for (int each = 0; each < count; each++)
        found |= all[each] == group;
    free(all);
    return found;
}

/* Root is in no group: another user could change the vhost while root uses it. */
static bool may_share(const struct stat *status, const trust *whose)
{
    return is_owner(status, whose) || (geteuid() != 0 && is_member(status->st_gid));
}

int64_t trust_folder(const char *path, trust *whose)
{
    struct stat status;
    if (lstat(path, &status) != 0)
        return fail_system("looking at %s", path);
    unsigned owner = status.st_uid, group = status.st_gid, mode = status.st_mode & 07777;
    if (!S_ISDIR(status.st_mode))
        return fail(SB_UNTRUSTED, "%s is no folder: user %u has put it there; remove it: rm %s",
                    path, owner, path);
    if (!may_share(&status, whose))
        return fail(SB_UNTRUSTED,
                    "%s belongs to user %u and group %u (mode %04o), and we (user %u) are not in "
                    "that group: add this user to it, or run this as user %u", path, owner, group,
                    mode, (unsigned)geteuid(), owner);
    if (mode != SHARED_FOLDER_MODE)
        return fail(SB_UNTRUSTED,
                    "%s belongs to user %u and group %u and has mode %04o, not %04o: others may "
                    "have changed what is in it; if you know that nobody has: chmod %o %s", path,
                    owner, group, mode, SHARED_FOLDER_MODE, SHARED_FOLDER_MODE, path);
    whose->shared = true;
    whose->group = group;
    return SB_OK;
}

int64_t trusted_segment(const char *path, int how, const trust *whose, int *file)
{
    return trusted_open(AT_FDCWD, NULL, path, how, whose, file);
}

int64_t trust_obstacle(const char *path)
{
    struct stat status;
    if (lstat(path, &status) != 0 || status.st_uid == geteuid() || geteuid() == 0)
        return fail(SB_EXISTS, "%s exists already", path);
    return fail(SB_UNTRUSTED,
                "%s exists already, and belongs to user %u (mode %04o): only that user "
                "or root can remove it",
                path, (unsigned)status.st_uid, (unsigned)status.st_mode & 07777);
}
