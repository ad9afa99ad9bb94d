/* A transaction: publishes and acknowledgements that happen together, or not at all.
 *
 * Until it is committed, its messages are chunks on loan that are in no ring, and what it is to
 * acknowledge is in our hand like any other message: so a death before has no traces of its own.
 * record.c has the rest. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "commit/commit.h"
#include "exchange/exchange.h"
#include "message/message.h"
#include "paging/paging.h"
#include "queue/queue.h"
#include "ring/ring.h"
#include "schedule/schedule.h"

#define NAP_NS INT64_C(1000000)
#define NAP_NS_MAX INT64_C(16000000)

struct sb_transaction {
    sb_connection *connection;
    pthread_mutex_t mutex;
    int64_t state; /* SB_OK: open, SB_UNFINISHED: committed, SB_ENDED */
    int64_t serial; /* which commit of the connection it was */
    int64_t stamp;  /* and which of those on durable queues, 0: of none */
    bool is_replicated; /* not only on queues that other members have nothing of */
    bool is_counted; /* as one that has begun, and is not over */
    bool is_refused; /* by a queue that is full, and fails then */
    operation *operations;
    int64_t count, room;
    sb_queue **copied; /* whose confirms wait for replicas of single queues */
    int64_t copied_count;
};

int64_t sb_transaction_begin(sb_connection *connection, sb_transaction **made)
{
    int64_t code = atomic_load(&connection->closed);
    if (code != SB_OK)
        return code;
    if (connection->id == 0)
        return fail(SB_INVALID, "the connection only observes: connect to publish or take");
    sb_transaction *transaction = calloc(1, sizeof *transaction);
    if (!transaction)
        return fail_system("memory for a transaction");
    transaction->connection = connection;
    pthread_mutex_init(&transaction->mutex, NULL);
    *made = transaction;
    return SB_OK;
}

/* Lock it, if it may be used. */
static int64_t enter(sb_transaction *transaction)
{
    /* first: after a fork the lock may be held by a thread that is not here */
    int64_t code = atomic_load(&transaction->connection->closed);
    if (code != SB_OK)
        return code;
    pthread_mutex_lock(&transaction->mutex);
    return SB_OK;
}

/* Whoever stops the broker may wait for those that have begun (docs/scale-down.md).  A connection
 * that is closed has nothing to count any more: its place may be another's. */
static void note_open(sb_transaction *transaction)
{
    sb_connection *connection = transaction->connection;
    bool is_open = transaction->count > 0;
    if (transaction->is_counted == is_open)
        return;
    pthread_mutex_lock(&connection->commit_mutex);
    if (atomic_load(&connection->closed) == SB_OK)
        participant_opens(connection, is_open ? 1 : -1);
    pthread_mutex_unlock(&connection->commit_mutex);
    transaction->is_counted = is_open;
}

static int64_t leave(sb_transaction *transaction, int64_t code)
{
    note_open(transaction);
    pthread_mutex_unlock(&transaction->mutex);
    return code;
}

/* A place for one more operation, after the queue was looked at. */
static int64_t make_room(sb_transaction *transaction, sb_queue *queue)
{
    int64_t code;
    if (transaction->state != SB_OK)
        return fail(SB_ENDED, "%s", sb_strerror(SB_ENDED));
    if (queue->connection != transaction->connection)
        return fail(SB_INVALID, "queue '%s' belongs to another connection than the transaction",
                    queue->name);
    if (!queue_is_usable(queue, &code))
        return code;
    if (transaction->count >= L_TRANSACTION_OPERATIONS)
        return fail(SB_TOO_MANY, "a transaction has at most %d operations, one for each queue that "
                    "a message goes to: commit it, and begin another",
                    (int)L_TRANSACTION_OPERATIONS);
    if (!ROOM_FOR(transaction->operations, transaction->room, transaction->count + 1))
        return fail_system("memory for a transaction");
    return SB_OK;
}

