/* A sleeper: a thread that sleeps on bells, for a thread that sleeps on descriptors.
 *
 * An order names a ticket and what it waits for.  When that is worth trying, the ticket is in a
 * list, and an eventfd says so.  Nobody here holds the interpreter's lock, so news are told as soon
 * as the kernel runs this thread. */

#define _GNU_SOURCE

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/base.h"
#include "paging/paging.h"
#include "vhost/vhost.h"

#define SLICE_NS 100000000 /* after so long without news, what the dead have left is repaired */

typedef struct order {
    bool wanted; /* else nobody waits for it any more */
    int64_t ticket;
    sb_wait wait;
} order;

typedef struct orders {
    order *all;
    int64_t count, room;
} orders;

struct sb_sleeper {
    pthread_t thread;
    pthread_mutex_t mutex;
    int event;
    _Atomic int64_t control; /* rises with each order */
    /* under the mutex, which nobody keeps for longer than a copy takes */
    bool stopped;
    orders given;
    int64_t *rung;
    int64_t rung_count, rung_room;
    /* of the thread */
    orders taken;
    sb_wait *waits;
    int64_t *tickets;
    int64_t waiting, waits_room, tickets_room;
};

static void nudge(sb_sleeper *sleeper)
{
    atomic_fetch_add(&sleeper->control, 1);
    sb_system_wake((int64_t)(intptr_t)&sleeper->control, 1);
}

/* --- in the thread ---------------------------------------------------------------------------- */

static void drop(sb_sleeper *sleeper, int64_t at)
{
    int64_t last = --sleeper->waiting;
    sleeper->waits[at] = sleeper->waits[last];
    sleeper->tickets[at] = sleeper->tickets[last];
}

static bool begin(sb_sleeper *sleeper, const order *given)
{
    int64_t count = sleeper->waiting + 1;
    if (!ROOM_FOR(sleeper->tickets, sleeper->tickets_room, count) ||
        !ROOM_FOR(sleeper->waits, sleeper->waits_room, count))
        return false;
    sleeper->tickets[count - 1] = given->ticket;
    sleeper->waits[count - 1] = given->wait;
    sleeper->waiting = count;
    return true;
}

static bool has_rung_room(sb_sleeper *sleeper, int64_t more)
{
    return ROOM_FOR(sleeper->rung, sleeper->rung_room, sleeper->rung_count + more);
}

/* A wake-up may have come for it meanwhile, also one that was told already: it goes to others, if
 * there is something for them.  From then on the queue may be closed. */
static void forget(sb_sleeper *sleeper, const order *given)
{
    for (int64_t each = 0; each < sleeper->waiting; each++)
        if (sleeper->tickets[each] == given->ticket) {
            drop(sleeper, each);
            break;
        }
    sb_pass_on(given->wait.queue, given->wait.position);
    pthread_mutex_lock(&sleeper->mutex);
    if (has_rung_room(sleeper, 1))
        sleeper->rung[sleeper->rung_count++] = -given->ticket;
    pthread_mutex_unlock(&sleeper->mutex);
    eventfd_write(sleeper->event, 1);
}

/* Those that find no memory stay for the next time. */
static void carry_out(sb_sleeper *sleeper)
{
    orders *taken = &sleeper->taken;
    int64_t done = 0;
    for (; done < taken->count; done++) {
        const order *given = &taken->all[done];
        if (!given->wanted)
            forget(sleeper, given);
        else if (!begin(sleeper, given))
            break;
    }
    taken->count -= done;
    if (taken->count > 0)
        memmove(taken->all, taken->all + done, taken->count * sizeof(order));
}

/* Those that are worth trying; with an error all of them are, and who cannot go on finds out. */
static void ring(sb_sleeper *sleeper, bool all)
{
    pthread_mutex_lock(&sleeper->mutex);
    if (has_rung_room(sleeper, sleeper->waiting))
        for (int64_t each = sleeper->waiting - 1; each >= 0; each--)
            if (all || sleeper->waits[each].code != SB_EMPTY) {
                sleeper->rung[sleeper->rung_count++] = sleeper->tickets[each];
                drop(sleeper, each);
            }
    pthread_mutex_unlock(&sleeper->mutex);
    eventfd_write(sleeper->event, 1);
}

