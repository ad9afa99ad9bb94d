/* When a schedule is to be looked at next: noted by whoever publishes in it. */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"

int64_t due_word(const sb_queue *schedule)
{
    return (int64_t)(intptr_t)schedule->ring.memory + L_RING_DUE_AT;
}

void schedule_note(sb_queue *schedule, int64_t due)
{
    int64_t told = sb_due_note(due_word(schedule), due);
    if (told > 0)
        schedule_ring(schedule->connection, schedule->reference, told > 1);
}

void schedule_unknown(sb_queue *ring)
{
    if (setting(ring, L_SETTING_SCHEDULE_OF_AT))
        schedule_note(ring, 0);
}
