/* Programs are told that their vhost has moved, and their transactions are whole.
 *
 * Whoever is in the middle of a commit looks for the rows of its queues: one that finds them out of
 * reach leaves what it has decided to whoever remains.  So new ones wait at the commit gate, and
 * those that are under way end first.  One that waits for room, or longer than that, is done by
 * whoever finds that it has left, when the rows are there. */

#define _GNU_SOURCE
#include <time.h>

#include "base/base.h"
#include "commit/commit.h"
#include "vhost/vhost.h"

#define CLOSED_NS INT64_C(1000000)     /* less than a committer waits at the gate */
#define UNDER_WAY_NS INT64_C(1000000000)

static _Atomic int64_t *gate_of(sb_connection *connection)
{
    return (_Atomic int64_t *)((char *)connection->transactions.memory + L_TRANSACTIONS_CLOSED_AT);
}

int64_t sb_vhost_departs(sb_connection *connection, const char *to, sb_connection *const *remain,
                         int64_t count)
{
    const struct timespec nap = {0, CLOSED_NS};
    int64_t until = sb_system_clock() + UNDER_WAY_NS;
    do {
        atomic_store(gate_of(connection), 1);
        nanosleep(&nap, NULL);
    } while (commit_is_under_way(connection) && sb_system_clock() < until);
    int64_t code = sb_vhost_moves(connection, to, remain, count);
    atomic_store(gate_of(connection), 0);
    sb_system_wake((int64_t)(intptr_t)gate_of(connection), INT32_MAX);
    return code;
}
