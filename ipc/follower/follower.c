/* A follower: opened, read, released, waited for, closed. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "follower/source.h"
#include "vhost/vhost.h"

#define AGAIN_NS INT64_C(1000000000) /* how often all queues are looked at, rung or not */

int64_t sb_follower_open(sb_connection *connection, const sb_follower_options *options,
                         sb_follower **follower)
{
    int64_t code = change_code(connection);
    if (code != SB_OK)
        return code;
    if (!options->name || strlen(options->name) > L_GATE_NAME_BYTES_MAX)
        return fail(SB_INVALID, "a follower has a name of at most %d bytes",
                    (int)L_GATE_NAME_BYTES_MAX);
    sb_follower *made = calloc(1, sizeof *made);
    if (!made)
        return fail_system("memory for a follower");
    made->connection = connection;
    made->kind = options->kind;
    made->lasting = options->lasting;
    made->from_now = options->from_now;
    made->skips = options->skips;
    made->tells = options->tells;
    strcpy(made->name, options->name);
    ready_begin(&made->ready, connection, follower_bell_take(connection));
    code = sources_begin(made, options->follows == SB_FOLLOW_ALL       ? 0
                               : options->follows == SB_FOLLOW_DURABLE ? L_QUEUE_DURABLE
                                                                       : -1);
    if (code == SB_OK)
        code = following_look(&made->following);
    if (code != SB_OK) {
        sb_follower_close(made, false);
        return code;
    }
    *follower = made;
    return SB_OK;
}

int64_t sb_follower_add(sb_follower *follower, sb_queue *queue)
{
    following_row row;
    int64_t code = following_add(&follower->following, queue->reference, &row);
    return code == SB_OK ? ((source *)row.kept)->number : code;
}

int64_t sb_follower_read(sb_follower *follower, sb_follower_batch *batch)
{
    writing to = {.batch = batch, .at = batch->buffer, .left = batch->room & -8};
    batch->records = batch->messages = batch->bytes = batch->whole = batch->needed = 0;
    int64_t code = usable_code(follower->connection);
    if (code == SB_OK)
        code = following_look(&follower->following);
    if (code != SB_OK)
        return code;
    ready_take_rung(&follower->ready);
    code = batch_fill(follower, &to);
    batch->bytes = to.at - (char *)batch->buffer;
    if (batch->records > 0 && (code == SB_OK || code == SB_TOO_SMALL || code == SB_EMPTY))
        return batch->records;
    return code == SB_OK ? SB_EMPTY : code;
}

/* --- dealt with ------------------------------------------------------------------------------- */

static int64_t release(source *each, int64_t position)
{
    int64_t code = sb_port_gate_move(&each->port, each->cursor.gate, position);
    if (code == SB_REVOKED)
        return fail(SB_STALE, "queue '%s': our gate was taken from us", each->queue->name);
    if (code < 0)
        return fail(code, "queue '%s': its gate is behind position %lld", each->queue->name,
                    (long long)position);
    while (sb_port_reclaim(&each->port) > 0)
        continue;
    sb_port_gate_moved(&each->port);
    return SB_OK;
}

int64_t sb_follower_release(sb_follower *follower, int64_t number, int64_t position)
{
    source *each = source_numbered(follower, number);
    if (!each)
        return SB_OK; /* it was deleted */
    if (position > each->cursor.position)
        return fail(SB_INVALID, "queue '%s': position %lld was not read yet", each->queue->name,
                    (long long)position);
    return release(each, position);
}

/* --- of a queue that nobody else takes from --------------------------------------------------- */

int64_t sb_follower_retire(sb_follower *follower, int64_t number, int64_t position)
{
    source *each = source_numbered(follower, number);
    int64_t code = each ? sb_port_retire_below(&each->port, position) : SB_OK;
    return code < 0 ? fail(code, "queue '%s' is damaged", each->queue->name)
                    : sb_follower_release(follower, number, position);
}

int64_t sb_follower_stands(sb_follower *follower, int64_t number, sb_follower_place *place)
{
    source *each = source_numbered(follower, number);
    if (!each)
        return fail(SB_NOT_FOUND, "no queue with this number is followed");
    *place = (sb_follower_place){
        .gate = sb_port_gate_position(&each->port, each->cursor.gate),
        .next = each->cursor.position,
        .end = sb_port_true_tail(&each->port),
        .high = each->queue->key[0],
        .low = each->queue->key[1],
    };
    return place->end < 0 ? place->end : SB_OK;
}

int64_t sb_follower_release_all(sb_follower *follower)
{
    int64_t code = SB_OK;
    for (int64_t each = 0; each < follower->following.count && code == SB_OK; each++) {
        source *one = follower->following.rows[each].kept;
        if (!queue_is_gone(one->queue) && one->released != one->cursor.position)
            code = release(one, one->cursor.position);
        one->released = one->cursor.position;
    }
    return code;
}

int64_t sb_follower_seek(sb_follower *follower, int64_t number, int64_t position)
{
    source *each = source_numbered(follower, number);
    if (!each)
        return fail(SB_NOT_FOUND, "no queue with this number is followed");
    int64_t tail = sb_port_true_tail(&each->port);
    if (position < sb_port_gate_position(&each->port, each->cursor.gate) || position > tail)
        return fail(SB_INVALID, "queue '%s': position %lld is not from its gate to its tail",
                    each->queue->name, (long long)position);
    each->cursor.position = position;
    ready_mark(&follower->ready, &each->ready);
    return SB_OK;
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* Whether something is there; those of which nothing is are told to our bell. */
static bool is_any(sb_follower *follower)
{
    if (following_is_behind(&follower->following) || follower->gone_count > 0)
        return true;
    ready_take_rung(&follower->ready);
    for (int64_t each = follower->ready.count - 1; each >= 0; each--) {
        source *one = follower->ready.ready[each]->of;
        if (!ready_rest(&follower->ready, &one->ready, &one->cursor))
            return true;
    }
    return false;
}

static int64_t sleep_until(sb_follower *follower, const int64_t *control, int64_t seen,
                           int64_t until)
{
    system_word words[2];
    int64_t used = 0;
    if (follower->ready.bell >= 0)
        words[used++] = ready_armed(&follower->ready);
    else if (sb_system_clock() + TURN_NS < until)
        until = sb_system_clock() + TURN_NS;
    if (control)
        words[used++] = (system_word){(int64_t)(intptr_t)control, seen};
    if (is_any(follower) || (control && word_load(control, 0) != seen))
        return SB_OK;
    static const int64_t nothing = 0;
    if (used == 0)
        words[used++] = (system_word){(int64_t)(intptr_t)&nothing, 0};
    return system_wait_any(words, used, until);
}

int64_t sb_follower_wait(sb_follower *follower, const int64_t *control, int64_t seen,
                         int64_t timeout_ns)
{
    int64_t code, deadline = monotonic_deadline(timeout_ns);
    for (;;) {
        if ((code = usable_code(follower->connection)) != SB_OK)
            return code;
        int64_t now = sb_system_clock();
        if (now - follower->looked_at >= AGAIN_NS)
            sources_all_ready(follower);
        if (is_any(follower) || (control && word_load(control, 0) != seen))
            return SB_OK;
        if (now >= deadline)
            return SB_EMPTY;
        int64_t again = follower->looked_at + AGAIN_NS;
        code = sleep_until(follower, control, seen, again < deadline ? again : deadline);
        if (code == SB_INTERRUPTED || code == SB_SYSTEM)
            return code;
    }
}

void sb_follower_close(sb_follower *follower, int64_t leaves)
{
    sources_end(follower, leaves || !follower->lasting);
    free(follower);
}
