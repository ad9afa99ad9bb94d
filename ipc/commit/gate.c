/* The commit gate: the journaler writes only what stood in the rings at a moment at which no
 * transaction on durable queues was half way.  So a transaction is in one frame, with its
 * acknowledgements.
 *
 * What makes it a moment is in core/commit.py.  The commit gate only makes sure that there is one,
 * however many commit: a committer waits at it for COMMIT_GATE_NS at most, as the journaler may
 * have died.  The journaler waits for who is inside for HELP_NS, then does what that one has
 * committed (record_help).  What has no room it writes apart, with the rest of the transaction
 * (broker/unplaced.c), for perhaps nobody can take messages there before they are written.  If it
 * cannot even look at a queue, it goes on after INSIDE_NS: that queue is not in the journal. */

#define _GNU_SOURCE
#include <time.h>

#include "base/base.h"
#include "commit/commit.h"
#include "vhost/vhost.h"

#define COMMIT_GATE_NS 5000000

#define HELP_NS 5000000

#define INSIDE_NS 200000000

#define NAP_NS 50000

#define HELPED_NAP_NS 1000000

#define AWAIT_NS 100000000

static _Atomic int64_t *word_of(sb_connection *connection, int64_t at)
{
    return (_Atomic int64_t *)((char *)connection->transactions.memory + at);
}

static int64_t address_of(sb_connection *connection, int64_t at)
{
    return (int64_t)(intptr_t)word_of(connection, at);
}

/* --- who commits ------------------------------------------------------------------------------ */

void sb_commit_gate_wait(sb_connection *connection)
{
    _Atomic int64_t *closed = word_of(connection, L_TRANSACTIONS_CLOSED_AT);
    if (!atomic_load(closed))
        return;
    int64_t until = sb_system_clock() + COMMIT_GATE_NS, now;
    while (atomic_load(closed) && (now = sb_system_clock()) < until)
        sb_system_wait(address_of(connection, L_TRANSACTIONS_CLOSED_AT), 1, until - now);
    atomic_store(closed, 0);
}

static int64_t unconfirmed(sb_connection *connection, int64_t stamp, int64_t at)
{
    const char *why = atomic_load(word_of(connection, L_TRANSACTIONS_JOURNALED_AT)) < stamp &&
                              at != L_TRANSACTIONS_REPLICATED_AT
                          ? "nobody has said that it is on disk: is a broker running?"
                      : atomic_load(word_of(connection, L_TRANSACTIONS_REPLICATED_AT))
                          ? "a replica has not confirmed it"
                          : "no replica is in sync";
    return fail(SB_UNCONFIRMED, "the transaction is committed in shared memory, and %s", why);
}

static int64_t await_word(sb_connection *connection, int64_t at, int64_t stamp, int64_t deadline)
{
    int64_t seen, code;
    while ((seen = atomic_load(word_of(connection, at))) < stamp) {
        int64_t now = sb_system_clock(), left = deadline - now;
        sb_follower_rouse(connection, L_FOLLOWER_JOURNALER);
        if (atomic_load(&connection->closed) != SB_OK)
            return atomic_load(&connection->closed);
        if (left <= 0)
            return unconfirmed(connection, stamp, at);
        code = sb_system_wait(address_of(connection, at), seen,
                              left < AWAIT_NS ? left : AWAIT_NS);
        if (code == SB_INTERRUPTED || (connection->waits_in_slices && code == SB_EMPTY))
            return SB_INTERRUPTED;
    }
    return SB_OK;
}

int64_t sb_commit_gate_await(sb_connection *connection, int64_t stamp, int64_t level,
                             int64_t timeout_ns)
{
    int64_t deadline = monotonic_deadline(timeout_ns), code = SB_OK;
    if (level < 0)
        return await_word(connection, L_TRANSACTIONS_CONFIRMED_AT, stamp, deadline);
    if (level & L_CONFIRM_DISK)
        code = await_word(connection, L_TRANSACTIONS_JOURNALED_AT, stamp, deadline);
    if (code == SB_OK && level & L_CONFIRM_REPLICATED)
        code = await_word(connection, L_TRANSACTIONS_REPLICATED_AT, stamp + 1, deadline);
    return code;
}

int64_t commit_gate_level(sb_connection *connection, int64_t stamp)
{
    int64_t durable = atomic_load(word_of(connection, L_TRANSACTIONS_JOURNALED_AT));
    int64_t replicated = atomic_load(word_of(connection, L_TRANSACTIONS_REPLICATED_AT));
    return (durable >= stamp ? L_CONFIRM_DISK : 0) |
           (replicated > stamp ? L_CONFIRM_REPLICATED : 0);
}

