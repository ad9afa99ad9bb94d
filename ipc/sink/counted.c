/* A stream of which every number comes, though not in order: that of a remote producer.  What it
 * leaves out below its highest number stays open until it is retried or given up
 * (core/open_number.py). */

#define _GNU_SOURCE

#include "base/base.h"
#include "catalog/catalog.h"
#include "ring/ring.h"
#include "sink/sink.h"

/* --- gaps ------------------------------------------------------------------------------------- */

static int64_t all_opened(const outlet *to, sb_port *port, int64_t until)
{
    int64_t code = SB_OK;
    for (int64_t number = to->last + 1; number < until && code == SB_OK; number++) {
        int64_t place = outlet_place(to->queue, port);
        code = place < 0 ? place : sb_port_number_open(port, place, to->origin, number);
    }
    return code;
}

/* Before a message with this number is published: those that it leaves out are open.  If it is not
 * published after all, they are above the highest number, and the next gap begins anew. */
static int64_t gap_opened(const outlet *to, sb_port *port, int64_t sequence)
{
    sb_connection *connection = to->queue->connection;
    int64_t open = sb_port_numbers_settle(port, to->origin);
    if (open < 0 || sequence == to->last + 1)
        return open < 0 ? open : SB_OK;
    if (sequence - 1 - to->last > L_OPEN_NUMBERS_MAX - open)
        return SB_TOO_MANY_OPEN;
    int64_t code = connection_lock(connection);
    if (code == SB_OK) {
        code = all_opened(to, port, sequence);
        connection_unlock(connection);
    }
    return code;
}

static int64_t gap_left(const outlet *to, int64_t sequence)
{
    sb_port port;
    int64_t code = port_to_look(to->queue, &port);
    return code == SB_OK ? gap_opened(to, &port, sequence) : code;
}

/* --- appending -------------------------------------------------------------------------------- */

/* The end of the records that follow each other. */
static const char *run_end(const stretch *part, int64_t last)
{
    const char *end = part->at;
    poured_record record;
    while (record_next(end, part->end, &record) == SB_OK &&
           (!record.is_message || record.sequence == last + 1)) {
        last = record.is_message ? record.sequence : last;
        end = record.next;
    }
    return end;
}

static int64_t append_until(outlet *to, stretch *part, const char *end)
{
    stretch run = *part;
    run.end = end;
    int64_t code = outlet_append_now(to, &run, part->deadline);
    part->at = run.at;
    part->answers = run.answers;
    return code;
}

static int64_t append_retry(outlet *to, stretch *part, const poured_record *record)
{
    sb_port port;
    int64_t code = port_to_look(to->queue, &port);
    if (code != SB_OK)
        return code;
    if (sb_port_number_open_above(&port, to->origin, record->sequence - 1) != record->sequence)
        return record_answered(part, record, SB_DUPLICATE), SB_OK;
    to->retried = record->sequence;
    code = append_until(to, part, record->next);
    to->retried = 0;
    return sb_port_numbers_settle(&port, to->origin) < 0 ? SB_DAMAGED : code;
}

int64_t counted_append(outlet *to, stretch *part)
{
    poured_record record;
    int64_t code = SB_OK;
    while (code == SB_OK && part->at < part->end &&
           (code = record_next(part->at, part->end, &record)) == SB_OK) {
        if (!record.is_message) {
            part->at = record.next;
        } else if (record.sequence <= to->last) {
            code = append_retry(to, part, &record);
        } else if ((code = gap_left(to, record.sequence)) == SB_OK) {
            code = append_until(to, part, run_end(part, record.sequence - 1));
        } else if (code == SB_TOO_MANY_OPEN) {
            record_answered(part, &record, code);
            code = SB_OK;
        }
    }
    return code;
}

/* --- what is open ----------------------------------------------------------------------------- */

static int64_t counted_of(const sb_sink *sink, int64_t number, outlet **of, sb_port *port)
{
    const destination *found = destination_of(sink, number);
    if (!found)
        return fail(SB_NOT_FOUND, "records of queue %lld go nowhere", (long long)number);
    if (!sink->counts)
        return fail(SB_INVALID, "the numbers of this stream may have gaps: none is open");
    *of = found->ring;
    return port_to_look(found->ring->queue, port);
}

int64_t sb_sink_open_positions(sb_sink *sink, int64_t number, int64_t *positions, int64_t room)
{
    sb_port port;
    outlet *of;
    int64_t count = 0, code = counted_of(sink, number, &of, &port);
    if (code != SB_OK || !queue_look(of->queue, &code))
        return code;
    for (int64_t open = 0; (open = sb_port_number_open_above(&port, of->origin, open)) > 0; count++)
        if (count < room)
            positions[count] = open - 1;
    queue_looked(of->queue);
    return count;
}

static int64_t give_up(outlet *of, sb_port *port, int64_t first, int64_t last)
{
    int64_t number = first - 1, code = SB_OK;
    while ((number = sb_port_number_open_above(port, of->origin, number)) > 0 && number <= last)
        sb_port_number_give_up(port, of->origin, number);
    if (last <= of->last)
        return SB_OK;
    code = gap_opened(of, port, first > of->last ? first : of->last + 1);
    if (code == SB_OK)
        code = sb_port_origin_pass(port, of->origin, last);
    of->last = code == SB_OK ? last : of->last;
    return code;
}

int64_t sb_sink_give_up(sb_sink *sink, int64_t number, int64_t first, int64_t end)
{
    sb_port port;
    outlet *of;
    if (first < 0 || end <= first || end > L_SEQUENCE_MASK)
        return fail(SB_INVALID, "no positions: from %lld to %lld", (long long)first,
                    (long long)end);
    int64_t code = counted_of(sink, number, &of, &port);
    if (code != SB_OK || !queue_look(of->queue, &code))
        return code;
    code = give_up(of, &port, first + 1, end);
    queue_looked(of->queue);
    return code;
}
