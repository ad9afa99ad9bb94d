/* Following the catalog: which queues come and go, for one thread that does something with each.
 *
 * A queue is known by its reference, which has the generation of its row: one that is made again
 * under its old name, or in its old row, is another one.  What was deleted is told before what has
 * come, so that a user sees a name once at a time. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "follower/follower.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define REFERENCES_BYTES (L_QUEUE_ROWS * sizeof(int64_t))

static int64_t generation_of(const following *of)
{
    return word_load(of->connection->catalog.memory, L_CATALOG_GENERATION_AT);
}

int64_t following_begin(following *of, sb_connection *connection, int64_t flags,
                        const following_user *user, void *context)
{
    *of = (following){.connection = connection, .user = user, .context = context, .flags = flags,
                      .generation = -1};
    /* most of it is never touched; calloc may hand out memory that was used before, and clear it */
    of->references = mmap(NULL, REFERENCES_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (of->references != MAP_FAILED)
        return SB_OK;
    of->references = NULL;
    return fail_system("memory to follow %d queues", (int)L_QUEUE_ROWS);
}

bool following_is_behind(const following *of)
{
    return generation_of(of) != of->generation;
}

static int64_t make_room(following *of)
{
    if (!ROOM_FOR(of->rows, of->room, of->count + 1))
        return fail_system("memory to follow %lld queues", (long long)of->count + 1);
    return SB_OK;
}

static bool following_is_gone(const sb_queue *queue)
{
    return queue_is_gone(queue);
}

static int64_t look_for_gone(following *of)
{
    int64_t kept = 0, code = SB_OK;
    for (int64_t each = 0; each < of->count; each++) {
        following_row row = of->rows[each];
        /* asked once: it may be deleted between two answers */
        bool leaves = code == SB_OK && following_is_gone(row.queue);
        if (leaves)
            code = of->user->gone(of->context, row.kept);
        if (leaves && code == SB_OK) {
            of->references[row.queue->reference & L_REFERENCE_INDEX_MASK] = 0;
            of->changes++;
            atomic_fetch_sub(&row.queue->held, 1);
        } else {
            of->rows[kept++] = row;
        }
    }
    bool is_any = kept < of->count;
    of->count = kept;
    if (is_any)
        deleted_forget(of->connection, true);
    return code;
}

static int64_t follow(following *of, int64_t reference, const char *entry)
{
    sb_connection *connection = of->connection;
    following_row row = {0};
    int64_t code = make_room(of);
    if (code != SB_OK)
        return code;
    pthread_mutex_lock(&connection->mutex);
    code = queue_handle(connection, reference, &row.queue);
    if (code == SB_OK)
        atomic_fetch_add(&row.queue->held, 1);
    pthread_mutex_unlock(&connection->mutex);
    if (code != SB_OK)
        return code;
    code = of->user->came(of->context, row.queue, entry, &row.kept);
    if (code != SB_OK || !row.kept) {
        atomic_fetch_sub(&row.queue->held, 1);
        return code;
    }
    of->rows[of->count++] = row;
    of->changes++;
    of->references[reference & L_REFERENCE_INDEX_MASK] = reference;
    return SB_OK;
}

int64_t following_add(following *of, int64_t reference, following_row *row)
{
    char entry[L_ENTRY_BYTES];
    int64_t at = reference & L_REFERENCE_INDEX_MASK, code = SB_OK;
    if (of->references[at] != reference) {
        if (sb_row_copy(of->connection->catalog.memory, L_QUEUES, at, entry) != reference)
            return fail(SB_NOT_FOUND, "the queue was deleted");
        code = look_for_gone(of); /* what had its row before */
        if (code == SB_OK)
            code = follow(of, reference, entry);
    }
    for (int64_t each = 0; each < of->count && code == SB_OK; each++)
        if (of->rows[each].queue->reference == reference)
            *row = of->rows[each];
    return code;
}

int64_t following_look(following *of)
{
    char entry[L_ENTRY_BYTES];
    void *catalog = of->connection->catalog.memory;
    int64_t generation = generation_of(of), row = 0;
    if (generation == of->generation)
        return SB_OK;
    int64_t code = look_for_gone(of);
    for (; code == SB_OK && (row = sb_row_next(catalog, L_QUEUES, row)) >= 0; row++) {
        int64_t flags = word_load(catalog, sb_catalog_entry_at(L_QUEUES, row) + L_QUEUE_FLAGS_AT);
        if ((flags & of->flags) != of->flags || of->references[row])
            continue;
        int64_t reference = sb_row_copy(catalog, L_QUEUES, row, entry);
        if (reference >= 0 && (word_load(entry, L_QUEUE_FLAGS_AT) & of->flags) == of->flags)
            code = follow(of, reference, entry);
        code = code == SB_NOT_FOUND ? SB_OK : code; /* deleted while we looked */
    }
    if (code == SB_OK)
        of->generation = generation;
    return code;
}

void following_end(following *of)
{
    for (int64_t each = 0; each < of->count; each++)
        atomic_fetch_sub(&of->rows[each].queue->held, 1);
    free(of->rows);
    if (of->references)
        munmap(of->references, REFERENCES_BYTES);
    *of = (following){0};
}
