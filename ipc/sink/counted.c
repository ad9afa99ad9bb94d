/* A stream of which every number comes, though not in order: that of a remote producer.  What it
 * leaves out below its highest number stays open until it is retried or given up
 * (core/open_number.py).
 *
 * Of a queue that pages, such a stream is in two tables, its ring's and its inbox's.  A number is
 * known if one of them knows it: it is not above the highest number there, and not open.  Before a
 * table is used again, it is brought up to date: what the stream has open above its highest number
 * is opened there, and then the highest number moves, in one step.  So a death in between changes
 * nothing, and a number that is published closes in the table of the ring that it is in. */

#define _GNU_SOURCE

#include "base/base.h"
#include "catalog/catalog.h"
#include "paging/paging.h"
#include "ring/ring.h"
#include "sink/sink.h"

/* --- tables ----------------------------------------------------------------------------------- */

/* The table that has the highest number of a stream, and the other one, if there are two. */
static const outlet *highest_table(const outlet *of, const outlet **other)
{
    bool is_inbox = of->inbox && of->inbox->last > of->last;
    *other = is_inbox ? of : of->inbox;
    return is_inbox ? of->inbox : of;
}

int64_t stream_last(const outlet *of)
{
    const outlet *other;
    return highest_table(of, &other)->last;
}

static int64_t open_in_table(const outlet *table, int64_t above)
{
    sb_port port;
    int64_t code = sb_port_to_look(table->queue, &port);
    return code == SB_OK ? sb_port_number_open_above(&port, table->origin, above) : code;
}

/* Of an exchange the marks are past a gap before the message that leaves it: then the highest
 * number may be open, too, which no table lists. */
static bool is_last_open(const outlet *marks)
{
    sb_port port;
    int64_t listed = 0, open = 0;
    if (sb_port_to_look(marks->queue, &port) != SB_OK)
        return false;
    while ((open = open_in_table(marks, open)) > 0)
        listed++;
    return sb_port_numbers_settle(&port, marks->origin) > listed;
}

/* The least number above this one that the stream has open, 0 if there is none. */
static int64_t stream_open_above(const outlet *of, int64_t above)
{
    const outlet *other, *table = highest_table(of, &other);
    int64_t open = open_in_table(table, above);
    while (open > 0 && other && open <= other->last && open_in_table(other, open - 1) != open)
        open = open_in_table(table, open);
    return open == 0 && of->tried && above < of->last && is_last_open(of) ? of->last : open;
}

bool is_open(const outlet *of, int64_t number)
{
    return number <= stream_last(of) && stream_open_above(of, number - 1) == number;
}

/* What the other table knows is open in this one no more: entries are for others again. */
static void close_known(const outlet *of, const outlet *table, sb_port *port)
{
    const outlet *other = table == of ? of->inbox : of;
    int64_t open = 0;
    while (other && (open = open_in_table(table, open)) > 0)
        if (!is_open(of, open))
            sb_port_number_give_up(port, table->origin, open);
}

/* --- gaps ------------------------------------------------------------------------------------- */

static int64_t open_one(const outlet *table, sb_port *port, int64_t number)
{
    int64_t place = outlet_place(table->queue, port);
    return place < 0 ? place : sb_port_number_open(port, place, table->origin, number);
}

/* The catalog's lock is held. */
static int64_t all_opened(const outlet *of, const outlet *table, sb_port *port, int64_t until)
{
    int64_t code = SB_OK, last = stream_last(of), number = table->last;
    while (code == SB_OK && (number = stream_open_above(of, number)) > 0 && number < until)
        code = open_one(table, port, number);
    for (number = last + 1; number < until && code == SB_OK; number++)
        code = open_one(table, port, number);
    if (code != SB_OK || !of->tried || of->tried->last <= last)
        return code;
    for (number = last + 1; number < until && number <= of->tried->last && code == SB_OK; number++)
        code = is_open(of->tried, number) ? SB_OK : open_one(of->tried, port, number);
    return code; /* what may be in some rings is in doubt (routed.c) */
}

static int64_t open_count(const outlet *of)
{
    int64_t count = 0;
    for (int64_t open = 0; (open = stream_open_above(of, open)) > 0; count++)
        ;
    return count;
}

