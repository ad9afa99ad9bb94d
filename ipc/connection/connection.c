/* A connection: one process taking part in one vhost.  Any of its threads may use it.
 *
 * Closing comes in two steps.  sb_disconnect gives back what we hold and leaves; from then on every
 * call answers SB_CLOSED, also in threads that were just about to make one.  sb_connection_free
 * unmaps and frees, and is for when nobody can make a call any more.
 *
 * After fork the child's copies answer SB_FORKED: the parent's ports and locks are not theirs. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "connection/connection.h"
#include "exchange/exchange.h"
#include "paging/paging.h"
#include "repair/repair.h"
#include "request/request.h"
#include "ring/ring.h"
#include "schedule/schedule.h"
#include "vhost/vhost.h"

#define PAUSE_NS 25         /* about what one look takes */

#define SPIN_NS 10000       /* a fraction of what waking somebody takes */

static int64_t connect_as(const char *vhost, const char *name, bool joins, bool restores,
                          sb_connection **made)
{
    *made = NULL;
    if (!vhost_name_is_good(vhost))
        return fail(SB_BAD_NAME, "'%s' is no vhost: its name is 1 to %d letters, digits, '-' and "
                    "'_'", vhost ? vhost : "", (int)L_CATALOG_NAME_BYTES_MAX);
    sb_connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return fail_system("memory for a connection");
    connection->duties = &all_duties;
    strcpy(connection->vhost, vhost);
    connection->catalog.file = connection->arena.file = connection->participants.file = -1;
    connection->transactions.file = -1;
    connection->lock_file = connection->repair_file = connection->catalog_lock_file = -1;
    connection->spins = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? SPIN_NS / PAUSE_NS : 0;
    connection->spins_as_it_pays = true;
    connection->restores = restores;
    connection->whose = trust_segments;
    connection->whose.looks = !joins && !restores; /* an attached one joins later */
    pthread_mutex_init(&connection->mutex, NULL);
    pthread_mutex_init(&connection->repair, NULL);
    pthread_mutex_init(&connection->commit_mutex, NULL);
    pthread_mutex_init(&connection->slow, NULL);
    connection->queues = calloc(L_QUEUE_ROWS, sizeof *connection->queues);
    int64_t code = connection->queues ? attach_segments(connection) : fail_system("memory");
    if (code == SB_OK)
        code = connections_add(connection);
    if (code == SB_OK && !restores)
        code = moved_code(connection);
    if (code == SB_OK && joins)
        code = participant_join(connection, name ? name : program_invocation_short_name, true);
    if (code != SB_OK) {
        atomic_store(&connection->closed, code);
        sb_connection_free(connection);
        return code;
    }
    *made = connection;
    return SB_OK;
}

int64_t sb_version(void)
{
    return SB_VERSION;
}

/* Structures are handed over by address: with those of another version a program would read and
 * write the wrong fields. */
static int64_t layout_check(int64_t version, uint64_t structures, sb_connection **made)
{
    *made = NULL;
    if (structures == SB_LAYOUT)
        return SB_OK;
    return fail(SB_OTHER_HEADER, "the program was compiled with shmbroker.h %lld.%lld.%lld, whose "
                "structures are not those of this library, which is %d.%d.%d: compile it anew",
                (long long)(version / 1000000), (long long)(version / 1000 % 1000),
                (long long)(version % 1000), SB_VERSION / 1000000, SB_VERSION / 1000 % 1000,
                SB_VERSION % 1000);
}

int64_t sb_connect_compiled(int64_t version, uint64_t structures, const char *vhost,
                            const char *name, sb_connection **made)
{
    int64_t code = layout_check(version, structures, made);
    return code == SB_OK ? connect_as(vhost, name, true, false, made) : code;
}

int64_t sb_restore_begin(const char *vhost, int64_t arena_bytes, const char *group,
                         const char *name, sb_connection **made)
{
    int64_t code = vhost_create(vhost, arena_bytes, group, true);
    return code == SB_OK ? connect_as(vhost, name, true, true, made) : code;
}

int64_t sb_observe_compiled(int64_t version, uint64_t structures, const char *vhost,
                            sb_connection **made)
{
    int64_t code = layout_check(version, structures, made);
    return code == SB_OK ? connect_as(vhost, NULL, false, false, made) : code;
}

int64_t sb_attach(const char *vhost, sb_connection **made)
{
    return connect_as(vhost, NULL, false, true, made);
}

/* As quick as can be: what the dead have left is repaired by others, or by us later. */
int64_t sb_join(sb_connection *connection, const char *name)
{
    if (connection->id)
        return fail(SB_INVALID, "the connection takes part in vhost '%s' already",
                    connection->vhost);
    int64_t code = catalog_code(connection);
    if (code == SB_OK && word_load(connection->catalog.memory, L_CATALOG_RESTORING_AT))
        code = fail(SB_NO_VHOST, "vhost '%s' is not whole", connection->vhost);
    if (code == SB_OK)
        code = usable_code(connection);
    if (code == SB_OK)
        code = participant_join(connection, name, false);
    return code == SB_TOO_MANY ? participant_join(connection, name, true) : code;
}

