/* A moment between transactions, for followers of durable queues: all that were begun are in the
 * journal and with the replicas that count, whose gates have passed what they did, and none is
 * begun meanwhile. */

#define _GNU_SOURCE
#include <time.h>

#include "base/base.h"
#include "commit/commit.h"
#include "vhost/vhost.h"

#define TRIES 4 /* without asking others to wait */
#define NAP_NS 50000
#define MOMENT_NS 20000000
#define BETWEEN_NS 2000000

/* The gates of all queues move first, one after the other, and then it is told. */
static bool all_is_confirmed(sb_connection *connection, int64_t begun)
{
    return commit_gate_whole(connection) == begun && commit_gate_confirmed(connection) >= begun;
}

int64_t commit_moment(sb_connection *connection, int64_t (*see)(void *), void *context)
{
    const struct timespec nap = {0, NAP_NS};
    int64_t until = sb_system_clock() + MOMENT_NS, code = SB_EMPTY;
    commit_gate gate = {.connection = connection};
    for (int tries = 0; code == SB_EMPTY; tries++) {
        if (tries >= TRIES)
            commit_gate_close(&gate);
        int64_t begun = commit_gate_begun(connection);
        if (all_is_confirmed(connection, begun)) {
            code = see(context);
            if (code != SB_OK || begun == commit_gate_begun(connection))
                break;
            code = SB_EMPTY;
        }
        if (sb_system_clock() >= until)
            break;
        nanosleep(&nap, NULL);
    }
    commit_gate_open(&gate);
    return code;
}

typedef struct look {
    sb_connection *connection;
    int64_t (*see)(void *);
    void *context;
    int64_t late;
} look;

/* Steps as in core/commit.py: who is under way is seen, or has counted meanwhile. */
static int64_t see_between(void *context)
{
    const struct timespec nap = {0, NAP_NS};
    const look *at = context;
    void *transactions = at->connection->transactions.memory;
    do {
        int64_t counted = sb_commit_counted(transactions);
        if (!commit_is_under_way(at->connection)) {
            int64_t code = at->see(at->context);
            if (code != SB_OK || counted == sb_commit_counted(transactions))
                return code;
        }
        nanosleep(&nap, NULL);
    } while (sb_system_clock() < at->late);
    return SB_EMPTY;
}

int64_t sb_commit_any_moment(sb_connection *connection, int64_t is_durable,
                             int64_t (*see)(void *), void *context)
{
    int64_t code = usable_code(connection);
    if (code != SB_OK)
        return code;
    look at = {.connection = connection, .see = see, .context = context,
               .late = sb_system_clock() + BETWEEN_NS};
    return is_durable ? commit_moment(connection, see_between, &at) : see_between(&at);
}
