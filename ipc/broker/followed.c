/* The durable queues that the journaler follows: which there are, by the catalog; of each its gate,
 * which is adopted, its head, what is done with above that, and the times that are recorded.
 *
 * A queue's gate is its barrier: publishers wait until it has passed their message, and consumers
 * take up to it.  It is moved only after the sync (turn.c), by CAS from the word that says that it
 * is ours: a broker that was replaced finds that out there, and confirms nothing any more. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "broker/broker.h"
#include "broker/journaler.h"
#include "catalog/catalog.h"
#include "journal/journal.h"
#include "ring/ring.h"

#define RESERVE_OF_PAGES 3 /* one for what waited before, one for what came out, and the last */
#define DIGEST_PRIME UINT64_C(0x9E3779B97F4A7C15)

/* --- its gate and its head -------------------------------------------------------------------- */

static int64_t gate_of(const followed *each)
{
    return word_load(each->queue->ring.memory, L_RING_BARRIER_AT) - 1;
}

static int64_t adopt(followed *each)
{
    int64_t gate = gate_of(each);
    int64_t word = word_load(each->queue->ring.memory, L_RING_GATES_AT + gate * L_GATE_BYTES);
    int64_t former = (word >> L_GATE_OWNER_SHIFT) & L_OWNER_MASK;
    int64_t position = sb_port_gate_adopt(&each->port, gate, former);
    if (position < 0)
        return fail(SB_STALE, "queue '%s' has another journaler by now", each->queue->name);
    each->cursor = (sb_cursor){.port = &each->port, .position = position, .gate = gate};
    each->safe = each->adopted = position;
    each->retired = -1;
    /* the former one may have died between ringing a bell and waking who sleeps on it */
    sb_port_wake_all(&each->port);
    return SB_OK;
}