/* --- lanes ------------------------------------------------------------------------------------ */

/* The chunks are of this lane's port, and nobody else enters it until we end. */
static lane *lane_lent(sb_transaction *transaction, const sb_queue *queue)
{
    for (int64_t index = transaction->count - 1; index >= 0; index--)
        if (transaction->operations[index].queue == queue && transaction->operations[index].lane)
            return transaction->operations[index].lane;
    return NULL;
}

/* It is not needed by the last operation any more; perhaps by one before. */
static void lane_return(sb_transaction *transaction, lane *in)
{
    operations_return(transaction->operations, transaction->count, in);
}

/* Go back to the first so many operations: chunks are dropped. */
static void shorten(sb_transaction *transaction, int64_t count)
{
    while (transaction->count > count) {
        operation *last = &transaction->operations[--transaction->count];
        if (last->lane) {
            atomic_store(&last->lane->busy, IN);
            sb_port_unreserve(&last->lane->port, last->where);
            lane_return(transaction, last->lane);
        }
        operation_close(last);
    }
}

/* --- operations ------------------------------------------------------------------------------- */

/* To be published to a queue, or to its schedule. */
typedef struct target {
    sb_queue *queue, *schedule; /* the schedule, or NULL */
    sb_queue *promised; /* as operation has it */
    int64_t due;
} target;

static sb_queue *ring_of(const target *to)
{
    return to->schedule ? to->schedule : to->queue;
}

static int64_t target_of(target *to, sb_queue *queue, const sb_outgoing *message)
{
    int64_t code = SB_OK;
    *to = (target){.queue = queue, .promised = queue->auto_delete_ns ? queue : NULL};
    if (is_scheduled(message) && (to->due = schedule_due(message)) != 0) {
        if (to->due < 0)
            return to->due;
        to->schedule = schedule_of(queue, true, &code);
        lane *in = to->schedule ? lane_beside(to->schedule, &code) : NULL;
        if (!in)
            return code;
        mover_attend(queue, true);
        code = schedule_room(to->schedule, in);
        lane_part(in);
    } else if (queue->pages && (code = inbox_admits(queue, message)) == SB_OK) {
        to->queue = inbox_of(queue, true, &code); /* where it is put when it is committed */
    }
    return code;
}

static int64_t reserve(const target *to, lane *in, const sb_outgoing *message)
{
    int64_t id;
    if (to->schedule)
        return schedule_reserve(to->queue, to->schedule, &in->port, message, to->due, &id);
    sb_port *port = &in->port;
    int64_t chunk = queue_reserve(to->queue, port, message);
    if (chunk >= 0 && message->length > 0)
        memcpy(sb_port_loan_body(port, chunk), message->body, (size_t)message->length);
    return chunk;
}

static int64_t reserve_in(sb_transaction *transaction, const target *to, lane *in,
                          const sb_outgoing *message)
{
    int64_t chunk = reserve(to, in, message);
    if (chunk >= 0) {
        sb_share_queue(ring_of(to)); /* until the operation is closed */
        if (to->promised)
            sb_share_queue(to->promised);
        transaction->operations[transaction->count++] =
            (operation){.queue = ring_of(to), .lane = in, .where = chunk,
                        .promised = to->promised};
    }
    lane_return(transaction, in);
    return chunk;
}

static int64_t add_looked(sb_transaction *transaction, sb_queue *queue, const sb_outgoing *message)
{
    pthread_mutex_t *mutex = &transaction->connection->commit_mutex;
    int64_t chunk = SB_TOO_MANY_LOANS;
    target to;
    int64_t code = target_of(&to, queue, message);
    if (code != SB_OK)
        return code == SB_FULL ? schedule_explain(queue, code) : code;
    pthread_mutex_lock(mutex); /* who closes the connection waits, and then we see it */
    code = make_room(transaction, queue);
    lane *in = code == SB_OK ? lane_lent(transaction, ring_of(&to)) : NULL;
    if (in) {
        atomic_store(&in->busy, IN);
        chunk = reserve_in(transaction, &to, in, message);
    }
    /* the first, or one more than a port can lend */
    if (code == SB_OK && chunk == SB_TOO_MANY_LOANS && (in = lane_beside(ring_of(&to), &code))) {
        queue_note_use(ring_of(&to), L_USE_PRODUCES);
        chunk = reserve_in(transaction, &to, in, message);
    }
    pthread_mutex_unlock(mutex);
    return code != SB_OK ? code : chunk < 0 ? explained(queue, chunk) : SB_OK;
}

