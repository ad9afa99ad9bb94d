/* A queue that pages, and its inbox: how order is kept.
 *
 *     producers ──► ring ──► consumers                     as long as there is room
 *
 *     producers ──► inbox ──► pager ──► page files
 *                               │            │
 *                               └──► ring ◄──┘ ──► consumers     from the first that found none, on
 *
 * The inbox is a ring of its own, made when it is needed first: a queue without a name for people,
 * whose settings say whose it is.  Nobody takes from it; the pager (pager.py) follows it by a
 * lasting gate, and whatever is below the gate is in a page file or in the queue's ring.  The pager
 * is then the only one who publishes in the ring, so all is in the order of the inbox.
 *
 * Whether the queue pages is the inbox's paging word (core/paging.py).
 *
 * A message in the inbox is as it will be in the ring, with its expiry: it expires there.
 *
 * The inbox of a durable queue is durable, too: the journal follows it by its first gate, and the
 * pager by the second, never ahead of the first.  So what is published there is confirmed by the
 * journal, as in any durable queue, and happens as a whole with its transaction; nothing is in a
 * page file that is not, or was not, in the journal.  The pager's gate lets it be retired there: it
 * is moved when the message is in a file that is synced, or in the ring and in the journal again.
 *
 * A position in the inbox has the bit above all positions when it is answered, so that whoever
 * waits until it is confirmed knows in which of the two. */

#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "paging/paging.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define PAGER 1               /* its number among producers: nobody else is numbered in that ring */

#define SLOTS 4096            /* what the pager takes up in a millisecond or two */

#define SLICE_NS 100000000    /* who waits for room looks so often whether there can be any */

#define PURGE_NS INT64_C(10000000000)

#define PURGE_NAP_NS 1000000

/* In the inbox: the code and, if something was published, the word is moved. */
typedef int64_t (*publish_there)(sb_queue *inbox, void *what, int64_t timeout_ns);

typedef struct several {
    const char *bodies;
    const int64_t *lengths;
    int64_t count, done;
} several;

void inbox_restored(void *inbox, int64_t reference, char *name, void *ring, int64_t of)
{
    beside_name(name, L_QUEUE_INBOX, of);
    word_store(inbox, L_SETTING_INBOX_OF_AT, of);
    word_store(inbox, L_RING_PAGING_AT, 1); /* until the pager has looked */
    word_store(ring, L_RING_INBOX_AT, reference);
    /* while it was restored, all below the journal's gate was retired: now also this one's is */
    ring_add_gate(inbox, L_GATE_PAGER, word_load(inbox, L_RING_HEAD_AT) & L_POSITION_MASK);
}

static int64_t make(sb_queue *queue, const char *name)
{
    char page[L_RING_GATES_AT] = "";
    word_store(page, L_SETTING_INBOX_OF_AT, queue->reference);
    word_store(page, L_SETTING_MAX_BYTES_AT, queue->max_bytes);
    word_store(page, L_SETTING_DURABLE_AT, sb_is_durable(queue));
    word_store(page, L_SETTING_REPLICATE_AT, setting(queue, L_SETTING_REPLICATE_AT));
    return queue_add(queue->connection, name, SLOTS, page, L_QUEUE_INBOX);
}

/* What is published there is for the queue. */
static void inherit(sb_queue *inbox, const sb_queue *queue)
{
    inbox->ttl_ns = queue->ttl_ns;
    inbox->ttl_min_ns = queue->ttl_min_ns;
    inbox->ttl_max_ns = queue->ttl_max_ns;
    inbox->grouped = queue->grouped;
    inbox->max_producer_bytes = queue->max_producer_bytes;
}

static const beside INBOX = {.flag = L_QUEUE_INBOX, .word_at = L_RING_INBOX_AT,
                             .whose_at = L_SETTING_INBOX_OF_AT, .noun = "inbox", .make = make,
                             .inherit = inherit};

sb_queue *inbox_of(sb_queue *queue, bool makes, int64_t *code)
{
    sb_queue *inbox = atomic_load(&queue->inbox);
    *code = SB_OK;
    if (inbox)
        return inbox;
    bool is_new = makes && word_load(queue->ring.memory, L_RING_INBOX_AT) == 0;
    inbox = beside_of(queue, &queue->inbox, &INBOX, makes, code);
    if (is_new && word_load(queue->ring.memory, L_RING_INBOX_AT) != 0)
        pager_ring(inbox); /* it is to follow one more */
    return inbox;
}

/* --- whether it pages ------------------------------------------------------------------------- */

bool is_paging(sb_queue *queue)
{
    int64_t code;
    sb_queue *inbox = queue->pages ? inbox_of(queue, false, &code) : NULL;
    return inbox && sb_paging_seen(inbox->ring.memory) != 0;
}

void inbox_noted(sb_queue *ring)
{
    if (setting(ring, L_SETTING_INBOX_OF_AT))
        sb_paging_note(ring->ring.memory);
}

void inbox_look(sb_queue *queue)
{
    if (is_paging(queue))
        pager_ring(atomic_load(&queue->inbox));
}

int64_t inbox_passed(sb_queue *inbox, sb_port *of)
{
    int64_t next = word_load(inbox->ring.memory, L_RING_PAGED_NEXT_AT);
    int64_t last = sb_port_producer_last(of, PAGER);
    return last > next ? last : next; /* it puts a message into the ring, and then says so */
}

int64_t inbox_count(sb_port *inbox, int64_t passed)
{
    int64_t tail = sb_port_true_tail(inbox);
    return tail > passed ? tail - passed : 0;
}

sb_queue *inbox_of_position(sb_queue *queue, int64_t *position)
{
    int64_t code;
    if (*position < 0 || !(*position & L_IN_INBOX))
        return NULL;
    *position &= L_POSITION_MASK;
    return inbox_of(queue, false, &code);
}

