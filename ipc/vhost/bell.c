/* Bells: words in the vhost's memory that wake whoever serves all of it. */

#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "vhost/vhost.h"

/* --- followers (core/bell.py) ----------------------------------------------------------------- */

char *follower_bell(sb_connection *connection, int64_t follower)
{
    return (char *)connection->arena.memory + L_ARENA_FOLLOWERS_AT + follower * L_PAIR_BYTES;
}

static _Atomic int64_t *owner_of(sb_connection *connection, int64_t follower)
{
    return (_Atomic int64_t *)(follower_bell(connection, follower) + L_FOLLOWER_OWNER_AT);
}

static int64_t emptied(sb_connection *connection, int64_t follower)
{
    for (int64_t word = 0; word < L_RUNG_WORDS; word++)
        sb_follower_rung(follower_bell(connection, follower), word);
    return follower;
}

int64_t follower_bell_take(sb_connection *connection)
{
    for (int64_t each = L_FOLLOWERS_FREE; each < L_FOLLOWERS && connection->id > 0; each++) {
        int64_t nobody = 0;
        if (atomic_compare_exchange_strong(owner_of(connection, each), &nobody, connection->id))
            return emptied(connection, each);
    }
    return -1;
}

int64_t follower_bell_seize(sb_connection *connection, int64_t follower)
{
    atomic_store(owner_of(connection, follower), connection->id);
    return emptied(connection, follower);
}

void follower_bell_return(sb_connection *connection, int64_t follower)
{
    if (follower >= 0)
        atomic_store(owner_of(connection, follower), 0);
}

void follower_bells_forget(sb_connection *connection, int64_t id)
{
    for (int64_t each = 0; each < L_FOLLOWERS; each++) {
        int64_t owner = id;
        atomic_compare_exchange_strong(owner_of(connection, each), &owner, 0);
    }
}

void sb_follower_rouse(sb_connection *connection, int64_t follower)
{
    int64_t *bell = (int64_t *)(void *)follower_bell(connection, follower);
    if (sb_bell_ring(bell))
        sb_system_wake((int64_t)(intptr_t)bell, INT_MAX);
}

void follower_told(sb_connection *connection, int64_t follower, int64_t reference)
{
    int64_t *bell = (int64_t *)(void *)follower_bell(connection, follower);
    if (sb_follower_tell(bell, reference & L_REFERENCE_INDEX_MASK))
        sb_system_wake((int64_t)(intptr_t)bell, INT_MAX);
}

void followers_rouse(sb_connection *connection)
{
    for (int64_t each = L_FOLLOWERS_FREE; each < L_FOLLOWERS; each++)
        if (atomic_load(owner_of(connection, each)))
            sb_follower_rouse(connection, each);
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
