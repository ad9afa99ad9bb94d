/* The queues of a follower: they come and go with the catalog, and tell of news by one bell.
 *
 * A source is ready until it was read to its end.  Then the follower's bit goes into the bell of
 * its ring, and it is looked at once more; from then on it costs nothing until it is rung. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "follower/source.h"
#include "vhost/vhost.h"

static int64_t bit_of(const source *each)
{
    return (each->queue->reference & L_REFERENCE_INDEX_MASK) % L_RUNG_ROWS;
}

void source_ready(source *each)
{
    if (each->is_ready)
        return;
    each->is_ready = true;
    each->of->ready[each->of->ready_count++] = each;
}

void sources_take_rung(sb_follower *of)
{
    if (of->bell < 0)
        return;
    for (int64_t word = 0; word < L_RUNG_WORDS; word++) {
        uint64_t bits = (uint64_t)sb_follower_rung(follower_bell(of->connection, of->bell), word);
        for (; bits; bits &= bits - 1) {
            int64_t bit = word * L_RUNG_BITS + __builtin_ctzll(bits);
            for (source *each = of->rung[bit]; each; each = each->beside)
                source_ready(each);
        }
    }
}

void sources_all_ready(sb_follower *of)
{
    for (int64_t each = 0; each < of->following.count; each++)
        source_ready(of->following.rows[each].kept);
    of->looked_at = sb_system_clock();
}

int64_t source_rest(source *each)
{
    int64_t bell = each->of->bell;
    return bell < 0 ? sb_cursor_wait(&each->cursor, 0) : sb_cursor_follow(&each->cursor, bell);
}

source *source_numbered(const sb_follower *of, int64_t number)
{
    for (int64_t each = 0; each < of->following.count; each++) {
        source *one = of->following.rows[each].kept;
        if (one->number == number)
            return one;
    }
    return NULL;
}

/* --- coming and going ------------------------------------------------------------------------- */

static int64_t make_room(sb_follower *of)
{
    if (of->following.count < of->ready_room)
        return SB_OK;
    int64_t room = of->ready_room ? 2 * of->ready_room : 64;
    void *ready = realloc(of->ready, (size_t)room * sizeof *of->ready);
    if (!ready)
        return fail_system("memory to follow %lld queues", (long long)room);
    of->ready = ready;
    of->ready_room = room;
    return SB_OK;
}

static int64_t take_gate(source *made)
{
    const sb_follower *of = made->of;
    sb_connection *connection = of->connection;
    const gate_wish wish = {.kind = of->kind, .name = of->name, .lasting = of->lasting,
                            .from_now = of->from_now};
    sb_queue *queue = made->queue;
    int64_t gate = sb_port_open(&made->port, queue->ring.memory, queue->ring.bytes,
                                connection->arena.memory, connection->arena.bytes, connection->id);
    if (gate == SB_OK)
        gate = gate_take(queue, &made->port, &wish);
    if (gate < 0)
        return gate;
    made->cursor = (sb_cursor){.port = &made->port, .gate = gate,
                               .position = sb_port_gate_position(&made->port, gate)};
    return SB_OK;
}

static int64_t came(void *context, sb_queue *queue, const char *entry, void **kept)
{
    sb_follower *of = context;
    source *made = NULL;
    int64_t code = make_room(of);
    if (code == SB_OK && posix_memalign((void **)&made, 128, sizeof *made) != 0)
        code = fail_system("memory to follow a queue");
    if (code != SB_OK)
        return code;
    memset(made, 0, sizeof *made);
    made->of = of;
    made->queue = queue;
    made->number = word_load(entry, L_QUEUE_IDENTITY_LOW_AT) & INT64_MAX;
    made->told = -1;
    made->is_told = !of->tells;
    made->end = INT64_MAX;
    code = take_gate(made);
    if (code != SB_OK) {
        free(made);
        return code;
    }
    made->beside = of->rung[bit_of(made)];
    of->rung[bit_of(made)] = made;
    source_ready(made);
    *kept = made;
    return SB_OK;
}

static void drop(source *dropped)
{
    sb_follower *of = dropped->of;
    source **at = &of->rung[bit_of(dropped)];
    while (*at != dropped)
        at = &(*at)->beside;
    *at = dropped->beside;
    for (int64_t each = 0; dropped->is_ready && each < of->ready_count; each++)
        if (of->ready[each] == dropped) {
            of->ready[each] = of->ready[--of->ready_count];
            break;
        }
    free(dropped->done.bits);
    free(dropped);
}

static int64_t gone(void *context, void *kept)
{
    sb_follower *of = context;
    source *one = kept;
    if (of->tells && of->gone_count == of->gone_room) {
        int64_t room = of->gone_room ? 2 * of->gone_room : 64;
        int64_t *made = realloc(of->gone, (size_t)room * sizeof *made);
        if (!made)
            return fail_system("memory for queues that are gone");
        of->gone = made;
        of->gone_room = room;
    }
    if (of->tells)
        of->gone[of->gone_count++] = one->number;
    drop(one);
    return SB_OK;
}

static const following_user USER = {.came = came, .gone = gone};

int64_t sources_begin(sb_follower *of, int64_t flags)
{
    return following_begin(&of->following, of->connection, flags, &USER, of);
}

/* What of the queue waits for our gate goes on. */
static void let_go(source *each, bool leaves)
{
    if (leaves)
        sb_port_gate_leave(&each->port, each->cursor.gate);
    else
        sb_port_gate_put_down(&each->port, each->cursor.gate);
    if (leaves)
        sb_port_wake_all(&each->port);
}

void sources_end(sb_follower *of, bool leaves)
{
    bool is_open = atomic_load(&of->connection->closed) == SB_OK;
    for (int64_t each = 0; each < of->following.count; each++) {
        source *one = of->following.rows[each].kept;
        if (is_open)
            let_go(one, leaves);
        drop(one);
    }
    following_end(&of->following);
    free(of->ready);
    free(of->gone);
}
