/* Records go through an exchange: each ring of their route drops what it has, and how far the
 * stream is in the exchange moves when all of them have a record, or none wants it.
 *
 * Records with the same key and properties have one route; those that follow each other go there
 * together.  How far streams are in exchanges is kept in the table of origins of a queue that has
 * no messages of programs: an entry for each stream and exchange.  It may be behind after a death,
 * never ahead: then some records are looked at once more, and the rings know them.
 *
 * Of a stream of which each number comes (counted.c) only the marks say what is open.  They move
 * past a gap before any ring gets a later message.  Rings cannot say whether they have a number
 * that is retried: they have later ones.  So it goes to each of them as a stream of its own, of
 * this one number, which is forgotten when all have it.  A number that the route may have had in
 * part when somebody died (`tried`: noted before a route gets records), and that was left out then,
 * is in doubt for good: its retry is SB_UNCONFIRMED. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "queue/queue.h"
#include "ring/ring.h"
#include "sink/sink.h"
#include "vhost/vhost.h"

#define MARKS "$sink.marks"
#define TOGETHER 512
#define ALONE_NS INT64_C(3600000000000) /* as long is a number kept that was retried */

/* Records of one route. */
typedef struct bundle {
    const char *at, *end;
    int64_t count;
    int64_t sequences[TOGETHER], refused[TOGETHER];
    const char *ends[TOGETHER];
    sb_outgoing first;
} bundle;

static bool is_same_route(const destination *to, const sb_outgoing *one, const sb_outgoing *other)
{
    if (one->target != other->target) /* of a node; or it has been elsewhere */
        return false;
    if (to->is_node && !is_for_exchange(one->target))
        return true;
    return one->key_length == other->key_length &&
           one->properties_length == other->properties_length &&
           memcmp(one->key, other->key, (size_t)one->key_length) == 0 &&
           memcmp(one->properties, other->properties, (size_t)one->properties_length) == 0;
}

/* The next records of one route. */
static int64_t bundle_next(bundle *made, const destination *to, const stretch *part)
{
    poured_record record;
    sb_outgoing message;
    int64_t code = SB_OK;
    made->at = made->end = part->at;
    for (made->count = 0; made->count < TOGETHER; made->count++) {
        code = record_next(made->end, part->end, &record);
        if (code != SB_OK || !record.is_message ||
            (part->sink->counts && made->count > 0 &&
             record.sequence != made->sequences[made->count - 1] + 1))
            break;
        int64_t wrong = record_outgoing(&record, part->later, &message);
        if (made->count > 0 && (wrong != SB_OK || !is_same_route(to, &made->first, &message)))
            break;
        if (made->count == 0 && wrong == SB_OK)
            made->first = message;
        made->end = made->ends[made->count] = record.next;
        made->sequences[made->count] = record.sequence;
        if (wrong != SB_OK) { /* it is refused, alone */
            made->refused[made->count++] = wrong;
            return SB_OK;
        }
        made->refused[made->count] = SB_OK;
    }
    return code == SB_EMPTY || made->count > 0 ? SB_OK : code;
}

/* Why the next record of a bundle waits, or is refused where the sink stops. */
typedef struct obstacle {
    int64_t code;
    bool is_refused;
} obstacle;

/* All of a bundle that is not known goes to one queue: how many records of it are dealt with.
 * `target`: of the queue towards another node. */
static int64_t append_to(stretch *part, bundle *all, sb_queue *queue, int64_t target, obstacle *met)
{
    int64_t answers[TOGETHER];
    sb_poured told = {0};
    outlet *to;
    *met = (obstacle){outlet_open(part->sink, queue, target, &to)};
    stretch there = {.sink = part->sink, .at = all->at, .end = all->end, .later = part->later,
                     .deadline = part->deadline, .answers = answers, .told = &told,
                     .journey = part->journey};
    if (met->code == SB_OK)
        *met = (obstacle){outlet_append(to, &there), part->sink->stops && told.refused > 0};
    if (has_no_room(met->code) && !met->is_refused)
        full_at(part->sink, to->queue);
    int64_t done = there.answers - answers;
    for (int64_t each = 0; each < done; each++)
        if (answers[each] < 0 && answers[each] != SB_DUPLICATE)
            all->refused[each] = answers[each];
    return done;
}

