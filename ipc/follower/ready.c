/* Which of many rings may have news, told by one bell (core/bell.py).
 *
 * A ring is ready until all of it was read.  Then the bit of our bell goes into the bell of the
 * ring, and it is looked at once more; from then on it costs nothing until it is rung.
 *
 * Who rings may be killed in the middle: then the bit is gone, and we were told of nothing.  So
 * whoever follows looks at all of its rings now and then. */

#define _GNU_SOURCE
#include <stdlib.h>

#include "base/base.h"
#include "follower/follower.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

void ready_begin(ready_set *of, sb_connection *connection, int64_t bell)
{
    of->connection = connection;
    of->bell = bell;
}

static int64_t make_room(ready_set *of)
{
    if (!ROOM_FOR(of->ready, of->room, of->members + 1))
        return fail_system("memory to follow %lld queues", (long long)of->members + 1);
    return SB_OK;
}

int64_t ready_add(ready_set *to, ready_one *one, const sb_queue *queue, void *of)
{
    int64_t code = make_room(to), row = queue->reference & L_REFERENCE_INDEX_MASK;
    if (code != SB_OK)
        return code;
    *one = (ready_one){.of = of, .bit = row % L_RUNG_ROWS, .at = -1};
    one->beside = to->rung[one->bit];
    to->rung[one->bit] = one;
    to->members++;
    ready_mark(to, one);
    return SB_OK;
}

void ready_leave(ready_set *in, ready_one *one)
{
    if (one->at < 0)
        return;
    ready_one *last = in->ready[--in->count];
    in->ready[one->at] = last;
    last->at = one->at;
    one->at = -1;
}

void ready_drop(ready_set *from, ready_one *one)
{
    ready_one **at = &from->rung[one->bit];
    while (*at != one)
        at = &(*at)->beside;
    *at = one->beside;
    from->members--;
    ready_leave(from, one);
}

void ready_mark(ready_set *in, ready_one *one)
{
    if (one->at >= 0)
        return;
    one->at = in->count;
    in->ready[in->count++] = one;
}

static void mark_chain(ready_set *of, int64_t bit)
{
    for (ready_one *each = of->rung[bit]; each; each = each->beside)
        ready_mark(of, each);
}

void ready_mark_all(ready_set *of)
{
    for (int64_t bit = 0; bit < L_RUNG_ROWS; bit++)
        mark_chain(of, bit);
}

bool ready_take_rung(ready_set *of)
{
    bool is_any = false;
    for (int64_t word = 0; word < L_RUNG_WORDS && of->bell >= 0; word++) {
        uint64_t bits = (uint64_t)sb_follower_rung(follower_bell(of->connection, of->bell), word);
        is_any |= bits != 0;
        for (; bits; bits &= bits - 1)
            mark_chain(of, word * L_RUNG_BITS + __builtin_ctzll(bits));
    }
    return is_any;
}

bool ready_rest(ready_set *in, ready_one *one, sb_cursor *cursor)
{
    if (in->bell < 0)
        return sb_cursor_wait(cursor, 0) == SB_EMPTY;
    if (sb_cursor_follow(cursor, in->bell) != SB_EMPTY)
        return false;
    ready_leave(in, one);
    return true;
}

system_word ready_armed(const ready_set *of)
{
    int64_t *bell = (int64_t *)(void *)follower_bell(of->connection, of->bell);
    sb_bell_arm(bell);
    return (system_word){(int64_t)(intptr_t)bell, 1};
}

void ready_end(ready_set *of)
{
    if (of->connection)
        follower_bell_return(of->connection, of->bell);
    free(of->ready);
    *of = (ready_set){.bell = -1};
}
