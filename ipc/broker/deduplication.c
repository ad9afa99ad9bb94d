/* What a durable queue remembers of messages that may be gone, so that a second copy is dropped
 * also after the machine was started anew: message ids (core/ids.py) and the numbers of named
 * producers.
 *
 * A message's own record has both in its chunk, so publishing writes no record more.  What would be
 * lost with the segments of messages that are done with is written when a segment begins: as lists
 * of ids, each id once, and as the table of producers.  So an id is in the newest segments'
 * messages or in a list; a list is kept as long as the queue remembers an id of it.
 *
 *     ids         queue | sign bit, position: the serial of its last id
 *                 all ids of messages below `until` are in lists | hash | hash | ...
 *     producers   index, identity, number | ...
 *
 * What comes out of the pages of a queue is numbered too, by the pager: in a queue that pages, the
 * numbers of all messages count that have one.
 *
 * What comes from elsewhere has origins instead (origins.c).
 *
 * Nothing is written of what the ring knows already and the journal has no message of: after a
 * crash that message would be gone, and it would be dropped when it is published again. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "broker/broker.h"
#include "journal/format.h"
#include "ring/ring.h"

#define LIST_IDS 4096 /* in one record */

typedef struct numbered {
    int64_t index, identity, sequence;
} numbered;

typedef struct id_list {
    int64_t until;
    int64_t hashes[LIST_IDS][2];
} id_list;

/* What is looked at of a chunk: which of several that are the same is this one? */
typedef struct sameness {
    int64_t high, low;          /* the hash of its id, or zeros */
    int64_t producer, sequence; /* or 0 */
} sameness;

static bool sameness_of(const void *chunk, bool pages, sameness *found)
{
    int64_t flags = word_load(chunk, L_CHUNK_MARK_AT) >> L_MARK_FLAGS_SHIFT & L_MARK_FLAGS_MASK;
    int64_t origin = word_load(chunk, L_CHUNK_ORIGIN_AT), at = L_CHUNK_HEADER_BYTES;
    if (!(flags & L_CHUNK_ONCE)) {
        *found = (sameness){.producer = pages ? origin >> L_ORIGIN_PRODUCER_SHIFT : 0,
                            .sequence = origin & L_SEQUENCE_MASK};
        return found->producer > 0;
    }
    at += flags & L_CHUNK_EXTENDED ? L_CHUNK_EXTENSION_BYTES : 0;
    *found = (sameness){.high = word_load(chunk, at), .low = word_load(chunk, at + 8)};
    if ((found->high | found->low) == 0) {
        found->producer = origin >> L_ORIGIN_PRODUCER_SHIFT;
        found->sequence = origin & L_SEQUENCE_MASK;
    }
    return true;
}