/* Behind an exchange: of a queue that was deleted since nobody wants it there. */
static int64_t append_bundle(stretch *part, bundle *all, const kept_route *route, int64_t each,
                             obstacle *met)
{
    int64_t done = append_to(part, all, route->queues[each], route->targets[each], met);
    if (met->code != SB_NOT_FOUND)
        return done;
    met->code = SB_OK;
    return all->count;
}

/* These records of a bundle are dealt with: the mark moves, and then they are answered. */
static int64_t bundle_done(destination *to, stretch *part, const bundle *all, int64_t done,
                           int64_t queues)
{
    if (done == 0)
        return SB_OK;
    int64_t code = outlet_pass(to->ring, all->sequences[done - 1]);
    if (code != SB_OK)
        return code;
    for (int64_t each = 0; each < done; each++) {
        *part->answers++ = all->refused[each] != SB_OK ? all->refused[each] : queues;
        part->told->appended += all->refused[each] == SB_OK;
        part->told->refused += all->refused[each] != SB_OK;
    }
    part->at = all->ends[done - 1];
    return SB_OK;
}

static int64_t stopped(stretch *part, int64_t code)
{
    part->told->refused = 1;
    return code;
}

static bool is_taken(const kept_route *route, int64_t count, int64_t wishes)
{
    for (int64_t each = 0; each < count; each++)
        if (route_takes(route, each, wishes))
            return true;
    return false;
}

static int64_t exchange_bundle(destination *to, sb_exchange *exchange, stretch *part, bundle *all)
{
    kept_route *route;
    obstacle first = {SB_OK}, met;
    const outlet *newest = part->sink->outlets;
    int64_t least = all->count;
    if (all->refused[0] != SB_OK && part->sink->stops)
        return stopped(part, all->refused[0]);
    if (all->refused[0] != SB_OK)
        return bundle_done(to, part, all, 1, 0);
    int64_t code = part->sink->journey ? journey_read(part->sink, &all->first) : SB_OK;
    if (code == SB_DUPLICATE) /* it was here, and was published when it was */
        return bundle_done(to, part, all, all->count, 0);
    if (code != SB_OK)
        return stopped(part, code);
    part->journey = part->sink->journey;
    int64_t wishes = part->journey ? journey_wishes(part->journey) : 0;
    int64_t count = exchange_route_wished(exchange, &all->first, wishes, &route);
    if (count < 0)
        return count;
    if (wishes && !is_taken(route, count, wishes)) {
        route_leave(route);
        return stopped(part, fail(SB_UNROUTABLE, "no binding takes a message of exchange '%s'",
                                  sb_exchange_name(exchange)));
    }
    for (int64_t each = 0; each < count; each++) {
        if (part->journey &&
            (!route_takes(route, each, wishes) ||
             !journey_goes_on(part->journey, route->queues[each], route->targets[each])))
            continue;
        int64_t done = append_bundle(part, all, route, each, &met);
        /* one that is full comes before one that refuses: then all others have the record */
        if (met.code != SB_OK &&
            (done < least || first.code == SB_OK || (done == least && first.is_refused)))
            first = met;
        least = done < least ? done : least;
    }
    route_leave(route);
    if (part->sink->outlets != newest) /* where queues come, others go */
        outlets_forget_deleted(part->sink);
    code = bundle_done(to, part, all, least, count);
    if (code != SB_OK)
        return code;
    return first.is_refused ? stopped(part, first.code) : first.code;
}