int64_t followed_head(const followed *each)
{
    return word_load(each->queue->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
}

static bool is_done(const followed *each, int64_t position)
{
    return (slot_word(each->queue, position) >> L_STATE_SHIFT & L_STATE_MASK) == L_DONE;
}

/* How far to look for what is done with: if there is no time for more, only as far as transactions
 * have acknowledged. */
static int64_t end_of_look(const followed *each, bool all)
{
    int64_t settled = word_load(each->queue->ring.memory, L_RING_ACKNOWLEDGED_AT);
    int64_t before = each->bits_head + 8 * each->bits_length;
    int64_t end = settled > before ? settled : before;
    return all || end > each->safe ? each->safe : end;
}

/* Move head as far as it goes, and see which messages behind it are done with.  (Head itself is
 * looked at afterwards.) */
int64_t followed_look_above(followed *each, bool all)
{
    while (sb_port_reclaim(&each->port) > 0)
        continue;
    int64_t head = followed_head(each), end = end_of_look(each, all);
    int64_t bytes = (end - head + 7) / 8;
    each->bits_head = head;
    each->bits_length = 0;
    if (bytes <= 0 || end - head > each->queue->slots)
        return SB_OK;
    if (bytes > each->bits_room) {
        unsigned char *room = realloc(each->bits, (size_t)bytes);
        if (!room)
            return fail_system("memory for what is retired");
        each->bits = room;
        each->bits_room = bytes;
    }
    memset(each->bits, 0, (size_t)bytes);
    each->digest = ((uint64_t)head + 1) * DIGEST_PRIME;
    for (int64_t position = head; position < end; position++)
        if (is_done(each, position)) {
            int64_t bit = position - head;
            each->bits[bit / 8] |= (unsigned char)(1 << bit % 8);
            each->digest = (each->digest ^ (uint64_t)position) * DIGEST_PRIME;
            each->bits_length = bit / 8 + 1;
        }
    return SB_OK;
}

bool followed_is_gone(const followed *each)
{
    return word_load(each->queue->row, 0) >> L_ROW_GENERATION_SHIFT != each->queue->live;
}

/* --- its times -------------------------------------------------------------------------------- */

/* The times of what is in an inbox are its queue's; the connection's mutex is held. */
static void recorder_begin(followed *each)
{
    sb_queue *recorded = each->queue;
    int64_t of = setting(each->queue, L_SETTING_INBOX_OF_AT);
    if (of && queue_handle(each->queue->connection, of, &recorded) != SB_OK)
        recorded = each->queue; /* it is gone, and nothing is recorded */
    atomic_fetch_add(&recorded->held, 1);
    each->recorder = (recorder){.queue = recorded, .kinds = L_KINDS};
}

/* When it was published, for `count_durable`.  What the pager has put into the ring was on disk
 * before, in the inbox; without memory a time is not recorded. */
void followed_note_published(followed *each, const sb_message *message)
{
    const sb_queue *queue = each->recorder.queue;
    int64_t sample = word_load(queue->ring.memory, L_RING_SAMPLE_AT);
    int64_t published = word_load(message->chunk, L_CHUNK_PUBLISHED_AT);
    int64_t producer = word_load(message->chunk, L_CHUNK_ORIGIN_AT) >> L_ORIGIN_PRODUCER_SHIFT;
    if (published == 0 || !sb_is_in_sample(message->position, sample) ||
        (each->queue->pages && producer != 0))
        return;
    if (each->published_count == each->published_room) {
        int64_t room = each->published_room ? 2 * each->published_room : 1024;
        int64_t *moved = realloc(each->published, (size_t)room * sizeof *moved);
        if (!moved)
            return;
        each->published = moved;
        each->published_room = room;
    }
    each->published[each->published_count++] = published;
}

void followed_count_durable(followed *each)
{
    if (each->published_count == 0)
        return;
    recorder_count(&each->recorder, L_PUBLISH_DURABLE, each->published, each->published_count);
    each->published_count = 0;
}

/* --- which there are -------------------------------------------------------------------------- */

void followed_free(followed *freed)
{
    if (freed->recorder.queue) {
        recorder_close(&freed->recorder);
        atomic_fetch_sub(&freed->recorder.queue->held, 1);
    }
    free(freed->published);
    dedup_log_end(&freed->once);
    free(freed->bits);
    free(freed);
}

static int64_t follow(sb_journaler *journaler, int64_t reference, const char *entry)
{
    sb_connection *connection = journaler->connection;
    if (journaler->count == journaler->room) {
        int64_t room = journaler->room ? 2 * journaler->room : 64;
        void *queues = realloc(journaler->queues, (size_t)room * sizeof *journaler->queues);
        journaler->queues = queues ? queues : journaler->queues;
        void *waits = realloc(journaler->waits, (size_t)room * sizeof *journaler->waits);
        journaler->waits = waits ? waits : journaler->waits;
        if (!queues || !waits)
            return fail_system("memory for %lld durable queues", (long long)room);
        journaler->room = room;
    }
    followed *made = NULL;
    if (posix_memalign((void **)&made, 128, sizeof *made) != 0)
        return fail_system("memory for a durable queue");
    memset(made, 0, sizeof *made);
    made->number = word_load(entry, L_QUEUE_IDENTITY_LOW_AT) & INT64_MAX;
    pthread_mutex_lock(&connection->mutex);
    int64_t code = queue_handle(connection, reference, &made->queue);
    if (code == SB_OK) {
        atomic_fetch_add(&made->queue->held, 1);
        recorder_begin(made);
    }
    pthread_mutex_unlock(&connection->mutex);
    if (code == SB_OK && !sb_is_durable(made->queue))
        code = fail(SB_DAMAGED, "queue '%s' is durable by its entry, and not by its ring",
                    made->queue->name);
    if (code == SB_OK)
        code = sb_port_open(&made->port, made->queue->ring.memory, made->queue->ring.bytes,
                            connection->arena.memory, connection->arena.bytes, connection->id);
    if (code == SB_OK)
        code = adopt(made);
    if (code == SB_OK)
        code = dedup_log_begin(&made->once, made->queue, made->number, &made->cursor);
    if (code != SB_OK) {
        if (made->queue)
            atomic_fetch_sub(&made->queue->held, 1);
        followed_free(made);
        return code == SB_NOT_FOUND ? SB_OK : code; /* deleted while we looked */
    }
    journaler->queues[journaler->count++] = made;
    journaler->by_row[reference & L_REFERENCE_INDEX_MASK] = made;
    return SB_OK;
}

static int64_t unfollow_gone(sb_journaler *journaler)
{
    int64_t kept = 0, gone = 0, code = SB_OK;
    for (int64_t each = 0; each < journaler->count; each++) {
        followed *one = journaler->queues[each];
        /* asked once: it may be deleted between two answers */
        bool leaves = code == SB_OK && followed_is_gone(one);
        if (leaves) {
            code =
                sb_journal_stage(journaler->journal, SB_RECORD_QUEUE_GONE, one->number, 0, "", 0);
            if (code == SB_OK)
                code = journal_retire_then(journaler->journal, one->number, SB_JOURNAL_ALL);
            if (code == SB_OK)
                code = dedup_log_gone(&one->once, journaler->journal);
        }
        if (leaves && code == SB_OK) {
            journaler->by_row[one->queue->reference & L_REFERENCE_INDEX_MASK] = NULL;
            atomic_fetch_sub(&one->queue->held, 1);
            followed_free(one);
            gone++;
        } else {
            journaler->queues[kept++] = one;
        }
    }
    journaler->count = kept;
    if (gone)
        deleted_forget(journaler->connection);
    return code;
}

static bool is_inbox(const followed *each)
{
    return setting(each->queue, L_SETTING_INBOX_OF_AT) != 0;
}

/* What comes out of pages goes through the journal, and makes nothing dead there before a whole
 * file of pages was read: so it needs more of a reserve. */
static void count_inboxes(sb_journaler *journaler)
{
    journaler->inboxes = 0;
    for (int64_t each = 0; each < journaler->count; each++)
        journaler->inboxes += is_inbox(journaler->queues[each]);
    journal_reserves(journaler->journal, journaler->inboxes ? RESERVE_OF_PAGES : 1);
}

/* Something was declared or deleted: note it, and follow what is durable. */
int64_t journaler_look_at_catalog(sb_journaler *journaler)
{
    char entry[L_ENTRY_BYTES];
    void *catalog = journaler->connection->catalog.memory;
    int64_t generation = word_load(catalog, L_CATALOG_GENERATION_AT), row = 0;
    if (generation == journaler->generation)
        return SB_OK;
    int64_t code = unfollow_gone(journaler);
    for (; code == SB_OK && (row = sb_row_next(catalog, L_QUEUES, row)) >= 0; row++) {
        int64_t flags = word_load(catalog, sb_catalog_entry_at(L_QUEUES, row) + L_QUEUE_FLAGS_AT);
        if (!(flags & L_QUEUE_DURABLE) || journaler->by_row[row])
            continue;
        int64_t reference = sb_row_copy(catalog, L_QUEUES, row, entry);
        if (reference >= 0 && (word_load(entry, L_QUEUE_FLAGS_AT) & L_QUEUE_DURABLE))
            code = follow(journaler, reference, entry);
    }
    uint64_t digest = catalog_digest(journaler->connection);
    if (code == SB_OK && digest != journaler->digest)
        code = catalog_stage(journaler->connection, journaler->journal);
    if (code == SB_OK) {
        count_inboxes(journaler);
        journaler->generation = generation;
        journaler->digest = digest;
    }
    return code;
}
