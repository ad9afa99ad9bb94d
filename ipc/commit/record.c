/* Commit record: a participant's record in shared memory, by which a transaction happens as a
 * whole.
 *
 *     nothing     write the record
 *     prepared    take series of numbers, number the chunks, pledge the messages, look for room
 *     committed   acknowledge, publish, return the series
 *     nothing
 *
 * How far it is stands in one word of the participant's entry.  The store of `committed` decides:
 * whoever finds another word there takes back what was prepared; whoever finds it does the rest,
 * and does nothing twice (core/transaction.py).  That is the participant itself, or whoever holds
 * the lock on its byte because it is dead: never two at a time.
 *
 * Acknowledging comes first: it never waits, and the room that it makes was counted on. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "commit/commit.h"
#include "paging/paging.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define BLOCKED_MAX 64 /* queues without room that one commit record goes around */

static char *record_of(sb_connection *connection, int64_t id)
{
    return (char *)connection->transactions.memory + L_TRANSACTIONS_AT + id * L_TRANSACTION_BYTES;
}

static char *operation_at(char *record, int64_t index)
{
    return record + L_TRANSACTION_OPERATIONS_AT + index * L_OPERATION_BYTES;
}

/* --- what is committed happens ---------------------------------------------------------------- */

/* The queue that the record speaks of, and a port of it: turned to when it is another. */
typedef struct place {
    sb_connection *connection;
    int64_t reference, code;
    sb_queue *queue;
    sb_port port;
} place;

static void turn_away(place *here)
{
    if (here->queue)
        queue_looked(here->queue);
    here->queue = NULL;
    here->reference = 0;
}

/* SB_OK; SB_NOT_FOUND if the queue is gone, or is of no use to anybody; or why to try again. */
static int64_t turn_to(place *here, int64_t reference)
{
    sb_connection *connection = here->connection;
    if (here->reference == reference)
        return here->code;
    turn_away(here);
    int64_t code = queue_find(connection, reference, &here->queue);
    if (code == SB_OK)
        code = port_to_look(here->queue, &here->port);
    if (code == SB_DAMAGED || code == SB_NOT_A_SEGMENT || code == SB_OTHER_VERSION ||
        code == SB_TRUNCATED || code == SB_WRONG_ARENA || code == SB_INVALID) {
        log_note(connection, "a transaction leaves out a queue: %s", sb_strerror(code));
        code = SB_NOT_FOUND;
    }
    here->reference = reference;
    here->code = code;
    return code;
}

/* The journaler looks so far for what transactions have acknowledged: before it is. */
static void note_acknowledged(sb_queue *queue, int64_t position)
{
    _Atomic int64_t *end = (_Atomic int64_t *)((char *)queue->ring.memory + L_RING_ACKNOWLEDGED_AT);
    int64_t seen = atomic_load(end);
    while (seen <= position && !atomic_compare_exchange_weak(end, &seen, position + 1))
        continue;
}

static int64_t acknowledge(place *here, char *record, int64_t count)
{
    for (int64_t index = 0; index < count; index++) {
        char *each = operation_at(record, index);
        int64_t reference = word_load(each, L_OPERATION_QUEUE_AT);
        if (!(reference & L_OPERATION_ACKS))
            continue;
        int64_t code = turn_to(here, reference & ~L_OPERATION_ACKS);
        if (code == SB_OK && sb_is_durable(here->queue))
            note_acknowledged(here->queue, word_load(each, L_OPERATION_WHERE_AT));
        if (code == SB_OK)
            sb_port_transaction_finish(&here->port, word_load(each, L_OPERATION_WHERE_AT),
                                       word_load(each, L_OPERATION_WORD_AT));
        else if (code != SB_NOT_FOUND)
            return code;
    }
    return SB_OK;
}

static bool is_among(const int64_t *references, int64_t count, int64_t reference)
{
    for (int64_t each = 0; each < count; each++)
        if (references[each] == reference)
            return true;
    return false;
}

