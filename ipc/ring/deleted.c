/* Deleted queues: deleted by us or by others, or with their owner.
 *
 * Their handles are let go of in three steps, each as soon as it may be:
 *
 * 1. The ring is unmapped and the lanes are given back, when no thread is in a lane or looks at the
 *    ring (queue_look), nothing is on loan, and no thread of ours serves it.
 * 2. Our participant forgets the queue, so that its row and its memory in the arena can be used
 *    again, when no message of it is in the program's hand.  Those that are in hand at step 1 are
 *    written down then.  Who closes the handle has none in hand any more.
 * 3. The handle is freed, when the program has closed it, and no route and no transaction has it.
 *
 * The first two need the connection's mutex and the catalog's lock.  They are tried by whoever
 * deletes, by whoever deals with a message of a deleted queue, and by whoever opens or declares any
 * queue: that one looks at some rows at each call, and so at all of them in turn. */

#define _GNU_SOURCE
#include <stdlib.h>

#include "base/base.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define ROWS_AT_ONCE 64
#define HANDLES_AT_ONCE 16

typedef struct left_message {
    int64_t position, word;
} left_message;

bool queue_look_late(sb_queue *queue)
{
    atomic_fetch_add(&queue->looks, 1);
    /* who unmaps sets `leaves`, then looks for us: so one of us sees the other */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&queue->leaves) == 0)
        return true;
    queue_looked(queue);
    return false;
}

bool queue_look(sb_queue *queue, int64_t *code)
{
    bool is_there = queue_look_late(queue);
    if (is_there && queue_is_usable(queue, code))
        return true;
    if (is_there)
        queue_looked(queue);
    else
        *code = queue_unusable(queue);
    return false;
}

int64_t sb_queue_look(sb_queue *queue)
{
    int64_t code;
    return queue_look(queue, &code) ? SB_OK : code;
}

void sb_queue_looked(sb_queue *queue)
{
    queue_looked(queue);
}

static void put_into(sb_queue *queue, sb_queue **list)
{
    queue->next = *list;
    queue->link = list;
    if (queue->next)
        queue->next->link = &queue->next;
    *list = queue;
}

static void take_out(sb_queue *queue)
{
    *queue->link = queue->next;
    if (queue->next)
        queue->next->link = queue->link;
    queue->link = NULL;
}

void deleted_add(sb_queue *queue)
{
    atomic_store(&queue->gone, SB_NOT_FOUND);
    put_into(queue, &queue->connection->gone);
    if (atomic_load(&queue->schedule))
        schedule_ring(queue->connection, 0, true); /* who serves it is to let go of it */
}

/* --- 1. the ring ------------------------------------------------------------------------------ */

static bool is_in_our_hand(const sb_queue *queue, int64_t position, int64_t word)
{
    return ((word >> L_STATE_SHIFT) & L_STATE_MASK) == L_LEASED &&
           ((word >> L_OWNER_SHIFT) & L_OWNER_MASK) == queue->connection->id &&
           (word & L_LAP_MASK) == (position / queue->slots & L_LAP_MASK);
}

int64_t sb_in_hand(sb_connection *connection)
{
    int64_t count = 0;
    if (atomic_load(&connection->closed) == SB_FORKED)
        return 0; /* first: see enter in transaction.c */
    pthread_mutex_lock(&connection->mutex);
    for (int64_t row = 0; row < L_QUEUE_ROWS; row++) {
        sb_queue *queue = connection->queues[row];
        if (!queue || atomic_load(&queue->opened) == 0 ||
            !(atomic_load(&queue->uses) & L_USE_CONSUMES))
            continue;
        int64_t code;
        if (!queue_look(queue, &code))
            continue;
        int64_t head = word_load(queue->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
        for (int64_t position = head; position < head + queue->slots; position++)
            count += is_in_our_hand(queue, position, slot_word(queue, position));
        queue_looked(queue);
    }
    pthread_mutex_unlock(&connection->mutex);
    return count;
}

/* What the program still has in hand: nobody is in a lane, so it does not become more. */
static void note_left(sb_queue *queue)
{
    int64_t room = 0, head = word_load(queue->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
    queue->left_count = 0;
    if (!(atomic_load(&queue->uses) & L_USE_CONSUMES) || atomic_load(&queue->opened) == 0)
        return;
    for (int64_t position = head; position < head + queue->slots; position++) {
        int64_t word = slot_word(queue, position);
        if (!is_in_our_hand(queue, position, word))
            continue;
        if (!ROOM_FOR(queue->left, room, queue->left_count + 1)) {
            queue->left_count = -1; /* until the handle is closed, then */
            return;
        }
        queue->left[queue->left_count++] = (left_message){position, word};
    }
}

static bool all_lanes_shut(sb_queue *queue)
{
    bool all = true;
    for (int64_t index = 0; index < atomic_load(&queue->lanes_made); index++) {
        lane *each = atomic_load(&queue->lanes[index]);
        int64_t idle = IDLE;
        if (atomic_compare_exchange_strong(&each->busy, &idle, SHUT))
            lane_shut(each);
        else
            all &= idle == SHUT;
    }
    return all;
}

static bool ring_leave(sb_queue *queue)
{
    if (!queue->ring.memory)
        return true;
    if (atomic_load(&queue->held) || queue->ports || !all_lanes_shut(queue))
        return false;
    atomic_store(&queue->leaves, 1);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&queue->looks))
        return false;
    note_left(queue);
    queue_unmap(queue);
    sb_queue *beside[] = {atomic_load(&queue->schedule), atomic_load(&queue->inbox)};
    for (int each = 0; each < 2; each++)
        if (beside[each])
            queue_looked(beside[each]);
    return true;
}

