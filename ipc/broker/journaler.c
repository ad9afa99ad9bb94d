/* The journaler: one thread of the broker that follows all durable queues and writes what is new
 * into the journal.  Gather, one write, one sync, then the gates move: whatever came meanwhile is
 * in the next frame, so commits are shared by nature.  A large frame is handed to the disk bit by
 * bit while it is gathered, so that both work at once; the sync is one, at its end.
 *
 * A queue's gate is its barrier: publishers wait until it has passed their message, and consumers
 * take up to it.  It is moved only after the sync, by CAS from the word that says that it is ours:
 * a broker that was replaced finds that out there, and confirms nothing any more.
 *
 * All that a turn writes stood in the rings at one moment at which no transaction was half way
 * (gate.c): each queue up to its tail, and what was retired then.  If a transaction was committed
 * since the last turn, all of that is one frame, however large, with what is done with above the
 * heads.
 *
 * What is retired is written as the head of the ring, with or after the messages, and now and then
 * what is done with above it, too; it may lag, then a crash repeats the last few.  But a message is
 * never written before the head that made room for it, so that a reader needs no more slots than
 * the ring has.
 *
 * Whoever was stopped for so long that another host took over finds that out at its fence
 * (fence.c), before it writes, each time, and after the sync.
 *
 * Whoever is live by a lease writes and confirms until that runs out, and looks at its end at the
 * same two places.  A lease that has run out is over, also if its end is moved afterwards: whoever
 * moves it cannot know that we have not looked in between.
 *
 * All of it is done in this thread; the others look at `code`, and move `control` to wake it. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "broker/broker.h"
#include "catalog/catalog.h"
#include "commit/commit.h"
#include "journal/audit.h"
#include "journal/format.h"
#include "journal/journal.h"
#include "journal/writer.h"
#include "repair/repair.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define FRAME_BYTES (INT64_C(1) << 20) /* gathered at most; a larger one gains nothing */
#define SHARE_BYTES (INT64_C(16) << 10) /* of it at least for each queue that has something */
#define ALL_BYTES (INT64_C(1) << 62)
#define AHEAD_BYTES (INT64_C(256) << 10) /* handed to the disk while the rest is gathered */
#define IDLE_NS 100000000
#define RETIRE_NS 10000000 /* how long what is retired may wait for a frame of its own */
#define RETIRE_ABOVE_NS 100000000 /* and what is done with behind a message that is not */
#define SPIN_NS 50000      /* after work: about as long as being woken takes */
#define DISK_FULL_NS 100000000
#define MAPPED_BYTES (INT64_C(16) << 20)
#define TRIES 4 /* to see a moment without asking others to wait */
#define DIGEST_PRIME UINT64_C(0x9E3779B97F4A7C15)

typedef struct followed {
    sb_queue *queue;
    int64_t number; /* in the journal */
    sb_port port;
    sb_cursor cursor;
    bool is_declared; /* the journal knows that it is there */
    int64_t tail, head; /* at the moment that is written */
    int64_t seen;       /* the head, while the disk is full */
    unsigned char *bits; /* and what was done with above the head, at one before */
    int64_t bits_head, bits_length, bits_room;
    uint64_t digest;
    int64_t safe;    /* the gate stands here */
    int64_t adopted; /* and stood there when we took over */
    int64_t retired; /* the journal knows that all below is */
    uint64_t above;  /* a digest of what it knows to be done with above */
    int64_t until;   /* what is below is written before it stops */
    dedup_log once;
    recorder recorder; /* of its times from publish to the disk; an inbox's are its queue's */
    int64_t *published; /* when what is staged was, as far as it is recorded */
    int64_t published_count, published_room;
} followed;

struct sb_journaler {
    sb_connection *connection;
    sb_journal *journal;
    int folder; /* the journal's, to be looked at only */
    struct {
        bool runs; /* or has ended, and its code was not looked at */
        pthread_t thread;
        int64_t epoch, code;
        char why[256];
    } beginning;
    pthread_t thread;
    bool runs;
    _Atomic int64_t control, stopping;
    _Atomic int64_t code; /* SB_OK while it works; SB_DISK_FULL while it waits for room */
    followed **queues;
    sb_wait *waits;
    int64_t count, room;
    int64_t generation; /* of the catalog, when we looked at it last */
    uint64_t digest;    /* of the exchanges and bindings that the journal has */
    followed *by_row[L_QUEUE_ROWS];
    int64_t retired_at, above_at; /* when heads, and what is above them, were looked at last */
    commit_gate commit_gate;
    /* how many transactions at the moment; and of which all is in the journal */
    int64_t begun, whole;
    int64_t messages, bytes, mapped;
    int64_t commits, tidied; /* tidied: how many there were when it was looked what can go */
    int64_t ahead; /* of what is staged, so much was staged when the disk was told of it last */
    int64_t spin_ns;
    audit audit;
    bool lists_anew; /* the audit is done: all ends are known, and not listed yet */
    int64_t frame_bytes; /* gathered at most, unless a transaction has more */
    bool begins;         /* the journal has no segment yet, as there was no room for it */
    bool audits;         /* it was not read */
    fence fence;
    _Atomic int64_t *beat; /* told when each turn began, or NULL */
    char why[512];         /* the journaler has ended */
};