static int64_t add(sb_transaction *transaction, sb_queue *queue, const sb_outgoing *message)
{
    int64_t code;
    if (!queue_look(queue, &code))
        return code;
    bool is_ours = queue->connection == transaction->connection; /* else it is refused */
    code = is_ours ? queue_promise(queue) : SB_OK;
    if (code == SB_OK && (code = add_looked(transaction, queue, message)) != SB_OK && is_ours)
        queue_promised_no_more(queue);
    queue_looked(queue);
    return code;
}

/* The same, of a group, where it goes. */
static int64_t add_grouped(sb_transaction *transaction, sb_queue *queue, const sb_outgoing *message)
{
    sb_queue *way;
    int64_t number, code = SB_INTERRUPTED;
    while (code == SB_INTERRUPTED)
        code = grouped_way(queue, message, SB_FOREVER, &way, &number);
    if (code == SB_UNDECIDED)
        return add(transaction, queue, message);
    if (code != SB_OK)
        return code;
    sb_outgoing copy = *message;
    copy.target = sb_target_of(queue->name, (int64_t)strlen(queue->name));
    return add(transaction, way, &copy);
}

int64_t sb_transaction_publish(sb_transaction *transaction, sb_queue *queue,
                               const sb_outgoing *message)
{
    int64_t code = outgoing_check(message);
    if (code == SB_OK)
        code = enter(transaction);
    return code != SB_OK ? code : leave(transaction, add_grouped(transaction, queue, message));
}

/* To all queues that it goes to now: how many they are; *was_deleted: there was one more. */
static int64_t add_routed(sb_transaction *transaction, sb_exchange *exchange,
                          const sb_outgoing *message, bool *was_deleted)
{
    kept_route *route;
    unsigned char *kept;
    int64_t routed = 0, code = SB_OK, count = exchange_route(exchange, message, &route);
    if (count < 0)
        return count;
    *was_deleted = route->lacks;
    for (int64_t each = 0; each < count && code == SB_OK; each++) {
        sb_outgoing copy;
        code = route_copy(route, each, message, message->target & WISHES, &copy, &kept);
        if (code == SB_OK)
            code = (exchange_is_default(exchange) ? add_grouped : add)(transaction,
                                                                       route->queues[each], &copy);
        free(kept);
        routed += code == SB_OK;
        if (code == SB_NOT_FOUND) {
            *was_deleted = true;
            code = SB_OK;
        }
    }
    route_leave(route);
    return code < 0 ? code : routed;
}

int64_t sb_transaction_route(sb_transaction *transaction, sb_exchange *exchange,
                             const sb_outgoing *message)
{
    int64_t code = outgoing_check(message);
    if (code == SB_OK)
        code = enter(transaction);
    if (code != SB_OK)
        return code;
    int64_t before = transaction->count;
    bool was_deleted = false;
    if (transaction->state != SB_OK)
        return leave(transaction, fail(SB_ENDED, "%s", sb_strerror(SB_ENDED)));
    int tries = 0;
    do /* the one queue of a key may be made anew */
        code = add_routed(transaction, exchange, message, &was_deleted);
    while (code == 0 && was_deleted && exchange_is_default(exchange) && tries++ < DELETED_TRIES);
    if (code < 0)
        shorten(transaction, before);
    return leave(transaction, code);
}