/* --- 2. our participant, 3. the handle -------------------------------------------------------- */

static bool forget(sb_queue *queue)
{
    sb_connection *connection = queue->connection;
    if (queue->forgotten)
        return true;
    if (queue->left_count && atomic_load(&queue->opened))
        return false;
    if (connection->id && !connection->duties->replies_to(connection, queue->reference))
        participant_forgets(connection, connection->id, queue->reference);
    queue->forgotten = true;
    free(queue->left);
    queue->left = NULL;
    return true;
}

static void free_unopened(sb_queue *queue)
{
    if (atomic_load(&queue->opened) || atomic_load(&queue->held) || atomic_load(&queue->looks))
        return;
    sb_queue *beside[] = {atomic_load(&queue->schedule), atomic_load(&queue->inbox)};
    take_out(queue);
    queue_free(queue);
    for (int each = 0; each < 2; each++)
        if (beside[each] && atomic_fetch_sub(&beside[each]->opened, 1) == 1 &&
            beside[each]->forgotten)
            free_unopened(beside[each]);
}

/* As far as it goes now; under the catalog's lock. */
static void let_go(sb_queue *queue)
{
    if (!ring_leave(queue) || !forget(queue))
        return;
    take_out(queue);
    put_into(queue, &queue->connection->kept);
    free_unopened(queue);
}

/* --- when ------------------------------------------------------------------------------------- */

/* Under the catalog's lock, or only with the mutex: handles of deleted queues out of these rows. */
static void find(sb_connection *connection, int64_t rows)
{
    int64_t high = word_load(connection->catalog.memory, L_CATALOG_HIGH_AT + 8 * L_QUEUES);
    high = high < L_QUEUE_ROWS ? high : L_QUEUE_ROWS;
    rows = rows < high ? rows : high;
    for (; rows > 0; rows--) {
        int64_t row = connection->looked++;
        if (row >= high)
            row = connection->looked = 0;
        sb_queue *queue = connection->queues[row];
        if (!queue || !queue_is_gone(queue))
            continue;
        connection->queues[row] = NULL;
        deleted_add(queue);
    }
}

/* Who observes is in nobody's list, and changes nothing in the catalog. */
static bool begin(sb_connection *connection, bool waits)
{
    if (connection->id)
        return (waits ? connection_lock(connection) : connection_try_lock(connection)) == SB_OK;
    pthread_mutex_lock(&connection->mutex);
    return true;
}

static void end(sb_connection *connection)
{
    if (connection->id)
        connection_unlock(connection);
    else
        pthread_mutex_unlock(&connection->mutex);
}

static bool look(sb_connection *connection, int64_t rows, int64_t handles, bool waits)
{
    if (atomic_load(&connection->closed))
        return true;
    pthread_mutex_lock(&connection->mutex);
    if (atomic_load(&connection->closed) == SB_OK)
        find(connection, rows);
    bool any = connection->gone;
    pthread_mutex_unlock(&connection->mutex);
    if (!any)
        return true;
    if (!begin(connection, waits))
        return false;
    if (atomic_load(&connection->closed))
        handles = 0; /* who closes goes through the lists without the mutex */
    sb_queue *each = connection->gone, *last = NULL;
    for (sb_queue *next; each && handles > 0; each = next, handles--) {
        next = each->next;
        let_go(each);
    }
    /* those that stayed go behind the others: the next who looks begins with what is left */
    if (each && connection->gone != each) {
        for (last = each; last->next; last = last->next)
            ;
        sb_queue *first = connection->gone;
        *each->link = NULL;
        connection->gone = each;
        each->link = &connection->gone;
        last->next = first;
        first->link = &last->next;
    }
    end(connection);
    return true;
}

