/* The commit gate: the journaler writes only what stood in the rings at a moment at which no
 * transaction on durable queues was half way.  So a transaction is in one frame, with its
 * acknowledgements.
 *
 *     committer                                 journaler
 *     1. prepared                               1. load begun
 *     2. wait while the commit gate is closed   2. is nobody inside?  else close it, and again
 *     3. add 1 to begun                         3. note tails and heads
 *     4. committed: acknowledge, publish        4. load begun: the same, nobody came in meanwhile
 *     5. nothing left: outside again            5. open the commit gate; write up to there
 *
 * Steps 3 and 4 decide; the commit gate only makes sure that there is such a moment, however many
 * commit.  A committer waits at it for COMMIT_GATE_NS at most, as the journaler may have died; the
 * journaler waits for who is inside for INSIDE_NS at most: that one may be stopped, or have no room
 * in a queue whose messages nobody can take before they are written.  Then it goes on without that
 * one. */

#define _GNU_SOURCE
#include <time.h>

#include "base/base.h"
#include "commit/commit.h"
#include "vhost/vhost.h"

#define COMMIT_GATE_NS 5000000

#define INSIDE_NS 200000000

#define NAP_NS 50000

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

int64_t commit_gate_enter(sb_connection *connection, void *record)
{
    int64_t until = sb_system_clock() + COMMIT_GATE_NS, now;
    _Atomic int64_t *closed = word_of(connection, L_TRANSACTIONS_CLOSED_AT);
    while (atomic_load(closed) && (now = sb_system_clock()) < until)
        sb_system_wait(address_of(connection, L_TRANSACTIONS_CLOSED_AT), 1, until - now);
    atomic_store(closed, 0);
    int64_t stamp = atomic_fetch_add(word_of(connection, L_TRANSACTIONS_BEGUN_AT), 1) + 1;
    word_store(record, L_TRANSACTION_STAMP_AT, stamp);
    return stamp;
}

int64_t commit_gate_await(sb_connection *connection, int64_t stamp, int64_t timeout_ns)
{
    int64_t deadline = monotonic_deadline(timeout_ns), seen, code;
    _Atomic int64_t *journaled = word_of(connection, L_TRANSACTIONS_JOURNALED_AT);
    while ((seen = atomic_load(journaled)) < stamp) {
        int64_t now = sb_system_clock(), left = deadline - now;
        journaler_rouse(connection);
        if (atomic_load(&connection->closed) != SB_OK)
            return atomic_load(&connection->closed);
        if (left <= 0)
            return fail(SB_UNCONFIRMED,
                        "the transaction is committed in shared memory, and nobody has "
                        "said that it is on disk: is a broker running?");
        code = sb_system_wait(address_of(connection, L_TRANSACTIONS_JOURNALED_AT), seen,
                              left < AWAIT_NS ? left : AWAIT_NS);
        if (code == SB_INTERRUPTED || (connection->waits_in_slices && code == SB_EMPTY))
            return SB_INTERRUPTED;
    }
    return SB_OK;
}

int64_t commit_gate_passed(sb_connection *connection, int64_t stamp)
{
    /* the journaler may have gone on without us: what came late is in the next that it writes */
    if (stamp && atomic_load(word_of(connection, L_TRANSACTIONS_JOURNALED_AT)) >= stamp)
        stamp = atomic_fetch_add(word_of(connection, L_TRANSACTIONS_BEGUN_AT), 1) + 1;
    if (stamp)
        journaler_rouse(connection);
    return stamp;
}

void commit_gate_copied(sb_connection *connection)
{
    atomic_fetch_add(word_of(connection, L_TRANSACTIONS_BEGUN_AT), 1);
    journaler_rouse(connection);
}

int64_t commit_gate_begun(sb_connection *connection)
{
    return atomic_load(word_of(connection, L_TRANSACTIONS_BEGUN_AT));
}

int64_t commit_gate_whole(sb_connection *connection)
{
    return atomic_load(word_of(connection, L_TRANSACTIONS_JOURNALED_AT));
}

static char *record_at(sb_connection *connection, int64_t id)
{
    return (char *)connection->transactions.memory + L_TRANSACTIONS_AT + id * L_TRANSACTION_BYTES;
}

static bool is_inside(const commit_gate *at, int64_t id)
{
    sb_connection *connection = at->connection;
    if (word_load(participant_transaction(connection, id), 0) == L_TRANSACTION_NONE)
        return false;
    char *record = record_at(connection, id);
    return word_load(record, L_TRANSACTION_DURABLE_AT) &&
           at->excused[id] != word_load(record, L_TRANSACTION_STAMP_AT) + 1;
}

static int64_t who_is_inside(const commit_gate *at)
{
    int64_t high = word_load(at->connection->participants.memory, L_PARTICIPANTS_HIGH_AT);
    for (int64_t id = 1; id < high && id < L_PARTICIPANTS; id++)
        if (is_inside(at, id))
            return id;
    return 0;
}

static void excuse(commit_gate *at)
{
    for (int64_t id; (id = who_is_inside(at)) != 0;) {
        at->excused[id] = word_load(record_at(at->connection, id), L_TRANSACTION_STAMP_AT) + 1;
        log_note(at->connection,
                 "journal: participant %lld stands in the middle of a commit: what it "
                 "does is not written as a whole",
                 (long long)id);
    }
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

void commit_gate_clear(commit_gate *at)
{
    const struct timespec nap = {0, NAP_NS};
    int64_t until = 0;
    while (who_is_inside(at)) {
        int64_t now = sb_system_clock();
        until = until ? until : now + INSIDE_NS;
        commit_gate_close(at);
        if (now >= until)
            excuse(at);
        else
            nanosleep(&nap, NULL);
    }
}

void commit_gate_journaled(commit_gate *at, int64_t begun)
{
    _Atomic int64_t *journaled = word_of(at->connection, L_TRANSACTIONS_JOURNALED_AT);
    if (atomic_load(journaled) == begun)
        return;
    atomic_store(journaled, begun);
    sb_system_wake(address_of(at->connection, L_TRANSACTIONS_JOURNALED_AT), INT32_MAX);
}