/* --- following -------------------------------------------------------------------------------- */

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

static int64_t head_of(const followed *each)
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
static int64_t look_above(followed *each, bool all)
{
    while (sb_port_reclaim(&each->port) > 0)
        continue;
    int64_t head = head_of(each), end = end_of_look(each, all);
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

static int64_t stage_retired(sb_journaler *journaler, followed *each)
{
    if (each->head <= each->retired)
        return SB_OK;
    int64_t code =
        sb_journal_stage(journaler->journal, SB_RECORD_RETIRED, each->number, each->head, "", 0);
    if (code == SB_OK)
        each->retired = each->head;
    return code;
}

static int64_t stage_retired_above(sb_journaler *journaler, followed *each)
{
    if (each->bits_length == 0 || each->digest == each->above)
        return stage_retired(journaler, each);
    int64_t code = sb_journal_stage(journaler->journal, SB_RECORD_RETIRED, each->number,
                                    each->bits_head, each->bits, each->bits_length);
    if (code == SB_OK) {
        each->retired = each->bits_head > each->retired ? each->bits_head : each->retired;
        each->above = each->digest;
        code = stage_retired(journaler, each);
    }
    return code;
}

static int64_t stage_declaration(sb_journaler *journaler, followed *each)
{
    char entry[L_ENTRY_BYTES], body[DECLARATION_ROOM];
    void *catalog = journaler->connection->catalog.memory;
    int64_t row = each->queue->reference & L_REFERENCE_INDEX_MASK;
    if (sb_row_copy(catalog, L_QUEUES, row, entry) != each->queue->reference)
        return SB_OK; /* it was deleted meanwhile: we are about to hear of it */
    int64_t length = declaration_of(each->queue, entry, body);
    if (length < 0)
        return SB_OK; /* and so was the queue whose schedule it is */
    return sb_journal_stage(journaler->journal, SB_RECORD_QUEUE, each->number, each->head, body,
                            length);
}

/* It was declared, or is from before: not before the moment at which its head was seen. */
static int64_t stage_news(sb_journaler *journaler, followed *each)
{
    if (each->is_declared)
        return SB_OK;
    int64_t code = stage_declaration(journaler, each);
    if (code == SB_OK)
        code = dedup_log_stage(&each->once, &each->port, each->safe, journaler->journal);
    each->is_declared = code == SB_OK;
    return code;
}

static void followed_free(followed *freed)
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

static bool is_gone(const followed *each)
{
    return word_load(each->queue->row, 0) >> L_ROW_GENERATION_SHIFT != each->queue->live;
}

static int64_t unfollow_gone(sb_journaler *journaler)
{
    int64_t kept = 0, gone = 0, code = SB_OK;
    for (int64_t each = 0; each < journaler->count; each++) {
        followed *one = journaler->queues[each];
        /* asked once: it may be deleted between two answers */
        bool leaves = code == SB_OK && is_gone(one);
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

/* Something was declared or deleted: note it, and follow what is durable. */
static int64_t look_at_catalog(sb_journaler *journaler)
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
        journaler->generation = generation;
        journaler->digest = digest;
    }
    return code;
}

/* Which queues there are, and so that all others are gone: the segment that says so of one of them
 * is not kept, and of one that was deleted while nobody was live, none says so. */
static int64_t stage_queues(sb_journaler *journaler, sb_journal *journal)
{
    int64_t *numbers = malloc((size_t)(journaler->count + 1) * sizeof *numbers);
    if (!numbers)
        return fail_system("memory for a list of queues");
    for (int64_t each = 0; each < journaler->count; each++)
        numbers[each] = journaler->queues[each]->number;
    int64_t code = sb_journal_stage(journal, SB_RECORD_QUEUES, 0, 0, numbers,
                                    journaler->count * (int64_t)sizeof *numbers);
    if (code == SB_OK)
        code = journal_retire_others(journal, numbers, journaler->count);
    free(numbers);
    return code;
}

/* What a new segment begins with: all that must be known but the messages. */
static int64_t snapshot(sb_journal *journal, void *context)
{
    sb_journaler *journaler = context;
    int64_t code = catalog_stage(journaler->connection, journal);
    if (code == SB_OK)
        code = stage_queues(journaler, journal);
    for (int64_t each = 0; each < journaler->count && code == SB_OK; each++) {
        followed *one = journaler->queues[each];
        one->above = 0; /* the segment that knows it may go */
        one->is_declared = true;
        code = stage_declaration(journaler, one);
        if (code == SB_OK)
            code = stage_retired_above(journaler, one);
        if (code == SB_OK)
            code = dedup_log_stage(&one->once, &one->port, one->cursor.position, journal);
    }
    return code;
}

/* --- one turn --------------------------------------------------------------------------------- */

/* A large frame is on its way to the disk before all of it is gathered. */
static int64_t write_ahead(sb_journaler *journaler)
{
    int64_t code = fence_check(&journaler->fence);
    if (code == SB_OK)
        code = sb_journal_ahead(journaler->journal);
    journaler->ahead = sb_journal_staged(journaler->journal);
    return code;
}

/* When it was published, for `count_durable`.  What the pager has put into the ring was on disk
 * before, in the inbox; without memory a time is not recorded. */
static void note_published(followed *each, const sb_message *message)
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

static void count_durable(followed *each)
{
    if (each->published_count == 0)
        return;
    recorder_count(&each->recorder, L_PUBLISH_DURABLE, each->published, each->published_count);
    each->published_count = 0;
}

/* All of a queue that stood there at the moment, or, if no transaction is in it, its share. */
static int64_t gather(sb_journaler *journaler, followed *each, int64_t share)
{
    sb_message message;
    int64_t staged = sb_journal_staged(journaler->journal), end = staged + share;
    bool records = recorder_is_asked(&each->recorder);
    while (staged < end) {
        if (each->cursor.position >= each->tail)
            return SB_OK;
        int64_t code = sb_cursor_next(&each->cursor, &message);
        if (code == SB_EMPTY)
            return SB_OK;
        if (code == SB_DAMAGED) {
            log_note(journaler->connection, "queue '%s': message %lld is damaged, and not in the "
                     "journal", each->queue->name, (long long)each->cursor.position);
            each->cursor.position++;
            continue;
        }
        if (code != SB_OK)
            return fail(SB_STALE, "queue '%s': its gate was taken from us", each->queue->name);
        const int64_t position = message.position; /* duplicates were passed over */
        if (position >= each->tail) {
            each->cursor.position = position;
            return SB_OK;
        }
        if (each->retired < 0 || position - each->retired >= each->queue->slots)
            code = stage_retired(journaler, each);
        if (code == SB_OK)
            code = dedup_log_note(&each->once, &each->port, message.chunk, journaler->journal);
        if (code == SB_OK)
            code = sb_journal_stage(journaler->journal, SB_RECORD_MESSAGE, each->number, position,
                                    message.chunk,
                                    (const char *)message.body + message.length -
                                        (const char *)message.chunk);
        if (code != SB_OK) {
            each->cursor.position = position;
            return code;
        }
        if (records)
            note_published(each, &message);
        journaler->messages++;
        journaler->bytes += message.length;
        staged = sb_journal_staged(journaler->journal);
        if (staged - journaler->ahead >= AHEAD_BYTES && (code = write_ahead(journaler)) != SB_OK)
            return code;
    }
    return SB_OK;
}

/* --- what the journal has lost ---------------------------------------------------------------- */

static void found_in_journal(int64_t queue, int64_t first, int64_t last, void *context)
{
    sb_journaler *journaler = context;
    audit_found(&journaler->audit, queue, first, last);
}

static void damaged_in_journal(const char *what, void *context)
{
    sb_journaler *journaler = context;
    journaler->audit.damaged++;
    log_note(journaler->connection, "journal: %s: what is needed of it is written anew from memory",
             what);
}

static int64_t begin_audit(sb_journaler *journaler)
{
    int64_t code = SB_OK;
    for (int64_t index = 0; index < journaler->count && code == SB_OK; index++) {
        const followed *each = journaler->queues[index];
        int64_t head = head_of(each), least = each->adopted - each->queue->slots;
        code = audit_add(&journaler->audit, each->number, head > least ? head : least,
                         each->adopted);
    }
    audit_begin(&journaler->audit);
    return code;
}

/* Lists of ids that a damaged segment had are in no other. */
static int64_t stage_lists(sb_journaler *journaler)
{
    int64_t code = SB_OK;
    for (int64_t index = 0; index < journaler->count && code == SB_OK; index++) {
        followed *each = journaler->queues[index];
        dedup_log_again(&each->once);
        code = dedup_log_stage(&each->once, &each->port, each->cursor.position,
                                journaler->journal);
    }
    return code;
}

static void end_audit(sb_journaler *journaler)
{
    journal_audit_done(journaler->journal);
    journaler->lists_anew = true;
    audit_end(&journaler->audit);
}

/* What is not in the journal any more, a frame at a time: publishers do not wait for all of it. */
static int64_t stage_lost(sb_journaler *journaler)
{
    audit *audit = &journaler->audit;
    int64_t code = SB_OK;
    if (!audit->runs)
        return SB_OK;
    if (!audit->is_read) {
        audit->is_read = journal_audit(journaler->journal);
        if (audit->is_read && audit->damaged)
            code = stage_lists(journaler);
    }
    if (!audit->is_read)
        return SB_OK;
    int64_t most = sb_journal_staged(journaler->journal) + FRAME_BYTES;
    for (int64_t index = 0; index < journaler->count && code == SB_OK; index++) {
        followed *each = journaler->queues[index];
        code = audit_stage(audit, each->queue, &each->port, each->number, journaler->journal, most);
    }
    if (code == SB_OK)
        end_audit(journaler);
    return code == SB_EMPTY ? SB_OK : code;
}

/* It is committed.  From now on the ends of all segments of before are known, also to whoever comes
 * after us. */
static int64_t list_anew(sb_journaler *journaler)
{
    if (!journaler->lists_anew)
        return SB_OK;
    if (journaler->audit.missed)
        log_note(journaler->connection, "journal: %lld confirmed messages were missing in it, and "
                 "are written anew from memory", (long long)journaler->audit.missed);
    journaler->audit.missed = 0;
    int64_t code = fence_check(&journaler->fence);
    if (code == SB_OK)
        code = journal_list_anew(journaler->journal);
    journaler->lists_anew = code == SB_DISK_FULL;
    return code == SB_DISK_FULL ? SB_OK : code;
}

static int64_t share_of_each(const sb_journaler *journaler)
{
    int64_t busy = 0;
    for (int64_t index = 0; index < journaler->count; index++)
        busy += journaler->queues[index]->cursor.position < journaler->queues[index]->tail;
    int64_t share = busy > 1 ? journaler->frame_bytes / busy : journaler->frame_bytes;
    return share > SHARE_BYTES ? share : SHARE_BYTES;
}

static int64_t move_gates(sb_journaler *journaler)
{
    for (int64_t index = 0; index < journaler->count; index++) {
        followed *each = journaler->queues[index];
        if (each->cursor.position != each->safe) {
            if (sb_cursor_release(&each->cursor) < 0)
                return fail(SB_STALE, "queue '%s': its gate was taken from us", each->queue->name);
            each->safe = each->cursor.position;
            sb_port_gate_moved(&each->port);
            count_durable(each);
        }
        dedup_log_committed(&each->once, journaler->journal);
        if (each->retired > 0)
            sb_journal_retire(journaler->journal, each->number, each->retired);
    }
    return SB_OK;
}

static void beat(sb_journaler *journaler)
{
    if (journaler->beat)
        atomic_store_explicit(journaler->beat, sb_system_clock(), memory_order_relaxed);
}

static void told(sb_journaler *journaler, int64_t code)
{
    if (atomic_exchange(&journaler->code, code) != code)
        sb_system_wake((int64_t)(intptr_t)&journaler->code, INT32_MAX);
}

/* What was read is in our page tables, and if we are killed without a exit helper the kernel takes
 * it out before it lets go of our locks: 70 ms a GiB, in which nobody is live.  With one, it takes
 * the processor from who takes over.  So we do it bit by bit; the memory stays. */
static void unmap_what_was_read(sb_journaler *journaler)
{
    segment *arena = &journaler->connection->arena;
    if (journaler->bytes - journaler->mapped < MAPPED_BYTES)
        return;
    madvise(arena->memory, (size_t)arena->bytes, MADV_DONTNEED);
    journaler->mapped = journaler->bytes;
}

/* --- one moment ------------------------------------------------------------------------------- */

/* What was retired, then heads, then tails.  So what has replaced a message, or was made of it
 * before it was dropped, is in the frame that retires it, or was before.  A message that came since
 * may be more than a ring ahead of the head that is written: it has to wait, for there is no slot
 * for it.  None of a transaction is: nobody has committed since. */
static int64_t see(sb_journaler *journaler, bool above, bool all)
{
    int64_t code = SB_OK;
    for (int64_t index = 0; index < journaler->count && code == SB_OK && above; index++)
        code = look_above(journaler->queues[index], all);
    for (int64_t index = 0; index < journaler->count; index++)
        journaler->queues[index]->head = head_of(journaler->queues[index]);
    for (int64_t index = 0; index < journaler->count; index++) {
        followed *each = journaler->queues[index];
        int64_t tail = sb_port_true_tail(&each->port), most = each->head + each->queue->slots;
        /* if it is wrong, the cursor tells */
        each->tail = tail < 0 ? INT64_MAX : tail < most ? tail : most;
    }
    return code;
}

/* See all queues at a moment at which no transaction is half way. */
static int64_t see_a_moment(sb_journaler *journaler, bool above)
{
    sb_connection *connection = journaler->connection;
    for (int tries = 0;; tries++) {
        int64_t code = look_at_catalog(journaler);
        if (tries >= TRIES)
            commit_gate_close(&journaler->commit_gate);
        int64_t begun = commit_gate_begun(connection);
        bool whole = begun != journaler->whole;
        if (code == SB_OK && whole)
            commit_gate_clear(&journaler->commit_gate);
        if (code == SB_OK && whole && begun != commit_gate_begun(connection))
            continue;
        if (code == SB_OK)
            code = see(journaler, above || whole, above);
        int64_t generation = word_load(connection->catalog.memory, L_CATALOG_GENERATION_AT);
        if (code == SB_OK &&
            (begun != commit_gate_begun(connection) || generation != journaler->generation))
            continue; /* one has come in, or may have, in a queue that we do not follow yet */
        commit_gate_open(&journaler->commit_gate);
        journaler->begun = begun;
        return code;
    }
}

/* --- one turn --------------------------------------------------------------------------------- */

static int64_t stage_all(sb_journaler *journaler, bool all, int64_t now)
{
    bool above = all || now - journaler->above_at >= RETIRE_ABOVE_NS;
    int64_t code = see_a_moment(journaler, above);
    bool whole = journaler->begun != journaler->whole;
    for (int64_t each = 0; each < journaler->count && code == SB_OK; each++)
        code = stage_news(journaler, journaler->queues[each]);
    int64_t share = whole ? ALL_BYTES : share_of_each(journaler);
    for (int64_t each = 0; each < journaler->count && code == SB_OK; each++)
        code = gather(journaler, journaler->queues[each], share);
    if (code == SB_OK)
        code = stage_lost(journaler);
    bool is_time = above || whole || now - journaler->retired_at >= RETIRE_NS;
    if (code != SB_OK || (!is_time && !sb_journal_staged(journaler->journal)))
        return code;
    for (int64_t each = 0; each < journaler->count && code == SB_OK; each++)
        code = above || whole ? stage_retired_above(journaler, journaler->queues[each])
                              : stage_retired(journaler, journaler->queues[each]);
    journaler->retired_at = now;
    journaler->above_at = above ? now : journaler->above_at;
    return code;
}

/* --- a full disk ------------------------------------------------------------------------------ */

/* Heads that have moved on since the frame that waits was gathered.  As long as no queue was
 * deleted meanwhile, and nothing was copied from one to another, by a transaction or as a dead
 * letter, they say only that messages are done with, and need nothing of that frame. */
static bool see_heads(sb_journaler *journaler)
{
    for (int64_t index = 0; index < journaler->count; index++) {
        followed *each = journaler->queues[index];
        if (is_gone(each))
            continue;
        while (sb_port_reclaim(&each->port) > 0)
            continue;
        each->seen = head_of(each);
    }
    void *catalog = journaler->connection->catalog.memory;
    return journaler->begun == journaler->whole &&
           commit_gate_begun(journaler->connection) == journaler->whole &&
           word_load(catalog, L_CATALOG_GENERATION_AT) == journaler->generation;
}

/* Otherwise a head goes only with all that was copied before it moved: into the same frame. */
static int64_t stage_heads(sb_journaler *journaler, bool alone)
{
    if (!alone)
        return stage_all(journaler, true, sb_system_clock());
    int64_t code = SB_OK;
    for (int64_t index = 0; index < journaler->count && code == SB_OK; index++)
        code = stage_retired(journaler, journaler->queues[index]);
    return code;
}

/* What was acknowledged makes segments dead.  It is written ahead of what waits, where each segment
 * keeps room for that, or together with it, into the reserve. */
static int64_t make_room(sb_journaler *journaler)
{
    int64_t code = SB_OK;
    bool alone = see_heads(journaler);
    for (int64_t index = 0; index < journaler->count && alone && code == SB_OK; index++) {
        followed *each = journaler->queues[index];
        each->head = each->seen > each->head ? each->seen : each->head;
        code = journal_retire_then(journaler->journal, each->number, each->head);
    }
    if (code == SB_OK && alone && journal_relieve(journaler->journal) > 0)
        return SB_OK;
    if (code == SB_OK)
        code = stage_heads(journaler, alone);
    for (int64_t index = 0; index < journaler->count && code == SB_OK; index++) {
        followed *each = journaler->queues[index];
        code = journal_retire_then(journaler->journal, each->number, each->retired);
    }
    return code;
}

static int64_t wait_for_room(sb_journaler *journaler, int64_t code)
{
    if (atomic_load(&journaler->code) != SB_DISK_FULL) {
        log_note(journaler->connection, "journal: %s", sb_detail(code));
        snprintf(journaler->why, sizeof journaler->why, "%s", sb_detail(code));
    }
    told(journaler, SB_DISK_FULL);
    if (atomic_load(&journaler->stopping))
        return code;
    sb_system_wait((int64_t)(intptr_t)&journaler->control, atomic_load(&journaler->control),
                   DISK_FULL_NS);
    beat(journaler);
    return fence_check(&journaler->fence);
}

static int64_t commit(sb_journaler *journaler)
{
    int64_t code = fence_check(&journaler->fence);
    if (code == SB_OK)
        code = sb_journal_commit(journaler->journal);
    while (code == SB_DISK_FULL) {
        /* nothing is lost: it stays staged, publishers wait, and what they publish waits in
         * rings */
        code = wait_for_room(journaler, code);
        if (code != SB_OK) /* also if it is stopped, and the disk still full */
            break;
        code = make_room(journaler);
        if (code == SB_OK)
            code = journal_commit_full(journaler->journal);
    }
    if (code == SB_OK)
        code = fence_check(&journaler->fence);
    if (code != SB_OK)
        return code;
    told(journaler, SB_OK);
    journaler->commits++;
    code = move_gates(journaler);
    unmap_what_was_read(journaler);
    return code;
}

/* --- a whole turn ----------------------------------------------------------------------------- */

/* Write what is new: how many bytes of the log, or a code. */
static int64_t turn(sb_journaler *journaler, bool all)
{
    beat(journaler);
    int64_t code = fence_lease(&journaler->fence); /* also if nothing is to be done */
    if (code == SB_OK)
        code = fence_look(&journaler->fence);
    if (code == SB_OK)
        code = stage_all(journaler, all, sb_system_clock());
    if (code != SB_OK)
        return code;
    int64_t staged = sb_journal_staged(journaler->journal);
    code = staged ? commit(journaler) : SB_OK;
    if (code == SB_OK)
        code = list_anew(journaler);
    if (code != SB_OK)
        return code;
    journaler->ahead = 0;
    journaler->whole = journaler->begun;
    commit_gate_journaled(&journaler->commit_gate, journaler->whole);
    return staged;
}

/* --- the thread ------------------------------------------------------------------------------- */

/* Arm the bells, then look: is there something to do?  (waiting.py has the handshake.) */
static bool is_quiet(sb_journaler *journaler)
{
    sb_connection *connection = journaler->connection;
    bool quiet = true;
    sb_bell_arm((int64_t *)((char *)connection->arena.memory + L_ARENA_JOURNALER_BELL_AT));
    for (int64_t each = 0; each < journaler->count; each++)
        quiet &= sb_cursor_wait(&journaler->queues[each]->cursor, 0) == SB_EMPTY;
    return quiet && commit_gate_begun(connection) == journaler->whole &&
           word_load(connection->catalog.memory, L_CATALOG_GENERATION_AT) == journaler->generation;
}

/* Between two long sleeps somebody has to look after the queues: these are as good as any. */
static void repair_queues(sb_journaler *journaler)
{
    for (int64_t each = 0; each < journaler->count; each++)
        journaler->waits[each] = (sb_wait){.queue = journaler->queues[each]->queue};
    rings_repair(journaler->waits, journaler->count);
}

static void rest(sb_journaler *journaler)
{
    int64_t seen = atomic_load(&journaler->control), until = sb_system_clock() + IDLE_NS;
    int64_t bell =
        (int64_t)(intptr_t)journaler->connection->arena.memory + L_ARENA_JOURNALER_BELL_AT;
    const system_word words[] = {{(int64_t)(intptr_t)&journaler->control, seen}, {bell, 1}};
    if (!is_quiet(journaler) || atomic_load(&journaler->stopping))
        return;
    if (system_wait_any(words, 2, until) != SB_EMPTY)
        return;
    repair_queues(journaler);
    if (fence_check(&journaler->fence) != SB_OK)
        return;
    journal_rests(journaler->journal);
    if (journaler->tidied == journaler->commits)
        return; /* nothing can have become dead */
    journaler->tidied = journal_is_known(journaler->journal) ? journaler->commits : -1;
    /* others may need the room; if it fails, a commit says so */
    sb_journal_clear(journaler->journal);
}

/* Write what is there now: publishers may go on, so what comes meanwhile is the next one's. */
static int64_t drain(sb_journaler *journaler)
{
    for (int64_t each = 0; each < journaler->count; each++) {
        followed *one = journaler->queues[each];
        one->until = is_gone(one) ? 0 : sb_port_true_tail(&one->port);
    }
    int64_t code;
    bool behind;
    do {
        code = turn(journaler, true);
        behind = false;
        for (int64_t each = 0; each < journaler->count; each++)
            behind |= journaler->queues[each]->safe < journaler->queues[each]->until;
    } while (code > 0 && behind);
    return code;
}

/* A segment to write into, as soon as there is room for one; then all that a start does. */
static int64_t begin_late(sb_journaler *journaler)
{
    int64_t code;
    while ((code = sb_journal_begin(journaler->journal, journaler->beginning.epoch)) ==
           SB_DISK_FULL)
        if ((code = wait_for_room(journaler, code)) != SB_OK)
            return code;
    if (code == SB_OK)
        code = turn(journaler, false);
    return code >= 0 && journaler->audits ? begin_audit(journaler) : code;
}

static void *work(void *context)
{
    sb_journaler *journaler = context;
    int64_t code = journaler->begins ? begin_late(journaler) : SB_OK, spin_end = 0;
    while (code >= SB_OK && !atomic_load(&journaler->stopping)) {
        code = turn(journaler, false);
        int64_t now = sb_system_clock();
        if (code > 0)
            spin_end = now + journaler->spin_ns;
        else if (code == SB_OK && now >= spin_end)
            rest(journaler);
    }
    if (code >= 0)
        code = drain(journaler);
    if (code < 0) {
        log_note(journaler->connection, "journal: %s: %s", sb_strerror(code), sb_detail(code));
        snprintf(journaler->why, sizeof journaler->why, "%s", sb_detail(code));
    }
    /* stopped while the disk is full: what is not written is not confirmed, and waits in the
     * rings */
    told(journaler, code < 0 && code != SB_DISK_FULL ? code : SB_CLOSED);
    return NULL;
}

int64_t sb_journaler_prepare(const char *folder, int64_t segment_bytes, const void *node,
                             sb_journaler **made)
{
    sb_journaler *journaler = calloc(1, sizeof *journaler);
    if (!journaler)
        return fail_system("memory for a journaler");
    const sb_journal_options options = {.segment_bytes = segment_bytes, .node = node,
                                        .snapshot = snapshot,
                                        .context = journaler,
                                        .reserve = 1};
    int64_t code = sb_journal_prepare(folder, &options, &journaler->journal);
    if (code != SB_OK) {
        free(journaler);
        return code;
    }
    journal_audited_by(journaler->journal, &(journal_auditor){found_in_journal, damaged_in_journal,
                                                              journaler});
    journaler->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    journaler->fence.file = -1;
    journaler->frame_bytes = FRAME_BYTES;
    if (segment_bytes > 0 && segment_bytes / 2 < FRAME_BYTES)
        journaler->frame_bytes = segment_bytes / 2;
    journaler->spin_ns = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? SPIN_NS : 0;
    *made = journaler;
    return SB_OK;
}

void sb_journaler_watched(sb_journaler *journaler, int fence, int64_t *beat)
{
    journaler->fence.file = fence;
    journaler->beat = (_Atomic int64_t *)beat;
}

int64_t sb_journaler_placed(sb_journaler *journaler, const char *folder, const char *fence)
{
    fence_end(&journaler->fence); /* of a start that failed */
    int64_t code = fence_place(&journaler->fence, journaler->folder, folder);
    return code == SB_OK ? fence_place(&journaler->fence, journaler->fence.file, fence) : code;
}

void sb_journaler_leased(sb_journaler *journaler, const int64_t *until_ns)
{
    journaler->fence.lease = (const _Atomic int64_t *)until_ns;
}

int64_t sb_journaler_prepared(sb_journaler *journaler)
{
    return journal_prepared(journaler->journal);
}

static void *begin(void *context)
{
    sb_journaler *journaler = context;
    int64_t code = sb_journal_begin(journaler->journal, journaler->beginning.epoch);
    snprintf(journaler->beginning.why, sizeof journaler->beginning.why, "%s", sb_detail(code));
    journaler->beginning.code = code;
    return NULL;
}

int64_t sb_journaler_begin(sb_journaler *journaler, int64_t epoch)
{
    if (journaler->runs || journaler->beginning.runs)
        return fail(SB_INVALID, "the journaler has begun already");
    journaler->beginning.epoch = epoch;
    int64_t code = thread_start(&journaler->beginning.thread, begin, journaler,
                                "the journal's beginning");
    journaler->beginning.runs = code == SB_OK;
    return code;
}

static int64_t has_begun(sb_journaler *journaler, int64_t epoch)
{
    if (!journaler->beginning.runs)
        return sb_journal_begin(journaler->journal, epoch);
    pthread_join(journaler->beginning.thread, NULL);
    journaler->beginning.runs = false;
    if (journaler->beginning.code != SB_OK)
        return fail(journaler->beginning.code, "%s", journaler->beginning.why);
    if (journaler->beginning.epoch != epoch)
        return fail(SB_INVALID, "the journaler has begun with another epoch");
    return SB_OK;
}

int64_t sb_journaler_start(sb_journaler *journaler, sb_connection *connection, int64_t epoch,
                           const sb_replay *replay)
{
    if (journaler->runs)
        return fail(SB_INVALID, "the journaler runs already");
    if (!participant_lock_journal(connection))
        return fail(SB_IN_USE, "another broker writes the journal of vhost '%s' already",
                    connection->vhost);
    journaler->connection = connection;
    participant_repairs(connection);
    journaler->generation = -1;
    journaler->whole = commit_gate_whole(connection);
    journaler->commit_gate.connection = connection;
    journaler->commit_gate.is_closed = true; /* by a former one, perhaps */
    fence_begin(&journaler->fence, epoch);
    atomic_store(&journaler->stopping, 0);
    atomic_store(&journaler->code, SB_OK);
    int64_t code = replay ? sb_journal_adopt(journaler->journal, replay) : SB_OK;
    if (code == SB_OK)
        code = has_begun(journaler, epoch);
    journaler->begins = code == SB_DISK_FULL;
    if (journaler->begins) {
        journaler->beginning.epoch = epoch;
        code = SB_OK;
    }
    /* what is done with above the heads is in the segments of before, as far as it must be: to look
     * through all that is queued can wait, publishers cannot */
    journaler->above_at = sb_system_clock();
    if (code == SB_OK && !journaler->begins) {
        atomic_store(&journaler->stopping, 1); /* a full disk is waited for by the thread */
        code = turn(journaler, false); /* what is wrong is told to the caller, not to the log */
        code = turn(journaler, false); /* what is wrong is told to the caller, not to the log */
        atomic_store(&journaler->stopping, 0);
        code = code == SB_DISK_FULL ? SB_OK : code;
    }
    journaler->audits = !replay;
    if (code >= 0 && !journaler->begins && journaler->audits)
        code = begin_audit(journaler);
    if (code >= 0)
        code = thread_start(&journaler->thread, work, journaler, "the journaler");
    if (code < 0) {
        participant_unlock_journal(connection);
        return code;
    }
    journaler->runs = true;
    return SB_OK;
}

int64_t sb_journaler_code(sb_journaler *journaler)
{
    return atomic_load(&journaler->code);
}

int64_t sb_journaler_await(sb_journaler *journaler, int64_t seen, int64_t timeout_ns)
{
    if (atomic_load(&journaler->code) == seen)
        sb_system_wait((int64_t)(intptr_t)&journaler->code, seen, timeout_ns);
    return atomic_load(&journaler->code);
}

const char *sb_journaler_why(sb_journaler *journaler)
{
    return journaler->why;
}

int64_t sb_journaler_stop(sb_journaler *journaler)
{
    if (!journaler->runs)
        return SB_OK;
    atomic_store(&journaler->stopping, 1);
    atomic_fetch_add(&journaler->control, 1);
    sb_system_wake((int64_t)(intptr_t)&journaler->control, 1);
    pthread_join(journaler->thread, NULL);
    journaler->runs = false;
    participant_unlock_journal(journaler->connection);
    int64_t code = atomic_load(&journaler->code);
    return code == SB_CLOSED ? SB_OK : code;
}

int64_t sb_journaler_statistics_of(sb_journaler *journaler, sb_journal_statistics *told)
{
    return sb_journal_statistics_of(journaler->journal, told);
}

void sb_journaler_free(sb_journaler *journaler)
{
    sb_journaler_stop(journaler);
    if (journaler->beginning.runs)
        pthread_join(journaler->beginning.thread, NULL);
    for (int64_t each = 0; each < journaler->count; each++)
        followed_free(journaler->queues[each]);
    sb_journal_close(journaler->journal);
    audit_end(&journaler->audit);
    fence_end(&journaler->fence);
    if (journaler->folder >= 0)
        close(journaler->folder);
    free(journaler->queues);
    free(journaler->waits);
    free(journaler);
}