/* Without the lock: whoever is in a lane may need it to get out. */
void deleted_shut(sb_queue *queue)
{
    sb_connection *connection = queue->connection;
    sb_queue *all[] = {queue, atomic_load(&queue->schedule), atomic_load(&queue->inbox)};
    for (int each = 0; each < 3; each++)
        if (all[each] && !atomic_load(&all[each]->held)) /* else who holds it does the rest */
            queue_shut(all[each]);
    bool locked = connection_lock(connection) == SB_OK;
    bool is_open = atomic_load(&connection->closed) == SB_OK;
    if (locked && is_open &&
        connection->queues[queue->reference & L_REFERENCE_INDEX_MASK] == queue) {
        connection->queues[queue->reference & L_REFERENCE_INDEX_MASK] = NULL;
        deleted_add(queue);
    }
    queue_looked(queue);
    if (!locked)
        return;
    if (is_open && queue->link)
        let_go(queue);
    connection_unlock(connection);
    deleted_some(connection); /* what was beside it */
}

bool deleted_forget(sb_connection *connection, bool waits)
{
    return look(connection, L_QUEUE_ROWS, INT64_MAX, waits);
}

void deleted_some(sb_connection *connection)
{
    look(connection, ROWS_AT_ONCE, HANDLES_AT_ONCE, false);
}

void deleted_dealt_with(sb_queue *queue, const sb_message *message)
{
    sb_connection *connection = queue->connection;
    if (atomic_load(&connection->closed) || !message->word)
        return;
    bool was_last = false;
    pthread_mutex_lock(&connection->mutex);
    for (int64_t each = 0; each < queue->left_count; each++)
        if (queue->left[each].position == message->position &&
            queue->left[each].word == message->word) {
            queue->left[each] = queue->left[--queue->left_count];
            was_last = queue->left_count == 0;
            break;
        }
    if (!queue->left && queue->ring.memory && !queue->forgotten) { /* it is not let go of yet */
        _Atomic int64_t *slot =
            (_Atomic int64_t *)((char *)queue->ring.memory + L_RING_SLOTS_START +
                                ((message->position & (queue->slots - 1)) << L_SLOT_SHIFT));
        int64_t ours = message->word;
        int64_t rest = ours & ~(L_STATE_MASK << L_STATE_SHIFT | L_OWNER_MASK << L_OWNER_SHIFT);
        atomic_compare_exchange_strong(slot, &ours, rest | L_DONE << L_STATE_SHIFT);
        was_last = true; /* perhaps */
    }
    pthread_mutex_unlock(&connection->mutex);
    if (was_last)
        deleted_some(connection);
}

/* --- handles of the program ------------------------------------------------------------------- */

int64_t sb_share_queue(sb_queue *queue)
{
    atomic_fetch_add(&queue->opened, 1);
    return SB_OK;
}

int64_t sb_close_queue(sb_queue *queue)
{
    sb_connection *connection = queue->connection;
    int64_t closed = atomic_load(&connection->closed);
    if (closed == SB_FORKED) /* the mutex may be held by a thread that is not here */
        return closed;
    bool is_gone = queue_is_gone(queue);
    /* another process may keep the catalog's lock: then whoever looks next does the rest */
    bool locked = is_gone && !closed && !queue->forgotten && begin(connection, false);
    if (!locked)
        pthread_mutex_lock(&connection->mutex);
    if (atomic_load(&queue->opened) > 0)
        atomic_fetch_sub(&queue->opened, 1);
    closed = atomic_load(&connection->closed);
    if (is_gone && !closed &&
        connection->queues[queue->reference & L_REFERENCE_INDEX_MASK] == queue) {
        connection->queues[queue->reference & L_REFERENCE_INDEX_MASK] = NULL;
        deleted_add(queue);
    }
    if (queue->forgotten && !closed)
        free_unopened(queue);
    else if (locked && !closed)
        let_go(queue);
    if (locked)
        end(connection);
    else
        pthread_mutex_unlock(&connection->mutex);
    return SB_OK;
}

void deleted_free(sb_connection *connection)
{
    sb_queue **const lists[] = {&connection->gone, &connection->kept};
    for (int each = 0; each < 2; each++)
        while (*lists[each]) {
            sb_queue *first = *lists[each];
            take_out(first);
            queue_free(first);
        }
}
