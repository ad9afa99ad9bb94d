/* The time of day, cheaply: reading the system's clock costs 20 to 25 ns, counting cycles less.
 *
 * The factor is measured over the last window, and holds for one window only: if the counter's
 * rate or the clock is changed, stamps are wrong for 10 ms. */

#define _GNU_SOURCE

#include "base/base.h"

#define WINDOW_NS INT64_C(10000000)
#define OLDEST_NS INT64_C(10000000000) /* a factor over longer than this is not worth trusting */

#define NEAR_CYCLES 1000
#define TRIES 4
#define SETTLE_NS 100000

/* The time of day, and the count of cycles half way through asking for it: whoever was interrupted
 * in between asks again, so that the clocks of two lanes differ by some 10 ns only. */
static int64_t read_both(uint64_t *cycles)
{
    int64_t now = 0;
    for (int each = 0; each < TRIES; each++) {
        uint64_t before = stamp_cycles();
        now = realtime_ns();
        uint64_t spent = stamp_cycles() - before;
        *cycles = before + spent / 2;
        if (spent < NEAR_CYCLES)
            break;
    }
    return now;
}

int64_t stamp_renew(stamp_clock *clock)
{
    uint64_t cycles;
    int64_t now = read_both(&cycles), passed = now - clock->base_ns;
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

void stamp_settle(stamp_clock *clock)
{
    uint64_t cycles, later;
    int64_t now = read_both(&cycles), passed = 0;
    while (clock->factor == 0 && passed >= 0 && passed < SETTLE_NS)
        passed = read_both(&later) - now;
    if (clock->factor == 0 && passed > 0)
        clock->factor = (uint64_t)(((unsigned __int128)(uint64_t)passed << 32) / (later - cycles));
}
