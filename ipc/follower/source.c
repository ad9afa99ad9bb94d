/* The queues of a follower: they come and go with the catalog, and tell of news (ready.c). */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "follower/source.h"
#include "vhost/vhost.h"

void sources_all_ready(sb_follower *of)
{
    ready_mark_all(&of->ready);
    of->looked_at = sb_system_clock();
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
    if (posix_memalign((void **)&made, 128, sizeof *made) != 0)
        return fail_system("memory to follow a queue");
    memset(made, 0, sizeof *made);
    made->of = of;
    made->queue = queue;
    made->number = word_load(entry, L_QUEUE_IDENTITY_LOW_AT) & INT64_MAX;
    made->told = -1;
    made->is_told = !of->tells;
    made->end = INT64_MAX;
    int64_t code = take_gate(made);
    if (code == SB_OK)
        code = ready_add(&of->ready, &made->ready, queue, made);
    if (code == SB_OK)
        *kept = made;
    else
        free(made);
    return code;
}

static void drop(source *dropped)
{
    ready_drop(&dropped->of->ready, &dropped->ready);
    free(dropped->done.bits);
    free(dropped);
}

static int64_t gone(void *context, void *kept)
{
    sb_follower *of = context;
    source *one = kept;
    if (of->tells && !ROOM_FOR(of->gone, of->gone_room, of->gone_count + 1))
        return fail_system("memory for queues that are gone");
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
        gate_end(&each->port, each->cursor.gate);
    else
        sb_port_gate_put_down(&each->port, each->cursor.gate);
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
    ready_end(&of->ready);
    free(of->gone);
}
