/* The lock of the catalog, which falls with its holder; and what names are allowed. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/base.h"
#include "vhost/vhost.h"

#define LOCK_TRIES 5000     /* some 5 s: a change of the catalog takes microseconds */

#define LOCK_PAUSE_NS 1000000

/* --- changing the catalog --------------------------------------------------------------------- */

/* Whether it is still that of its name, with its rows in place.  What is in it says where queues
 * are, and that of another may be there by now: so it is asked again under the lock. */
int64_t catalog_code(sb_connection *connection)
{
    struct stat status;
    if (fstat(connection->catalog.file, &status) != 0 || status.st_nlink == 0)
        return fail(SB_NO_VHOST, "vhost '%s' was deleted meanwhile", connection->vhost);
    return moved_code(connection);
}

static int64_t lock_within(sb_connection *connection, int most)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    const struct timespec pause = {0, LOCK_PAUSE_NS};
    for (int tries = 0; tries < most; tries++) {
        pthread_mutex_lock(&connection->mutex); /* not while we wait: others open queues with it */
        if (fcntl(connection->catalog_lock_file, F_OFD_SETLK, &lock) == 0)
            return SB_OK;
        pthread_mutex_unlock(&connection->mutex);
        if (errno != EAGAIN && errno != EACCES && errno != EINTR)
            return fail_system("locking the catalog of vhost '%s'", connection->vhost);
        if (tries < 64)
            sched_yield();
        else
            nanosleep(&pause, NULL);
    }
    if (most < LOCK_TRIES)
        return SB_LOCKED;
    return fail(SB_LOCKED, "somebody has held the catalog's lock of vhost '%s' for 5 s: is a "
                "participant stopped?", connection->vhost);
}

int64_t catalog_lock(sb_connection *connection)
{
    return lock_within(connection, LOCK_TRIES);
}

void catalog_unlock(sb_connection *connection)
{
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    fcntl(connection->catalog_lock_file, F_OFD_SETLK, &lock);
    pthread_mutex_unlock(&connection->mutex);
}

static int64_t to_change(sb_connection *connection, int64_t locked)
{
    if (locked != SB_OK)
        return locked;
    int64_t code = catalog_code(connection);
    if (code != SB_OK) {
        catalog_unlock(connection);
        return code;
    }
    /* the last one died while it changed something: it may not have told anybody */
    if (word_load(connection->catalog.memory, L_CATALOG_CHANGING_AT))
        connection->duties->repair_catalog(connection);
    word_store(connection->catalog.memory, L_CATALOG_CHANGING_AT, 1);
    return SB_OK;
}

int64_t connection_lock(sb_connection *connection)
{
    return to_change(connection, catalog_lock(connection));
}

int64_t connection_try_lock(sb_connection *connection)
{
    return to_change(connection, lock_within(connection, 1));
}

void connection_unlock(sb_connection *connection)
{
    word_store(connection->catalog.memory, L_CATALOG_CHANGING_AT, 0);
    catalog_unlock(connection);
}

int64_t name_check(const char *kind, const char *name)
{
    size_t length = name ? strlen(name) : 0;
    if (length == 0 || length > L_NAME_BYTES_MAX)
        return fail(SB_BAD_NAME, "the name of a %s is 1 to %d bytes, this one has %zu", kind,
                    (int)L_NAME_BYTES_MAX, length);
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strchr(name, '/'))
        return fail(SB_BAD_NAME, "'%s' looks like a path: the name of a %s contains no '/'", name,
                    kind);
    if (!is_utf8(name, (int64_t)length))
        return fail(SB_BAD_NAME, "the name of a %s is UTF-8, this one is not", kind);
    for (const char *each = name; *each; each++)
        if ((unsigned char)*each < 0x20 || *each == 0x7F)
            return fail(SB_BAD_NAME, "the name of a %s contains no control characters", kind);
    return SB_OK;
}

int64_t change_code(sb_connection *connection)
{
    detail_forget();
    if (connection->id == 0)
        return fail(SB_INVALID, "the connection only observes: connect to change something");
    return usable_code(connection);
}

int64_t change_begin(sb_connection *connection, const char *kind, const char *name)
{
    int64_t code = change_code(connection);
    if (code == SB_OK && kind)
        code = name_check(kind, name);
    return code == SB_OK ? connection_lock(connection) : code;
}