/* In order: when a queue has no room for one, what comes after it there waits as well. */
static int64_t publish(place *here, char *record, int64_t count)
{
    int64_t blocked[BLOCKED_MAX], full = 0;
    for (int64_t index = 0; index < count && full < BLOCKED_MAX; index++) {
        char *each = operation_at(record, index);
        int64_t reference = word_load(each, L_OPERATION_QUEUE_AT);
        if (reference & L_OPERATION_ACKS || is_among(blocked, full, reference))
            continue;
        int64_t code = turn_to(here, reference);
        if (code == SB_OK) {
            code = sb_port_transaction_place(&here->port, word_load(each, L_OPERATION_WHERE_AT),
                                             word_load(each, L_OPERATION_WORD_AT));
            if (code == SB_OK)
                schedule_unknown(here->queue);
            if (code == SB_OK)
                inbox_noted(here->queue);
            if (code == SB_OK)
                expiry_unknown(here->queue); /* it may have one */
            if (code == SB_FULL)
                blocked[full++] = reference;
            else if (code != SB_OK)
                log_note(here->connection, "a transaction leaves out a message to queue '%s': %s",
                         here->queue->name, sb_strerror(code));
        } else if (code != SB_NOT_FOUND) {
            return code;
        }
    }
    return full ? SB_UNFINISHED : SB_OK;
}

/* Which series were taken is in the record, unless its owner died while it prepared. */
static int64_t return_series(place *here, char *record, int64_t count, int64_t id, bool all)
{
    int64_t last = 0;
    for (int64_t index = 0; index < count; index++) {
        char *each = operation_at(record, index);
        int64_t reference = word_load(each, L_OPERATION_QUEUE_AT);
        int64_t series = word_load(each, L_OPERATION_WORD_AT) >> L_ORIGIN_PRODUCER_SHIFT;
        if (reference & L_OPERATION_ACKS || reference == last)
            continue;
        last = reference;
        int64_t code = turn_to(here, reference);
        if (code == SB_NOT_FOUND)
            continue;
        if (code != SB_OK)
            return code;
        for (int64_t any = 1; all && any < L_PRODUCERS; any++)
            sb_port_series_drop(&here->port, any, id);
        if (!all && series > 0 && series < L_PRODUCERS)
            sb_port_series_drop(&here->port, series, id);
    }
    return SB_OK;
}

int64_t record_finish(sb_connection *connection, int64_t id)
{
    void *far = participant_transaction(connection, id);
    int64_t state = word_load(far, 0), code = SB_OK;
    if (state != L_TRANSACTION_NONE) {
        place here = {.connection = connection};
        char *record = record_of(connection, id);
        int64_t count = word_load(record, L_TRANSACTION_COUNT_AT);
        if (count < 0 || count > L_TRANSACTION_OPERATIONS)
            count = 0;
        if (state == L_TRANSACTION_COMMITTED) {
            code = acknowledge(&here, record, count);
            if (code == SB_OK)
                code = publish(&here, record, count);
        }
        if (code == SB_OK)
            code = return_series(&here, record, count, id, state != L_TRANSACTION_COMMITTED);
        turn_away(&here);
        if (code != SB_OK)
            return code;
        word_store(far, 0, L_TRANSACTION_NONE);
    }
    if (id == connection->id)
        connection->finished = connection->commits;
    return SB_OK;
}

/* --- committing ------------------------------------------------------------------------------- */

/* What the transaction does to one queue. */
typedef struct party {
    sb_queue *queue;
    int64_t publishes;
    int64_t series;
} party;

typedef struct attempt {
    sb_connection *connection;
    operation *operations;
    int64_t count;
    char *record;
    party *parties;
    int64_t parties_count;
    int64_t *positions; /* room for those of the messages that are acknowledged in one queue */
} attempt;

static party *party_of(attempt *made, sb_queue *queue)
{
    int64_t index = made->parties_count - 1;
    while (index >= 0 && made->parties[index].queue != queue)
        index--;
    if (index < 0) {
        index = made->parties_count++;
        made->parties[index] = (party){.queue = queue};
    }
    return &made->parties[index];
}

/* Before anything of it: who repairs finds every queue here. */
static void write_down(attempt *made)
{
    int64_t durable = 0;
    for (int64_t index = 0; index < made->count; index++) {
        operation *each = &made->operations[index];
        char *written = operation_at(made->record, index);
        durable |= sb_is_durable(each->queue);
        party_of(made, each->queue)->publishes += each->lane != NULL;
        each->lease = SB_REVOKED;
        word_store(written, L_OPERATION_QUEUE_AT,
                   each->queue->reference | (each->lane ? 0 : L_OPERATION_ACKS));
        word_store(written, L_OPERATION_WHERE_AT, each->where);
        word_store(written, L_OPERATION_WORD_AT, each->lane ? 0 : each->word);
    }
    word_store(made->record, L_TRANSACTION_COUNT_AT, made->count);
    word_store(made->record, L_TRANSACTION_DURABLE_AT, durable);
}

