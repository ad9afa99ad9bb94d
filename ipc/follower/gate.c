/* Gates by kind and name (core/gate.py): looked for, taken, listed. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "follower/follower.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

static char *gate_at(const sb_queue *queue, int64_t gate)
{
    return (char *)queue->ring.memory + L_RING_GATES_AT + gate * L_GATE_BYTES;
}

static int64_t gates_high(const sb_queue *queue)
{
    int64_t high = word_load(queue->ring.memory, L_RING_GATES_HIGH_AT);
    return high < 0 || high > L_GATES ? L_GATES : high;
}

static int64_t owner_in(int64_t word)
{
    return (word >> L_GATE_OWNER_SHIFT) & L_OWNER_MASK;
}

static bool is_lasting(int64_t word)
{
    return (word >> L_GATE_LIFE_SHIFT & L_GATE_LIFE_MASK) == L_GATE_LASTING;
}

static bool is_named(const char *gate, int64_t kind, const char *name)
{
    int64_t length = (int64_t)strlen(name);
    return word_load(gate, L_GATE_KIND_AT) == kind &&
           word_load(gate, L_GATE_NAME_LENGTH_AT) == length &&
           memcmp(gate + L_GATE_NAME_AT, name, (size_t)length) == 0;
}

int64_t gate_find(const sb_queue *queue, int64_t kind, const char *name)
{
    for (int64_t each = 0; each < gates_high(queue); each++) {
        const char *gate = gate_at(queue, each);
        int64_t word = word_load(gate, 0);
        if (word & L_GATE_ACTIVE && is_lasting(word) && is_named(gate, kind, name))
            return each;
    }
    return SB_NO_GATE;
}

int64_t gate_seize(sb_port *port, const sb_queue *queue, int64_t gate)
{
    if (gate < 0)
        return gate;
    int64_t former = owner_in(word_load(gate_at(queue, gate), 0));
    int64_t position = sb_port_gate_adopt(port, gate, former);
    if (position >= 0)
        word_store(gate_at(queue, gate), L_GATE_SINCE_AT, realtime_ns());
    return position;
}

static int64_t adopt(sb_queue *queue, sb_port *port, int64_t gate, const char *name)
{
    int64_t owner = owner_in(word_load(gate_at(queue, gate), 0));
    sb_connection *connection = queue->connection;
    if (owner == connection->id || (owner && participant_runs(connection, owner)))
        return fail(SB_IN_USE, "gate '%s' of queue '%s' belongs to participant %lld", name,
                    queue->name, (long long)owner);
    int64_t position = gate_seize(port, queue, gate);
    if (position < 0)
        return fail(SB_IN_USE, "gate '%s' of queue '%s' was taken just now", name, queue->name);
    return gate;
}

void gate_drop_left(sb_queue *queue, sb_port *port, int64_t kind, const char *name)
{
    sb_connection *connection = queue->connection;
    for (int64_t each = 0; each < gates_high(queue); each++) {
        const char *gate = gate_at(queue, each);
        int64_t word = word_load(gate, 0), owner = owner_in(word);
        bool is_meant = word & L_GATE_ACTIVE && is_lasting(word) &&
                        word_load(gate, L_GATE_KIND_AT) == kind &&
                        (!name || is_named(gate, kind, name));
        bool is_held = owner == connection->id || (owner && participant_runs(connection, owner));
        if (is_meant && !is_held && gate_seize(port, queue, each) >= 0)
            gate_end(port, each);
    }
}

static int64_t join(sb_queue *queue, sb_port *port, const gate_wish *wish)
{
    int64_t life = wish->lasting ? L_GATE_LASTING : L_GATE_FLEETING;
    int64_t gate = sb_port_gate_join_named(port, life, wish->kind, realtime_ns(), wish->name,
                                           (int64_t)strlen(wish->name));
    if (gate < 0)
        return fail(gate, "queue '%s': %s", queue->name, sb_strerror(gate));
    int64_t tail = wish->from_now ? sb_port_true_tail(port) : 0;
    if (tail > 0)
        sb_port_gate_move(port, gate, tail);
    return gate;
}

int64_t gate_take(sb_queue *queue, sb_port *port, const gate_wish *wish)
{
    if (strlen(wish->name) > L_GATE_NAME_BYTES_MAX)
        return fail(SB_INVALID, "the name of a gate has at most %d bytes",
                    (int)L_GATE_NAME_BYTES_MAX);
    int64_t code = connection_lock(queue->connection);
    if (code != SB_OK)
        return code;
    /* before its gate: a death is repaired in the queues that a participant lists */
    code = participant_uses(queue->connection, queue->reference, 0);
    int64_t gate = wish->lasting ? gate_find(queue, wish->kind, wish->name) : SB_NO_GATE;
    if (code >= 0)
        code = gate >= 0 ? adopt(queue, port, gate, wish->name) : join(queue, port, wish);
    connection_unlock(queue->connection);
    return code;
}

/* --- for people ------------------------------------------------------------------------------- */

/* A gate holds head back if it stands there and whoever took the message has done with it. */
static bool holds_head(const sb_queue *queue, int64_t position, int64_t tail)
{
    int64_t head = word_load(queue->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
    if (position > head || head >= tail)
        return false;
    return word_load(queue->ring.memory, L_RING_FLAGS_AT) & L_RING_BROADCAST ||
           (slot_word(queue, head) >> L_STATE_SHIFT & L_STATE_MASK) == L_DONE;
}

static bool describe(const sb_queue *queue, int64_t gate, int64_t tail, sb_gate *told)
{
    const char *at = gate_at(queue, gate);
    int64_t word = word_load(at, 0), length = word_load(at, L_GATE_NAME_LENGTH_AT);
    if (!(word & L_GATE_ACTIVE))
        return false;
    length = length < 0 || length > L_GATE_NAME_BYTES_MAX ? 0 : length;
    *told = (sb_gate){
        .kind = word_load(at, L_GATE_KIND_AT),
        .lasting = is_lasting(word),
        .owner = owner_in(word),
        .since = word_load(at, L_GATE_SINCE_AT),
        .position = word & L_POSITION_MASK,
    };
    int64_t confirmed = confirmed_below(queue);
    told->index = gate;
    told->confirms = word_load(queue->ring.memory, L_RING_BARRIER_SET_AT) >> gate & 1;
    told->holds_barrier = told->confirms && told->position <= confirmed && confirmed < tail;
    told->behind = tail > told->position ? tail - told->position : 0;
    told->holds = holds_head(queue, told->position, tail);
    memcpy(told->name, at + L_GATE_NAME_AT, (size_t)length);
    return owner_in(word_load(at, 0)) == told->owner;
}

int64_t sb_gates(sb_queue *queue, sb_gate *gates, int64_t room)
{
    int64_t code, count = 0;
    sb_port port;
    if (!queue_look(queue, &code))
        return code;
    code = sb_port_to_look(queue, &port);
    int64_t tail = code == SB_OK ? sb_port_true_tail(&port) : code;
    for (int64_t each = 0; tail >= 0 && each < gates_high(queue) && count < room; each++)
        count += describe(queue, each, tail, &gates[count]);
    queue_looked(queue);
    return tail < 0 ? tail : count;
}