int64_t sb_transaction_scheduled(sb_transaction *transaction)
{
    int64_t id = 0;
    if (enter(transaction) != SB_OK)
        return 0;
    const operation *last = transaction->operations + transaction->count - 1;
    if (transaction->count > 0 && last->lane && setting(last->queue, L_SETTING_SCHEDULE_OF_AT))
        id = word_load(sb_port_loan_body(&last->lane->port, last->where), L_SCHEDULED_ID_AT);
    return leave(transaction, id);
}

static bool is_in_hand(sb_queue *queue, const sb_message *message)
{
    sb_port port;
    int64_t code;
    if (!queue_look(queue, &code))
        return false;
    bool is = ((message->word >> L_STATE_SHIFT) & L_STATE_MASK) == L_LEASED &&
           ((message->word >> L_OWNER_SHIFT) & L_OWNER_MASK) == queue->connection->id &&
           sb_port_to_look(queue, &port) == SB_OK &&
           sb_port_is_in_hand(&port, message->position, message->word);
    queue_looked(queue);
    return is;
}

int64_t sb_transaction_ack(sb_transaction *transaction, sb_queue *queue, sb_message *message)
{
    int64_t code = enter(transaction);
    if (code != SB_OK)
        return code;
    code = make_room(transaction, queue);
    if (code == SB_OK && !is_in_hand(queue, message))
        code = fail(SB_REVOKED, "message %lld of queue '%s' is not in hand: it was dealt with, or "
                    "revoked", (long long)message->position, queue->name);
    if (code == SB_OK) {
        sb_share_queue(queue);
        transaction->operations[transaction->count++] = (operation){
            .queue = queue, .where = message->position, .word = message->word};
        message->word = 0;
    }
    return leave(transaction, code);
}