static int64_t pledge(attempt *made, sb_queue *queue, sb_port *port)
{
    int64_t pledged = 0;
    for (int64_t index = 0; index < made->count; index++) {
        operation *each = &made->operations[index];
        if (each->queue != queue || each->lane)
            continue;
        each->lease = sb_port_lease_pledge(port, each->where, each->word);
        if (each->lease < 0)
            return fail(SB_REVOKED, "message %lld of queue '%s' is no longer ours: the transaction "
                        "cannot acknowledge it", (long long)each->where, queue->name);
        made->positions[pledged++] = each->where;
    }
    return pledged;
}

static int64_t number(attempt *made, party *with, sb_port *port, int64_t now_ns)
{
    with->series = sb_port_series_take(port, made->connection->id);
    int64_t last = with->series < 0 ? with->series : sb_port_series_last(port, with->series);
    for (int64_t index = 0; index < made->count && last >= 0; index++) {
        operation *each = &made->operations[index];
        if (each->queue != with->queue || !each->lane)
            continue;
        each->word = with->series << L_ORIGIN_PRODUCER_SHIFT | ++last;
        word_store(operation_at(made->record, index), L_OPERATION_WORD_AT, each->word);
        int64_t code = sb_port_chunk_number(port, each->where, each->word, now_ns);
        last = code < 0 ? code : last;
    }
    return last < 0 ? last : SB_OK;
}

static const sb_outgoing NO_KEY;

/* So many messages a queue may ever have room for. */
static int64_t most_in(const sb_queue *queue)
{
    bool is_limited = queue->max_messages > 0 && queue->max_messages < queue->slots;
    return is_limited && !queue->last_value ? queue->max_messages : queue->slots;
}

static int64_t room_in(const sb_queue *queue, sb_port *port, int64_t *positions, int64_t pledged)
{
    int64_t room = sb_port_room_with(port, positions, pledged);
    int64_t kept = queue->slots - most_in(queue);
    return room > kept ? room - kept : room < 0 ? room : 0;
}

static int64_t prepare_in(attempt *made, party *with, int64_t now_ns)
{
    sb_port port;
    sb_queue *queue = with->queue;
    int64_t code = port_to_look(queue, &port);
    int64_t pledged = code == SB_OK ? pledge(made, queue, &port) : code;
    if (pledged < 0 || with->publishes == 0)
        return pledged < 0 ? pledged : SB_OK;
    if (with->publishes > most_in(queue))
        return fail(SB_INVALID,
                    "the transaction publishes %lld messages to queue '%s', which holds "
                    "%lld at most",
                    (long long)with->publishes, queue->name, (long long)most_in(queue));
    code = number(made, with, &port, now_ns);
    if (code != SB_OK)
        return code == SB_NO_PRODUCER ? SB_FULL : code; /* that many others commit to it now */
    int64_t room = room_in(queue, &port, made->positions, pledged);
    lane *in = room >= 0 && room < with->publishes ? lane_enter(queue, &code) : NULL;
    for (int64_t before = -1; in && room > before && room < with->publishes;) {
        before = room;
        if (queue_make_room(queue, in, &NO_KEY))
            room = room_in(queue, &port, made->positions, pledged);
    }
    if (in)
        lane_leave(in);
    return room < 0 ? room : room < with->publishes ? SB_FULL : SB_OK;
}

static int64_t prepare(attempt *made, party *with, int64_t now_ns)
{
    int64_t code;
    if (!queue_look(with->queue, &code))
        return code;
    code = prepare_in(made, with, now_ns);
    queue_looked(with->queue);
    return code;
}

