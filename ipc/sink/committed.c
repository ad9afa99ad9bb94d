/* Records that a transaction published at their source enter as one transaction: all of them, or
 * none.  Their numbers in the tables of origins take the place of a transaction's series
 * (ipc/commit/record.c), so what happens after a death is what happens to any transaction, and what
 * was committed is known afterwards. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "commit/commit.h"
#include "paging/paging.h"
#include "ring/ring.h"
#include "sink/sink.h"
#include "vhost/vhost.h"

#define NAP_NS INT64_C(1000000)

typedef struct committed_set {
    sb_sink *sink;
    int64_t later, count;
    operation *operations;
    outlet **to; /* of each operation */
} committed_set;

static lane *lane_of(const committed_set *set, const outlet *to)
{
    for (int64_t index = set->count - 1; index >= 0; index--)
        if (set->to[index] == to)
            return set->operations[index].lane;
    return NULL;
}

static int64_t reserve(committed_set *set, outlet *to, const poured_record *record,
                       const sb_outgoing *message)
{
    int64_t code = SB_OK;
    if (set->count >= L_TRANSACTION_OPERATIONS)
        return fail(SB_TOO_MANY, "a set of records that enter together has at most %d messages",
                    (int)L_TRANSACTION_OPERATIONS);
    lane *known = lane_of(set, to), *in = known ? known : lane_beside(to->queue, &code);
    if (!in)
        return code;
    *port_field(&in->port, L_PORT_PUBLISHED) = word_load(record->chunk, L_CHUNK_PUBLISHED_AT);
    int64_t chunk = queue_reserve(to->queue, &in->port, message);
    if (chunk < 0) {
        if (!known)
            lane_leave(in);
        return explained(to->queue, chunk);
    }
    if (message->length > 0)
        memcpy(sb_port_loan_body(&in->port, chunk), message->body, (size_t)message->length);
    set->to[set->count] = to;
    set->operations[set->count++] =
        (operation){.queue = to->queue, .lane = in, .where = chunk,
                    .word = to->origin << L_ORIGIN_PRODUCER_SHIFT | record->sequence};
    return SB_OK;
}

/* One more message for this queue, unless it is known there. */
static int64_t add(committed_set *set, outlet *to, const poured_record *record,
                   const sb_outgoing *message, int64_t *added)
{
    outlet *inbox = NULL;
    int64_t code = outlet_inbox(set->sink, to, true, &inbox);
    if (code != SB_OK || record->sequence <= to->last)
        return code;
    *added += 1;
    return reserve(set, inbox ? inbox : to, record, message);
}

static int64_t add_record(committed_set *set, destination *to, const poured_record *record,
                          int64_t *added)
{
    sb_outgoing message;
    kept_route *route;
    int64_t code = record_outgoing(record, set->later, &message);
    message.target = 0;
    if (code != SB_OK)
        return fail(code, "a record of a set contradicts itself");
    if (!to->exchange)
        return add(set, to->ring, record, &message, added);
    if (record->sequence <= to->ring->last)
        return SB_OK;
    int64_t count = exchange_route(to->exchange, &message, &route);
    for (int64_t each = 0; each < count && code == SB_OK; each++) {
        outlet *there;
        message.target = route->targets[each];
        code = outlet_open(set->sink, route->queues[each], message.target, &there);
        if (code == SB_OK)
            code = add(set, there, record, &message, added);
        if (code == SB_NOT_FOUND)
            code = SB_OK; /* deleted since */
    }
    if (count >= 0)
        route_leave(route);
    return count < 0 ? count : code;
}

/* Their lanes are for others again; chunks that were not placed are dropped, the last first. */
static void leave_lanes(committed_set *set, bool drops)
{
    for (int64_t index = set->count - 1; index >= 0 && drops; index--)
        sb_port_unreserve(&set->operations[index].lane->port, set->operations[index].where);
    while (set->count > 0) {
        outlet *to = set->to[--set->count];
        if (!lane_of(set, to))
            lane_part(set->operations[set->count].lane);
    }
}