int64_t commit_gate_passed(sb_connection *connection, int64_t stamp)
{
    if (stamp)
        sb_follower_rouse(connection, L_FOLLOWER_JOURNALER);
    return stamp;
}

void commit_gate_copied(sb_connection *connection)
{
    sb_commit_gate_wait(connection); /* there may be many of these, one after the other */
    sb_commit_count(connection->transactions.memory);
    sb_follower_rouse(connection, L_FOLLOWER_JOURNALER);
}

int64_t commit_gate_begun(sb_connection *connection)
{
    return sb_commit_begun(connection->transactions.memory);
}

int64_t commit_gate_whole(sb_connection *connection)
{
    return atomic_load(word_of(connection, L_TRANSACTIONS_JOURNALED_AT));
}

int64_t commit_gate_confirmed(sb_connection *connection)
{
    return atomic_load(word_of(connection, L_TRANSACTIONS_CONFIRMED_AT));
}

bool commit_is_under_way(sb_connection *connection)
{
    int64_t high = word_load(connection->participants.memory, L_PARTICIPANTS_HIGH_AT);
    for (int64_t id = 1; id < high && id < L_PARTICIPANTS; id++)
        if (word_load(participant_transaction(connection, id), 0) == L_TRANSACTION_COMMITTED)
            return true;
    return false;
}

static bool is_inside(const commit_gate *at, int64_t id)
{
    return sb_commit_is_inside(record_of(at->connection, id),
                               participant_transaction(at->connection, id), at->helped[id]);
}

static int64_t who_is_inside(const commit_gate *at)
{
    int64_t high = word_load(at->connection->participants.memory, L_PARTICIPANTS_HIGH_AT);
    for (int64_t id = 1; id < high && id < L_PARTICIPANTS; id++)
        if (is_inside(at, id))
            return id;
    return 0;
}

/* Do what it has committed, as far as there is room.  Whether it is inside no more. */
static bool help(commit_gate *at, int64_t id, bool is_late)
{
    int64_t serial, code = record_help(at->connection, id, 0, &serial);
    bool is_done = code == SB_OK || code == SB_UNFINISHED;
    if (serial == 0 || (!is_done && !is_late))
        return false;
    at->helped[id] = serial;
    if (!is_done)
        log_note(at->connection,
                 "journal: participant %lld stands in the middle of a commit, and a queue of it "
                 "cannot be used: %s",
                 (long long)id, sb_strerror(code));
    return true;
}

void commit_gate_close(commit_gate *at)
{
    at->is_closed = true;
    atomic_store(word_of(at->connection, L_TRANSACTIONS_CLOSED_AT), 1);
}

void commit_gate_open(commit_gate *at)
{
    if (!at->is_closed)
        return;
    at->is_closed = false;
    atomic_store(word_of(at->connection, L_TRANSACTIONS_CLOSED_AT), 0);
    sb_system_wake(address_of(at->connection, L_TRANSACTIONS_CLOSED_AT), INT32_MAX);
}

static bool is_showing(const commit_gate *at)
{
    return sb_commit_is_showing(at->connection->transactions.memory);
}

/* A moment of replicas is shown by a thread of our own process. */
void commit_gate_clear(commit_gate *at)
{
    const struct timespec nap = {0, NAP_NS}, helped = {0, HELPED_NAP_NS};
    int64_t since = 0, id;
    while ((id = who_is_inside(at)) != 0 || is_showing(at)) {
        int64_t now = sb_system_clock();
        since = since ? since : now;
        commit_gate_close(at);
        if (at->meanwhile)
            at->meanwhile(at->context);
        if (id == 0 || now - since < HELP_NS)
            nanosleep(&nap, NULL);
        else if (!help(at, id, now - since >= INSIDE_NS))
            nanosleep(&helped, NULL);
    }
}

static void tell(sb_connection *connection, int64_t at, int64_t count)
{
    if (atomic_load(word_of(connection, at)) == count)
        return;
    atomic_store(word_of(connection, at), count);
    sb_system_wake(address_of(connection, at), INT32_MAX);
}

void commit_gate_journaled(commit_gate *at, int64_t durable, int64_t replicated)
{
    int64_t both = replicated >= 0 && replicated < durable ? replicated : durable;
    tell(at->connection, L_TRANSACTIONS_JOURNALED_AT, durable);
    tell(at->connection, L_TRANSACTIONS_REPLICATED_AT, replicated + 1);
    /* what was confirmed stays so when a replica joins that does not have it */
    if (both > atomic_load(word_of(at->connection, L_TRANSACTIONS_CONFIRMED_AT)))
        tell(at->connection, L_TRANSACTIONS_CONFIRMED_AT, both);
}