bool inbox_is_empty(sb_queue *queue)
{
    int64_t code;
    sb_port port, in;
    sb_queue *inbox = queue->pages ? beside_handle(queue, &queue->inbox, &INBOX, &code) : NULL;
    return !inbox || (sb_paging_seen(inbox->ring.memory) == 0 &&
                      sb_port_to_look(queue, &port) == SB_OK &&
                      sb_port_to_look(inbox, &in) == SB_OK &&
                      inbox_count(&in, inbox_passed(inbox, &port)) == 0);
}

/* --- publishing ------------------------------------------------------------------------------- */

int64_t inbox_admits(const sb_queue *queue, const sb_outgoing *message)
{
    /* who publishes through an exchange with an agent need not know: the other broker compares */
    if (message->producer || (message->id_length && !leads_to_agent(queue->name)))
        return fail(SB_INVALID,
                    "queue '%s' pages, and what is in its pages is not compared: publish "
                    "without an id, and without a named producer",
                    queue->name);
    return SB_OK;
}

int64_t inbox_explain(sb_queue *inbox)
{
    if (word_load(inbox->ring.memory, L_RING_PAGES_CODE_AT) == SB_DISK_FULL)
        return fail(SB_DISK_FULL,
                    "queue '%s' is full and pages, and there is no room for its pages: "
                    "make room on the disk of the store, and it goes on",
                    inbox->name);
    if (!participant_pager_runs(inbox->connection))
        return fail(SB_FULL, "queue '%s' is full and pages, and no broker with a store is running "
                    "that writes its pages", inbox->name);
    return fail(SB_FULL,
                "queue '%s' is full and pages, and messages came faster than its pages are "
                "written: wait longer",
                inbox->name);
}

static int64_t publish_in_inbox(sb_queue *queue, publish_there publish, void *what,
                                int64_t timeout_ns)
{
    int64_t code, deadline = timeout_ns ? monotonic_deadline(timeout_ns) : 0;
    sb_queue *inbox = inbox_of(queue, true, &code);
    if (!inbox)
        return code;
    inbox_noted(inbox);
    code = publish(inbox, what, 0);
    while (code == SB_FULL && timeout_ns != 0) {
        int64_t left = deadline - sb_system_clock();
        if (left <= 0)
            break;
        code = publish(inbox, what, left < SLICE_NS ? left : SLICE_NS);
    }
    if (code > 0 || code == SB_OK)
        inbox_noted(inbox);
    return queue_published(queue, code);
}

static int64_t publish_one(sb_queue *ring, void *what, int64_t timeout_ns)
{
    return explained(ring, ring_publish(ring, what, timeout_ns));
}

int64_t inbox_publish(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns)
{
    int64_t code = inbox_admits(queue, message);
    if (code != SB_OK || !queue_look(queue, &code))
        return code;
    code = is_paging(queue) ? SB_FULL : explained(queue, ring_publish(queue, message, 0));
    if (code == SB_FULL) {
        code = publish_in_inbox(queue, publish_one, (void *)message, timeout_ns);
        code = code >= 0 && sb_is_durable(queue) ? code | L_IN_INBOX : code;
    }
    queue_looked(queue);
    return code;
}

static int64_t publish_rest(sb_queue *ring, void *what, int64_t timeout_ns)
{
    several *all = what;
    int64_t code = explained(ring, ring_publish_many(ring, all->bodies, all->lengths + all->done,
                                                     all->count - all->done, timeout_ns));
    for (int64_t each = 0; each < code; each++)
        all->bodies += all->lengths[all->done++];
    if (code > 0)
        inbox_noted(ring);
    return all->done < all->count && code >= 0 ? SB_FULL : code;
}

int64_t inbox_publish_many(sb_queue *queue, const void *bodies, const int64_t *lengths,
                           int64_t count, int64_t timeout_ns)
{
    several all = {.bodies = bodies, .lengths = lengths, .count = count};
    int64_t code;
    if (!queue_look(queue, &code))
        return code;
    code = is_paging(queue) ? SB_FULL : publish_rest(queue, &all, 0);
    if (code == SB_FULL && all.done < count)
        code = publish_in_inbox(queue, publish_rest, &all, timeout_ns);
    queue_looked(queue);
    return all.done > 0 ? all.done : code;
}

/* --- purging ---------------------------------------------------------------------------------- */

int64_t inbox_purge(sb_queue *queue)
{
    int64_t code;
    sb_port port;
    sb_queue *inbox = inbox_of(queue, false, &code);
    if (!inbox || (code = sb_port_to_look(inbox, &port)) != SB_OK)
        return code;
    char *ring = inbox->ring.memory;
    _Atomic int64_t *below = (_Atomic int64_t *)(ring + L_RING_PURGE_AT);
    int64_t purged = word_load(ring, L_COUNTER_PURGED_AT), seen = atomic_load(below);
    int64_t tail = sb_port_true_tail(&port), deadline = monotonic_deadline(PURGE_NS);
    while (seen < tail && !atomic_compare_exchange_weak(below, &seen, tail))
        ;
    while (word_load(ring, L_RING_PAGED_NEXT_AT) < tail) {
        const struct timespec nap = {0, PURGE_NAP_NS};
        if (!participant_pager_runs(queue->connection) || sb_system_clock() > deadline)
            return fail(SB_UNCONFIRMED, "queue '%s': what is in its pages is dropped as soon as a "
                        "broker with a store is there", queue->name);
        pager_ring(inbox);
        nanosleep(&nap, NULL);
        if (!queue_is_usable(queue, &code))
            return code;
    }
    return word_load(ring, L_COUNTER_PURGED_AT) - purged;
}
