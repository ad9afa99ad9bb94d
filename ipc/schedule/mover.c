/* The mover: moves what is due from a schedule to its queue.
 *
 * Each connection that schedules messages of a queue, or waits for some of a queue that has a
 * schedule, has a thread for it.  One of all these threads serves a schedule: it sleeps until the
 * due word says that something is due (core/due.py).  The others sleep a little longer: whoever
 * then finds the word as it was, knows that the one who served is dead or stopped, and serves
 * instead.  So nobody is appointed, and nobody has to be proven dead.  If two serve at once, they
 * take turns by the claim; and who moves a message has taken it before, as any consumer does.
 *
 * The one who serves keeps what it has read of the ring in two heaps: what is due at a monotonic
 * time, and what is due at a time of day.  The clock of that may be set: with such messages it
 * looks every second at least. */

#define _GNU_SOURCE
#include <linux/futex.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "commit/commit.h"
#include "paging/paging.h"
#include "ring/ring.h"
#include "schedule/schedule.h"
#include "vhost/vhost.h"

#define GRACE_NS INT64_C(20000000)   /* so late is nobody who serves, if it can run */
#define CLAIM_NS INT64_C(50000000)   /* one look takes less, or claims again */
#define RETRY_NS INT64_C(2000000)    /* no room in the queue, or not in the journal: at first */
#define RETRY_NS_MAX INT64_C(16000000)
#define HELD_NS INT64_C(100000000)   /* somebody else is moving it: look later whether it did */
#define DAY_NS INT64_C(1000000000)   /* how often times of day are compared with the clock */
#define STANDBY_NS INT64_C(1000000000)
#define BATCH 256
#define READ_AT_ONCE 4096
#define STALE 4096

typedef struct service {
    sb_queue *queue, *schedule;
    bool serves;
    bool held;    /* somebody else had taken something */
    bool starved; /* there was no memory for all of it */
    bool noted;   /* something came after we had read the ring */
    int64_t claim;
    int64_t retry_ns; /* how long it waited for room last */
    int64_t read; /* all below were looked at */
    heap by_clock, by_day;
    struct service *next;
} service;

/* --- the bell --------------------------------------------------------------------------------- */

static void sleep_until(sb_connection *connection, uint32_t seen, int64_t until, uint32_t bits)
{
    struct timespec end = {until / 1000000000, until % 1000000000};
    syscall(SYS_futex, schedule_bell(connection), FUTEX_WAIT_BITSET, seen,
            until < SB_FOREVER ? &end : NULL, NULL, bits);
}

/* --- what is in the ring ---------------------------------------------------------------------- */

static int64_t state_at(const sb_queue *ring, int64_t position)
{
    int64_t word = slot_word(ring, position), lap = position / ring->slots;
    return (word & L_LAP_MASK) == (lap & L_LAP_MASK) ? (word >> L_STATE_SHIFT) & L_STATE_MASK
                                                     : L_FREE;
}

/* Whether the claim is still ours; if something was noted meanwhile, it is again, and there is more
 * to read than we have: the note that said so is gone. */
static bool renew(service *at)
{
    for (;;) {
        int64_t word = due_word(at->schedule),
                seen = word_load(at->schedule->ring.memory, L_RING_DUE_AT);
        if (seen & L_DUE_CLAIMED && seen != at->claim)
            return false;
        int64_t claim = sb_due_claim(word, seen, sb_system_clock() + CLAIM_NS);
        if (claim) {
            at->noted |= seen != at->claim;
            at->claim = claim;
            return true;
        }
    }
}

/* Read all of the ring again. */
static void start_again(service *at)
{
    at->read = at->by_clock.count = at->by_day.count = 0;
}

static bool put(service *at, heap *in, int64_t when, int64_t position)
{
    bool done = heap_put(in, (due){when, position});
    if (!done) {
        start_again(at);
        at->starved = true;
    }
    return done;
}

/* Put what is at a position where it will be found when it is due. */
static bool keep(service *at, sb_port *port, int64_t position)
{
    sb_message message;
    scheduled read;
    if (schedule_read(at->schedule, port, position, &message, &read)) {
        if (read.time_of_day)
            return put(at, &at->by_day, read.time_of_day, position);
        /* then nobody will get it */
        bool expires = read.expiry > 0 && read.expiry < read.not_before;
        return put(at, &at->by_clock, expires ? read.expiry : read.not_before, position);
    }
    int64_t state = state_at(at->schedule, position);
    at->held |= state == L_LEASED;
    if (state == L_READY || state == L_LEASED)
        return put(at, &at->by_clock, sb_system_clock() + HELD_NS, position);
    return true;
}

