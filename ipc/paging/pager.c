/* The pager's hands in shared memory: which queues page, their ports, the bell that it sleeps on.
 * What it does with them is decided in pager.py and paged.py; messages go in batches (moving.py).
 *
 * One thread of Python pages the queues of a vhost, by a lock that falls with its connection.  It
 * follows their inboxes by gates that it adopts, and is one numbered producer in all their rings.
 * Who closes the connection waits until that thread has let go of all. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "follower/follower.h"
#include "paging/paging.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define IDENTITY 1 /* under which we are numbered: those of named producers are hashes */
#define IDLE_NS INT64_C(1000000000) /* so often all are looked at, rung or not */
#define END_NS INT64_C(100000000)

enum { PAGES_NOT, PAGES, TO_END }; /* in a connection */

/* A queue that pages, with what Python need not know. */
typedef struct paged {
    sb_paged shown; /* the first: whoever has its address has ours */
    sb_pager *pager;
    sb_queue *inbox;
    ready_one news, put_news; /* of the inbox; and the journal has what was put into the ring */
    sb_port in, out;
    sb_cursor cursor;
    sb_refilling *waits; /* with this record, for room in the ring; NULL: it does not */
    int64_t listed; /* in which look at those that are ready */
    struct paged *next; /* of those that Python is to be told of */
} paged;

struct sb_pager {
    sb_connection *connection;
    fence fence;
    following following; /* of inboxes: each is a paged */
    ready_set ready;
    int64_t passed_at; /* when all were looked at last */
    int64_t looks;
    paged *told;
};

void pager_ring(const sb_queue *inbox)
{
    follower_told(inbox->connection, L_FOLLOWER_PAGER, inbox->reference);
}

/* --- queues come and go ----------------------------------------------------------------------- */

static void tell(paged *each)
{
    each->next = each->pager->told;
    each->pager->told = each;
}

static int64_t adopt(paged *each)
{
    sb_connection *connection = each->pager->connection;
    sb_queue *queue = each->shown.queue;
    int64_t code = sb_port_open(&each->in, each->inbox->ring.memory, each->inbox->ring.bytes,
                                connection->arena.memory, connection->arena.bytes, connection->id);
    if (code == SB_OK)
        code = sb_port_open(&each->out, queue->ring.memory, queue->ring.bytes,
                            connection->arena.memory, connection->arena.bytes, connection->id);
    if (code != SB_OK)
        return code;
    each->out.file = connection->arena.file;
    int64_t gate = gate_find(each->inbox, L_GATE_PAGER, "");
    int64_t position = gate_seize(&each->in, each->inbox, gate);
    if (position < 0)
        return fail(SB_STALE, "queue '%s' has another pager by now", queue->name);
    each->cursor = (sb_cursor){.port = &each->in, .position = position, .gate = gate};
    int64_t last = sb_port_number(&each->out, IDENTITY);
    if (last < 0)
        return fail(last, "queue '%s': %s", queue->name, sb_strerror(last));
    each->shown.last = last;
    return SB_OK;
}

static void show(paged *each)
{
    sb_paged *shown = &each->shown;
    const sb_queue *queue = shown->queue;
    shown->name = queue->name;
    shown->ring = each->inbox->ring.memory;
    shown->inbox = &each->in;
    shown->out = &each->out;
    shown->cursor = &each->cursor;
    shown->durable = sb_is_durable(each->inbox);
    shown->max_bytes = queue->max_bytes;
    shown->slots = queue->max_messages > 0 && queue->max_messages < queue->slots
                       ? queue->max_messages : queue->slots;
    snprintf(shown->folder, sizeof shown->folder, "%016llx%016llx",
             (unsigned long long)queue->key[0], (unsigned long long)queue->key[1]);
}

static void leave(paged *each)
{
    if (each->news.of)
        ready_drop(&each->pager->ready, &each->news);
    if (each->put_news.of)
        ready_drop(&each->pager->ready, &each->put_news);
    sb_port_close(&each->out);
    sb_port_close(&each->in);
    atomic_fetch_sub(&each->shown.queue->held, 1);
}

/* The queue of an inbox, held: SB_NOT_FOUND if it was deleted. */
static int64_t queue_of(sb_connection *connection, const sb_queue *inbox, sb_queue **queue)
{
    int64_t code;
    pthread_mutex_lock(&connection->mutex);
    code = queue_handle(connection, setting(inbox, L_SETTING_INBOX_OF_AT), queue);
    if (code == SB_OK) {
        participant_uses(connection, (*queue)->reference, 0);
        participant_uses(connection, inbox->reference, 0);
        atomic_fetch_add(&(*queue)->held, 1);
    }
    pthread_mutex_unlock(&connection->mutex);
    if (code != SB_OK)
        return code;
    if ((*queue)->pages && inbox_of(*queue, true, &code) == inbox)
        return SB_OK;
    atomic_fetch_sub(&(*queue)->held, 1);
    return code == SB_OK ? SB_NOT_FOUND : code;
}

