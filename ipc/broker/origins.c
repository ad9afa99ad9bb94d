/* What the journal has of the origins of a queue (core/origin.py): how far each stream from
 * elsewhere is in what is on disk.
 *
 * A message's record has the number of its origin's entry and its own number in the chunk.  So a
 * record more is written when an entry is met for the first time, with whose it is and from which
 * position on; and, when a segment begins, of all entries.  In a restored ring each origin is as
 * far as its last message that is in the journal: both are in one frame, or neither.
 *
 *     origins     entry, identity (two words), number, from, used, kept, ranges, (first, last)... |
 *
 * The ranges are those of its open numbers (core/open_number.py), -1: it has none, for its numbers
 * may have gaps.  What messages say of them needs no record: one that is higher leaves a gap, one
 * below the highest is a retry.
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
    int64_t entry, high, low, number, from, used, kept, ranges;
} written_origin;

struct known_origin {
    int64_t generation; /* the entry's when it was read; -1: never */
    int64_t seen, seen_generation; /* its number at a moment, to be written later */
    open_numbers open, seen_open;
    open_numbers left_out; /* and are neither highest nor open yet */
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
    return word_load(entry, L_ORIGIN_STATE_AT) & L_ORIGIN_KNOWN;
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

static bool is_counted(const struct known_origin *known)
{
    return known->is.ranges >= 0;
}

static int64_t bytes_of(const struct known_origin *known)
{
    return (int64_t)sizeof known->is + known->open.count * (int64_t)sizeof *known->open.ranges;
}

/* What the journal has of it; how long that is. */
static int64_t written(char *to, struct known_origin *known)
{
    int64_t bytes = bytes_of(known);
    known->is.ranges = is_counted(known) ? known->open.count : -1;
    memcpy(to, &known->is, sizeof known->is);
    if (known->open.count)
        memcpy(to + sizeof known->is, known->open.ranges, (size_t)bytes - sizeof known->is);
    return bytes;
}

static int64_t stage_one(const origin_log *of, struct known_origin *known, sb_journal *journal)
{
    char *body = malloc((size_t)bytes_of(known));
    if (!body)
        return fail_system("memory for the streams of a durable queue");
    int64_t code = sb_journal_stage(journal, SB_RECORD_ORIGINS, of->number, 0, body,
                                    written(body, known));
    free(body);
    return code;
}

/* Take over whose it is; it has no number in the journal yet.  What was seen of it stays. */
static void adopt(struct known_origin *known, const char *entry, int64_t origin)
{
    bool is_counted = word_load(entry, L_ORIGIN_STATE_AT) == L_ORIGIN_COUNTED;
    open_end(&known->open);
    *known = (struct known_origin){
        .generation = generation_of(entry),
        .seen = known->seen,
        .seen_generation = known->seen_generation,
        .seen_open = known->seen_open,
        .is = {.entry = origin, .high = word_load(entry, L_ORIGIN_HIGH_AT),
               .low = word_load(entry, L_ORIGIN_LOW_AT),
               .from = word_load(entry, L_ORIGIN_FROM_AT),
               .used = word_load(entry, L_ORIGIN_USED_AT),
               .kept = word_load(entry, L_ORIGIN_KEPT_AT),
               .ranges = is_counted ? 0 : -1},
    };
}

/* The open numbers of all streams as the ring has them, after their highest ones were read: those
 * up to these are all there. */
static int64_t read_open(origin_log *of)
{
    int64_t code = SB_OK;
    if (setting(of->queue, L_RING_ORIGINS_OPEN_AT) == 0)
        return code;
    for (int64_t each = 0; each < of->count && code == SB_OK; each++) {
        const char *entry = entry_at(of->queue, L_PRODUCERS + each);
        int64_t owner = word_load(entry, L_ORIGIN_OF_AT);
        int64_t index = (owner & L_SEQUENCE_MASK) - L_PRODUCERS;
        int64_t number = word_load(entry, L_ORIGIN_MISSED_AT);
        if (word_load(entry, L_ORIGIN_STATE_AT) != L_ORIGIN_OPEN || number_of(entry) != 0 ||
            index < 0 || index >= of->count)
            continue;
        struct known_origin *known = &of->known[index];
        if (known->seen_generation == owner >> L_POSITION_BITS && 0 < number &&
            number < known->seen)
            code = open_add(&known->seen_open, number, number);
    }
    return code;
}

/* How far all streams are in the ring. */
static int64_t read_all(origin_log *of)
{
    int64_t code = room_for_all(of);
    for (int64_t each = 0; each < of->count && code == SB_OK; each++) {
        const char *entry = entry_at(of->queue, L_PRODUCERS + each);
        struct known_origin *known = &of->known[each];
        known->seen_open.count = known->seen = 0;
        if (!is_known(entry))
            continue;
        known->seen_generation = generation_of(entry);
        known->seen = number_of(entry);
    }
    return code == SB_OK ? read_open(of) : code;
}