/* What was given since; false: it is to end. */
static bool take_orders(sb_sleeper *sleeper, int64_t *seen)
{
    pthread_mutex_lock(&sleeper->mutex);
    *seen = atomic_load(&sleeper->control); /* a later order ends our sleep */
    if (sleeper->taken.count == 0) {
        orders empty = sleeper->taken;
        sleeper->taken = sleeper->given;
        sleeper->given = empty;
    }
    bool goes_on = !sleeper->stopped;
    pthread_mutex_unlock(&sleeper->mutex);
    return goes_on;
}

static void *sleep_on(void *context)
{
    sb_sleeper *sleeper = context;
    int64_t seen;
    while (take_orders(sleeper, &seen)) {
        carry_out(sleeper);
        bool is_idle = sleeper->waiting == 0 && sleeper->taken.count == 0;
        int64_t ready = sb_wait_any(sleeper->waits, sleeper->waiting,
                                    (const int64_t *)&sleeper->control, seen,
                                    is_idle ? -1 : SLICE_NS);
        if (ready != 0)
            ring(sleeper, ready < 0);
    }
    carry_out(sleeper);
    while (sleeper->waiting-- > 0)
        sb_pass_on(sleeper->waits[sleeper->waiting].queue,
                   sleeper->waits[sleeper->waiting].position);
    return NULL;
}

/* --- of one other thread ---------------------------------------------------------------------- */

int64_t sb_sleeper_open(int64_t event, sb_sleeper **made)
{
    sb_sleeper *sleeper = calloc(1, sizeof *sleeper);
    if (!sleeper)
        return SB_NO_MEMORY;
    sleeper->event = (int)event;
    pthread_mutex_init(&sleeper->mutex, NULL);
    int64_t code = thread_start(&sleeper->thread, sleep_on, sleeper, "a sleeper");
    if (code != SB_OK)
        free(sleeper);
    else
        *made = sleeper;
    return code;
}

static int64_t give(sb_sleeper *sleeper, order given)
{
    pthread_mutex_lock(&sleeper->mutex);
    orders *to = &sleeper->given;
    bool fits = ROOM_FOR(to->all, to->room, to->count + 1);
    if (fits)
        to->all[to->count++] = given;
    pthread_mutex_unlock(&sleeper->mutex);
    if (!fits)
        return fail(SB_NO_MEMORY, "an order to a sleeper");
    nudge(sleeper);
    return SB_OK;
}

int64_t sb_sleeper_watch(sb_sleeper *sleeper, int64_t ticket, sb_queue *queue, int64_t position,
                         int64_t returned)
{
    return give(sleeper, (order){true, ticket, {queue, position, returned, SB_EMPTY}});
}

int64_t sb_sleeper_forget(sb_sleeper *sleeper, int64_t ticket, sb_queue *queue, int64_t position,
                          int64_t returned)
{
    return give(sleeper, (order){false, ticket, {queue, position, returned, SB_EMPTY}});
}

int64_t sb_sleeper_rung(sb_sleeper *sleeper, int64_t *tickets, int64_t most)
{
    pthread_mutex_lock(&sleeper->mutex);
    int64_t count = sleeper->rung_count < most ? sleeper->rung_count : most;
    for (int64_t each = 0; each < count; each++)
        tickets[each] = sleeper->rung[--sleeper->rung_count];
    pthread_mutex_unlock(&sleeper->mutex);
    return count;
}

void sb_sleeper_close(sb_sleeper *sleeper)
{
    pthread_mutex_lock(&sleeper->mutex);
    sleeper->stopped = true;
    pthread_mutex_unlock(&sleeper->mutex);
    nudge(sleeper);
    pthread_join(sleeper->thread, NULL);
    pthread_mutex_destroy(&sleeper->mutex);
    free(sleeper->given.all);
    free(sleeper->taken.all);
    free(sleeper->rung);
    free(sleeper->waits);
    free(sleeper->tickets);
    free(sleeper);
}