static int64_t list_number(int64_t queue)
{
    return queue | INT64_MIN;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void *producer_at(const dedup_log *of, int64_t index)
{
    return (char *)of->queue->ring.memory + L_RING_PRODUCERS_AT + index * L_PRODUCER_BYTES;
}

static int64_t stage_producers(dedup_log *of, sb_journal *journal)
{
    numbered body[L_PRODUCERS];
    int64_t count = 0;
    for (int64_t index = 1; index < L_PRODUCERS; index++)
        if (of->numbers[index].identity)
            body[count++] = (numbered){index, of->numbers[index].identity,
                                       of->numbers[index].sequence};
    return sb_journal_stage(journal, SB_RECORD_PRODUCERS, of->number, 0, body,
                            count * (int64_t)sizeof *body);
}

/* The producer of this index is known to the journal, before a message of it is. */
static int64_t producer_known(dedup_log *of, int64_t index, sb_journal *journal)
{
    if (!of->numbers && !(of->numbers = calloc(L_PRODUCERS, sizeof *of->numbers)))
        return fail_system("memory for numbered producers");
    int64_t identity = word_load(producer_at(of, index), L_PRODUCER_IDENTITY_AT);
    if (identity <= 0 || of->numbers[index].identity)
        return SB_OK;
    of->numbers[index].identity = identity;
    return journal ? stage_producers(of, journal) : SB_OK;
}

int64_t dedup_log_note(dedup_log *of, sb_port *port, const sb_message *message,
                       sb_journal *journal)
{
    sameness found;
    int64_t code = origin_log_note(&of->origins, message->position, message->chunk, journal);
    if (code != SB_OK || !sameness_of(message->chunk, of->queue->pages, &found))
        return code;
    if (found.high | found.low) {
        int64_t serial = sb_port_id_find(port, found.high, found.low);
        of->serial = serial > of->serial ? serial : of->serial;
        return SB_OK;
    }
    if (found.producer <= 0 || found.producer >= L_PRODUCERS)
        return SB_OK;
    code = producer_known(of, found.producer, journal);
    if (code == SB_OK && of->numbers[found.producer].sequence < found.sequence)
        of->numbers[found.producer].sequence = found.sequence;
    return code;
}

/* What is in the ring, and not in the journal yet, is left out: of each series the first one
 * says. */
static int64_t leave_out(dedup_log *of, sb_port *port, sb_cursor from, int64_t tail)
{
    sb_message message;
    sameness found;
    int64_t code = SB_OK;
    while (code == SB_OK && from.position < tail && sb_cursor_next(&from, &message) == SB_OK) {
        code = origin_log_leave_out(&of->origins, message.chunk);
        if (!sameness_of(message.chunk, of->queue->pages, &found))
            continue;
        if (found.high | found.low) {
            int64_t serial = sb_port_id_find(port, found.high, found.low);
            if (serial > 0 && serial <= of->serial)
                of->serial = serial - 1;
        } else if (found.producer > 0 && found.producer < L_PRODUCERS && of->numbers &&
                   found.sequence <= of->numbers[found.producer].sequence) {
            of->numbers[found.producer].sequence = found.sequence - 1;
        }
    }
    return code == SB_OK ? origin_log_left_out(&of->origins) : code;
}

int64_t dedup_log_begin(dedup_log *of, sb_queue *queue, int64_t number, const sb_cursor *gate)
{
    sb_port *port = gate->port;
    int64_t code = SB_OK, count = sb_port_id_count(port);
    int64_t listed = word_load(queue->ring.memory, L_RING_IDS_LISTED_AT);
    *of = (dedup_log){.queue = queue, .number = number, .serial = count, .listed = listed};
    for (int64_t index = 1; index < L_PRODUCERS - L_SERIES_KEPT && code == SB_OK; index++) {
        void *entry = producer_at(of, index);
        if (word_load(entry, L_PRODUCER_IDENTITY_AT) <= 0)
            continue;
        code = producer_known(of, index, NULL);
        if (code == SB_OK)
            of->numbers[index].sequence =
                word_load(entry, L_PRODUCER_SEQUENCE_AT) & L_SEQUENCE_MASK;
    }
    if (code == SB_OK)
        code = origin_log_begin(&of->origins, queue, number);
    int64_t tail = sb_port_true_tail(port); /* what was counted above is below it */
    if (code == SB_OK)
        code = leave_out(of, port, *gate, tail);
    if (of->listed < 0 || of->listed > of->serial)
        of->listed = of->serial;
    of->listing = of->listed;
    return code;
}

static int64_t stage_ids(dedup_log *of, sb_port *port, int64_t until, sb_journal *journal)
{
    int64_t most = word_load(of->queue->ring.memory, L_RING_IDS_AT), code = SB_OK;
    int64_t serial = of->serial - most > of->listed ? of->serial - most : of->listed;
    id_list *list = serial < of->serial ? malloc(sizeof *list) : NULL;
    if (serial < of->serial && !list)
        return fail_system("memory for message ids");
    while (serial < of->serial && code == SB_OK) {
        int64_t count = of->serial - serial < LIST_IDS ? of->serial - serial : LIST_IDS;
        list->until = until;
        for (int64_t each = 0; each < count; each++)
            if (sb_port_id_read(port, serial + 1 + each, (int64_t)(intptr_t)list->hashes[each]) ==
                0)
                list->hashes[each][0] = list->hashes[each][1] = 0; /* forgotten by now */
        serial += count;
        code = sb_journal_stage(journal, SB_RECORD_IDS, list_number(of->number), serial, list,
                                (int64_t)offsetof(id_list, hashes) +
                                    count * (int64_t)sizeof list->hashes[0]);
    }
    free(list);
    of->listing = of->serial;
    return code;
}

int64_t dedup_log_stage(dedup_log *of, sb_port *port, int64_t until, sb_journal *journal)
{
    int64_t code = of->numbers ? stage_producers(of, journal) : SB_OK;
    if (code == SB_OK)
        code = origin_log_stage(&of->origins, journal);
    return code == SB_OK ? stage_ids(of, port, until, journal) : code;
}

void dedup_log_committed(dedup_log *of, sb_journal *journal)
{
    if (of->listing == of->listed)
        return;
    int64_t most = word_load(of->queue->ring.memory, L_RING_IDS_AT);
    of->listed = of->listing;
    word_store(of->queue->ring.memory, L_RING_IDS_LISTED_AT, of->listed);
    if (of->listed >= most)
        sb_journal_retire(journal, list_number(of->number), of->listed - most + 1);
}

void dedup_log_again(dedup_log *of)
{
    of->listed = of->listing = 0;
}

int64_t dedup_log_gone(const dedup_log *of, sb_journal *journal)
{
    return sb_journal_retire(journal, list_number(of->number), SB_JOURNAL_ALL);
}

void dedup_log_end(dedup_log *of)
{
    free(of->numbers);
    of->numbers = NULL;
    origin_log_end(&of->origins);
}

/* --- and reading ------------------------------------------------------------------------------ */

/* Ids in the order of serials or of positions, of which the last `most` are wanted. */
typedef struct ordered_id {
    int64_t order, high, low;
} ordered_id;

static int by_order(const void *one, const void *other)
{
    int64_t a = ((const ordered_id *)one)->order, b = ((const ordered_id *)other)->order;
    return (a > b) - (a < b);
}

static void sort(ids_read *all)
{
    int64_t kept = 0;
    qsort(all->ids, (size_t)all->count, sizeof *all->ids, by_order);
    for (int64_t each = 0; each < all->count; each++)
        if (kept == 0 || all->ids[each].order != all->ids[kept - 1].order)
            all->ids[kept++] = all->ids[each];
    int64_t drop = kept > all->most ? kept - all->most : 0;
    memmove(all->ids, all->ids + drop, (size_t)(kept - drop) * sizeof *all->ids);
    all->count = kept - drop;
}

static int64_t keep(ids_read *all, int64_t order, int64_t high, int64_t low)
{
    if ((high | low) == 0 || high < 0 || low < 0)
        return SB_OK;
    if (all->count == all->room && all->count >= 2 * all->most)
        sort(all);
    if (!ROOM_FOR(all->ids, all->room, all->count + 1))
        return fail_system("memory for message ids");
    all->ids[all->count++] = (ordered_id){order, high, low};
    return SB_OK;
}

void dedup_read_begin(dedup_read *of, int64_t most, bool pages)
{
    *of = (dedup_read){.listed = {.most = most}, .news = {.most = most}, .pages = pages};
}

int64_t dedup_read_note(dedup_read *of, sb_port *port, int64_t position, const void *chunk)
{
    sameness found;
    int64_t code = origin_read_note(&of->origins, position, chunk);
    if (code != SB_OK || !sameness_of(chunk, of->pages, &found))
        return code;
    if (found.high | found.low)
        return of->news.most ? keep(&of->news, position, found.high, found.low) : SB_OK;
    sb_port_restore_number(port, found.producer, found.sequence);
    return SB_OK;
}

int64_t dedup_read_ids(dedup_read *of, const sb_journal_record *record)
{
    const id_list *list = record->body;
    int64_t bytes = record->length - (int64_t)offsetof(id_list, hashes), code = SB_OK;
    int64_t count = bytes / (int64_t)sizeof list->hashes[0];
    if (bytes < 0 || bytes % (int64_t)sizeof list->hashes[0] || count > LIST_IDS ||
        record->position < count || of->listed.most == 0)
        return fail(SB_JOURNAL_DAMAGED,
                    "segment %llx, byte %lld: a list of message ids contradicts itself",
                    (long long)record->serial, (long long)record->offset);
    if (list->until > of->until)
        of->until = list->until;
    for (int64_t each = 0; each < count && code == SB_OK; each++)
        code = keep(&of->listed, record->position - count + 1 + each, list->hashes[each][0],
                    list->hashes[each][1]);
    if (record->position > of->serial)
        of->serial = record->position;
    return code;
}

int64_t dedup_read_producers(sb_port *port, const sb_journal_record *record)
{
    const numbered *each = record->body;
    int64_t left = record->length, code = SB_OK;
    for (; left >= (int64_t)sizeof *each && code == SB_OK; left -= (int64_t)sizeof *each, each++)
        code = sb_port_restore_producer(port, each->index, each->identity, each->sequence);
    if (left == 0 && code == SB_OK)
        return SB_OK;
    return fail(SB_JOURNAL_DAMAGED,
                "segment %llx, byte %lld: a table of producers contradicts itself",
                (long long)record->serial, (long long)record->offset);
}

bool dedup_read_is_any(const dedup_read *of)
{
    return of->listed.count + of->news.count + of->origins.end > 0;
}

int64_t dedup_read_restore(dedup_read *of, sb_port *port, segment *ring)
{
    int64_t code = SB_OK, serial = of->serial, slots = word_load(ring->memory, L_RING_SLOTS_AT);
    sort(&of->listed);
    sort(&of->news);
    code = dedup_read_is_any(of) ? origin_read_restore(&of->origins, port, ring) : SB_OK;
    if (code != SB_OK || of->listed.count + of->news.count == 0)
        return code;
    int64_t start = sb_ring_bytes(slots);
    code = sb_system_allocate(ring->file, start,
                              sb_ring_bytes_with(slots, of->listed.most) - start);
    if (code != SB_OK)
        return fail_system("memory for message ids");
    word_store(ring->memory, L_RING_IDS_MADE_AT, 1);
    for (int64_t each = 0; each < of->listed.count; each++) {
        const ordered_id *id = &of->listed.ids[each];
        sb_port_restore_id(port, id->high, id->low, id->order);
    }
    word_store(ring->memory, L_RING_IDS_LISTED_AT, serial);
    for (int64_t each = 0; each < of->news.count; each++) {
        const ordered_id *id = &of->news.ids[each];
        if (id->order >= of->until && sb_port_id_find(port, id->high, id->low) == 0)
            sb_port_restore_id(port, id->high, id->low, ++serial);
    }
    return SB_OK;
}

void dedup_read_end(dedup_read *of)
{
    free(of->listed.ids);
    free(of->news.ids);
    origin_read_end(&of->origins);
}