/* To the one queue that it is for. */
static int64_t queue_bundle(destination *to, sb_queue *queue, stretch *part, bundle *all)
{
    obstacle met;
    int64_t done = append_to(part, all, queue, 0, &met);
    if (met.code == SB_NOT_FOUND)
        return SB_NOT_FOUND;
    int64_t code = bundle_done(to, part, all, done, 1);
    if (code != SB_OK)
        return code;
    return met.is_refused ? stopped(part, met.code) : met.code;
}

/* Nobody waits for these any more: the queue of the marks counts them. */
static int64_t replies_dropped(destination *to, stretch *part, const bundle *all)
{
    int64_t code = bundle_done(to, part, all, all->count, 0);
    for (int64_t each = 0; each < all->count && code == SB_OK; each++)
        ring_count(part->sink->marks, L_COUNTER_DROPPED_AT);
    return code;
}

/* To the queue or exchange that it is for.  If that is not there, it is refused, and whoever has
 * sent it routes it anew: nothing but replies is dropped. */
static int64_t target_bundle(destination *to, stretch *part, bundle *all)
{
    sb_queue *queue;
    sb_exchange *exchange;
    int64_t target = all->first.target, code = SB_NOT_FOUND;
    if (all->refused[0] != SB_OK)
        return stopped(part, all->refused[0]);
    for (int tries = 0; code == SB_NOT_FOUND && tries < 2; tries++) {
        code = target_look(to, part->sink, target, &queue, &exchange);
        if (code != SB_OK)
            break;
        code = exchange ? exchange_bundle(to, exchange, part, all)
                        : queue_bundle(to, queue, part, all);
        if (code == SB_NOT_FOUND)
            target_forget(to, target); /* deleted; perhaps there is a new one */
    }
    if (code == SB_NOT_FOUND && is_reply(target))
        return replies_dropped(to, part, all);
    return code == SB_NOT_FOUND ? stopped(part, code) : code;
}

static int64_t route_bundle(destination *to, stretch *part, bundle *all)
{
    if (to->is_node)
        return target_bundle(to, part, all);
    return exchange_bundle(to, to->exchange, part, all);
}

/* --- a stream of which each number comes ------------------------------------------------------ */

static void identity_there(const sb_sink *sink, const char *name, int64_t identity[2])
{
    uint64_t hash[2];
    siphash_128(sink->identity, name, (int64_t)strlen(name), hash);
    identity[0] = (int64_t)hash[0];
    identity[1] = (int64_t)hash[1];
}

static int64_t gap_routed(outlet *marks, int64_t sequence)
{
    if (sequence == marks->last + 1)
        return SB_OK;
    int64_t code = gap_opened(marks, marks, sequence);
    return code == SB_OK ? outlet_pass(marks, sequence - 1) : code;
}

/* The next records may be in rings from now on. */
static int64_t bundle_tried(destination *to, const stretch *part, const bundle *all)
{
    int64_t last = all->sequences[all->count - 1];
    return part->sink->counts && to->ring->tried->last < last ? outlet_pass(to->ring->tried, last)
                                                              : SB_OK;
}

static int64_t number_closed(const outlet *marks, int64_t number)
{
    sb_port port;
    int64_t code = sb_port_to_look(marks->queue, &port);
    if (code == SB_OK)
        sb_port_number_give_up(&port, marks->origin, number);
    return code;
}

/* Its message goes to each ring that has it not: how many they are. */
static int64_t route_alone(destination *to, stretch *alone, bundle *one)
{
    kept_route *route;
    obstacle met;
    int64_t first = SB_OK, count = exchange_route(to->exchange, &one->first, &route);
    for (int64_t each = 0; each < count; each++) {
        append_bundle(alone, one, route, each, &met);
        first = first == SB_OK ? met.code : first;
    }
    if (count >= 0)
        route_leave(route);
    return first == SB_OK ? count : first;
}

/* The journal may have it of a durable queue that the number was forgotten, and not yet that it is
 * closed: there it is forgotten when there is need for its place. */
static void alone_closed(sb_sink *alone, bool is_done)
{
    while (alone->outlets) {
        outlet *first = alone->outlets;
        alone->outlets = first->next;
        outlet_close(first, is_done && !sb_is_durable(first->queue));
    }
}

