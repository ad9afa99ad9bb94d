/* Commit record: a participant's record in shared memory, by which a transaction happens as a
 * whole.
 *
 *     nothing     write the record
 *     prepared    take series of numbers, number the chunks, pledge the messages, look for room
 *     committed   acknowledge, publish, return the series
 *     nothing
 *
 * How far it is stands in one word of the participant's entry.  The store of `committed` decides:
 * whoever finds another word there takes back what was prepared; whoever finds it does the rest, in
 * the order of core/commit.py, and does nothing twice (core/transaction.py).  That is the
 * participant itself, whoever holds the lock on its byte because it is dead, or the journaler by a
 * copy of the record, because it stands still. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "commit/commit.h"
#include "paging/paging.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

char *record_of(sb_connection *connection, int64_t id)
{
    return (char *)connection->transactions.memory + L_TRANSACTIONS_AT + id * L_TRANSACTION_BYTES;
}

/* --- what is committed happens ---------------------------------------------------------------- */

/* The queue that the record speaks of, and a port of it: turned to when it is another. */
typedef struct place {
    sb_connection *connection;
    int64_t reference, code;
    sb_queue *queue;
    sb_port port;
    bool looks; /* whether the keys find what others have placed: not for a copy */
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
    if (code == SB_NOT_FOUND && moved_code(connection) != SB_OK)
        code = SB_MOVED; /* what is decided happens if they serve again */
    if (code == SB_OK)
        code = sb_port_to_look(here->queue, &here->port);
    if (ring_is_lost(connection, code, "a transaction"))
        code = SB_NOT_FOUND;
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

static int64_t acknowledge(place *here, const int64_t *steps)
{
    int64_t where = word_load(steps, L_STEPS_WHERE);
    int64_t code = turn_to(here, word_load(steps, L_STEPS_QUEUE));
    if (code != SB_OK)
        return code;
    if (sb_is_durable(here->queue))
        note_acknowledged(here->queue, where);
    sb_port_transaction_finish(&here->port, where, word_load(steps, L_STEPS_WORD));
    return SB_OK;
}

static int64_t publish(place *here, int64_t *steps)
{
    int64_t code = turn_to(here, word_load(steps, L_STEPS_QUEUE));
    if (code != SB_OK)
        return code;
    bool drops = here->queue->when_full == L_DROP_OLDEST && !here->queue->last_value;
    do /* it is decided: if others have had its room since, the oldest go, as for who publishes */
        code = sb_port_transaction_place(&here->port, word_load(steps, L_STEPS_WHERE),
                                         word_load(steps, L_STEPS_WORD), here->looks);
    while (code == SB_FULL && drops && sb_port_drop_oldest(&here->port) > 0);
    if (code == SB_OK) {
        schedule_unknown(here->queue);
        inbox_noted(here->queue);
        expiry_unknown(here->queue); /* it may have one */
    } else if (code == SB_FULL) {
        sb_commit_block(steps);
    } else {
        log_note(here->connection, "a transaction leaves out a message to queue '%s': %s",
                 here->queue->name, sb_strerror(code));
    }
    return SB_OK;
}

/* Which series were taken is in the record, unless its owner died while it prepared: `all`. */
static int64_t return_series(place *here, const int64_t *steps, int64_t id, bool all)
{
    int64_t series = word_load(steps, L_STEPS_WORD) >> L_ORIGIN_PRODUCER_SHIFT;
    int64_t code = turn_to(here, word_load(steps, L_STEPS_QUEUE));
    if (code != SB_OK)
        return code;
    for (int64_t any = 1; all && any < L_PRODUCERS; any++)
        sb_port_series_drop(&here->port, any, id);
    if (!all && series > 0 && series < L_PRODUCERS)
        sb_port_series_drop(&here->port, series, id);
    return SB_OK;
}

/* From this step on, as far as there is room: SB_OK, SB_UNFINISHED, or why to try again.  `id`:
 * whose record it is; 0: nobody's but a copy, and its owner returns the series.  Whoever helps goes
 * on behind a queue that cannot be used. */
static int64_t walk(sb_connection *connection, void *record, int64_t first, int64_t id)
{
    int64_t steps[L_STEPS_BYTES / 8], step, code = SB_OK, wrong = SB_OK;
    place here = {.connection = connection, .looks = id != 0};
    sb_commit_walk(steps, first);
    while (code == SB_OK && (step = sb_commit_next(record, steps)) != 0) {
        if (step == L_STEP_RETURN && id == 0)
            break;
        code = step == L_STEP_ACKNOWLEDGE ? acknowledge(&here, steps)
               : step == L_STEP_PUBLISH   ? publish(&here, steps)
                                          : return_series(&here, steps, id, first == step);
        if (code == SB_NOT_FOUND)
            code = SB_OK; /* the queue was deleted, with all that was in it */
        if (code == SB_OK || id != 0)
            continue;
        if (step == L_STEP_PUBLISH)
            sb_commit_block(steps);
        wrong = code;
        code = SB_OK;
    }
    turn_away(&here);
    return code != SB_OK    ? code
           : wrong != SB_OK ? wrong
                            : sb_commit_is_blocked(steps) ? SB_UNFINISHED : SB_OK;
}

void record_count(sb_connection *connection, int64_t dead)
{
    if (word_load(participant_transaction(connection, dead), 0) != L_TRANSACTION_COMMITTED)
        return;
    if (word_load(record_of(connection, dead), L_TRANSACTION_DURABLE_AT))
        sb_commit_count(connection->transactions.memory);
    else
        sb_commit_count_plain(connection->transactions.memory);
}

int64_t record_finish(sb_connection *connection, int64_t id)
{
    void *far = participant_transaction(connection, id);
    int64_t state = word_load(far, 0);
    if (state != L_TRANSACTION_NONE) {
        bool is_committed = state == L_TRANSACTION_COMMITTED;
        int64_t code = walk(connection, record_of(connection, id),
                            is_committed ? L_STEP_ACKNOWLEDGE : L_STEP_RETURN, id);
        if (code != SB_OK)
            return code;
        word_store(far, 0, L_TRANSACTION_NONE);
    }
    if (id == connection->id) {
        connection->finished = connection->commits;
        left_operations_end(connection);
    }
    return SB_OK;
}

int64_t record_help(sb_connection *connection, int64_t id, int64_t wanted, int64_t *serial)
{
    void *copy = malloc(L_TRANSACTION_BYTES);
    *serial = 0;
    if (!copy)
        return fail_system("memory for a commit record");
    *serial = sb_commit_copy(record_of(connection, id), participant_transaction(connection, id),
                             copy);
    bool is_it = *serial && (wanted == 0 || *serial == wanted);
    int64_t code = is_it ? walk(connection, copy, L_STEP_ACKNOWLEDGE, 0) : SB_OK;
    free(copy);
    return code;
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
    bool was_decided; /* so there is no question of room */
    int64_t *leases; /* of each operation what was there before it was pledged */
    int64_t *places; /* room for the positions that are acknowledged in one queue */
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
    bool is_durable = false;
    for (int64_t index = 0; index < made->count; index++)
        is_durable |= sb_is_durable(made->operations[index].queue);
    sb_commit_begin(made->record, is_durable);
    for (int64_t index = 0; index < made->count; index++) {
        operation *each = &made->operations[index];
        party_of(made, each->queue)->publishes += each->lane != NULL;
        sb_commit_add(made->record,
                      each->queue->reference | (each->lane ? 0 : L_OPERATION_ACKS), each->where,
                      each->lane ? 0 : each->word);
    }
}

/* --- room ------------------------------------------------------------------------------------- */

static const void *key_of(const operation *of, int64_t *length)
{
    const char *data = (const char *)(intptr_t)*port_field(&of->lane->port, L_PORT_DATA);
    const char *chunk = data + of->where;
    const sb_message message = {.chunk = chunk, .shape = word_load(chunk, L_CHUNK_SHAPE_AT),
                                .mark = word_load(chunk, L_CHUNK_MARK_AT)};
    return sb_message_key(&message, length);
}

/* Whether an operation before it publishes its key. */
static bool is_update(const attempt *made, const operation *of)
{
    int64_t length, other;
    const void *key = key_of(of, &length), *its;
    for (const operation *each = made->operations; length > 0 && each < of; each++)
        if (each->queue == of->queue && each->lane) {
            its = key_of(each, &other);
            if (other == length && memcmp(its, key, (size_t)length) == 0)
                return true;
        }
    return false;
}

/* Of last values one for each key that is not there. */
static int64_t news_in(const attempt *made, const party *with, sb_port *port)
{
    int64_t count = 0, length;
    if (!with->queue->last_value)
        return with->publishes;
    for (const operation *each = made->operations; each < made->operations + made->count; each++) {
        if (each->queue != with->queue || !each->lane)
            continue;
        const void *key = key_of(each, &length);
        count += (length == 0 || sb_port_latest_find(port, key, length) < 0) &&
                 !is_update(made, each);
    }
    return count;
}

/* So much that is new a queue may ever have room for. */
static int64_t most_in(const sb_queue *queue)
{
    int64_t slots = slots_for_news(queue);
    return queue->max_messages > 0 && queue->max_messages < slots ? queue->max_messages : slots;
}

static int64_t more_than_ever(const party *with, int64_t news)
{
    const sb_queue *queue = with->queue;
    int64_t most = queue->last_value ? slots_for_news(queue) : most_in(queue);
    if (with->publishes > most)
        return fail(SB_INVALID,
                    "the transaction publishes %lld messages to queue '%s', which holds "
                    "%lld at most",
                    (long long)with->publishes, queue->name, (long long)most);
    return fail(SB_INVALID, "the transaction brings %lld keys to queue '%s', which holds %lld",
                (long long)news, queue->name, (long long)most_in(queue));
}

/* There is to be room for all of its messages, and within the limits for the news among them. */
static int64_t make_room(attempt *made, const party *with, sb_port *port, int64_t pledged)
{
    sb_queue *queue = with->queue;
    int64_t code, slots = slots_for_news(queue), most = most_in(queue), kept = slots - most;
    int64_t room = sb_port_room_with(port, made->places, pledged);
    if (room < 0 || room - kept >= with->publishes)
        return room < 0 ? room : SB_OK;
    int64_t news = news_in(made, with, port);
    if (news > most || with->publishes > slots)
        return more_than_ever(with, news);
    lane *in = lane_beside(queue, &code);
    if (!in)
        return SB_FULL;
    while (room >= 0) {
        bool of_news = news > 0 && room - kept < news;
        if (!of_news && room >= with->publishes)
            break;
        bool is_made = queue_make_room_for(queue, in, of_news ? most : slots,
                                           of_news ? news : with->publishes);
        room = is_made ? sb_port_room_with(port, made->places, pledged) : SB_FULL;
    }
    lane_leave(in);
    return room < 0 ? room : SB_OK;
}

static int64_t prepare_in(attempt *made, party *with, int64_t now_ns)
{
    sb_port port;
    sb_queue *queue = with->queue;
    int64_t code = read_only_code(queue);
    if (code == SB_OK)
        code = sb_port_to_look(queue, &port);
    int64_t pledged = code != SB_OK ? code
                                    : sb_port_commit_pledge(&port, made->record, queue->reference,
                                                       made->leases, made->places);
    if (pledged == SB_REVOKED)
        return fail(SB_REVOKED, "a message of queue '%s' is no longer ours: the transaction cannot "
                    "acknowledge it", queue->name);
    if (pledged < 0 || with->publishes == 0)
        return pledged < 0 ? pledged : SB_OK;
    with->series = sb_port_commit_number(&port, made->record, queue->reference,
                                         made->connection->id, now_ns);
    if (with->series == SB_NO_PRODUCER)
        return fail(SB_FULL, "that many others commit to queue '%s' now that there is no entry for "
                    "one more", queue->name);
    if (with->series < 0)
        return with->series;
    code = auto_delete_outcome(queue, SB_OK); /* from here on it is not deleted for want of use */
    if (code != SB_OK)
        return code;
    return made->was_decided ? SB_OK : make_room(made, with, &port, pledged);
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
        if (sb_port_to_look(with->queue, &port) != SB_OK) {
            queue_looked(with->queue);
            continue;
        }
        if (with->series > 0)
            sb_port_series_drop(&port, with->series, made->connection->id);
        sb_port_commit_take_back(&port, made->record, with->queue->reference, made->leases);
        queue_looked(with->queue);
    }
}

