/* What the journal has of the origins of a queue (core/origin.py): how far each stream from
 * elsewhere is in what is on disk.
 *
 * A message's record has the number of its origin's entry and its own number in the chunk.  So a
 * record more is written when an entry is met for the first time, with whose it is and from which
 * position on; and, when a segment begins, of all entries.  In a restored ring each origin is as
 * far as its last message that is in the journal: both are in one frame, or neither.
 *
 *     origins     entry, identity (two words), number, from, used | ...
 *
 * A number may also move without a message: a stream passed over one that was refused, or that no
 * queue took.  Such numbers are read before the tails of a moment, and written when all that stood
 * below these tails is: so no number is in the journal before the messages up to it. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "broker/broker.h"
#include "ring/ring.h"

typedef struct written_origin {
    int64_t entry, high, low, number, from, used;
} written_origin;

struct known_origin {
    int64_t generation; /* the entry's when it was read; -1: never */
    int64_t seen, seen_generation; /* its number at a moment, to be written later */
    written_origin is;
};

static int64_t origin_of(const void *chunk)
{
    return word_load(chunk, L_CHUNK_ORIGIN_AT) >> L_ORIGIN_PRODUCER_SHIFT;
}

static const char *entry_at(const sb_queue *queue, int64_t origin)
{
    int64_t start = sb_ring_origins_at(queue->slots, setting(queue, L_RING_IDS_AT));
    return (const char *)queue->ring.memory + start + (origin - L_PRODUCERS) * L_ORIGIN_BYTES;
}

static int64_t origins_made(const sb_queue *queue)
{
    int64_t made = setting(queue, L_RING_ORIGINS_MADE_AT);
    return made < 0 ? 0 : made < L_ORIGINS ? made : L_ORIGINS;
}

static bool is_known(const char *entry)
{
    return word_load(entry, L_ORIGIN_STATE_AT) == L_ORIGIN_KNOWN;
}

static int64_t generation_of(const char *entry)
{
    return word_load(entry, L_ORIGIN_NUMBER_AT) >> L_POSITION_BITS;
}

