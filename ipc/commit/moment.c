/* A moment between transactions, for followers of durable queues: all that were begun are in the
 * journal, whose gates have passed what they did, and none is begun meanwhile. */

#define _GNU_SOURCE
#include <time.h>

#include "base/base.h"
#include "commit/commit.h"
#include "vhost/vhost.h"

#define TRIES 4 /* without asking others to wait */
#define NAP_NS 50000
#define MOMENT_NS 20000000

int64_t commit_moment(sb_connection *connection, int64_t (*see)(void *), void *context)
{
    const struct timespec nap = {0, NAP_NS};
    int64_t until = sb_system_clock() + MOMENT_NS, code = SB_EMPTY;
    commit_gate gate = {.connection = connection};
    for (int tries = 0; code == SB_EMPTY; tries++) {
        if (tries >= TRIES)
            commit_gate_close(&gate);
        int64_t begun = commit_gate_begun(connection);
        if (commit_gate_whole(connection) == begun) {
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