static int64_t route_retry(destination *to, stretch *part, const poured_record *record)
{
    bundle one;
    int64_t identity[2], count = 0;
    sb_sink sink = *part->sink;
    stretch alone = *part;
    if (is_open(to->ring->tried, record->sequence))
        return fail(SB_UNCONFIRMED, "whoever published number %lld through exchange '%s' died, and "
                    "later ones came since: some queues may have it",
                    (long long)record->sequence, sb_exchange_name(to->exchange));
    identity_there(&sink, sb_exchange_name(to->exchange), identity);
    identity_of(identity, record->sequence, sink.identity);
    sink.retention_ns = ALONE_NS;
    sink.outlets = NULL;
    alone.sink = &sink;
    alone.end = record->next;
    int64_t code = bundle_next(&one, to, &alone);
    if (code == SB_OK && one.refused[0] == SB_OK)
        count = route_alone(to, &alone, &one);
    part->sink->full = sink.full; /* whoever waits for room asks there */
    part->sink->lacks_memory = sink.lacks_memory;
    if (code == SB_OK)
        code = count < 0 ? count : number_closed(to->ring, record->sequence);
    alone_closed(&sink, code == SB_OK);
    if (code == SB_OK)
        record_answered(part, record, one.refused[0] != SB_OK ? one.refused[0] : count);
    return code;
}

/* --- records of any stream -------------------------------------------------------------------- */

int64_t destination_route(destination *to, stretch *part)
{
    bundle all;
    poured_record record;
    int64_t code = SB_OK;
    while (code == SB_OK && part->at < part->end) {
        code = record_next(part->at, part->end, &record);
        if (code != SB_OK)
            break;
        if (!record.is_message) {
            part->at = record.next;
        } else if (part->sink->counts && is_open(to->ring, record.sequence)) {
            code = route_retry(to, part, &record);
        } else if (record.sequence <= to->ring->last) {
            record_answered(part, &record, SB_DUPLICATE);
        } else {
            code = part->sink->counts ? gap_routed(to->ring, record.sequence) : SB_OK;
            if (code == SB_OK)
                code = bundle_next(&all, to, part);
            if (code == SB_OK)
                code = bundle_tried(to, part, &all);
            if (code == SB_OK)
                code = route_bundle(to, part, &all);
        }
    }
    return code;
}

/* It is nobody's but ours: settings by pattern do not apply to it. */
static int64_t marks_opened(sb_sink *sink)
{
    char page[L_RING_GATES_AT] = "";
    if (sink->marks)
        return SB_OK;
    int64_t code = connection_lock(sink->connection);
    if (code != SB_OK)
        return code;
    word_store(page, L_SETTING_DURABLE_AT, 1);
    int64_t found = reference_of(sink->connection, MARKS);
    if (found == SB_NOT_FOUND)
        found = queue_add(sink->connection, MARKS, L_SLOTS_MIN, page, L_QUEUE_MARKS);
    connection_unlock(sink->connection);
    return found < 0 ? found : sb_open_queue(sink->connection, MARKS, &sink->marks);
}

int64_t sb_sink_marks(sb_connection *connection, sb_queue **opened)
{
    sb_sink sink = {.connection = connection};
    int64_t code = marks_opened(&sink);
    *opened = sink.marks;
    return code;
}

int64_t destination_marks(sb_sink *sink, const char *name, outlet **marks)
{
    int64_t identity[2], tried[2], code = marks_opened(sink);
    sb_sink counting = *sink;
    counting.rings_count = sink->counts;
    identity_there(sink, name, identity);
    identity_of(identity, 0, tried);
    if (code == SB_OK)
        code = outlet_open_as(&counting, sink->marks, identity, marks);
    if (code != SB_OK || !sink->counts)
        return code;
    code = outlet_open_as(&counting, sink->marks, tried, &(*marks)->tried);
    if (code != SB_OK)
        outlet_close(*marks, false);
    return code;
}
