/* Until when a broker serves what is durable, as takers of every process look at it for each
 * message (core/visible.py): a count of the processor's cycles, which costs less to ask for than a
 * clock.
 *
 * The count may stand still while the machine sleeps, and begin again.  So how fast it runs is
 * measured anew all the time, and what is said holds for a part of a lease only. */

#define _GNU_SOURCE
#include <time.h>

#include "base/base.h"
#include "vhost/vhost.h"

#define SHORTEST_NS INT64_C(1000000)   /* a pace over less is not exact */
#define LONGEST_NS INT64_C(1000000000) /* and one over more knows less of the machine's sleep */

static int64_t boot_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void begin(sb_pace *pace)
{
    pace->ns = boot_ns();
    pace->cycles = (int64_t)stamp_cycles();
    while (boot_ns() - pace->ns < SHORTEST_NS)
        ;
}

/* The count at that moment, or L_SERVES_NOT if it is over.  The count is read first: who is stopped
 * in between says less. */
static int64_t count_at(sb_pace *pace, int64_t until_ns)
{
    int64_t count = (int64_t)stamp_cycles(), now = boot_ns();
    int64_t passed = now - pace->ns, counted = count - pace->cycles;
    if (pace->ns == 0 || passed < SHORTEST_NS || counted <= 0) {
        begin(pace);
        return count_at(pace, until_ns);
    }
    int64_t left = until_ns - now;
    int64_t until = left <= 0 ? L_SERVES_NOT
                              : count + (int64_t)((__int128)left * counted / passed);
    if (passed > LONGEST_NS) {
        pace->ns = now;
        pace->cycles = count;
    }
    return until;
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
