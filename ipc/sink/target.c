/* Records from another node of a cluster: each says in its chunk which queue it is for.
 *
 * That is the target, a number made of the queue's name.  So both nodes know it without a table
 * that would have to outlive either of them, and a queue that is made again has it still.  Two
 * names have one number in one of 10^9 clusters of 100,000 queues: no record goes to either.
 *
 * The number of a queue is odd.  The even one below it is that of its schedule. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "ring/ring.h"
#include "schedule/schedule.h"
#include "sink/sink.h"
#include "vhost/vhost.h"

/* A queue that records went to. */
struct target_queue {
    int64_t target;
    sb_queue *queue;
    target_queue *next;
};

int64_t sb_target_of(const char *name, int64_t length)
{
    static const int64_t key[2] = {0};
    uint64_t hash[2];
    siphash_128(key, name, length, hash);
    return (int64_t)(hash[0] >> 1 | 1); /* 0 is none */
}

/* The name of a queue, or nothing; the broker's own are nobody's target. */
static int64_t name_in_entry(const char *entry, char *name)
{
    int64_t length = word_load(entry, L_ENTRY_NAME_LENGTH_AT);
    if (length < 1 || length > L_NAME_BYTES_MAX || entry[L_ENTRY_NAME_AT] == '$')
        return 0;
    memcpy(name, entry + L_ENTRY_NAME_AT, (size_t)length);
    name[length] = 0;
    return length;
}

/* The reference of the queue that has this target; SB_NOT_FOUND. */
static int64_t target_search(sb_connection *connection, int64_t target)
{
    char entry[L_ENTRY_BYTES], name[L_NAME_BYTES_MAX + 1];
    void *catalog = connection->catalog.memory;
    int64_t found = SB_NOT_FOUND;
    for (int64_t row = 0; (row = sb_row_next(catalog, L_QUEUES, row)) >= 0; row++) {
        int64_t reference = sb_row_copy(catalog, L_QUEUES, row, entry);
        int64_t length = reference < 0 ? 0 : name_in_entry(entry, name);
        if (length == 0 || sb_target_of(name, length) != target)
            continue;
        if (found >= 0)
            return fail(SB_NOT_FOUND, "queue '%s' and another one have the same number in the "
                        "cluster: rename one of them", name);
        found = reference;
    }
    return found >= 0 ? found : fail(SB_NOT_FOUND, "its queue is not there any more");
}

/* The schedule of this queue, which somebody moves from now on. */
static sb_queue *schedule_for(sb_queue *queue, int64_t *code)
{
    if (!queue_look(queue, code))
        return NULL;
    sb_queue *schedule = schedule_of(queue, true, code);
    if (schedule)
        mover_attend(queue, true);
    queue_looked(queue);
    return schedule;
}

static int64_t target_add(sb_connection *connection, int64_t target, int64_t reference,
                          target_queue **at)
{
    target_queue *made = malloc(sizeof *made);
    if (!made)
        return fail_system("memory for a target");
    *made = (target_queue){.target = target, .next = *at};
    pthread_mutex_lock(&connection->mutex);
    int64_t code = queue_handle(connection, reference, &made->queue);
    if (code == SB_OK)
        sb_share_queue(made->queue);
    pthread_mutex_unlock(&connection->mutex);
    if (code == SB_OK && !(target & 1)) {
        sb_queue *owner = made->queue;
        made->queue = schedule_for(owner, &code);
        if (made->queue)
            sb_share_queue(made->queue);
        sb_close_queue(owner);
    }
    if (code == SB_OK)
        *at = made;
    else
        free(made);
    return code;
}

int64_t target_queue_of(destination *to, const sb_sink *sink, int64_t target, sb_queue **queue)
{
    for (target_queue *each = to->targets; each; each = each->next)
        if (each->target == target) {
            *queue = each->queue;
            return SB_OK;
        }
    int64_t reference = target_search(sink->connection, target | 1);
    int64_t code = reference < 0 ? reference
                                 : target_add(sink->connection, target, reference, &to->targets);
    if (code == SB_OK)
        *queue = to->targets->queue;
    return code;
}

void target_forget(destination *to, int64_t target)
{
    for (target_queue **at = &to->targets; *at; at = &(*at)->next)
        if ((*at)->target == target) {
            target_queue *gone = *at;
            *at = gone->next;
            sb_close_queue(gone->queue);
            free(gone);
            return;
        }
}

void targets_close(destination *to)
{
    while (to->targets)
        target_forget(to, to->targets->target);
}
