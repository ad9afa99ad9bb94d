/* A vhost: a namespace of segments in /dev/shm.
 *
 *     shmbroker.NAME.catalog        its queues, exchanges and bindings
 *     shmbroker.NAME.arena          the memory of all messages
 *     shmbroker.NAME.participants   who takes part, and the locks that tell who lives
 *     shmbroker.NAME.transactions   what each of them is about to commit
 *     shmbroker.NAME.queue-ROW-GENERATION
 *     shmbroker.NAME.latency-ROW-GENERATION-NUMBER   its histograms, if it has any
 *
 * The catalog is named last: a vhost exists when its catalog does.  Where they are: home.c. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "vhost/vhost.h"

#define LOCK_TRIES 5000 /* some 5 s: making a vhost takes milliseconds */
#define LOCK_PAUSE_NS 1000000

bool vhost_name_is_good(const char *name)
{
    size_t length = name ? strlen(name) : 0;
    if (length == 0 || length > L_CATALOG_NAME_BYTES_MAX || name[0] == '.')
        return false;
    for (const char *each = name; *each; each++)
        if (!(*each >= 'a' && *each <= 'z') && !(*each >= 'A' && *each <= 'Z') &&
            !(*each >= '0' && *each <= '9') && *each != '-' && *each != '_')
            return false;
    return true;
}

int64_t vhost_name_refusal(void)
{
    return fail(SB_BAD_NAME, "a vhost's name is 1 to %d letters, digits, '-' and '_'",
                (int)L_CATALOG_NAME_BYTES_MAX);
}

int64_t boot_hash(void)
{
    char text[64] = "";
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, text, sizeof text) : 0;
    if (file >= 0)
        close(file);
    return length > 0 ? sb_name_hash(text, length) : 0;
}

static int64_t participants_format(segment *made, int64_t identity)
{
    word_store(made->memory, L_PARTICIPANTS_VERSION_AT, L_LAYOUT_VERSION);
    word_store(made->memory, L_PARTICIPANTS_BYTES_AT, L_PARTICIPANTS_BYTES);
    word_store(made->memory, L_PARTICIPANTS_ARENA_AT, identity);
    word_store(made->memory, L_PARTICIPANTS_HIGH_AT, 1);
    word_store(made->memory, L_PARTICIPANTS_MAGIC_AT, L_PARTICIPANTS_MAGIC);
    return SB_OK;
}

static int64_t transactions_format(segment *made, int64_t identity)
{
    word_store(made->memory, L_TRANSACTIONS_VERSION_AT, L_LAYOUT_VERSION);
    word_store(made->memory, L_TRANSACTIONS_BYTES_AT, L_TRANSACTIONS_BYTES);
    word_store(made->memory, L_TRANSACTIONS_ARENA_AT, identity);
    word_store(made->memory, L_TRANSACTIONS_MAGIC_AT, L_TRANSACTIONS_MAGIC);
    return SB_OK;
}

/* Make one segment of the vhost, formatted, under its own name. */
static int64_t make(const char *vhost, const char *path, const char *kind, int64_t arena_bytes,
                    int64_t identity, bool restoring)
{
    segment made;
    int64_t bytes, committed, code;
    bool is_arena = strcmp(kind, "arena") == 0, is_catalog = strcmp(kind, "catalog") == 0;
    bool is_participants = strcmp(kind, "participants") == 0;
    bytes = is_arena ? sb_arena_bytes(arena_bytes)
            : is_catalog ? sb_catalog_bytes()
            : is_participants ? L_PARTICIPANTS_BYTES : L_TRANSACTIONS_BYTES;
    committed = is_arena ? bytes - arena_bytes
                : is_catalog ? sb_catalog_columns_bytes()
                : is_participants ? L_PARTICIPANTS_AT : L_TRANSACTIONS_AT;
    code = segment_make(&made, path, bytes, committed);
    if (code != SB_OK)
        return code;
    if (is_arena)
        code = sb_arena_format(made.memory, arena_bytes, identity);
    else if (is_catalog)
        code = sb_catalog_format(made.memory, identity, boot_hash(), vhost, (int64_t)strlen(vhost));
    else
        code = is_participants ? participants_format(&made, identity)
                               : transactions_format(&made, identity);
    if (code == SB_OK && is_catalog)
        word_store(made.memory, L_CATALOG_RESTORING_AT, restoring);
    if (code == SB_OK)
        code = segment_name(&made, path);
    segment_detach(&made);
    return code;
}

static bool has_catalog(const char *home)
{
    char path[NAME_ROOM];
    vhost_path(path, home, "catalog");
    return access(path, F_OK) == 0;
}