/* A queue that is full is waited for, unless another one is, too, and fails then. */
static int64_t prepare_all(attempt *made, int64_t now_ns, sb_queue **full)
{
    sb_queue *first = NULL;
    for (int64_t each = 0; each < made->parties_count; each++) {
        party *with = &made->parties[each];
        bool fails = with->queue->when_full == L_FAIL;
        if (first && !(fails && with->publishes > 0))
            continue;
        int64_t code = prepare(made, with, now_ns);
        *full = with->series == SB_NO_PRODUCER ? NULL : with->queue;
        if (code != SB_OK && (code != SB_FULL || fails || !*full))
            return code;
        first = code == SB_OK ? first : with->queue;
    }
    *full = first;
    return first ? SB_FULL : SB_OK;
}

static int64_t decide(attempt *made, sb_queue **full)
{
    sb_connection *connection = made->connection;
    void *far = participant_transaction(connection, connection->id);
    int64_t code, now_ns = realtime_ns();
    write_down(made);
    if (word_load(made->record, L_TRANSACTION_DURABLE_AT))
        sb_commit_gate_wait(connection); /* before it looks for room: others publish meanwhile */
    word_store(far, 0, L_TRANSACTION_PREPARED);
    code = prepare_all(made, now_ns, full);
    if (code != SB_OK) {
        take_back(made);
        word_store(far, 0, L_TRANSACTION_NONE);
        return code == SB_REVOKED || code == SB_INVALID || !*full ? code
                                                                  : explained_commit(*full, code);
    }
    if (word_load(made->record, L_TRANSACTION_DURABLE_AT))
        sb_commit_gate_wait(connection); /* it may have been closed since */
    connection->stamp = sb_commit_decide(connection->transactions.memory, made->record, far);
    if (!connection->stamp)
        sb_commit_count_plain(connection->transactions.memory);
    connection->commits++;
    record_finish(connection, connection->id);
    return SB_OK;
}

