/* A stream's entry in the table of origins of a ring: found or made, owned, forgotten. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "paging/paging.h"
#include "ring/ring.h"
#include "sink/sink.h"
#include "vhost/vhost.h"

#define FIRST_ORIGINS (L_PAGE_BYTES / L_ORIGIN_BYTES)
#define REPAIR_NS INT64_C(5000000000) /* how long whoever repairs a dead owner may take */
#define NAP_NS 1000000

/* Put memory behind more entries: the catalog's lock is held. */
static int64_t table_grow(sb_queue *queue)
{
    void *ring = queue->ring.memory;
    int64_t made = word_load(ring, L_RING_ORIGINS_MADE_AT);
    int64_t most = word_load(ring, L_RING_ORIGINS_AT);
    int64_t more = made ? made : FIRST_ORIGINS;
    more = made + more < most ? more : most - made;
    if (more <= 0)
        return fail(SB_NO_PRODUCER, "queue '%s' knows %lld streams from elsewhere, and has room "
                    "for no more: let them be forgotten earlier", queue->name, (long long)made);
    int64_t start = sb_ring_origins_at(queue->slots, word_load(ring, L_RING_IDS_AT));
    int64_t code = ring_allocate(queue, start + made * L_ORIGIN_BYTES, more * L_ORIGIN_BYTES,
                                 "streams");
    if (code != SB_OK)
        return code;
    word_store(ring, L_RING_ORIGINS_MADE_AT, made + more);
    return SB_OK;
}

void identity_of(const int64_t of[2], int64_t number, int64_t identity[2])
{
    uint64_t hash[2];
    siphash_128(of, (const char *)&number, sizeof number, hash);
    identity[0] = (int64_t)hash[0];
    identity[1] = (int64_t)hash[1];
}

int64_t outlet_place(sb_queue *queue, sb_port *port)
{
    int64_t entry = sb_port_origin_unused(port);
    if (entry == 0 && sb_port_true_tail(port) >= 0 &&
        sb_port_origins_forget(port, realtime_ns()) > 0)
        entry = sb_port_origin_unused(port);
    if (entry == 0) {
        int64_t code = table_grow(queue);
        entry = code == SB_OK ? sb_port_origin_unused(port) : code;
    }
    return entry;
}

static int64_t entry_made(sb_sink *sink, sb_queue *queue, sb_port *port, const int64_t identity[2])
{
    int64_t tail = sb_port_true_tail(port), code = SB_OK;
    int64_t entry = tail < 0 ? tail : outlet_place(queue, port);
    if (entry > 0)
        code = sb_port_origin_begin(port, entry, identity[0], identity[1], tail, 0,
                                    sink->rings_count);
    return code == SB_OK ? entry : code;
}

/* Ours from now on: the entry, SB_IN_USE, or another code. */
static int64_t entry_owned(sb_sink *sink, sb_queue *queue, sb_port *port, const int64_t identity[2])
{
    int64_t id = sink->connection->id, code = connection_lock(sink->connection);
    if (code != SB_OK)
        return code;
    int64_t entry = sb_port_origin_find(port, identity[0], identity[1]);
    if (entry == 0)
        entry = entry_made(sink, queue, port, identity);
    if (entry > 0 && sb_port_origin_is_counted(port, entry) != sink->rings_count)
        entry = fail(SB_INVALID, "queue '%s': the numbers of this stream %s have gaps",
                     queue->name, sink->rings_count ? "may" : "do not");
    if (entry > 0 && !sb_port_origin_own(port, entry, 0, id, realtime_ns()))
        entry = SB_IN_USE;
    if (entry > 0)
        sb_port_origin_keep(port, entry, sink->retention_ns);
    connection_unlock(sink->connection);
    return entry;
}

/* Whether whoever had the entry is dead, or has left it meanwhile. */
static bool is_orphan(const sb_sink *sink, sb_port *port, const int64_t identity[2])
{
    int64_t entry = sb_port_origin_find(port, identity[0], identity[1]);
    int64_t owner = entry > 0 ? sb_port_origin_owner(port, entry) : 0;
    return owner <= 0 || !participant_runs(sink->connection, owner);
}

/* The same; of a dead owner when its death is repaired, by us or by whoever is at it. */
static int64_t entry_inherited(sb_sink *sink, sb_queue *queue, sb_port *port,
                               const int64_t identity[2])
{
    const struct timespec nap = {0, NAP_NS};
    int64_t end = sb_system_clock() + REPAIR_NS;
    int64_t entry = entry_owned(sink, queue, port, identity);
    while (entry == SB_IN_USE && is_orphan(sink, port, identity) && sb_system_clock() < end) {
        sink->connection->duties->repair(sink->connection);
        entry = entry_owned(sink, queue, port, identity);
        if (entry == SB_IN_USE)
            nanosleep(&nap, NULL);
    }
    return entry;
}