static int64_t came(void *context, sb_queue *inbox, const char *entry, void **kept)
{
    sb_pager *pager = context;
    paged *made = NULL;
    (void)entry;
    if (posix_memalign((void **)&made, 128, sizeof *made) != 0)
        return fail_system("memory for a queue that pages");
    memset(made, 0, sizeof *made);
    made->pager = pager;
    made->inbox = inbox;
    int64_t code = queue_of(pager->connection, inbox, &made->shown.queue);
    if (code != SB_OK) {
        free(made);
        return code;
    }
    code = adopt(made);
    if (code == SB_OK)
        code = ready_add(&pager->ready, &made->news, inbox, made);
    if (code == SB_OK)
        code = ready_add(&pager->ready, &made->put_news, made->shown.queue, made);
    if (code != SB_OK) {
        leave(made);
        free(made);
        return code;
    }
    show(made);
    tell(made);
    *kept = made;
    return SB_OK;
}

static int64_t gone(void *context, void *kept)
{
    paged *each = kept;
    (void)context;
    leave(each);
    each->shown.is_gone = true;
    tell(each);
    return SB_OK;
}

static const following_user USER = {.came = came, .gone = gone};

int64_t sb_pager_look(sb_pager *pager, sb_paged **told)
{
    int64_t code = SB_OK;
    if (!pager->told && !atomic_load(&pager->connection->closed))
        code = following_look(&pager->following);
    paged *each = pager->told;
    *told = each ? &each->shown : NULL;
    if (each)
        pager->told = each->next;
    return each ? SB_OK : code;
}

void sb_paged_free(sb_paged *freed)
{
    free(freed);
}

/* --- which have news -------------------------------------------------------------------------- */

static bool is_to_end(sb_connection *connection)
{
    return atomic_load(&connection->paging) != PAGES || atomic_load(&connection->closed) != SB_OK;
}

int64_t sb_pager_ready(sb_pager *pager, sb_paged **ready, int64_t room)
{
    int64_t count = 0, code, now = sb_system_clock();
    if (is_to_end(pager->connection))
        return SB_CLOSED;
    pager->looks++;
    ready_take_rung(&pager->ready);
    if (now - pager->passed_at >= IDLE_NS) {
        ready_mark_all(&pager->ready);
        pager->passed_at = now;
    }
    for (int64_t at = pager->ready.count - 1; at >= 0 && count < room; at--) {
        const ready_one *one = pager->ready.ready[at];
        paged *each = one->of;
        if (each->listed == pager->looks)
            continue; /* it is there twice */
        bool waits = each->waits && one == &each->put_news;
        if (waits && !sb_port_ring_has_room(&each->out, each->waits))
            continue;
        each->listed = pager->looks;
        each->waits = NULL;
        /* else the catalog has changed */
        if (queue_is_usable(each->shown.queue, &code) && queue_is_usable(each->inbox, &code))
            ready[count++] = &each->shown;
    }
    return count;
}

int64_t sb_paged_confirmed(const sb_paged *of, int64_t in_inbox)
{
    const paged *each = (const paged *)of;
    return confirmed_below(in_inbox ? each->inbox : of->queue);
}

/* Whether a ring is confirmed so far; its next step is told to us. */
static bool is_confirmed_below(paged *each, sb_queue *queue, int64_t position)
{
    char *bell = (char *)queue->ring.memory + L_RING_CONFIRM_BELL_AT;
    sb_bell_follow((int64_t *)(void *)bell, each->pager->ready.bell);
    return confirmed_below(queue) >= position;
}

void sb_paged_rest(sb_paged *rests, int64_t in_inbox, int64_t in_ring, sb_refilling *waits)
{
    paged *each = (paged *)rests;
    ready_set *ready = &each->pager->ready;
    if (rests->durable ? in_inbox > 0 && is_confirmed_below(each, each->inbox, in_inbox)
                       : !ready_rest(ready, &each->news, &each->cursor))
        return;
    if (waits) {
        ready_leave(ready, &each->news);
        ready_mark(ready, &each->put_news);
        each->waits = waits;
        return;
    }
    if (rests->durable && in_ring > 0 && is_confirmed_below(each, rests->queue, in_ring))
        return;
    ready_leave(ready, &each->news);
    ready_leave(ready, &each->put_news);
}