static int64_t commit(sb_connection *connection, operation *operations, int64_t count,
                      bool was_decided, sb_queue **full)
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
                    .was_decided = was_decided,
                    .record = record_of(connection, connection->id),
                    .parties = calloc((size_t)count, sizeof(party)),
                    .leases = malloc((size_t)count * sizeof(int64_t)),
                    .places = calloc((size_t)count, sizeof(int64_t))};
    if (made.leases)
        memset(made.leases, 0xFF, (size_t)count * sizeof(int64_t)); /* nothing is pledged */
    code = made.parties && made.leases && made.places ? decide(&made, full)
                                                      : fail_system("memory to commit");
    free(made.parties);
    free(made.leases);
    free(made.places);
    return code;
}

int64_t record_commit(sb_connection *connection, operation *operations, int64_t count,
                      sb_queue **full)
{
    return commit(connection, operations, count, false, full);
}

int64_t record_restored(sb_connection *connection, operation *operations, int64_t count)
{
    sb_queue *full;
    return commit(connection, operations, count, true, &full);
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

/* The connection has them, if there is memory. */
static bool leave(sb_connection *connection, const operation *operations, int64_t count)
{
    operation *left = malloc((size_t)count * sizeof *left);
    if (!left)
        return false;
    memcpy(left, operations, (size_t)count * sizeof *left);
    for (int64_t index = 0; index < count; index++)
        sb_share_queue(left[index].queue);
    participant_opens(connection, 1);
    operations_leave(connection, left, count, connection->commits);
    return true;
}

static int64_t commit_now(sb_connection *connection, operation *operations, int64_t count,
                          bool waits)
{
    sb_queue *full;
    pthread_mutex_lock(&connection->commit_mutex);
    int64_t code = atomic_load(&connection->closed);
    if (code == SB_OK)
        code = record_commit(connection, operations, count, &full);
    bool is_left = code == SB_OK && !waits && connection->finished < connection->commits &&
                   leave(connection, operations, count);
    if (code == SB_OK)
        code = is_left ? SB_UNFINISHED : await_finished(connection, connection->commits);
    for (int64_t index = 0; index < count; index++) {
        operation *each = &operations[index];
        if (each->lane && code == SB_OK)
            sb_port_loan_placed(&each->lane->port, each->where);
        if (each->lane && code == SB_UNFINISHED)
            atomic_store(&each->lane->busy, ON_LOAN);
    }
    pthread_mutex_unlock(&connection->commit_mutex);
    return code;
}

int64_t commit_at_once(sb_connection *connection, operation *operations, int64_t count)
{
    return commit_now(connection, operations, count, true);
}

int64_t commit_and_leave(sb_connection *connection, operation *operations, int64_t count)
{
    return commit_now(connection, operations, count, false);
}
