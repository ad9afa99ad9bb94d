/* Records go through an exchange: each ring of their route drops what it has, and how far the
 * stream is in the exchange moves when all of them have a record, or none wants it.
 *
 * Records with the same key and properties have one route; those that follow each other go there
 * together.  How far streams are in exchanges is kept in the table of origins of a queue that has
 * no messages: an entry for each stream and exchange.  It may be behind after a death, never ahead:
 * then some records are looked at once more, and the rings know them. */

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

/* Records of one route. */
typedef struct bundle {
    const char *at, *end;
    int64_t count;
    int64_t sequences[TOGETHER], refused[TOGETHER];
    const char *ends[TOGETHER];
    sb_outgoing first;
} bundle;

static bool is_same_route(const sb_outgoing *one, const sb_outgoing *other)
{
    return one->key_length == other->key_length &&
           one->properties_length == other->properties_length &&
           memcmp(one->key, other->key, (size_t)one->key_length) == 0 &&
           memcmp(one->properties, other->properties, (size_t)one->properties_length) == 0;
}

/* The next records of one route. */
static int64_t bundle_next(bundle *made, const stretch *part)
{
    poured_record record;
    sb_outgoing message;
    int64_t code = SB_OK;
    made->at = made->end = part->at;
    for (made->count = 0; made->count < TOGETHER; made->count++) {
        code = record_next(made->end, part->end, &record);
        if (code != SB_OK || !record.is_message)
            break;
        int64_t wrong = record_outgoing(&record, part->later, &message);
        if (made->count > 0 && (wrong != SB_OK || !is_same_route(&made->first, &message)))
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

/* All of a bundle that is not known goes to one queue: how many records of it are dealt with. */
static int64_t append_bundle(stretch *part, bundle *all, sb_queue *queue, int64_t *code)
{
    int64_t answers[TOGETHER];
    sb_poured told = {0};
    outlet *to;
    *code = outlet_open(part->sink, queue, &to);
    stretch there = {.sink = part->sink, .at = all->at, .end = all->end, .later = part->later,
                     .deadline = part->deadline, .answers = answers, .told = &told};
    if (*code == SB_OK)
        *code = outlet_append(to, &there);
    if (*code == SB_NOT_FOUND) { /* deleted since: nobody wants it there */
        *code = SB_OK;
        return all->count;
    }
    int64_t done = there.answers - answers;
    for (int64_t each = 0; each < done; each++)
        if (answers[each] < 0 && answers[each] != SB_DUPLICATE)
            all->refused[each] = answers[each];
    return done;
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

static int64_t route_bundle(destination *to, stretch *part, bundle *all)
{
    kept_route *route;
    int64_t least = all->count, first = SB_OK, code;
    if (all->refused[0] != SB_OK)
        return bundle_done(to, part, all, 1, 0);
    int64_t count = exchange_route(to->exchange, &all->first, &route);
    if (count < 0)
        return count;
    for (int64_t each = 0; each < count; each++) {
        int64_t done = append_bundle(part, all, route->queues[each], &code);
        least = done < least ? done : least;
        first = first == SB_OK ? code : first;
    }
    route_leave(route);
    code = bundle_done(to, part, all, least, count);
    return code == SB_OK ? first : code;
}

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
        } else if (record.sequence <= to->ring->last) {
            part->at = record.next;
            *part->answers++ = SB_DUPLICATE;
            part->told->seen++;
        } else {
            code = bundle_next(&all, part);
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

int64_t destination_marks(sb_sink *sink, sb_exchange *exchange, outlet **marks)
{
    const char *name = sb_exchange_name(exchange);
    uint64_t hash[2];
    int64_t code = marks_opened(sink);
    siphash_128(sink->identity, name, (int64_t)strlen(name), hash);
    const int64_t identity[2] = {(int64_t)hash[0], (int64_t)hash[1]};
    return code == SB_OK ? outlet_open_as(sink, sink->marks, identity, marks) : code;
}