static int64_t stream_begun(sb_sink *sink, sb_queue *queue, const int64_t identity[2], outlet *made)
{
    sb_port port;
    int64_t entry = sb_port_to_look(queue, &port);
    if (entry == SB_OK)
        entry = entry_inherited(sink, queue, &port, identity);
    if (entry == SB_IN_USE)
        return fail(entry, "queue '%s': another participant pours this stream, and is alive",
                    queue->name);
    if (entry < 0)
        return entry;
    made->origin = entry;
    made->last = sb_port_producer_last(&port, entry);
    if (sink->rings_count && made->last >= 0)
        sb_port_numbers_settle(&port, entry);
    return made->last < 0 ? made->last : SB_OK;
}

int64_t outlet_open_as(sb_sink *sink, sb_queue *queue, const int64_t identity[2], outlet **opened)
{
    int64_t code;
    outlet *made = calloc(1, sizeof *made);
    if (!made)
        return fail_system("memory for a stream");
    if (queue_look(queue, &code)) {
        queue_note_use(queue, L_USE_PRODUCES);
        code = stream_begun(sink, queue, identity, made);
        queue_looked(queue);
    }
    if (code != SB_OK) {
        free(made);
        return code;
    }
    made->queue = queue;
    made->checks = sink->checks;
    made->counts = sink->rings_count;
    sb_share_queue(queue);
    *opened = made;
    return SB_OK;
}

int64_t outlet_inbox(sb_sink *sink, outlet *of, bool makes, outlet **inbox)
{
    int64_t code = SB_OK;
    sb_queue *queue = of->inbox || !of->queue->pages ? NULL : inbox_of(of->queue, makes, &code);
    if (queue && code == SB_OK)
        code = outlet_open_as(sink, queue, sink->identity, &of->inbox);
    if (queue && code == SB_OK) {
        of->inbox->target = of->target;
        of->inbox->passes_on = of->passes_on;
    }
    if (queue && code == SB_OK && !of->counts && of->inbox->last > of->last)
        of->last = of->inbox->last;
    *inbox = of->inbox;
    return code;
}

int64_t outlet_open(sb_sink *sink, sb_queue *queue, int64_t target, outlet **opened)
{
    outlet *made = sink->outlets, *inbox;
    int64_t identity[2] = {sink->identity[0], sink->identity[1]};
    while (made && (made->queue != queue || made->target != target))
        made = made->next;
    *opened = made;
    if (made)
        return SB_OK;
    if (target && !leads_to_agent(queue->name)) /* there the target only says how far it may go */
        identity_of(sink->identity, target, identity);
    int64_t code = outlet_open_as(sink, queue, identity, &made);
    if (code != SB_OK)
        return code;
    made->target = target;
    made->passes_on = !target && leads_to_node(queue->name);
    code = outlet_inbox(sink, made, false, &inbox);
    if (code != SB_OK) {
        outlet_close(made, false);
        return code;
    }
    made->next = sink->outlets;
    sink->outlets = *opened = made;
    return SB_OK;
}

int64_t outlet_pass(outlet *of, int64_t sequence)
{
    sb_port port;
    int64_t code;
    if (!queue_look(of->queue, &code))
        return code;
    code = sb_port_to_look(of->queue, &port);
    if (code == SB_OK)
        code = sb_port_origin_pass(&port, of->origin, sequence);
    queue_looked(of->queue);
    if (code == SB_OK && of->last < sequence)
        of->last = sequence;
    return code;
}

static void entry_left(const outlet *of, bool forgets)
{
    sb_connection *connection = of->queue->connection;
    sb_port port;
    int64_t code;
    if (!queue_look(of->queue, &code))
        return;
    if (sb_port_to_look(of->queue, &port) == SB_OK) {
        forgets = forgets && sb_port_true_tail(&port) >= 0 && connection_lock(connection) == SB_OK;
        sb_port_origin_own(&port, of->origin, connection->id, 0, realtime_ns());
        if (forgets) {
            sb_port_origin_forget(&port, of->origin);
            connection_unlock(connection);
        }
    }
    queue_looked(of->queue);
}

void outlet_close(outlet *closed, bool forgets)
{
    if (closed->inbox)
        outlet_close(closed->inbox, forgets);
    if (closed->tried)
        outlet_close(closed->tried, forgets);
    entry_left(closed, forgets);
    sb_close_queue(closed->queue);
    free(closed);
}

void full_at(sb_sink *sink, sb_queue *queue)
{
    sb_queue *former = sink->full;
    if (former == queue)
        return;
    if (queue)
        sb_share_queue(queue);
    sink->full = queue;
    if (former)
        sb_close_queue(former);
}

static bool is_destination(const sb_sink *sink, const outlet *one)
{
    const destination *each = sink->destinations;
    while (each && each->ring != one)
        each = each->next;
    return each;
}

void outlets_forget_deleted(sb_sink *sink)
{
    for (outlet **at = &sink->outlets, *each; (each = *at);) {
        if (!queue_is_gone(each->queue) || is_destination(sink, each)) {
            at = &each->next;
            continue;
        }
        *at = each->next;
        outlet_close(each, false);
    }
}