int64_t gap_opened(const outlet *of, outlet *table, int64_t sequence)
{
    sb_port port;
    sb_connection *connection = of->queue->connection;
    int64_t last = stream_last(of), code = sb_port_to_look(table->queue, &port);
    if (code != SB_OK)
        return code;
    code = sb_port_numbers_settle(&port, table->origin);
    if (code < 0 || sequence == table->last + 1)
        return code < 0 ? code : SB_OK;
    if (sequence - 1 > last && sequence - 1 - last > L_OPEN_NUMBERS_MAX - open_count(of))
        return SB_TOO_MANY_OPEN;
    close_known(of, table, &port);
    code = connection_lock(connection);
    if (code == SB_OK) {
        code = all_opened(of, table, &port, sequence);
        connection_unlock(connection);
    }
    last = last < sequence - 1 ? last : sequence - 1;
    while (last > table->last && is_open(of, last))
        last--; /* the highest number of a table is never open */
    return code == SB_OK && table->last < last ? outlet_pass(table, last) : code;
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

/* The next records go to this table's ring: they follow each other, or are one that is open. */
static int64_t append_to(outlet *of, outlet *table, stretch *part, const char *end,
                         int64_t deadline)
{
    sb_port port;
    poured_record record;
    stretch run = *part;
    int64_t code = record_next(part->at, end, &record);
    run.end = end;
    if (code == SB_OK && record.is_message && record.sequence <= table->last)
        table->retried = record.sequence;
    else if (code == SB_OK && record.is_message)
        code = gap_opened(of, table, record.sequence);
    if (code == SB_OK)
        code = outlet_append_now(table, &run, deadline);
    part->at = run.at;
    part->answers = run.answers;
    if (table->retried && sb_port_to_look(table->queue, &port) == SB_OK)
        sb_port_numbers_settle(&port, table->origin);
    table->retried = 0;
    return code;
}

static int64_t append_to_inbox(outlet *of, stretch *part, const char *end)
{
    outlet *inbox;
    int64_t *first = part->answers, code = outlet_inbox(part->sink, of, true, &inbox);
    if (code != SB_OK)
        return code;
    inbox_noted(inbox->queue);
    code = append_to(of, inbox, part, end, part->deadline);
    inbox_noted(inbox->queue);
    answers_in_inbox(of->queue, first, part->answers);
    return code;
}

static int64_t append_until(outlet *of, stretch *part, const char *end)
{
    bool pages = of->queue->pages;
    int64_t code = pages && is_paging(of->queue)
                       ? SB_FULL
                       : append_to(of, of, part, end, pages ? 0 : part->deadline);
    return pages && has_no_room(code) ? append_to_inbox(of, part, end) : code;
}

int64_t counted_append(outlet *to, stretch *part)
{
    poured_record record;
    outlet *inbox;
    int64_t code = outlet_inbox(part->sink, to, false, &inbox);
    while (code == SB_OK && part->at < part->end &&
           (code = record_next(part->at, part->end, &record)) == SB_OK) {
        if (!record.is_message)
            part->at = record.next;
        else if (record.sequence > stream_last(to))
            code = append_until(to, part, run_end(part, record.sequence - 1));
        else if (is_open(to, record.sequence))
            code = append_until(to, part, record.next);
        else
            record_answered(part, &record, SB_DUPLICATE);
        if (code == SB_TOO_MANY_OPEN) {
            record_answered(part, &record, code);
            code = SB_OK;
        }
    }
    return code;
}

/* --- what is open ----------------------------------------------------------------------------- */

static int64_t counted_of(const sb_sink *sink, int64_t number, outlet **of)
{
    const destination *found = destination_of(sink, number);
    if (!found)
        return fail(SB_NOT_FOUND, "records of queue %lld go nowhere", (long long)number);
    if (!sink->counts)
        return fail(SB_INVALID, "the numbers of this stream may have gaps: none is open");
    *of = found->ring;
    return SB_OK;
}

int64_t sb_sink_open_positions(sb_sink *sink, int64_t number, int64_t *positions, int64_t room)
{
    outlet *of;
    int64_t count = 0, open = 0, code = counted_of(sink, number, &of);
    if (code != SB_OK || !queue_look(of->queue, &code))
        return code;
    for (; (open = stream_open_above(of, open)) > 0; count++)
        if (count < room)
            positions[count] = open - 1;
    queue_looked(of->queue);
    return open < 0 ? open : count;
}

static int64_t give_up_in(const outlet *table, int64_t first, int64_t last)
{
    sb_port port;
    int64_t number = first - 1, code = sb_port_to_look(table->queue, &port);
    while (code == SB_OK && (number = open_in_table(table, number)) > 0 && number <= last)
        sb_port_number_give_up(&port, table->origin, number);
    return code;
}

static int64_t give_up(outlet *of, int64_t first, int64_t last)
{
    int64_t highest = stream_last(of), code = give_up_in(of, first, last);
    outlet *table = of->inbox && of->inbox->last == highest ? of->inbox : of;
    if (code == SB_OK && of->inbox)
        code = give_up_in(of->inbox, first, last);
    if (code == SB_OK && last > highest)
        code = gap_opened(of, table, first > highest ? first : highest + 1);
    return code == SB_OK && last > highest ? outlet_pass(table, last) : code;
}

int64_t sb_sink_give_up(sb_sink *sink, int64_t number, int64_t first, int64_t end)
{
    outlet *of;
    if (first < 0 || end <= first || end > L_SEQUENCE_MASK)
        return fail(SB_INVALID, "no positions: from %lld to %lld", (long long)first,
                    (long long)end);
    int64_t code = counted_of(sink, number, &of);
    if (code != SB_OK || !queue_look(of->queue, &code))
        return code;
    code = give_up(of, first + 1, end);
    queue_looked(of->queue);
    return code;
}