static int64_t make_in(const char *home, const char *vhost, int64_t arena_bytes, bool restoring)
{
    char path[NAME_ROOM];
    int64_t identity;
    if (getrandom(&identity, sizeof identity, 0) != sizeof identity)
        return fail_system("random numbers");
    /* what a creator that died left without a catalog is nobody's */
    static const char *const kinds[] = {"arena", "participants", "transactions", "catalog"};
    for (int kind = 0; kind < 4; kind++) {
        vhost_path(path, home, kinds[kind]);
        unlink(path);
        int64_t code = make(vhost, path, kinds[kind], arena_bytes, identity, restoring);
        if (code == SB_OK)
            continue;
        while (kind-- > 0) { /* without a catalog they are no vhost */
            vhost_path(path, home, kinds[kind]);
            unlink(path);
        }
        return code;
    }
    return SB_OK;
}

static int64_t make_all(const char *vhost, int64_t arena_bytes, int64_t group, bool restoring)
{
    char home[NAME_ROOM], folder[NAME_ROOM];
    home_private(home, vhost);
    home_shared(folder, vhost);
    if (has_catalog(home) || has_catalog(folder))
        return fail(SB_EXISTS, "vhost '%s' exists already", vhost);
    home_clear(folder);
    if (access(folder, F_OK) == 0) /* another user's, or with something else in it */
        return trust_obstacle(folder);
    if (group < 0)
        return make_in(home, vhost, arena_bytes, restoring);
    int64_t code = group_make_folder(folder, group);
    if (code != SB_OK)
        return code;
    code = make_in(folder, vhost, arena_bytes, restoring);
    if (code != SB_OK)
        rmdir(folder);
    return code;
}

/* One creator at a time: a lock on the directory itself leaves nothing behind.  Every user may take
 * it, and keep it. */
int64_t vhosts_lock(int *directory)
{
    const struct timespec pause = {0, LOCK_PAUSE_NS};
    *directory = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int tries = 0; *directory >= 0 && tries < LOCK_TRIES; tries++) {
        if (flock(*directory, LOCK_EX | LOCK_NB) == 0)
            return SB_OK;
        if (errno != EWOULDBLOCK && errno != EINTR)
            break;
        nanosleep(&pause, NULL);
    }
    int64_t code =
        *directory >= 0 && errno == EWOULDBLOCK
            ? fail(SB_LOCKED, "a process has held the lock of /dev/shm for 5 s, so that no "
                              "vhost can be made or deleted: see which one by lslocks, and end "
                              "it")
            : fail_system("locking /dev/shm");
    if (*directory >= 0)
        close(*directory);
    return code;
}

/* Not only closed: another thread may have forked meanwhile, and the child has a copy. */
void vhosts_unlock(int directory)
{
    flock(directory, LOCK_UN);
    close(directory);
}

int64_t vhost_create(const char *vhost, int64_t arena_bytes, const char *group, bool restoring)
{
    int64_t number = NOBODY;
    if (!vhost_name_is_good(vhost))
        return vhost_name_refusal();
    if (sb_arena_bytes(arena_bytes) < 0)
        return fail(SB_INVALID, "an arena has a multiple of %lld bytes, at most %lld, not %lld",
                    (long long)L_BLOCK_BYTES, (long long)L_ARENA_BYTES_MAX,
                    (long long)arena_bytes);
    int directory;
    int64_t code = group ? group_find(group, &number) : SB_OK;
    if (code == SB_OK)
        code = vhosts_lock(&directory);
    if (code != SB_OK)
        return code;
    code = make_all(vhost, arena_bytes, number, restoring);
    vhosts_unlock(directory);
    return code;
}

int64_t sb_vhost_create(const char *vhost, int64_t arena_bytes)
{
    return vhost_create(vhost, arena_bytes, NULL, false);
}

int64_t sb_vhost_create_with(const char *vhost, int64_t arena_bytes, const char *group,
                             int64_t mode)
{
    char own[24];
    snprintf(own, sizeof own, "%u", (unsigned)getegid());
    if (mode != 0 && mode != 0600 && mode != 0660)
        return fail(SB_INVALID, "a vhost has mode 0600 (its user alone) or 0660 (a group), not "
                    "%04llo", (unsigned long long)mode);
    if (mode == 0600 && group)
        return fail(SB_INVALID, "a vhost with mode 0600 is its user's alone: for a group it has "
                    "mode 0660");
    return vhost_create(vhost, arena_bytes, mode == 0660 && !group ? own : group, false);
}
