/* The time of day, cheaply: reading the system's clock costs 20 to 25 ns, counting cycles less.
 *
 * The factor is measured over the last window, and holds for one window only: if the counter's
 * rate or the clock is changed, stamps are wrong for 10 ms. */

#define _GNU_SOURCE
#include "shared.h"

#define WINDOW_NS INT64_C(10000000)
#define OLDEST_NS INT64_C(10000000000) /* a factor over longer than this is not worth trusting */

int64_t stamp_renew(stamp_clock *clock, uint64_t cycles)
{
    int64_t now = realtime_ns(), passed = now - clock->base_ns;
    uint64_t since = cycles - clock->cycles;
    if (clock->base_ns != 0 && passed < WINDOW_NS && passed >= 0)
        return now; /* too short to measure a factor over */
    if (clock->base_ns != 0 && passed < OLDEST_NS && passed >= 0 && since > 0) {
        clock->factor = (uint64_t)(((unsigned __int128)(uint64_t)passed << 32) / since);
        clock->window = since * (uint64_t)WINDOW_NS / (uint64_t)passed;
    } else {
        clock->window = 0;
    }
    clock->base_ns = now;
    clock->cycles = cycles;
    return now;
}
