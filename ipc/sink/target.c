/* Records from another node of a cluster: each says in its chunk which queue it is for, or which
 * exchange: then all queues that are bound to that here get it (core/route.py).
 *
 * That is the target, a number made of the name.  So both nodes know it without a table that would
 * have to outlive either of them, and a queue that is made again has it still.  Two names have one
 * number in one of 10^9 clusters of 100,000 queues: no record goes to either.
 *
 * The number of a queue is odd.  The even one below it is that of its schedule.  Those below 0 are
 * of an exchange if they are even, and else of a temporary queue that a reply is for. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "ring/ring.h"
#include "schedule/schedule.h"
#include "sink/sink.h"
#include "vhost/vhost.h"

/* A queue or an exchange that records went to. */
struct target_place {
    int64_t target;
    sb_queue *queue; /* NULL: of an exchange */
    sb_exchange *exchange;
    target_place *next;
};

bool is_for_exchange(int64_t target)
{
    return target < 0 && !(target & 1);
}

bool is_reply(int64_t target)
{
    return target < 0 && target & 1;
}

/* The name in an entry, or nothing; the broker's own are nobody's target, but for what one that
 * leaves has put aside. */
static int64_t name_in_entry(const char *entry, char *name)
{
    int64_t length = word_load(entry, L_ENTRY_NAME_LENGTH_AT);
    if (length < 1 || length > L_NAME_BYTES_MAX)
        return 0;
    memcpy(name, entry + L_ENTRY_NAME_AT, (size_t)length);
    name[length] = 0;
    return !is_own(name) || goes_to_successor(name) ? length : 0;
}

/* The reference of what has this target, and its name; SB_NOT_FOUND. */
static int64_t target_search(sb_connection *connection, int64_t target, char *named)
{
    char entry[L_ENTRY_BYTES], name[L_NAME_BYTES_MAX + 1];
    void *catalog = connection->catalog.memory;
    bool is_exchange = is_for_exchange(target);
    int64_t (*const of)(const char *, int64_t) = is_exchange        ? sb_target_of_exchange
                                                 : is_reply(target) ? sb_target_of_reply
                                                                    : sb_target_of;
    const char *noun = is_exchange ? "exchange" : "queue";
    int64_t table = is_exchange ? L_EXCHANGES : L_QUEUES, found = SB_NOT_FOUND;
    for (int64_t row = 0; (row = sb_row_next(catalog, table, row)) >= 0; row++) {
        int64_t reference = sb_row_copy(catalog, table, row, entry);
        int64_t length = reference < 0 ? 0 : name_in_entry(entry, name);
        if (length == 0 || of(name, length) != target)
            continue;
        if (found >= 0)
            return fail(SB_NOT_FOUND, "%s '%s' and another one have the same number in the "
                        "cluster: rename one of them", noun, name);
        found = reference;
        strcpy(named, name);
    }
    return found >= 0 ? found : fail(SB_NOT_FOUND, "its %s is not there any more", noun);
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

/* Or its schedule. */
static int64_t queue_of_target(sb_connection *connection, int64_t target, int64_t reference,
                               sb_queue **queue)
{
    pthread_mutex_lock(&connection->mutex);
    int64_t code = queue_handle(connection, reference, queue);
    if (code == SB_OK)
        sb_share_queue(*queue);
    pthread_mutex_unlock(&connection->mutex);
    if (code == SB_OK && !(target & 1)) {
        sb_queue *owner = *queue;
        *queue = schedule_for(owner, &code);
        if (*queue)
            sb_share_queue(*queue);
        sb_close_queue(owner);
    }
    return code;
}

/* Queues of requesters come and go. */
static void targets_forget_deleted(target_place **at)
{
    for (target_place *each; (each = *at);)
        if (each->queue && queue_is_gone(each->queue)) {
            *at = each->next;
            sb_close_queue(each->queue);
            free(each);
        } else {
            at = &each->next;
        }
}

static int64_t target_add(sb_connection *connection, int64_t target, target_place **at)
{
    char name[L_NAME_BYTES_MAX + 1];
    int64_t wanted = target < 0 ? target : target | 1;
    int64_t reference = target_search(connection, wanted, name);
    if (reference < 0)
        return reference;
    target_place *made = malloc(sizeof *made);
    if (!made)
        return fail_system("memory for a target");
    *made = (target_place){.target = target, .next = *at};
    int64_t code = is_for_exchange(target)
                       ? exchange_open_here(connection, name, &made->exchange)
                       : queue_of_target(connection, target, reference, &made->queue);
    if (code == SB_OK)
        *at = made;
    else
        free(made);
    return code;
}

int64_t target_look(destination *to, sb_sink *sink, int64_t target, sb_queue **queue,
                    sb_exchange **exchange)
{
    int64_t code = SB_OK;
    target_place *found = to->targets;
    while (found && found->target != target)
        found = found->next;
    if (!found) {
        targets_forget_deleted(&to->targets);
        outlets_forget_deleted(sink);
        code = target_add(sink->connection, target, &to->targets);
        found = code == SB_OK ? to->targets : NULL;
    }
    *queue = found ? found->queue : NULL;
    *exchange = found ? found->exchange : NULL;
    return code;
}

void target_forget(destination *to, int64_t target)
{
    for (target_place **at = &to->targets; *at; at = &(*at)->next)
        if ((*at)->target == target) {
            target_place *gone = *at;
            *at = gone->next;
            if (gone->queue)
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