static int64_t commit(committed_set *set, int64_t deadline)
{
    const struct timespec nap = {0, NAP_NS};
    int64_t code = set->count ? commit_at_once(set->sink->connection, set->operations, set->count)
                              : SB_OK;
    while (code == SB_FULL && deadline && sb_system_clock() < deadline) {
        nanosleep(&nap, NULL);
        set->sink->connection->duties->repair(set->sink->connection);
        code = commit_at_once(set->sink->connection, set->operations, set->count);
    }
    for (int64_t index = 0; index < set->count && code == SB_OK; index++)
        set->to[index]->last = set->operations[index].word & L_SEQUENCE_MASK;
    for (outlet *each = set->sink->outlets; each; each = each->next)
        if (each->inbox && each->inbox->last > each->last)
            each->last = each->inbox->last;
    leave_lanes(set, code != SB_OK && code != SB_UNFINISHED);
    return code;
}

static int64_t add_all(committed_set *set, stretch *part)
{
    poured_record record;
    int64_t code = SB_OK;
    while (code == SB_OK && (code = record_next(part->at, part->end, &record)) == SB_OK) {
        int64_t added = 0;
        destination *to = record.is_message ? destination_of(set->sink, record.queue) : NULL;
        if (record.is_message && !to)
            return fail(SB_NOT_FOUND, "records of queue %lld go nowhere", (long long)record.queue);
        code = to ? add_record(set, to, &record, &added) : SB_OK;
        part->at = record.next;
        if (!to)
            continue;
        bool is_known = added == 0 && (!to->exchange || record.sequence <= to->ring->last);
        part->told->seen += is_known;
        part->told->appended += !is_known;
        *part->answers++ = is_known ? SB_DUPLICATE : added;
    }
    return code == SB_EMPTY ? SB_OK : code;
}

/* What went through exchanges is known there. */
static int64_t pass_marks(sb_sink *sink, const char *at, const char *end)
{
    poured_record record;
    int64_t code = SB_OK;
    while (code == SB_OK && record_next(at, end, &record) == SB_OK) {
        destination *to = record.is_message ? destination_of(sink, record.queue) : NULL;
        if (to && to->exchange && record.sequence > to->ring->last)
            code = outlet_pass(to->ring, record.sequence);
        at = record.next;
    }
    return code;
}

int64_t sb_sink_commit(sb_sink *sink, const void *records, int64_t bytes, int64_t later,
                       int64_t *answers, int64_t timeout_ns, sb_poured *told)
{
    stretch part = {.sink = sink, .at = records, .end = (const char *)records + bytes,
                    .answers = answers, .told = told};
    committed_set set = {.sink = sink, .later = later,
                         .operations = calloc(L_TRANSACTION_OPERATIONS, sizeof(operation)),
                         .to = calloc(L_TRANSACTION_OPERATIONS, sizeof(outlet *))};
    *told = (sb_poured){0};
    int64_t code = atomic_load(&sink->connection->closed);
    if (code == SB_OK && sink->counts)
        code = fail(SB_INVALID, "numbers of a set may have gaps: none is open");
    if (code == SB_OK && (!set.operations || !set.to))
        code = fail_system("memory for a set of records");
    if (code == SB_OK)
        code = add_all(&set, &part);
    if (code == SB_OK)
        code = commit(&set, timeout_ns ? monotonic_deadline(timeout_ns) : 0);
    else
        leave_lanes(&set, true);
    if (code == SB_OK)
        code = pass_marks(sink, records, part.end);
    if (code == SB_OK) {
        told->bytes = bytes;
        told->answers = part.answers - answers;
    } else {
        *told = (sb_poured){0};
    }
    free(set.operations);
    free(set.to);
    return code;
}