int64_t sb_disconnect(sb_connection *connection)
{
    int64_t open = 0;
    if (!atomic_compare_exchange_strong(&connection->closed, &open, SB_CLOSED) &&
        open != SB_CLOSED && !is_expelled(open) && open != SB_MOVED)
        return open;
    if (atomic_exchange(&connection->left, 1))
        return SB_OK;
    mover_end(connection);
    pager_end(connection);
    pthread_mutex_lock(&connection->mutex);
    pthread_mutex_unlock(&connection->mutex); /* a change of the catalog is finished */
    for (int64_t row = 0; row < L_QUEUE_ROWS; row++)
        if (connection->queues[row])
            queue_shut(connection->queues[row]);
    for (sb_queue *each = connection->gone; each; each = each->next)
        if (each->ring.memory)
            queue_shut(each);
    for (lane *each = connection->lent; each; each = each->next)
        sb_port_stop(&each->port);
    reply_shut(connection);
    /* a commit and a repair that are under way end first: our locks are theirs */
    pthread_mutex_lock(&connection->commit_mutex);
    pthread_mutex_lock(&connection->repair);
    if (connection->id)
        participant_leave(connection);
    connections_remove(connection);
    pthread_mutex_unlock(&connection->repair);
    pthread_mutex_unlock(&connection->commit_mutex);
    return SB_OK;
}

void sb_connection_free(sb_connection *connection)
{
    if (!connection)
        return;
    int64_t closed = atomic_load(&connection->closed);
    if (closed == SB_OK || is_expelled(closed) || closed == SB_MOVED)
        sb_disconnect(connection);
    bool forked = atomic_load(&connection->closed) == SB_FORKED;
    while (connection->exchanges)
        exchange_close(connection->exchanges);
    for (int64_t row = 0; connection->queues && row < L_QUEUE_ROWS; row++)
        if (connection->queues[row])
            queue_free(connection->queues[row]);
    deleted_free(connection);
    reply_free(connection);
    request_free(connection);
    while (connection->lent) {
        lane *last = connection->lent;
        connection->lent = last->next;
        recorder_free(&last->recorder);
        free(last);
    }
    lanes_free(connection);
    if (!forked)
        connections_remove(connection); /* it could not be made */
    segment_detach(&connection->catalog);
    segment_detach(&connection->arena);
    segment_detach(&connection->participants);
    segment_detach(&connection->transactions);
    free(atomic_load(&connection->left_operations));
    free(connection->queues);
    free(connection->ways);
    free(connection);
}

int64_t sb_spin(sb_connection *connection, int64_t ns)
{
    if (ns < 0)
        return fail(SB_INVALID, "a wait cannot spin for %lld ns: 0 or more", (long long)ns);
    connection->spins = ns / PAUSE_NS;
    connection->spins_as_it_pays = false;
    return SB_OK;
}

int64_t sb_wait_in_slices(sb_connection *connection)
{
    connection->waits_in_slices = true;
    return SB_OK;
}

int64_t sb_participant(sb_connection *connection)
{
    return connection->id;
}

int64_t sb_closed(sb_connection *connection)
{
    return atomic_load(&connection->closed);
}

void *sb_catalog(sb_connection *connection)
{
    return connection->catalog.memory;
}

void *sb_participants(sb_connection *connection)
{
    return connection->participants.memory;
}

void *sb_transactions(sb_connection *connection)
{
    return connection->transactions.memory;
}

void *sb_arena(sb_connection *connection, int64_t *bytes)
{
    int64_t data_at = sb_arena_data_at(word_load(connection->arena.memory, L_ARENA_BLOCKS_AT));
    *bytes = connection->arena.bytes - data_at;
    return (char *)connection->arena.memory + data_at;
}

void sb_arena_shares(sb_connection *connection, int64_t *shares)
{
    void *arena = connection->arena.memory;
    int64_t blocks = word_load(arena, L_ARENA_BLOCKS_AT);
    int64_t committed = word_load(arena, L_ARENA_COMMITTED_AT);
    memset(shares, 0, sizeof *shares * L_PARTICIPANTS);
    for (int64_t block = 0; block < committed && block < blocks; block++) {
        int64_t word = word_load(arena, L_ARENA_TABLE_AT + (block << L_BLOCK_ENTRY_SHIFT));
        if (((word >> L_BLOCK_STATE_SHIFT) & L_STATE_MASK) != L_BLOCK_FREE)
            shares[(word >> L_BLOCK_OWNER_SHIFT) & L_OWNER_MASK] += L_BLOCK_BYTES;
    }
}