int64_t origin_log_begin(origin_log *of, sb_queue *queue, int64_t number)
{
    *of = (origin_log){.queue = queue, .number = number,
                       .passed = -1}; /* what moved without a message is seen with the rest */
    int64_t code = read_all(of);
    for (int64_t each = 0; each < of->count && code == SB_OK; each++) {
        const char *entry = entry_at(queue, L_PRODUCERS + each);
        struct known_origin *known = &of->known[each];
        if (!is_known(entry) || generation_of(entry) != known->seen_generation)
            continue;
        adopt(known, entry, L_PRODUCERS + each);
        known->is.number = known->seen;
        known->open = known->seen_open;
        known->seen_open = (open_numbers){0};
    }
    return code;
}

int64_t origin_log_leave_out(origin_log *of, const void *chunk)
{
    int64_t index = origin_of(chunk) - L_PRODUCERS;
    int64_t sequence = word_load(chunk, L_CHUNK_ORIGIN_AT) & L_SEQUENCE_MASK;
    if (index < 0 || index >= of->count || of->known[index].is.number < sequence)
        return SB_OK;
    if (is_counted(&of->known[index]))
        return open_add(&of->known[index].left_out, sequence, sequence);
    of->known[index].is.number = sequence - 1;
    return SB_OK;
}

int64_t origin_log_left_out(origin_log *of)
{
    int64_t code = SB_OK;
    for (int64_t each = 0; each < of->count; each++) {
        struct known_origin *known = &of->known[each];
        open_numbers *left = &known->left_out;
        for (int64_t range = 0; range < left->count && code == SB_OK; range++)
            code = open_add(&known->open, left->ranges[range].first, left->ranges[range].last);
        if (left->count) { /* the highest of the others is the highest */
            int64_t begin = open_begin_of(&known->open, known->is.number);
            known->is.number = begin ? begin - 1 : known->is.number;
            open_cut(&known->open, known->is.number);
        }
        open_end(left);
    }
    return code;
}

/* A message is in the journal. */
static int64_t note(struct known_origin *known, const void *chunk)
{
    int64_t sequence = word_load(chunk, L_CHUNK_ORIGIN_AT) & L_SEQUENCE_MASK;
    if (is_counted(known))
        return open_note(&known->open, &known->is.number, sequence);
    known->is.number = sequence > known->is.number ? sequence : known->is.number;
    return SB_OK;
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
    return code == SB_OK ? note(known, chunk) : code;
}

int64_t origin_log_see(origin_log *of)
{
    int64_t passed = setting(of->queue, L_RING_ORIGINS_PASSED_AT);
    if (passed == of->passed)
        return SB_OK;
    int64_t code = read_all(of); /* anew, also if what was seen before is not written yet */
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
        if (seen <= known->is.number && !is_counted(known))
            continue;
        if (is_counted(known))
            code = open_merge(&known->open, &known->is.number, &known->seen_open, seen);
        else
            known->is.number = seen;
        code = code == SB_OK ? stage_one(of, known, journal) : code;
    }
    of->sees = false;
    return code;
}

int64_t origin_log_stage(const origin_log *of, sb_journal *journal)
{
    int64_t bytes = 0, room = 0, now = realtime_ns();
    for (int64_t each = 0; each < of->count; each++)
        room += bytes_of(&of->known[each]);
    char *body = room ? malloc((size_t)room) : NULL;
    if (room && !body)
        return fail_system("memory for the streams of a durable queue");
    for (int64_t each = 0; each < of->count; each++) {
        struct known_origin *known = &of->known[each];
        const char *entry = entry_at(of->queue, L_PRODUCERS + each);
        if (known->generation < 0 || !is_known(entry) || known->generation != generation_of(entry))
            continue;
        bool is_owned = word_load(entry, L_ORIGIN_OWNER_AT);
        known->is.used = is_owned ? now : word_load(entry, L_ORIGIN_USED_AT);
        known->is.kept = word_load(entry, L_ORIGIN_KEPT_AT);
        bytes += written(body + bytes, known);
    }
    int64_t code = bytes ? sb_journal_stage(journal, SB_RECORD_ORIGINS, of->number, 0, body, bytes)
                         : SB_OK;
    free(body);
    return code;
}

static void forget_all(struct known_origin *known, int64_t count)
{
    for (int64_t each = 0; each < count; each++) {
        open_end(&known[each].open);
        open_end(&known[each].seen_open);
        open_end(&known[each].left_out);
    }
    free(known);
}

void origin_log_end(origin_log *of)
{
    forget_all(of->known, of->count);
    *of = (origin_log){0};
}

/* --- and reading ------------------------------------------------------------------------------ */

/* Its part of a record: how long that is, 0 if it contradicts itself. */
static int64_t part_read(const char *at, int64_t left, struct known_origin *read)
{
    int64_t size = (int64_t)sizeof read->is, last = -1;
    if (left < size)
        return 0;
    memcpy(&read->is, at, sizeof read->is);
    int64_t index = read->is.entry - L_PRODUCERS, ranges = read->is.ranges;
    if (index < 0 || index >= L_ORIGINS || read->is.number < 0 ||
        read->is.number > L_SEQUENCE_MASK || ranges < -1 ||
        ranges > (left - size) / (int64_t)sizeof(number_range))
        return 0;
    for (int64_t each = 0; each < ranges; each++) {
        number_range range;
        memcpy(&range, at + size + each * (int64_t)sizeof range, sizeof range);
        if (range.first <= last + 1 || range.last < range.first ||
            range.last >= read->is.number || open_add(&read->open, range.first, range.last))
            return 0;
        last = range.last;
    }
    return size + (ranges > 0 ? ranges * (int64_t)sizeof(number_range) : 0);
}

