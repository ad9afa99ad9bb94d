/* A sink: where the records of a stream go, and how far each of these is. */

#define _GNU_SOURCE
#include <stdlib.h>

#include "base/base.h"
#include "ring/ring.h"
#include "sink/sink.h"
#include "vhost/vhost.h"

int64_t sb_sink_open(sb_connection *connection, int64_t high, int64_t low, int64_t retention_ns,
                     int64_t checks, int64_t counts, sb_sink **opened)
{
    int64_t code = change_code(connection);
    if (code != SB_OK)
        return code;
    sb_sink *made = calloc(1, sizeof *made);
    if (!made)
        return fail_system("memory for a sink");
    *made = (sb_sink){.connection = connection, .identity = {high, low},
                      .retention_ns = retention_ns, .checks = checks, .counts = counts,
                      .rings_count = counts};
    *opened = made;
    return SB_OK;
}

destination *destination_of(const sb_sink *sink, int64_t number)
{
    destination *each = sink->destinations;
    while (each && each->number != number && each->number != -1)
        each = each->next;
    return each;
}

static int64_t destination_add(sb_sink *sink, const destination *wanted)
{
    destination *made = malloc(sizeof *made);
    if (!made)
        return fail_system("memory for a destination");
    *made = *wanted;
    made->next = sink->destinations;
    sink->destinations = made;
    return stream_last(wanted->ring);
}

int64_t sb_sink_to_queue(sb_sink *sink, int64_t number, sb_queue *queue)
{
    destination made = {.number = number};
    if (sink->rings_count != sink->counts)
        return fail(SB_INVALID, "a stream of which each number comes has one destination");
    int64_t code = outlet_open(sink, queue, 0, &made.ring);
    return code == SB_OK ? destination_add(sink, &made) : code;
}

int64_t sb_sink_to_exchange(sb_sink *sink, int64_t number, sb_exchange *exchange)
{
    if (sink->journey)
        exchange = exchange_of_agent(exchange);
    if (!exchange)
        return fail_system("memory for an exchange");
    destination made = {.number = number, .exchange = exchange};
    if (sink->rings_count && sink->destinations)
        return fail(SB_INVALID, "a stream of which each number comes has one destination");
    sink->rings_count = false;
    int64_t code = destination_marks(sink, sb_exchange_name(exchange), &made.ring);
    return code == SB_OK ? destination_add(sink, &made) : code;
}

int64_t sb_sink_to_node(sb_sink *sink)
{
    destination made = {.number = -1, .is_node = true};
    if (sink->counts || sink->destinations || !sink->stops)
        return fail(SB_INVALID, "a stream to a node has one destination, numbers with gaps, and "
                    "stops at what is refused");
    sink->arrives = true;
    int64_t code = destination_marks(sink, "$node", &made.ring);
    return code == SB_OK ? destination_add(sink, &made) : code;
}

int64_t sb_sink_position(sb_sink *sink, int64_t number)
{
    const destination *found = destination_of(sink, number);
    return found ? stream_last(found->ring)
                 : fail(SB_NOT_FOUND, "records of queue %lld go nowhere", (long long)number);
}

sb_queue *sb_sink_full(const sb_sink *sink)
{
    return sink->full;
}

int64_t sb_sink_lacks_memory(const sb_sink *sink)
{
    return sink->lacks_memory;
}

int64_t sb_sink_queues(const sb_sink *sink, sb_queue **queues, int64_t room)
{
    int64_t count = 0;
    for (const outlet *each = sink->outlets; each; each = each->next, count++)
        if (count < room)
            queues[count] = each->queue;
    return count;
}

void sb_sink_stop_at_refused(sb_sink *sink)
{
    sink->stops = true;
}

int64_t sb_sink_skip(sb_sink *sink, int64_t number, int64_t position)
{
    const destination *found = destination_of(sink, number);
    if (!found)
        return fail(SB_NOT_FOUND, "records of queue %lld go nowhere", (long long)number);
    return position <= stream_last(found->ring) ? SB_OK : outlet_pass(found->ring, position);
}

/* Records that follow each other and go to the same place. */
static int64_t stretch_of(const sb_sink *sink, const char *at, const char *end, destination **to,
                          const char **until)
{
    poured_record record;
    int64_t code;
    *to = sink->destinations;
    *until = end;
    if (*to && !(*to)->next && (*to)->number == -1)
        return SB_OK;
    *to = NULL;
    for (*until = at; (code = record_next(*until, end, &record)) == SB_OK; *until = record.next) {
        destination *found = destination_of(sink, record.queue);
        if (!record.is_message && !found)
            found = *to;
        if (record.is_message && !found)
            code = fail(SB_NOT_FOUND, "records of queue %lld go nowhere", (long long)record.queue);
        if (code != SB_OK || (*to && found != *to))
            break;
        *to = found;
    }
    return *to || code == SB_OK || code == SB_EMPTY ? SB_OK : code;
}

int64_t sb_sink_pour(sb_sink *sink, const void *records, int64_t bytes, int64_t later,
                     int64_t *answers, int64_t timeout_ns, sb_poured *told)
{
    const char *end = (const char *)records + bytes;
    int64_t code = atomic_load(&sink->connection->closed);
    stretch part = {.sink = sink, .at = records, .later = later, .answers = answers, .told = told,
                    .deadline = timeout_ns ? monotonic_deadline(timeout_ns) : 0};
    *told = (sb_poured){0};
    while (code == SB_OK && part.at < end) {
        destination *to;
        code = stretch_of(sink, part.at, end, &to, &part.end);
        if (code == SB_OK && !to)
            part.at = part.end; /* no message among them */
        else if (code == SB_OK)
            code = to->exchange || to->is_node ? destination_route(to, &part)
                                               : outlet_append(to->ring, &part);
    }
    told->bytes = part.at - (const char *)records;
    told->answers = part.answers - answers;
    return code;
}

void sb_sink_close(sb_sink *sink, int64_t forgets)
{
    while (sink->destinations) {
        destination *first = sink->destinations;
        sink->destinations = first->next;
        if (first->exchange || first->is_node)
            outlet_close(first->ring, forgets);
        targets_close(first);
        free(first);
    }
    while (sink->outlets) {
        outlet *first = sink->outlets;
        sink->outlets = first->next;
        outlet_close(first, forgets);
    }
    full_at(sink, NULL);
    if (sink->marks)
        sb_close_queue(sink->marks);
    free(sink->journey);
    free(sink);
}
