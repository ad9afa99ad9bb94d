/* Attaching the segments of a vhost, once their headers were checked. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "vhost/vhost.h"

#define LOCK_FILE_NUMBER_MIN 768 /* the live lock of a broker has a lower one: live_lock.py */

/* --- attaching -------------------------------------------------------------------------------- */

static int64_t check_catalog(sb_connection *connection)
{
    void *catalog = connection->catalog.memory;
    int64_t code = sb_catalog_check(catalog, connection->catalog.bytes);
    if (code == SB_OTHER_VERSION)
        return fail(code, "its catalog has layout version %lld, this shmbroker speaks %lld: use "
                    "the shmbroker that made it, or delete the vhost",
                    (long long)word_load(catalog, L_CATALOG_VERSION_AT),
                    (long long)L_LAYOUT_VERSION);
    if (code != SB_OK)
        return fail(code,
                    "its catalog is no catalog of shmbroker, or is damaged: delete the vhost");
    size_t length = (size_t)word_load(catalog, L_CATALOG_NAME_LENGTH_AT);
    const char *name = (const char *)catalog + L_CATALOG_NAME_AT;
    if (length != strlen(connection->vhost) || memcmp(name, connection->vhost, length) != 0)
        return fail(SB_NOT_A_SEGMENT, "its catalog belongs to vhost '%.*s': was the file renamed?",
                    (int)length, name);
    if (!connection->restores && word_load(catalog, L_CATALOG_RESTORING_AT))
        return fail(SB_NO_VHOST, "vhost '%s' is being restored from its journal: wait until its "
                    "broker is live", connection->vhost);
    if (boot_hash() == 0)
        return fail(SB_SYSTEM, "/proc/sys/kernel/random/boot_id cannot be read: who is alive "
                    "cannot be told without /proc, mount it");
    if (word_load(catalog, L_CATALOG_BOOT_AT) != boot_hash())
        return fail(SB_OTHER_BOOT, "it was made in another boot of the machine (%llx, now %llx): "
                    "delete it", (unsigned long long)word_load(catalog, L_CATALOG_BOOT_AT),
                    (unsigned long long)boot_hash());
    return SB_OK;
}

static int64_t check_others(sb_connection *connection)
{
    void *participants = connection->participants.memory;
    int64_t identity = word_load(connection->catalog.memory, L_CATALOG_ARENA_AT);
    if (word_load(participants, L_PARTICIPANTS_MAGIC_AT) != L_PARTICIPANTS_MAGIC)
        return fail(SB_NOT_A_SEGMENT, "its table of participants is none: delete the vhost");
    if (word_load(participants, L_PARTICIPANTS_VERSION_AT) != L_LAYOUT_VERSION)
        return fail(SB_OTHER_VERSION, "its table of participants has layout version %lld, this "
                    "shmbroker speaks %lld",
                    (long long)word_load(participants, L_PARTICIPANTS_VERSION_AT),
                    (long long)L_LAYOUT_VERSION);
    void *transactions = connection->transactions.memory;
    if (word_load(transactions, L_TRANSACTIONS_MAGIC_AT) != L_TRANSACTIONS_MAGIC)
        return fail(SB_NOT_A_SEGMENT, "its table of transactions is none: delete the vhost");
    if (word_load(transactions, L_TRANSACTIONS_VERSION_AT) != L_LAYOUT_VERSION)
        return fail(SB_OTHER_VERSION, "its table of transactions has layout version %lld, this "
                    "shmbroker speaks %lld",
                    (long long)word_load(transactions, L_TRANSACTIONS_VERSION_AT),
                    (long long)L_LAYOUT_VERSION);
    int64_t code = sb_arena_check(connection->arena.memory, connection->arena.bytes);
    if (code != SB_OK)
        return fail(code, "its arena cannot be used: %s", sb_strerror(code));
    if (word_load(participants, L_PARTICIPANTS_ARENA_AT) != identity ||
        word_load(transactions, L_TRANSACTIONS_ARENA_AT) != identity ||
        word_load(connection->arena.memory, L_ARENA_IDENTITY_AT) != identity)
        return fail(SB_WRONG_ARENA, "its segments do not belong together: delete the vhost");
    return SB_OK;
}

int64_t usable_code(sb_connection *connection)
{
    int64_t code = atomic_load(&connection->closed);
    int64_t moved = code == SB_OK || code == SB_MOVED ? moved_code(connection) : SB_OK;
    return moved == SB_OK ? code : moved;
}

int64_t attach_segments(sb_connection *connection)
{
    char path[NAME_ROOM];
    int64_t code = home_find(connection->home, connection->vhost, &connection->whose);
    if (code != SB_OK)
        return code;
    vhost_path(path, connection->home, "catalog");
    code = segment_attach(&connection->catalog, path, L_CATALOG_IDENTITY_BYTES,
                          &connection->whose);
    if (code == SB_SYSTEM && errno == ENOENT)
        return fail(SB_NO_VHOST, "there is no vhost '%s': create it first (shmbroker vhost create "
                    "%s)", connection->vhost, connection->vhost);
    if (code == SB_OK)
        code = check_catalog(connection);
    vhost_path(path, connection->home, "arena");
    if (code == SB_OK)
        code = segment_attach(&connection->arena, path, L_ARENA_TABLE_AT, &connection->whose);
    vhost_path(path, connection->home, "participants");
    if (code == SB_OK)
        code = segment_attach(&connection->participants, path, L_PARTICIPANTS_BYTES,
                              &connection->whose);
    vhost_path(path, connection->home, "transactions");
    if (code == SB_OK)
        code = segment_attach(&connection->transactions, path, L_TRANSACTIONS_BYTES,
                              &connection->whose);
    if (code == SB_OK)
        code = check_others(connection);
    return code;
}

/* A description of a file of its own, for locks that do not mix with others'. */
static int64_t open_again(sb_connection *connection, const char *kind, int *file)
{
    char path[NAME_ROOM];
    vhost_path(path, connection->home, kind);
    return trusted_segment(path, O_RDWR, &connection->whose, file);
}

/* A process that is killed lets go of its files one after the other, those of high numbers first;
 * an inotify file takes it 10 ms and more (the kernel waits for all who may look at it).  So
 * whoever waits for the lock that tells of the death gets it first. */
static void to_high_number(int *file)
{
    int high = fcntl(*file, F_DUPFD_CLOEXEC, LOCK_FILE_NUMBER_MIN);
    if (high < 0)
        return; /* the process may not have so many */
    close(*file);
    *file = high;
}

int64_t open_locks(sb_connection *connection)
{
    int64_t code = open_again(connection, "participants", &connection->lock_file);
    if (code == SB_OK)
        to_high_number(&connection->lock_file);
    if (code == SB_OK)
        code = open_again(connection, "participants", &connection->repair_file);
    if (code == SB_OK)
        code = open_again(connection, "catalog", &connection->catalog_lock_file);
    return code;
}

void close_locks(sb_connection *connection)
{
    int *const files[] = {&connection->lock_file, &connection->repair_file,
                          &connection->catalog_lock_file};
    for (int each = 0; each < 3; each++) {
        if (*files[each] >= 0)
            close(*files[each]);
        *files[each] = -1;
    }
}
