/* Bells: words in the vhost's memory that wake whoever serves all of it. */

#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "vhost/vhost.h"

/* --- the journaler ---------------------------------------------------------------------------- */

static void *arena_bell(sb_connection *connection)
{
    return (char *)connection->arena.memory + L_ARENA_JOURNALER_BELL_AT;
}

void journaler_rouse(sb_connection *connection)
{
    int64_t *bell = arena_bell(connection);
    if (sb_bell_ring(bell))
        sb_system_wake((int64_t)(intptr_t)bell, 1);
}

/* --- schedules -------------------------------------------------------------------------------- */

_Atomic uint32_t *schedule_bell(sb_connection *connection)
{
    return (_Atomic uint32_t *)((char *)connection->participants.memory +
                                L_PARTICIPANTS_MOVER_BELL_AT);
}

uint32_t schedule_bell_bit(int64_t reference)
{
    return 1u << (reference & L_REFERENCE_INDEX_MASK) % 31;
}

void schedule_ring(sb_connection *connection, int64_t reference, bool others)
{
    _Atomic uint32_t *bell = schedule_bell(connection);
    atomic_fetch_add(bell, 1);
    syscall(SYS_futex, bell, FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL,
            others ? schedule_bell_bit(reference) | SCHEDULE_OTHERS : schedule_bell_bit(reference));
}