static int64_t number_of(const char *entry)
{
    return word_load(entry, L_ORIGIN_NUMBER_AT) & L_SEQUENCE_MASK;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Room for as many as there are entries. */
static int64_t room_for_all(origin_log *of)
{
    int64_t made = origins_made(of->queue);
    if (made <= of->count)
        return SB_OK;
    struct known_origin *moved = realloc(of->known, (size_t)made * sizeof *moved);
    if (!moved)
        return fail_system("memory for the streams of a durable queue");
    for (int64_t each = of->count; each < made; each++)
        moved[each] = (struct known_origin){.generation = -1};
    of->known = moved;
    of->count = made;
    return SB_OK;
}

static int64_t stage_one(const origin_log *of, const struct known_origin *known,
                         sb_journal *journal)
{
    return sb_journal_stage(journal, SB_RECORD_ORIGINS, of->number, 0, &known->is,
                            (int64_t)sizeof known->is);
}

/* Take over whose it is; it has no number in the journal yet.  What was seen of it stays. */
static void adopt(struct known_origin *known, const char *entry, int64_t origin)
{
    *known = (struct known_origin){
        .generation = generation_of(entry),
        .seen = known->seen,
        .seen_generation = known->seen_generation,
        .is = {.entry = origin, .high = word_load(entry, L_ORIGIN_HIGH_AT),
               .low = word_load(entry, L_ORIGIN_LOW_AT),
               .from = word_load(entry, L_ORIGIN_FROM_AT),
               .used = word_load(entry, L_ORIGIN_USED_AT)},
    };
}

int64_t origin_log_begin(origin_log *of, sb_queue *queue, int64_t number)
{
    *of = (origin_log){.queue = queue, .number = number,
                       .passed = -1}; /* what moved without a message is seen with the rest */
    int64_t code = room_for_all(of);
    for (int64_t each = 0; each < of->count && code == SB_OK; each++) {
        const char *entry = entry_at(queue, L_PRODUCERS + each);
        if (!is_known(entry))
            continue;
        adopt(&of->known[each], entry, L_PRODUCERS + each);
        of->known[each].is.number = number_of(entry);
    }
    return code;
}

void origin_log_leave_out(origin_log *of, const void *chunk)
{
    int64_t index = origin_of(chunk) - L_PRODUCERS;
    int64_t sequence = word_load(chunk, L_CHUNK_ORIGIN_AT) & L_SEQUENCE_MASK;
    if (index >= 0 && index < of->count && of->known[index].is.number >= sequence)
        of->known[index].is.number = sequence - 1;
}

int64_t origin_log_note(origin_log *of, int64_t position, const void *chunk, sb_journal *journal)
{
    int64_t origin = origin_of(chunk), index = origin - L_PRODUCERS, code = SB_OK;
    if (index < 0 || index >= origins_made(of->queue))
        return SB_OK;
    const char *entry = entry_at(of->queue, origin);
    if (!is_known(entry) || position < word_load(entry, L_ORIGIN_FROM_AT))
        return SB_OK; /* of one that was forgotten */
    code = room_for_all(of);
    if (code != SB_OK)
        return code;
    struct known_origin *known = &of->known[index];
    if (known->generation != generation_of(entry)) {
        adopt(known, entry, origin);
        code = stage_one(of, known, journal);
    }
    int64_t sequence = word_load(chunk, L_CHUNK_ORIGIN_AT) & L_SEQUENCE_MASK;
    if (code == SB_OK && known->is.number < sequence)
        known->is.number = sequence;
    return code;
}

int64_t origin_log_see(origin_log *of)
{
    int64_t passed = setting(of->queue, L_RING_ORIGINS_PASSED_AT);
    if (of->sees || passed == of->passed)
        return SB_OK;
    int64_t code = room_for_all(of);
    for (int64_t each = 0; each < of->count && code == SB_OK; each++) {
        const char *entry = entry_at(of->queue, L_PRODUCERS + each);
        if (!is_known(entry))
            continue;
        of->known[each].seen_generation = generation_of(entry);
        of->known[each].seen = number_of(entry);
    }
    of->passed = passed;
    of->sees = code == SB_OK;
    return code;
}

int64_t origin_log_stage_seen(origin_log *of, sb_journal *journal)
{
    int64_t code = SB_OK;
    for (int64_t each = 0; of->sees && each < of->count && code == SB_OK; each++) {
        struct known_origin *known = &of->known[each];
        const char *entry = entry_at(of->queue, L_PRODUCERS + each);
        int64_t seen = known->seen;
        if (seen == 0 || known->seen_generation != generation_of(entry))
            continue;
        if (known->generation != known->seen_generation)
            adopt(known, entry, L_PRODUCERS + each);
        known->seen = 0;
        if (seen <= known->is.number)
            continue;
        known->is.number = seen;
        code = stage_one(of, known, journal);
    }
    of->sees = false;
    return code;
}

int64_t origin_log_stage(const origin_log *of, sb_journal *journal)
{
    written_origin *body = of->count ? malloc((size_t)of->count * sizeof *body) : NULL;
    int64_t count = 0, now = realtime_ns();
    if (of->count && !body)
        return fail_system("memory for the streams of a durable queue");
    for (int64_t each = 0; each < of->count; each++) {
        struct known_origin *known = &of->known[each];
        const char *entry = entry_at(of->queue, L_PRODUCERS + each);
        if (known->generation < 0 || !is_known(entry) || known->generation != generation_of(entry))
            continue;
        bool is_owned = word_load(entry, L_ORIGIN_OWNER_AT);
        known->is.used = is_owned ? now : word_load(entry, L_ORIGIN_USED_AT);
        body[count++] = known->is;
    }
    int64_t code = count ? sb_journal_stage(journal, SB_RECORD_ORIGINS, of->number, 0, body,
                                            count * (int64_t)sizeof *body)
                         : SB_OK;
    free(body);
    return code;
}

void origin_log_end(origin_log *of)
{
    free(of->known);
    *of = (origin_log){0};
}

/* --- and reading ------------------------------------------------------------------------------ */

int64_t origin_read_record(origin_read *of, const sb_journal_record *record)
{
    const written_origin *each = record->body;
    int64_t left = record->length;
    if (!of->known && !(of->known = calloc(L_ORIGINS, sizeof *of->known)))
        return fail_system("memory for streams");
    for (; left >= (int64_t)sizeof *each; left -= (int64_t)sizeof *each, each++) {
        int64_t index = each->entry - L_PRODUCERS;
        if (index < 0 || index >= L_ORIGINS || each->number < 0 ||
            each->number > L_SEQUENCE_MASK)
            break;
        struct written_origin *known = &of->known[index];
        bool is_same = known->entry && known->from == each->from && known->high == each->high &&
                       known->low == each->low;
        int64_t number = is_same && known->number > each->number ? known->number : each->number;
        *known = *each;
        known->number = number;
        of->end = index >= of->end ? index + 1 : of->end;
    }
    if (left == 0)
        return SB_OK;
    return fail(SB_JOURNAL_DAMAGED,
                "segment %llx, byte %lld: a table of origins contradicts itself",
                (long long)record->serial, (long long)record->offset);
}

void origin_read_note(origin_read *of, int64_t position, const void *chunk)
{
    int64_t index = origin_of(chunk) - L_PRODUCERS;
    int64_t sequence = word_load(chunk, L_CHUNK_ORIGIN_AT) & L_SEQUENCE_MASK;
    if (index < 0 || index >= of->end || !of->known[index].entry ||
        position < of->known[index].from || of->known[index].number >= sequence)
        return;
    of->known[index].number = sequence;
}

int64_t origin_read_restore(const origin_read *of, sb_port *port, segment *ring)
{
    void *memory = ring->memory;
    int64_t slots = word_load(memory, L_RING_SLOTS_AT), ids = word_load(memory, L_RING_IDS_AT);
    int64_t room = L_PAGE_BYTES / L_ORIGIN_BYTES;
    if (of->end == 0)
        return SB_OK;
    while (room < of->end)
        room *= 2;
    room = room < L_ORIGINS ? room : L_ORIGINS;
    int64_t code = sb_system_allocate(ring->file, sb_ring_origins_at(slots, ids),
                                      room * L_ORIGIN_BYTES);
    if (code != SB_OK)
        return fail_system("memory for streams");
    word_store(memory, L_RING_ORIGINS_MADE_AT, room);
    for (int64_t index = 0; index < of->end; index++) {
        const written_origin *each = &of->known[index];
        if (!each->entry)
            continue;
        sb_port_origin_begin(port, each->entry, each->high, each->low, each->from, each->number);
        sb_port_origin_own(port, each->entry, 0, 0, each->used);
    }
    return SB_OK;
}

void origin_read_end(origin_read *of)
{
    free(of->known);
    *of = (origin_read){0};
}
