/* Until when a broker serves what is durable, as takers of every process look at it for each
 * message (core/visible.py): a count of the processor's cycles, which costs less to ask for than a
 * clock.
 *
 * The count may stand still while the machine sleeps, and begin again.  So how fast it runs is
 * measured anew all the time, and what is said holds for a part of a lease only. */

#define _GNU_SOURCE

#include "base/base.h"
#include "vhost/vhost.h"

#define SHORTEST_NS INT64_C(1000000)   /* a pace over less is not exact */
#define LONGEST_NS INT64_C(1000000000) /* and one over more knows less of the machine's sleep */

static void begin(sb_pace *pace, int64_t count, int64_t now)
{
    pace->ns = now;
    pace->cycles = count;
}

/* It is told anew if enough has passed since it began. */
static void measure(sb_pace *pace, int64_t count, int64_t now)
{
    int64_t passed = now - pace->ns, counted = count - pace->cycles;
    if (pace->ns == 0 || counted <= 0) { /* the first, or it has begun again */
        begin(pace, count, now);
        pace->factor = 0;
    } else if (passed >= SHORTEST_NS) {
        pace->factor = (int64_t)(((__int128)counted << 32) / passed);
        if (passed > LONGEST_NS)
            begin(pace, count, now);
    }
}

/* The count at that moment, or L_SERVES_NOT if it is over.  The count is read first: who is stopped
 * in between says less. */
static int64_t count_at(sb_pace *pace, int64_t until_ns)
{
    int64_t count, now;
    do { /* the first time it takes so long as SHORTEST_NS */
        count = (int64_t)stamp_cycles();
        now = boottime_ns();
        measure(pace, count, now);
    } while (pace->factor == 0);
    int64_t left = until_ns - now;
    return left <= 0 ? L_SERVES_NOT : count + (int64_t)(((__int128)left * pace->factor) >> 32);
}

int64_t sb_vhost_serves_until(sb_connection *connection, sb_pace *pace, int64_t until_ns,
                              int64_t disk_alone)
{
    int64_t until = L_SERVES_NOT;
    if (until_ns == INT64_MAX)
        until = disk_alone ? 0 : L_SERVES_COPIES;
    else if (until_ns > 0)
        until = count_at(pace, until_ns);
    if (!disk_alone && until > L_SERVES_NOT)
        until = -until;
    return sb_serves_until(connection->arena.memory, until);
}

static _Atomic int64_t *ahead(const sb_connection *connection)
{
    return (_Atomic int64_t *)((char *)connection->arena.memory + L_ARENA_AHEAD_AT);
}

void sb_vhost_runs_ahead(sb_connection *connection, int64_t may)
{
    atomic_store(ahead(connection), may ? L_AHEAD_ALLOWED : L_AHEAD_REFUSED);
}

int64_t sb_vhost_asks_ahead(const sb_connection *connection)
{
    return atomic_load(ahead(connection)) == L_AHEAD_ASKED;
}
