/* Replicas: ends of the journal that count.  Each has a lasting gate of its name in each durable
 * queue, in the set that the queue's barrier waits for (core/barrier.py).
 *
 * The journaler owns these gates, and moves them when the replica answers: so the fence and the
 * order of gates and transactions stay with one thread.  A newcomer's gates are in the sets before
 * the next frame is confirmed.  Whoever takes over the journal has other replicas, so it drops the
 * gates that its predecessor has left (replicas_follow). */

#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "broker/journaler.h"
#include "follower/follower.h"
#include "journal/end.h"
#include "ring/ring.h"

/* --- in one queue ----------------------------------------------------------------------------- */

static void leave(followed *each, int64_t number)
{
    int64_t gate = each->replica_gates[number] - 1;
    each->replica_gates[number] = 0;
    if (gate >= 0)
        gate_end(&each->port, gate);
}

/* At head: it is moved when it is known what the replica has.  A member that takes over has no
 * messages of the others. */
static int64_t join(sb_journaler *journaler, followed *each, int64_t number)
{
    if (!is_replicated(each->queue))
        return SB_OK;
    const gate_wish wish = {.kind = L_GATE_REPLICA, .name = journaler->replicas[number].name,
                            .lasting = true};
    gate_drop_left(each->queue, &each->port, L_GATE_REPLICA, wish.name);
    int64_t gate = gate_take(each->queue, &each->port, &wish);
    if (gate < 0)
        return gate;
    each->replica_gates[number] = 1 + gate;
    int64_t code = sb_port_barrier_join(&each->port, gate);
    return code < 0 ? fail(code, "queue '%s' has too many gates", each->queue->name) : SB_OK;
}

static int64_t move(followed *each, int64_t number, int64_t position)
{
    int64_t gate = each->replica_gates[number] - 1;
    if (gate < 0)
        return SB_OK;
    if (sb_port_gate_move(&each->port, gate, position) < 0)
        return fail(SB_STALE, "queue '%s': its gate was taken from us", each->queue->name);
    sb_port_gate_moved(&each->port);
    return SB_OK;
}

/* --- in all of them --------------------------------------------------------------------------- */

static void leave_all(sb_journaler *journaler, int64_t number)
{
    for (int64_t each = 0; each < journaler->count; each++)
        leave(journaler->queues[each], number);
    journaler->replicas[number] = (replica){0};
}

/* The journal goes on without it. */
static void drop(sb_journaler *journaler, int64_t number, int64_t code)
{
    char why[END_LINE_ROOM / 2];
    snprintf(why, sizeof why, "%s", sb_detail(code));
    ends_replica_drop(journaler->ends, number, why);
}

static bool join_all(sb_journaler *journaler, int64_t number, const char *name)
{
    replica *made = &journaler->replicas[number];
    int64_t code = SB_OK;
    *made = (replica){.has_gates = true};
    snprintf(made->name, sizeof made->name, "%s", name);
    for (int64_t each = 0; each < journaler->count && code == SB_OK; each++)
        if (!queue_is_gone(journaler->queues[each]->queue))
            code = join(journaler, journaler->queues[each], number);
    if (code == SB_OK)
        return true;
    drop(journaler, number, code);
    leave_all(journaler, number);
    return false;
}

static void leave_one(sb_journaler *journaler, int64_t number)
{
    leave_all(journaler, number);
    ends_replica_forget(journaler->ends, number);
}

/* Those that have gone leave after the others have come: who begins anew under another name holds
 * confirms back all the time. */
static bool come_and_go(sb_journaler *journaler, const end_replica told[REPLICAS_MAX])
{
    bool have_come = false;
    for (int64_t each = 0; each < REPLICAS_MAX; each++) {
        if (!told[each].is_there || journaler->replicas[each].has_gates)
            continue;
        for (int64_t other = 0; other < REPLICAS_MAX; other++)
            if (told[other].is_used && !told[other].is_there &&
                strcmp(journaler->replicas[other].name, told[each].name) == 0)
                leave_one(journaler, other);
        have_come |= join_all(journaler, each, told[each].name);
    }
    for (int64_t each = 0; each < REPLICAS_MAX; each++)
        if (told[each].is_used && !told[each].is_there)
            leave_one(journaler, each);
    return have_come;
}

bool replicas_have_news(const sb_journaler *journaler)
{
    return ends_news(journaler->ends) != journaler->news;
}

int64_t replicas_look(sb_journaler *journaler)
{
    end_replica told[REPLICAS_MAX];
    int64_t news = ends_news(journaler->ends);
    if (news == journaler->news)
        return SB_OK;
    ends_replicas(journaler->ends, told);
    bool have_come = come_and_go(journaler, told);
    for (int64_t each = 0; each < REPLICAS_MAX; each++)
        journaler->replicas[each].done = told[each].done;
    journaler->news = news;
    return have_come ? unfinished_note_all(journaler) : SB_OK;
}

/* What it is done with. */
static int64_t move_all(replica *of, int64_t number)
{
    for (; of->next && of->next->number <= of->done; of->next = of->next->next) {
        for (int64_t each = 0; each < of->next->count; each++) {
            const gate_move *to = &of->next->moves[each];
            int64_t code = to->queue ? move(to->queue, number, to->position) : SB_OK;
            if (code != SB_OK)
                return code;
        }
        of->whole = of->next->whole;
    }
    return SB_OK;
}

void replicas_move(sb_journaler *journaler)
{
    for (int64_t each = 0; each < REPLICAS_MAX; each++) {
        int64_t code = move_all(&journaler->replicas[each], each);
        if (code != SB_OK)
            drop(journaler, each, code);
    }
}

void replicas_follow(sb_journaler *journaler, followed *came)
{
    gate_drop_left(came->queue, &came->port, L_GATE_REPLICA, NULL);
    for (int64_t each = 0; each < REPLICAS_MAX; each++) {
        int64_t code = journaler->replicas[each].has_gates ? join(journaler, came, each) : SB_OK;
        if (code != SB_OK && !queue_is_gone(came->queue))
            drop(journaler, each, code);
    }
}

int64_t replicas_whole(const sb_journaler *journaler)
{
    int64_t least = -1;
    for (int64_t each = 0; each < REPLICAS_MAX; each++) {
        const replica *one = &journaler->replicas[each];
        if (one->has_gates && (least < 0 || one->whole < least))
            least = one->whole;
    }
    return least;
}

void replicas_put_down(sb_journaler *journaler)
{
    for (int64_t each = 0; each < journaler->count; each++) {
        followed *one = journaler->queues[each];
        for (int64_t number = 0; number < REPLICAS_MAX; number++)
            if (one->replica_gates[number])
                sb_port_gate_put_down(&one->port, one->replica_gates[number] - 1);
        memset(one->replica_gates, 0, sizeof one->replica_gates);
    }
    memset(journaler->replicas, 0, sizeof journaler->replicas);
}
