/* A group of users who share a vhost. */

#define _GNU_SOURCE
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "vhost/vhost.h"

#define GROUP_BYTES (1 << 20) /* the entry of a group names its members */

int64_t group_find(const char *group, int64_t *number)
{
    struct group entry, *found = NULL;
    char *end, *buffer = malloc(GROUP_BYTES);
    if (!buffer)
        return fail_system("memory for the members of a group");
    errno = getgrnam_r(group, &entry, buffer, GROUP_BYTES, &found);
    if (found)
        *number = entry.gr_gid;
    free(buffer);
    if (found)
        return SB_OK;
    *number = strtoll(group, &end, 10); /* a container may know a group by its number only */
    if (*group < '0' || *group > '9' || *end || *number >= UINT32_MAX)
        return fail(SB_INVALID, "there is no group '%.255s' on this host: name one, or its number",
                    group);
    return SB_OK;
}

int64_t group_make_folder(const char *home, int64_t group)
{
    char path[NAME_ROOM];
    snprintf(path, sizeof path, "%.*s", (int)strlen(home) - 1, home);
    if (mkdir(path, 0700) != 0)
        return errno == EEXIST ? trust_obstacle(path) : fail_system("making %s", path);
    if (chown(path, (uid_t)-1, (gid_t)group) == 0 && chmod(path, 02770) == 0)
        return SB_OK;
    int64_t code = errno == EPERM
        ? fail(SB_UNTRUSTED, "user %u is not in group %lld: only its members and root can make a "
               "vhost for it", (unsigned)geteuid(), (long long)group)
        : fail_system("making %s", path);
    rmdir(path);
    return code;
}
