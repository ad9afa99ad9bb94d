/* Spinning: whether the waits in a lane look for a while before they sleep (core/spinning.py).
 *
 * Where sb_spin has said how long, each wait spins for so long.  By default each spins for some 10
 * us, but a thread that may run on one processor only does so as it pays. */

#define _GNU_SOURCE
#include <sched.h>

#include "base/base.h"
#include "ring/ring.h"

/* Now, not when it connected: threads are moved, and pin themselves whenever they like. */
static bool is_pinned(void)
{
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) < 2;
}

void spinning_in_vain(const sb_connection *connection, spinning *how)
{
    if (!connection->spins_as_it_pays || sb_spinning_vain(how->words) > 0)
        return;
    if (is_pinned())
        sb_spinning_rest(how->words, sb_system_clock());
    else
        sb_spinning_begin(how->words);
}

int64_t sb_spun(sb_queue *queue, int64_t *spins, int64_t *won)
{
    int64_t count = atomic_load(&queue->lanes_made);
    *spins = *won = 0;
    for (int64_t index = 0; index < count; index++) {
        lane *each = atomic_load(&queue->lanes[index]);
        *spins += atomic_load(&each->for_message.spins) + atomic_load(&each->for_room.spins);
        *won += atomic_load(&each->for_message.won) + atomic_load(&each->for_room.won);
    }
    return SB_OK;
}