/* What has been published since we looked: false if another has taken our place. */
static bool read_on(service *at, sb_port *port)
{
    int64_t head = word_load(at->schedule->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
    int64_t tail = sb_port_true_tail(port);
    /* what was cancelled stays in a heap until its time: there may be more of that than of the
     * rest */
    if (at->by_clock.count + at->by_day.count > 2 * (tail - head) + STALE)
        start_again(at);
    if (at->read < head)
        at->read = head;
    for (int64_t count = 1; at->read < tail; at->read++, count++) {
        if (count % READ_AT_ONCE == 0 && !renew(at))
            return false;
        if (!keep(at, port, at->read))
            break; /* later */
    }
    return true;
}

/* --- moving ----------------------------------------------------------------------------------- */

/* Some that are due, and what becomes of them. */
typedef struct batch {
    sb_message messages[BATCH];
    operation operations[2 * BATCH];
    int64_t count;
} batch;

struct mover {
    pthread_t thread;
    service *services; /* with the connection's mutex */
    batch batch;
};

/* How many may be moved there now, of which this is the first: half of the room is left to others
 * who publish meanwhile, because what is decided has to wait if they take its own. */
static int64_t room_in(sb_queue *queue, lane *in, const sb_outgoing *first)
{
    int64_t most = queue->max_messages > 0 && queue->max_messages < queue->slots
                       ? queue->max_messages : queue->slots;
    int64_t room;
    do
        room = most - sb_port_window(&in->port);
    while (room <= 0 && !(queue->last_value && (room = queue_within(queue, in, first) == SB_OK)) &&
           queue_make_room(queue, in, first));
    room -= room / 2;
    return room < BATCH ? room : BATCH;
}

/* What a message of a schedule will be, as far as a limit looks at it. */
static sb_outgoing shape_of(const sb_message *message)
{
    sb_outgoing shape = {.length = message->length - L_SCHEDULED_BYTES};
    shape.key = sb_message_key(message, &shape.key_length);
    shape.properties = sb_message_properties(message, &shape.properties_length);
    return shape;
}

static bool is_due(const scheduled *read)
{
    if (read->time_of_day)
        return read->time_of_day <= realtime_ns();
    int64_t now = sb_system_clock();
    return read->not_before <= now || (read->expiry > 0 && read->expiry <= now);
}

static void forget_delay(sb_port *port, int64_t chunk, int64_t expiry)
{
    char *at = (char *)sb_port_arena_data(port) + chunk;
    word_store(at, L_CHUNK_NOT_BEFORE_AT, 0);
    word_store(at, L_CHUNK_EXPIRY_AT, expiry);
}

/* It lives from its time of day on, and that comes at another moment if the clock was set: not from
 * before that moment, and no longer than from now on. */
static int64_t expiry_of(const scheduled *read)
{
    int64_t now = sb_system_clock(), ttl = read->expiry - read->not_before;
    if (!read->time_of_day || read->expiry <= 0 || read->expiry >= SB_FOREVER)
        return read->expiry;
    int64_t from_due = now - (realtime_ns() - read->time_of_day) + ttl;
    int64_t latest = from_due > read->expiry ? from_due : read->expiry;
    return latest < now + ttl ? latest : now + ttl;
}

/* Take what is at this position, and make a chunk of it in the queue: SB_OK, SB_GONE if there is
 * nothing to move, or why it has to wait: for room, or for the journal. */
static int64_t prepare(service *at, lane *out, lane *in, int64_t position, batch *made)
{
    sb_message *message = &made->messages[made->count];
    scheduled read;
    if (!schedule_read(at->schedule, &out->port, position, message, &read) || !is_due(&read)) {
        keep(at, &out->port, position); /* it is gone, or not due: the clock was set */
        return SB_GONE;
    }
    if (!is_confirmed(at->schedule, position))
        return SB_UNCONFIRMED;
    const sb_outgoing shape = shape_of(message);
    int64_t code;
    do
        code = queue_within(at->queue, in, &shape);
    while (code == SB_FULL && queue_make_room(at->queue, in, &shape));
    /* a commit does not look at max_bytes: so one that is larger came here, or was in the queue */
    if (code != SB_OK && code != SB_TOO_LARGE)
        return code;
    if (!schedule_take(&out->port, message)) {
        keep(at, &out->port, position);
        return SB_GONE;
    }
    /* what is moved is in the arena already: no participant's part of it is a limit */
    int64_t *share = port_field(&in->port, L_PORT_SHARE), limit = *share;
    *share = 0;
    int64_t chunk =
        schedule_copy(&in->port, message, (const char *)message->body + L_SCHEDULED_BYTES,
                      message->length - L_SCHEDULED_BYTES);
    *share = limit;
    if (chunk < 0) {
        sb_port_give_back(&out->port, message);
        return chunk;
    }
    forget_delay(&in->port, chunk, expiry_of(&read));
    made->operations[made->count] =
        (operation){.queue = at->schedule, .where = position, .word = message->word};
    made->operations[BATCH + made->count++] =
        (operation){.queue = at->queue, .lane = in, .where = chunk};
    return SB_OK;
}

static int64_t commit(service *at, lane *out, lane *in, batch *made)
{
    memmove(made->operations + made->count, made->operations + BATCH,
            (size_t)made->count * sizeof(operation));
    int64_t code = commit_at_once(at->queue->connection, made->operations, 2 * made->count);
    for (int64_t each = 0; code != SB_OK && code != SB_UNFINISHED && each < made->count; each++) {
        sb_port_give_back(&out->port, &made->messages[each]);
        sb_port_unreserve(&in->port, made->operations[made->count + each].where);
        keep(at, &out->port, made->messages[each].position);
    }
    while (sb_port_reclaim(&out->port) > 0)
        ;
    sb_port_tell_producers(&out->port);
    return code;
}

static int64_t room_for(service *at, lane *out, lane *in, int64_t position, batch *made)
{
    sb_message *message = &made->messages[0];
    scheduled read;
    sb_outgoing shape = {0};
    if (schedule_read(at->schedule, &out->port, position, message, &read))
        shape = shape_of(message);
    return room_in(at->queue, in, &shape);
}

/* Move some of what is due: how many, or why they have to wait. */
static int64_t move_some(service *at, lane *out, lane *in, batch *made)
{
    int64_t code = SB_OK, room = -1, now = sb_system_clock();
    made->count = 0;
    while (code == SB_OK || code == SB_GONE) {
        heap *from = at->by_clock.count && at->by_clock.all[0].at <= now ? &at->by_clock
                     : at->by_day.count && at->by_day.all[0].at <= realtime_ns() ? &at->by_day
                                                                                 : NULL;
        if (!from || made->count == room)
            break;
        if (room < 0 && (room = room_for(at, out, in, from->all[0].position, made)) <= 0)
            return SB_FULL;
        due first = heap_pop(from);
        code = prepare(at, out, in, first.position, made);
        if (code < 0 && code != SB_GONE)
            put(at, from, first.at, first.position);
    }
    if (made->count == 0)
        return code == SB_GONE ? SB_OK : code;
    code = commit(at, out, in, made);
    return code == SB_OK ? made->count : code;
}

/* Messages that somebody took who is stopped are given back, so that others can move them. */
static void revoke_late(sb_port *port)
{
    uint64_t alive[L_PARTICIPANTS / 64];
    memset(alive, 0xFF, sizeof alive);
    sb_port_repair(port, alive, sb_system_clock() / 1000000, LEASE_MS);
}

/* A commit of our connection is decided and waits for room, perhaps for long, and before that none
 * of it is decided. */
static bool is_held_up(sb_connection *connection)
{
    pthread_mutex_lock(&connection->commit_mutex);
    bool is = connection->finished < connection->commits;
    pthread_mutex_unlock(&connection->commit_mutex);
    return is;
}

/* All that is due: 0, or when to try again because there was no room; SB_REVOKED if another
 * serves, or is to. */
static int64_t move_all(service *at, lane *out, lane *in)
{
    batch *made = &at->queue->connection->mover->batch;
    for (;;) {
        int64_t moved = move_some(at, out, in, made);
        if (moved == SB_OK || atomic_load(&at->queue->connection->closed))
            return 0;
        if (!renew(at))
            return SB_REVOKED;
        if (moved > 0) {
            at->retry_ns = RETRY_NS / 2;
            continue;
        }
        if (moved == SB_FULL && is_held_up(at->queue->connection))
            return SB_REVOKED; /* our claim runs out, and others find that */
        if (moved != SB_FULL && moved != SB_ARENA_FULL && moved != SB_NO_MEMORY &&
            moved != SB_UNCONFIRMED)
            log_note(at->queue->connection, "what is scheduled for queue '%s' cannot be moved: %s",
                     at->queue->name, sb_strerror(moved));
        at->retry_ns = 2 * at->retry_ns < RETRY_NS_MAX ? 2 * at->retry_ns : RETRY_NS_MAX;
        return sb_system_clock() + at->retry_ns;
    }
}

/* --- serving ---------------------------------------------------------------------------------- */

static int64_t earliest(service *at, int64_t retry)
{
    int64_t next = retry ? retry : SB_FOREVER, now = sb_system_clock();
    if (at->starved)
        next = now + HELD_NS;
    at->starved = false;
    if (!retry && at->by_clock.count)
        next = at->by_clock.all[0].at < next ? at->by_clock.all[0].at : next;
    if (!retry && at->by_day.count) {
        int64_t left = at->by_day.all[0].at - realtime_ns();
        left = left < 0 ? 0 : left > DAY_NS ? DAY_NS : left;
        next = now + left < next ? now + left : next;
    }
    return next == SB_FOREVER ? 0 : next > 1 ? next : 2; /* it may have been due before this boot */
}

static void serve(service *at, lane *out, lane *in)
{
    int64_t retry = SB_REVOKED;
    if (at->held)
        revoke_late(&out->port);
    at->held = at->noted = false;
    at->serves = true;
    if (read_on(at, &out->port))
        retry = move_all(at, out, in);
    if (retry == SB_REVOKED) {
        at->serves = false;
        return;
    }
    int64_t next = at->noted ? sb_system_clock() : earliest(at, retry);
    /* noted meanwhile: then the word is that message's time, and ours if it is before */
    if (!sb_due_settle(due_word(at->schedule), at->claim, next) && next)
        sb_due_note(due_word(at->schedule), next);
}

/* Serve the schedule if it is our turn: when to look again. */
static int64_t attend(service *at, uint32_t *bits)
{
    int64_t code, now = sb_system_clock();
    sb_connection *connection = at->queue->connection;
    int64_t word = word_load(at->schedule->ring.memory, L_RING_DUE_AT);
    *bits |= at->serves ? schedule_bell_bit(at->schedule->reference) : SCHEDULE_OTHERS;
    if (word == 0)
        return SB_FOREVER;
    int64_t due = word & ~L_DUE_CLAIMED;
    int64_t turn = at->serves && due == word ? due : due + GRACE_NS;
    if (now < turn)
        return at->serves || turn < now + STANDBY_NS ? turn : now + STANDBY_NS;
    if (!at->serves)
        connection->duties->repair(connection); /* whoever should have done it may be dead */
    lane *out = lane_beside(at->schedule, &code);
    lane *in = out ? lane_beside(at->queue, &code) : NULL;
    if (in && (at->claim = sb_due_claim(due_word(at->schedule), word, now + CLAIM_NS)))
        serve(at, out, in);
    else if (word_load(at->schedule->ring.memory, L_RING_DUE_AT) & L_DUE_CLAIMED)
        at->serves = false; /* another was faster */
    if (in)
        lane_part(in);
    if (out)
        lane_part(out);
    if (!in)
        return now + HELD_NS; /* all lanes are in use, or the queue is gone */
    return now; /* and see what the word says now */
}

static void drop(sb_connection *connection, service *gone)
{
    pthread_mutex_lock(&connection->mutex);
    for (service **at = &connection->mover->services; *at; at = &(*at)->next)
        if (*at == gone) {
            *at = gone->next;
            break;
        }
    queue_looked(gone->queue);
    queue_looked(gone->schedule);
    pthread_mutex_unlock(&connection->mutex);
    free(gone->by_clock.all);
    free(gone->by_day.all);
    free(gone);
    deleted_forget(connection, true); /* and its memory waits for us no longer */
}

static service *first_service(sb_connection *connection)
{
    pthread_mutex_lock(&connection->mutex);
    service *first = connection->mover->services;
    pthread_mutex_unlock(&connection->mutex);
    return first;
}

static void *work(void *argument)
{
    sb_connection *connection = argument;
    while (!atomic_load(&connection->closed)) {
        uint32_t seen = atomic_load(schedule_bell(connection)), bits = SCHEDULE_OTHERS;
        int64_t until = SB_FOREVER, code;
        for (service *each = first_service(connection), *next; each; each = next) {
            next = each->next; /* new ones come before the first */
            int64_t at = SB_FOREVER;
            if (queue_is_usable(each->queue, &code) && queue_is_usable(each->schedule, &code))
                at = attend(each, &bits);
            else if (!atomic_load(&connection->closed))
                drop(connection, each);
            until = at < until ? at : until;
        }
        if (!atomic_load(&connection->closed) && until > sb_system_clock())
            sleep_until(connection, seen, until, bits);
    }
    return NULL;
}

/* --- beginning and end ------------------------------------------------------------------------ */

static int64_t begin(sb_connection *connection)
{
    struct mover *made = calloc(1, sizeof *made);
    if (!made)
        return fail_system("memory for a mover");
    connection->mover = made;
    int64_t code = thread_start(&made->thread, work, connection, "what is scheduled");
    if (code == SB_OK) {
        pthread_setname_np(made->thread, "shmbroker-mover");
        return SB_OK;
    }
    connection->mover = NULL;
    free(made);
    return code;
}

void mover_attend(sb_queue *queue, bool serves)
{
    int64_t code, no = 0;
    sb_connection *connection = queue->connection;
    if (connection->id == 0 || atomic_load(&queue->attended))
        return;
    sb_queue *schedule = schedule_of(queue, false, &code);
    sb_queue *to = schedule && queue->pages ? inbox_of(queue, true, &code) : queue;
    if (!schedule || !to || !atomic_compare_exchange_strong(&queue->attended, &no, 1))
        return;
    service *made = calloc(1, sizeof *made);
    if (made)
        *made = (service){.queue = to, .schedule = schedule, .serves = serves,
                       .retry_ns = RETRY_NS / 2};
    queue_note_use(queue, L_USE_SERVES);
    queue_note_use(schedule, L_USE_SERVES);
    pthread_mutex_lock(&connection->mutex);
    bool works = made && atomic_load(&connection->closed) == SB_OK &&
                 (connection->mover || begin(connection) == SB_OK);
    if (works) {
        made->next = connection->mover->services;
        connection->mover->services = made;
        atomic_fetch_add(&to->looks, 1); /* until the service is dropped */
        atomic_fetch_add(&schedule->looks, 1);
    } else {
        free(made);
        atomic_store(&queue->attended, 0); /* try again, or leave it to others */
    }
    pthread_mutex_unlock(&connection->mutex);
    if (works)
        schedule_ring(connection, schedule->reference, true);
}

void mover_end(sb_connection *connection)
{
    struct mover *mover = connection->mover;
    if (!mover)
        return;
    schedule_ring(connection, 0, true);
    while (pthread_tryjoin_np(mover->thread, NULL) == EBUSY) {
        _Atomic uint32_t *bell = schedule_bell(connection);
        atomic_fetch_add(bell, 1);
        syscall(SYS_futex, bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        const struct timespec pause = {0, 100000};
        nanosleep(&pause, NULL);
    }
    while (mover->services) {
        service *last = mover->services;
        mover->services = last->next;
        if (last->serves && word_load(last->schedule->ring.memory, L_RING_DUE_AT)) {
            sb_due_note(due_word(last->schedule), 0); /* another is to take our place at once */
            schedule_ring(connection, last->schedule->reference, true);
        }
        free(last->by_clock.all);
        free(last->by_day.all);
        free(last);
    }
    free(mover);
    connection->mover = NULL;
}

void mover_repair(sb_connection *connection)
{
    void *catalog = connection->catalog.memory;
    int64_t row = 0, code;
    while ((row = sb_row_next(catalog, L_QUEUES, row)) >= 0) {
        sb_queue *schedule = NULL, *queue = NULL;
        int64_t flags = word_load(catalog, sb_catalog_entry_at(L_QUEUES, row) + L_QUEUE_FLAGS_AT);
        int64_t reference = sb_row_reference(catalog, L_QUEUES, row++);
        if (!(flags & L_QUEUE_SCHEDULE) || reference < 0)
            continue;
        pthread_mutex_lock(&connection->mutex);
        code = queue_handle(connection, reference, &schedule);
        if (code == SB_OK)
            code = queue_handle(connection, setting(schedule, L_SETTING_SCHEDULE_OF_AT), &queue);
        if (code == SB_OK)
            atomic_fetch_add(&queue->looks, 1);
        pthread_mutex_unlock(&connection->mutex);
        if (code != SB_OK)
            continue;
        mover_attend(queue, false);
        queue_looked(queue);
    }
}