/* What was read of an entry counts with what was known of the same origin. */
static int64_t read_too(struct known_origin *known, struct known_origin *read)
{
    bool is_same = known->is.entry && known->is.from == read->is.from &&
                   known->is.high == read->is.high && known->is.low == read->is.low;
    int64_t number = known->is.number, code = SB_OK;
    if (is_same && is_counted(read)) {
        code = open_merge(&known->open, &number, &read->open, read->is.number);
        open_end(&read->open);
        known->is = read->is;
        known->is.number = number;
        return code;
    }
    if (is_same && number > read->is.number)
        read->is.number = number;
    open_end(&known->open);
    *known = *read;
    return code;
}

int64_t origin_read_record(origin_read *of, const sb_journal_record *record)
{
    const char *at = record->body;
    int64_t left = record->length, part = 1, code = SB_OK;
    if (!of->known && !(of->known = calloc(L_ORIGINS, sizeof *of->known)))
        return fail_system("memory for streams");
    while (left > 0 && part > 0 && code == SB_OK) {
        struct known_origin read = {0};
        part = part_read(at, left, &read);
        int64_t index = read.is.entry - L_PRODUCERS;
        if (part == 0) {
            open_end(&read.open);
            break;
        }
        code = read_too(&of->known[index], &read);
        of->end = index >= of->end ? index + 1 : of->end;
        at += part;
        left -= part;
    }
    if (left == 0 || code != SB_OK)
        return code;
    return fail(SB_JOURNAL_DAMAGED,
                "segment %llx, byte %lld: a table of origins contradicts itself",
                (long long)record->serial, (long long)record->offset);
}

int64_t origin_read_note(origin_read *of, int64_t position, const void *chunk)
{
    int64_t index = origin_of(chunk) - L_PRODUCERS;
    if (index < 0 || index >= of->end || !of->known[index].is.entry ||
        position < of->known[index].is.from)
        return SB_OK;
    return note(&of->known[index], chunk);
}

/* Its open numbers; too many are none that a producer knows of: the highest are. */
static int64_t restore_open(const struct known_origin *known, sb_port *port)
{
    int64_t left = L_OPEN_NUMBERS_MAX, code = SB_OK;
    for (int64_t each = known->open.count - 1; each >= 0 && code == SB_OK; each--)
        for (int64_t number = known->open.ranges[each].last;
             number >= known->open.ranges[each].first && left > 0 && code == SB_OK;
             number--, left--)
            code = sb_port_number_open(port, sb_port_origin_unused(port), known->is.entry, number);
    return code;
}

static int64_t entries_of(const struct known_origin *known)
{
    int64_t count = 1;
    for (int64_t each = 0; each < known->open.count && count <= L_OPEN_NUMBERS_MAX; each++)
        count += known->open.ranges[each].last - known->open.ranges[each].first + 1;
    return count <= L_OPEN_NUMBERS_MAX ? count : L_OPEN_NUMBERS_MAX + 1;
}

int64_t origin_read_restore(const origin_read *of, sb_port *port, segment *ring)
{
    void *memory = ring->memory;
    int64_t slots = word_load(memory, L_RING_SLOTS_AT), ids = word_load(memory, L_RING_IDS_AT);
    int64_t room = L_PAGE_BYTES / L_ORIGIN_BYTES, wanted = 0;
    if (of->end == 0)
        return SB_OK;
    for (int64_t index = 0; index < of->end; index++)
        wanted += entries_of(&of->known[index]);
    while (room < wanted)
        room *= 2;
    room = room < L_ORIGINS ? room : L_ORIGINS;
    int64_t code = sb_system_allocate(ring->file, sb_ring_origins_at(slots, ids),
                                      room * L_ORIGIN_BYTES);
    if (code != SB_OK)
        return fail_system("memory for streams");
    word_store(memory, L_RING_ORIGINS_MADE_AT, room);
    for (int64_t index = 0; index < of->end; index++) {
        const struct known_origin *known = &of->known[index];
        const written_origin *is = &known->is;
        if (!is->entry)
            continue;
        sb_port_origin_begin(port, is->entry, is->high, is->low, is->from, is->number,
                             is_counted(known));
        sb_port_origin_keep(port, is->entry, is->kept);
        sb_port_origin_own(port, is->entry, 0, 0, is->used);
    }
    for (int64_t index = 0; index < of->end && code == SB_OK; index++)
        code = of->known[index].is.entry ? restore_open(&of->known[index], port) : SB_OK;
    return code;
}

void origin_read_end(origin_read *of)
{
    forget_all(of->known, of->known ? L_ORIGINS : 0);
    *of = (origin_read){0};
}