int64_t sb_transaction_operations(sb_transaction *transaction)
{
    return transaction->count;
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Whether it is kept, until the transaction is freed. */
static bool keep_copied(sb_transaction *transaction, sb_queue *queue)
{
    if (!setting(queue, L_SETTING_CONFIRM_REPLICAS_AT))
        return false;
    for (int64_t each = 0; each < transaction->copied_count; each++)
        if (transaction->copied[each] == queue)
            return false;
    int64_t count = transaction->copied_count + 1;
    sb_queue **made = realloc(transaction->copied, (size_t)count * sizeof *made);
    if (!made)
        return false;
    made[count - 1] = queue;
    transaction->copied = made;
    transaction->copied_count = count;
    return true;
}

/* Its messages are in their rings: the lanes may be used by others. */
static int64_t end(sb_transaction *transaction)
{
    for (int64_t index = 0; index < transaction->count; index++) {
        const operation *each = &transaction->operations[index];
        transaction->is_replicated |= is_replicated(each->queue);
        if (each->lane && transaction->stamp && keep_copied(transaction, each->queue))
            sb_share_queue(each->queue); /* until the transaction is freed */
    }
    operations_end(transaction->operations, transaction->count);
    transaction->count = 0;
    transaction->state = SB_ENDED;
    return SB_OK;
}

/* Go on with what is committed. */
static int64_t finish(sb_transaction *transaction)
{
    sb_connection *connection = transaction->connection;
    pthread_mutex_lock(&connection->commit_mutex);
    int64_t code = atomic_load(&connection->closed);
    if (code == SB_OK && connection->finished < transaction->serial)
        record_finish(connection, connection->id);
    bool finished = connection->finished >= transaction->serial;
    if (finished)
        transaction->stamp = commit_gate_passed(connection, transaction->stamp);
    pthread_mutex_unlock(&connection->commit_mutex);
    if (finished)
        return end(transaction);
    return code != SB_OK ? code : fail(SB_UNFINISHED, "%s", sb_strerror(SB_UNFINISHED));
}

static int64_t try_once(sb_transaction *transaction, sb_queue **full)
{
    sb_connection *connection = transaction->connection;
    pthread_mutex_lock(&connection->commit_mutex);
    int64_t code = atomic_load(&connection->closed);
    if (code == SB_OK)
        code = record_commit(connection, transaction->operations, transaction->count, full);
    transaction->is_refused = code == SB_FULL && *full && (*full)->when_full == L_FAIL;
    if (code == SB_OK) {
        transaction->state = SB_UNFINISHED;
        transaction->serial = connection->commits;
        transaction->stamp = connection->stamp;
    }
    pthread_mutex_unlock(&connection->commit_mutex);
    return code;
}

static int64_t nap(int64_t ns)
{
    const struct timespec length = {0, ns};
    return nanosleep(&length, NULL) == 0 ? SB_OK : errno == EINTR ? SB_INTERRUPTED : SB_SYSTEM;
}

/* Wait until it may be worth trying again: more than the room of one message may be wanted, so it
 * tries ever more rarely while there is some, and sleeps when there is none. */
static int64_t wait_for_room(sb_transaction *transaction, sb_queue *full, int64_t deadline,
                             int64_t *nap_ns)
{
    sb_port port;
    int64_t now = sb_system_clock(), code = nap(*nap_ns);
    *nap_ns = 2 * *nap_ns > NAP_NS_MAX ? NAP_NS_MAX : 2 * *nap_ns;
    if (code != SB_OK)
        return code;
    if (now >= deadline)
        return SB_FULL;
    if (!full) {
        transaction->connection->duties->repair(transaction->connection);
        return transaction->connection->waits_in_slices && *nap_ns == NAP_NS_MAX ? SB_INTERRUPTED
                                                                                 : SB_OK;
    }
    if (!queue_look(full, &code))
        return code;
    code = sb_port_to_look(full, &port);
    if (code == SB_OK)
        code = wait_in(full, &port, sb_port_wait_for_room, deadline);
    queue_looked(full);
    return code;
}

static int64_t commit(sb_transaction *transaction, int64_t timeout_ns)
{
    sb_queue *full = NULL;
    if (transaction->state == SB_ENDED)
        return fail(SB_ENDED, "%s", sb_strerror(SB_ENDED));
    int64_t code = SB_OK, nap_ns = NAP_NS;
    if (transaction->state == SB_OK && transaction->count > 0) {
        int64_t deadline = timeout_ns ? monotonic_deadline(timeout_ns) : 0;
        code = try_once(transaction, &full);
        while (code == SB_FULL && timeout_ns != 0 && !transaction->is_refused) {
            int64_t waited = wait_for_room(transaction, full, deadline, &nap_ns);
            if (waited != SB_FULL)
                code = waited;
            if (waited != SB_OK)
                break;
            code = try_once(transaction, &full);
        }
    }
    if (code != SB_OK)
        return code == SB_FULL && full ? explained_commit(full, code) : code;
    code = finish(transaction);
    if (code == SB_UNFINISHED && timeout_ns != 0 && nap(NAP_NS) == SB_OK) {
        /* one of the dead may hold what has no room */
        transaction->connection->duties->repair(transaction->connection);
        code = finish(transaction);
    }
    return code;
}

int64_t sb_transaction_commit(sb_transaction *transaction, int64_t timeout_ns)
{
    int64_t code = enter(transaction);
    return code != SB_OK ? code : leave(transaction, commit(transaction, timeout_ns));
}

int64_t sb_transaction_refused(sb_transaction *transaction)
{
    return transaction->is_refused;
}

/* Wait for replicas of single queues, as publishers do; a queue that was deleted has none. */
static int64_t await_copied(sb_transaction *transaction, int64_t deadline)
{
    int64_t code = SB_OK;
    for (int64_t each = 0; each < transaction->copied_count && code >= 0; each++) {
        sb_queue *queue = transaction->copied[each];
        int64_t left = deadline - sb_system_clock();
        code = sb_confirm(queue, -1, L_CONFIRM_EFFECTIVE, left > 0 ? left : 0);
        if (code < 0 && queue_is_gone(queue))
            code = SB_OK;
    }
    return code < 0 ? code : SB_OK;
}

int64_t sb_transaction_confirm(sb_transaction *transaction, int64_t level, int64_t timeout_ns)
{
    if (level < L_CONFIRM_EFFECTIVE || level > (L_CONFIRM_DISK | L_CONFIRM_REPLICATED))
        return fail(SB_INVALID, "%lld is no level of a confirm: SB_CONFIRM_DISK, ...",
                    (long long)level);
    int64_t deadline = monotonic_deadline(timeout_ns), code = enter(transaction);
    if (code != SB_OK)
        return code;
    sb_connection *connection = transaction->connection;
    bool is_here = !transaction->is_replicated; /* what its frame needs of replicas is nothing */
    if (transaction->state != SB_ENDED)
        code = fail(SB_INVALID, "the transaction is not committed: nothing of it can be confirmed");
    else if (transaction->stamp && is_here && level > 0 && level & L_CONFIRM_REPLICATED)
        code = fail(SB_INVALID, "it is committed, and no queue of it has replicate 'all', so no "
                    "replica confirms it: ask for 'disk'");
    else if (transaction->stamp)
        code = sb_commit_gate_await(connection, transaction->stamp,
                                    is_here && level < 0 ? L_CONFIRM_DISK : level, timeout_ns);
    if (code == SB_OK && level < 0)
        code = await_copied(transaction, deadline);
    if (code == SB_OK && transaction->stamp)
        code = commit_gate_level(connection, transaction->stamp) &
               (is_here ? ~(int64_t)L_CONFIRM_REPLICATED : ~INT64_C(0));
    return leave(transaction, code);
}

static int64_t roll_back(sb_transaction *transaction,
                         int64_t (*lets_go)(sb_queue *queue, sb_message *message))
{
    if (transaction->state != SB_OK)
        return fail(SB_ENDED, "%s", sb_strerror(SB_ENDED));
    transaction->state = SB_ENDED;
    for (int64_t index = 0; index < transaction->count; index++) {
        operation *each = &transaction->operations[index];
        sb_message message = {.position = each->where, .word = each->word};
        if (!each->lane)
            lets_go(each->queue, &message); /* or it is another's already: just as well */
    }
    shorten(transaction, 0);
    return SB_OK;
}

int64_t sb_transaction_rollback(sb_transaction *transaction)
{
    int64_t code = enter(transaction);
    return code != SB_OK ? code : leave(transaction, roll_back(transaction, sb_give_back));
}

int64_t sb_transaction_undo(sb_transaction *transaction)
{
    int64_t code = enter(transaction);
    return code != SB_OK ? code : leave(transaction, roll_back(transaction, sb_untake));
}

/* It is committed, and nobody waits for it any more. */
static void leave_to_happen(sb_transaction *transaction)
{
    sb_connection *connection = transaction->connection;
    if (atomic_load(&connection->closed) != SB_OK) /* first: see enter */
        return;
    pthread_mutex_lock(&connection->commit_mutex);
    if (atomic_load(&connection->closed) == SB_OK) {
        operations_leave(connection, transaction->operations, transaction->count,
                         transaction->serial);
        transaction->operations = NULL;
        transaction->count = 0;
    }
    pthread_mutex_unlock(&connection->commit_mutex);
}

void sb_transaction_free(sb_transaction *transaction)
{
    if (!transaction)
        return;
    if (transaction->state == SB_OK)
        sb_transaction_rollback(transaction);
    if (transaction->state == SB_UNFINISHED)
        leave_to_happen(transaction);
    /* the connection is closed */
    while (transaction->count > 0)
        operation_close(&transaction->operations[--transaction->count]);
    while (transaction->copied_count > 0)
        sb_close_queue(transaction->copied[--transaction->copied_count]);
    free(transaction->copied);
    free(transaction->operations);
    free(transaction);
}