void sb_paged_note(sb_paged *of)
{
    inbox_noted(((paged *)of)->inbox);
}

int64_t sb_file_reserve(int64_t file, int64_t bytes)
{
    if (fallocate((int)file, FALLOC_FL_KEEP_SIZE, 0, bytes) == 0 || errno == EOPNOTSUPP ||
        errno == EINTR)
        return SB_OK;
    return SB_SYSTEM;
}

/* --- the thread ------------------------------------------------------------------------------- */

int64_t sb_pager_fence_check(sb_pager *pager)
{
    return fence_check(&pager->fence);
}

static void repair_queues(sb_pager *pager)
{
    int64_t count = pager->following.count;
    sb_wait *waits = calloc((size_t)(count + 1), sizeof *waits);
    for (int64_t at = 0; waits && at < count; at++)
        waits[at].queue = pager->following.rows[at].queue;
    if (waits && count > 0)
        pager->connection->duties->repair_rings(waits, count);
    free(waits);
}

int64_t sb_pager_rest(sb_pager *pager, int64_t longest_ns)
{
    longest_ns = longest_ns > 0 ? longest_ns : IDLE_NS;
    system_word bell = ready_armed(&pager->ready);
    if (is_to_end(pager->connection))
        return SB_CLOSED;
    if (ready_take_rung(&pager->ready) || following_is_behind(&pager->following))
        return SB_OK;
    if (sb_system_wait(bell.address, bell.value, longest_ns) == SB_EMPTY && longest_ns == IDLE_NS)
        repair_queues(pager);
    return SB_OK;
}

void sb_pager_begin(sb_pager *pager)
{
    sb_connection *connection = pager->connection;
    connection->paging_in = pthread_self();
    participant_repairs(connection);
    word_store(connection->participants.memory, L_PARTICIPANTS_PAGES_AT, 1);
    atomic_store(&connection->paging, PAGES);
}

void sb_pager_stop(sb_connection *connection)
{
    int64_t pages = PAGES;
    if (atomic_load(&connection->closed) == SB_FORKED)
        return; /* it is the parent's */
    if (atomic_compare_exchange_strong(&connection->paging, &pages, TO_END))
        sb_follower_rouse(connection, L_FOLLOWER_PAGER);
}

void pager_end(sb_connection *connection)
{
    sb_pager_stop(connection);
    int64_t pages;
    while ((pages = atomic_load(&connection->paging)) != PAGES_NOT) {
        if (pthread_equal(pthread_self(), connection->paging_in))
            return; /* disconnected as a slow consumer, it found out: it is about to end */
        sb_system_wait((int64_t)(intptr_t)&connection->paging, pages, END_NS);
    }
}

int64_t sb_pager_open(sb_connection *connection, const sb_pager_fence *watched, sb_pager **opened)
{
    int64_t code = change_code(connection);
    if (code != SB_OK)
        return code;
    if (atomic_load(&connection->paging) != PAGES_NOT || !participant_lock_pager(connection))
        return fail(SB_IN_USE, "another broker pages the queues of vhost '%s' already",
                    connection->vhost);
    sb_pager *pager = calloc(1, sizeof *pager);
    if (!pager) {
        participant_unlock_pager(connection);
        return fail_system("memory for a pager");
    }
    pager->connection = connection;
    pager->fence.file = (int)watched->file;
    pager->fence.lease = (const _Atomic int64_t *)watched->until_ns;
    fence_begin(&pager->fence, watched->epoch);
    ready_begin(&pager->ready, connection, follower_bell_seize(connection, L_FOLLOWER_PAGER));
    code = following_begin(&pager->following, connection, L_QUEUE_INBOX, &USER, pager);
    if (code == SB_OK)
        *opened = pager;
    else
        sb_pager_free(pager);
    return code;
}

void sb_pager_free(sb_pager *pager)
{
    sb_connection *connection = pager->connection;
    for (paged *each; (each = pager->told);) {
        pager->told = each->next;
        if (each->shown.is_gone)
            free(each);
    }
    for (int64_t each = 0; each < pager->following.count; each++) {
        leave(pager->following.rows[each].kept);
        free(pager->following.rows[each].kept);
    }
    following_end(&pager->following);
    ready_end(&pager->ready);
    participant_unlock_pager(connection);
    free(pager);
    if (atomic_exchange(&connection->paging, PAGES_NOT) != PAGES_NOT)
        sb_system_wake((int64_t)(intptr_t)&connection->paging, INT32_MAX);
}