static void take_back(attempt *made)
{
    for (int64_t each = 0; each < made->parties_count; each++) {
        party *with = &made->parties[each];
        sb_port port;
        if (!queue_look_late(with->queue))
            continue; /* it was deleted, with all that was prepared in it */
        if (port_to_look(with->queue, &port) != SB_OK) {
            queue_looked(with->queue);
            continue;
        }
        if (with->series > 0)
            sb_port_series_drop(&port, with->series, made->connection->id);
        for (int64_t index = 0; index < made->count; index++) {
            operation *done = &made->operations[index];
            if (done->queue == with->queue && !done->lane && done->lease >= 0)
                sb_port_lease_restore(&port, done->where, done->word, done->lease);
        }
        queue_looked(with->queue);
    }
}

static int64_t decide(attempt *made, sb_queue **full)
{
    sb_connection *connection = made->connection;
    void *far = participant_transaction(connection, connection->id);
    int64_t code = SB_OK, now_ns = realtime_ns();
    write_down(made);
    word_store(far, 0, L_TRANSACTION_PREPARED);
    for (int64_t each = 0; each < made->parties_count && code == SB_OK; each++) {
        code = prepare(made, &made->parties[each], now_ns);
        *full = made->parties[each].queue;
    }
    if (code != SB_OK) {
        take_back(made);
        word_store(far, 0, L_TRANSACTION_NONE);
        return code == SB_REVOKED || code == SB_INVALID ? code
                                                         : explained_commit(*full, code);
    }
    bool durable = word_load(made->record, L_TRANSACTION_DURABLE_AT);
    connection->stamp = durable ? commit_gate_enter(connection, made->record) : 0;
    word_store(far, 0, L_TRANSACTION_COMMITTED); /* from here on it happens */
    connection->commits++;
    record_finish(connection, connection->id);
    return SB_OK;
}

int64_t record_commit(sb_connection *connection, operation *operations, int64_t count,
                      sb_queue **full)
{
    *full = NULL;
    int64_t code = record_finish(connection, connection->id);
    if (code == SB_UNFINISHED)
        return fail(SB_FULL, "an earlier transaction of this connection is committed, and waits "
                    "for room");
    int64_t at = L_TRANSACTIONS_AT + connection->id * L_TRANSACTION_BYTES;
    if (code == SB_OK && !connection->has_record)
        code = sb_system_allocate(connection->transactions.file, at, L_TRANSACTION_BYTES);
    if (code != SB_OK)
        return code;
    connection->has_record = true;
    attempt made = {.connection = connection, .operations = operations, .count = count,
                    .record = record_of(connection, connection->id),
                    .parties = calloc((size_t)count, sizeof(party)),
                    .positions = calloc((size_t)count, sizeof(int64_t))};
    code = made.parties && made.positions ? decide(&made, full) : fail_system("memory to commit");
    free(made.parties);
    free(made.positions);
    return code;
}

/* --- a transaction of our own ----------------------------------------------------------------- */

#define NAP_NS 1000000
#define REPAIR_NAPS 100

/* It is committed, and another took the room that there was: our commit mutex is held. */
static int64_t await_finished(sb_connection *connection, int64_t serial)
{
    const struct timespec nap = {0, NAP_NS};
    for (int naps = 1; connection->finished < serial; naps++) {
        pthread_mutex_unlock(&connection->commit_mutex);
        nanosleep(&nap, NULL);
        if (naps % REPAIR_NAPS == 0)
            connection->duties->repair(connection); /* one of the dead may hold what has no room */
        pthread_mutex_lock(&connection->commit_mutex);
        if (atomic_load(&connection->closed) != SB_OK)
            return SB_UNFINISHED;
        if (connection->finished < serial)
            record_finish(connection, connection->id);
    }
    return SB_OK;
}

int64_t commit_at_once(sb_connection *connection, operation *operations, int64_t count)
{
    sb_queue *full;
    pthread_mutex_lock(&connection->commit_mutex);
    int64_t code = atomic_load(&connection->closed);
    if (code == SB_OK)
        code = record_commit(connection, operations, count, &full);
    if (code == SB_OK)
        code = await_finished(connection, connection->commits);
    pthread_mutex_unlock(&connection->commit_mutex);
    for (int64_t index = 0; index < count; index++) {
        operation *each = &operations[index];
        if (each->lane && code == SB_OK)
            sb_port_loan_placed(&each->lane->port, each->where);
        if (each->lane && code == SB_UNFINISHED)
            atomic_store(&each->lane->busy, ON_LOAN);
    }
    return code;
}
