/* A vhost whose broker serves no more, because another one does, with rings of its own.
 *
 * Programs are to find out at their next call, and calls look at the row of their queue anyway: so
 * rows lose the bit that says that they are live, and get one that says that they had it.  Who then
 * finds its queue gone looks here.  Calls without a queue look at the word themselves.  Of a vhost
 * that is retired the same is said, and its rows never come back (delete.c).
 *
 * A broker that leaves, and gives away what is there, remains meanwhile: its own connections have a
 * copy of the catalog, in which all rows are as they were, and nobody else has one.  It is made
 * under the same lock, so what programs have declared before is in it.
 *
 * The word is stored before the first row changes, cleared after the last, and asked for again
 * under the lock (lock.c): so nobody takes a row that has moved for one that is free, and nobody
 * repairs before all rows are back. */

#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "vhost/vhost.h"

#define ROW_MOVED INT64_MIN

static void rows_each(sb_connection *connection, int64_t (*change)(int64_t word))
{
    char *catalog = connection->catalog.memory;
    for (int64_t row = 0; row < L_QUEUE_ROWS; row++) {
        int64_t at = L_QUEUE_COLUMN_AT + row * L_ROW_BYTES, word = word_load(catalog, at);
        if (change(word) != word)
            word_store(catalog, at, change(word));
    }
    word_store(catalog, L_CATALOG_GENERATION_AT, word_load(catalog, L_CATALOG_GENERATION_AT) + 1);
}

static int64_t row_away(int64_t word)
{
    return word & L_ROW_LIVE ? (word & ~L_ROW_LIVE) | ROW_MOVED : word;
}

static int64_t row_back(int64_t word)
{
    return word & ROW_MOVED ? (word & ~ROW_MOVED) | L_ROW_LIVE : word;
}

int64_t moved_code(sb_connection *connection)
{
    const char *catalog = connection->catalog.memory;
    int64_t open = 0;
    if (!word_load(catalog, L_CATALOG_MOVED_AT) && !vhost_is_retired(connection))
        return SB_OK;
    if (!connection->restores)
        atomic_compare_exchange_strong(&connection->closed, &open, SB_MOVED);
    const char *to = catalog + L_CATALOG_MOVED_TO_AT;
    return fail(SB_MOVED, "vhost '%s' has moved: its broker here is live no more; %s%.*s",
                connection->vhost, *to ? "connect to " : "it is not known who is",
                (int)L_CATALOG_MOVED_TO_BYTES - 1, to);
}

/* What the file has, without memory for what was never written. */
static int64_t file_copied(const segment *from, char *to)
{
    off_t end = 0, start;
    while ((start = lseek(from->file, end, SEEK_DATA)) >= 0) {
        end = lseek(from->file, start, SEEK_HOLE);
        while (start < end) {
            ssize_t count = pread(from->file, to + start, (size_t)(end - start), start);
            if (count <= 0)
                return fail_system("reading a catalog");
            start += count;
        }
    }
    return errno == ENXIO ? SB_OK : fail_system("reading a catalog");
}

/* The copy takes the place of the segment, at its address: who reads there now finds the same. */
static int64_t catalog_copied(sb_connection *connection)
{
    segment *catalog = &connection->catalog;
    size_t bytes = (size_t)catalog->bytes;
    void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return fail_system("memory for a copy of the catalog");
    int64_t code = file_copied(catalog, copy);
    if (code == SB_OK && mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                                catalog->memory) == MAP_FAILED)
        code = fail_system("a copy of the catalog in its place");
    if (code != SB_OK)
        munmap(copy, bytes);
    return code;
}

/* Under the catalog's lock. */
static int64_t remains(sb_connection *connection)
{
    pthread_mutex_lock(&connection->mutex);
    int64_t code = connection->remains ? SB_OK : catalog_copied(connection);
    connection->remains |= code == SB_OK;
    pthread_mutex_unlock(&connection->mutex);
    return code;
}

int64_t sb_vhost_moves(sb_connection *connection, const char *to, sb_connection *const *remain,
                       int64_t count)
{
    size_t length = strlen(to);
    if (length >= L_CATALOG_MOVED_TO_BYTES)
        return fail(SB_INVALID, "an address has %zu bytes, and may have %d", length,
                    (int)L_CATALOG_MOVED_TO_BYTES - 1);
    int64_t code = catalog_lock(connection);
    if (code != SB_OK)
        return code;
    for (int64_t each = 0; each < count && code == SB_OK; each++)
        code = remains(remain[each]);
    if (code == SB_OK) {
        memcpy((char *)connection->catalog.memory + L_CATALOG_MOVED_TO_AT, to, length + 1);
        word_store(connection->catalog.memory, L_CATALOG_MOVED_AT, 1);
        rows_each(connection, row_away);
    }
    catalog_unlock(connection);
    return code;
}

/* Who remained could not delete what the dead owned: whoever repairs asks for it again. */
static void owners_back(sb_connection *connection)
{
    for (int64_t id = 1; id < participants_high(connection); id++) {
        const char *entry = participant_entry(connection, id);
        if (word_load(entry, L_PARTICIPANT_STATE_AT) == L_PARTICIPANT_FREE &&
            word_load(entry, L_PARTICIPANT_OWNS_AT) & L_OWNS_QUEUES)
            participant_state_set(connection, id, L_PARTICIPANT_LEAVING);
    }
}

int64_t sb_vhost_serves(sb_connection *connection)
{
    int64_t code = catalog_lock(connection);
    if (code != SB_OK)
        return code;
    owners_back(connection);
    rows_each(connection, row_back);
    word_store(connection->catalog.memory, L_CATALOG_MOVED_AT, 0);
    catalog_unlock(connection);
    return SB_OK;
}
