/* Histograms of the times that messages take (core/histogram.py, ipc/ring/recording.py).
 *
 * A queue's histograms are a segment of their own, which has a number; the ring says by this number
 * whether to count, and where.  A lane maps the segment and claims a stripe when it first counts,
 * and again when the number has changed: a segment never changes its range.  The dead one's stripes
 * are freed with whatever else it left in the queue. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define LOOKS 8
#define ONE_IN_MAX INT64_C(65536)

static void histograms_path(char *path, const char *home, int64_t reference, int64_t number)
{
    snprintf(path, NAME_ROOM, "%slatency-%lld-%lld-%lld", home,
             (long long)(reference & L_REFERENCE_INDEX_MASK),
             (long long)(reference >> L_REFERENCE_INDEX_BITS), (long long)number);
}

static int64_t attach(sb_connection *connection, int64_t reference, int64_t number,
                      segment *attached)
{
    char path[NAME_ROOM];
    histograms_path(path, connection->home, reference, number);
    int64_t code = segment_attach(attached, path, L_HISTOGRAMS_COUNTS_AT,
                                  &connection->whose);
    if (code != SB_OK)
        return code;
    code = sb_histograms_check(attached->memory, attached->bytes,
                               reference & L_REFERENCE_INDEX_MASK,
                               word_load(connection->catalog.memory, L_CATALOG_ARENA_AT));
    if (code == SB_OK)
        return SB_OK;
    segment_detach(attached);
    return fail(code, "%s: %s", path, sb_strerror(code));
}

/* What it says of itself, checked once more: the check's own reads may have been of other words. */
static int64_t range_of(const segment *attached, sb_histograms *told)
{
    told->lowest = word_load(attached->memory, L_HISTOGRAMS_LOWEST_AT);
    told->highest = word_load(attached->memory, L_HISTOGRAMS_HIGHEST_AT);
    told->digits = word_load(attached->memory, L_HISTOGRAMS_DIGITS_AT);
    told->length = sb_histogram_length(told->lowest, told->highest, told->digits);
    int64_t bytes = sb_histograms_bytes(told->lowest, told->highest, told->digits);
    return bytes < 0 || bytes > attached->bytes ? fail(SB_DAMAGED, "its histograms are damaged")
                                                : SB_OK;
}

static int64_t counts_at(int64_t stripe, int64_t length)
{
    return L_HISTOGRAMS_COUNTS_AT + stripe * sb_stripe_bytes(length);
}

static char *stripe_word(const segment *attached, int64_t stripe)
{
    return (char *)attached->memory + L_HISTOGRAMS_STRIPES_AT + stripe * L_PAIR_BYTES;
}

/* --- counting --------------------------------------------------------------------------------- */

void recorder_close(recorder *closed)
{
    if (closed->stripe)
        sb_stripe_release(closed->histograms.memory, closed->stripe,
                          closed->queue->connection->id);
    if (closed->number)
        segment_detach(&closed->histograms);
    closed->stripe = closed->number = 0;
}

void recorder_free(recorder *freed)
{
    freed->stripe = 0; /* who has left has returned it already */
    recorder_close(freed);
}

/* One that has memory, or else the first, which is everybody's. */
static int64_t stripe_take(recorder *with, int64_t length)
{
    int64_t id = with->queue->connection->id;
    int64_t stripe = sb_stripe_claim(with->histograms.memory, id);
    if (stripe == 0)
        return 0;
    if (sb_system_allocate(with->histograms.file, counts_at(stripe, length),
                           with->kinds * sb_histogram_bytes(length)) != SB_OK) {
        sb_stripe_release(with->histograms.memory, stripe, id);
        return 0;
    }
    char *word = stripe_word(&with->histograms, stripe) + L_STRIPE_COMMITTED_AT;
    if (word_load(word, 0) < with->kinds) /* more are left of whoever had it before */
        word_store(word, 0, with->kinds);
    return stripe;
}

static int64_t recorder_open(recorder *opened, int64_t number)
{
    sb_histograms told;
    recorder_close(opened);
    sb_queue *queue = opened->queue;
    int64_t code = attach(queue->connection, queue->reference, number, &opened->histograms);
    if (code != SB_OK)
        return code;
    opened->number = number;
    code = range_of(&opened->histograms, &told);
    if (code != SB_OK)
        return code;
    opened->stripe = stripe_take(opened, told.length);
    close(opened->histograms.file);
    opened->histograms.file = -1;
    char *counts = (char *)opened->histograms.memory + counts_at(opened->stripe, told.length);
    return sb_recording_open((int64_t *)opened, (int64_t *)counts, opened->stripe == 0,
                             told.lowest, told.highest, told.digits);
}

int64_t sb_system_recorder(int64_t recording)
{
    recorder *with = (recorder *)(intptr_t)recording;
    int64_t number = word_load(with->queue->ring.memory, L_RING_RECORDING_AT), code = SB_OK;
    if (number == 0 || number == with->refused)
        return SB_GONE;
    if (number != with->number)
        code = recorder_open(with, number);
    if (code != SB_OK) {
        log_note(with->queue->connection, "queue '%s': its times are not recorded: %s",
                 with->queue->name, sb_detail(code));
        recorder_close(with);
        with->refused = number;
        return code;
    }
    stamp_ns(&with->clock);
    stamp_settle(&with->clock);
    return SB_OK;
}

bool recorder_is_asked(const recorder *with)
{
    int64_t number = word_load(with->queue->ring.memory, L_RING_RECORDING_AT);
    return number != 0 && number != with->refused;
}

void recorder_count(recorder *with, int64_t kind, const int64_t *since, int64_t count)
{
    if (sb_system_recorder((int64_t)(intptr_t)with) != SB_OK)
        return;
    int64_t now = stamp_ns(&with->clock);
    for (int64_t each = 0; each < count; each++)
        sb_count_time((int64_t *)with, kind, now - since[each]);
}

int64_t latency_repair(sb_queue *queue, int64_t dead)
{
    segment histograms;
    int64_t number = word_load(queue->ring.memory, L_RING_HISTOGRAMS_AT);
    if (number == 0 ||
        attach(queue->connection, queue->reference, number, &histograms) != SB_OK)
        return 0;
    int64_t released = sb_stripes_release(histograms.memory, dead);
    segment_detach(&histograms);
    return released;
}

/* What the ring of a queue says, without mapping it: whether to record now, and the number of the
 * histograms that there are. */
static int64_t numbers_of(sb_connection *connection, int64_t reference, int64_t *recording,
                          int64_t *number)
{
    char path[NAME_ROOM];
    queue_path(path, connection->home, reference);
    int file;
    int64_t code = trusted_segment(path, O_RDONLY, &connection->whose, &file);
    if (code == SB_SYSTEM && errno == ENOENT)
        return fail(SB_NOT_FOUND, "the queue was deleted");
    if (code != SB_OK)
        return code;
    bool read = pread(file, recording, 8, L_RING_RECORDING_AT) == 8 &&
                pread(file, number, 8, L_RING_HISTOGRAMS_AT) == 8;
    close(file);
    return read ? SB_OK : fail(SB_TRUNCATED, "%s was cut short", path);
}

void latency_remove(sb_connection *connection, int64_t reference)
{
    char path[NAME_ROOM];
    int64_t recording, number;
    if (numbers_of(connection, reference, &recording, &number) != SB_OK || number == 0)
        return;
    histograms_path(path, connection->home, reference, number);
    unlink(path);
}

/* --- switching, under the catalog's lock ------------------------------------------------------ */

static int64_t make(sb_queue *queue, int64_t number, const sb_histograms *range)
{
    char path[NAME_ROOM];
    segment made;
    int64_t kinds = sb_is_durable(queue) ? L_KINDS : L_KINDS_COMMITTED;
    int64_t committed = counts_at(0, range->length) + kinds * sb_histogram_bytes(range->length);
    int64_t code = segment_make(
        &made, queue->connection->home,
        sb_histograms_bytes(range->lowest, range->highest, range->digits), committed);
    if (code != SB_OK)
        return code;
    sb_histograms_format(made.memory, range->lowest, range->highest, range->digits,
                         queue->reference & L_REFERENCE_INDEX_MASK,
                         word_load(queue->ring.memory, L_RING_ARENA_AT));
    word_store(stripe_word(&made, 0), L_STRIPE_COMMITTED_AT, kinds);
    histograms_path(path, queue->connection->home, queue->reference, number);
    unlink(path); /* left by one who died before the ring knew of it */
    code = segment_name(&made, path);
    segment_detach(&made);
    return code;
}

/* Start, in histograms of this range: those that there are, or new ones. */
static int64_t record_in(sb_queue *queue, const sb_histograms *asked)
{
    char path[NAME_ROOM];
    void *ring = queue->ring.memory;
    sb_histograms there = {.lowest = L_LOWEST_NS, .highest = L_HIGHEST_NS, .digits = L_DIGITS};
    segment attached;
    int64_t number = word_load(ring, L_RING_HISTOGRAMS_AT);
    if (number != 0 &&
        attach(queue->connection, queue->reference, number, &attached) == SB_OK) {
        if (range_of(&attached, &there) == SB_OK)
            there.number = number;
        segment_detach(&attached);
    }
    sb_histograms wanted = {.lowest = asked->lowest ? asked->lowest : there.lowest,
                            .highest = asked->highest ? asked->highest : there.highest,
                            .digits = asked->digits ? asked->digits : there.digits};
    wanted.length = sb_histogram_length(wanted.lowest, wanted.highest, wanted.digits);
    if (wanted.length < 0 || wanted.digits < 2)
        return fail(SB_INVALID,
                    "a histogram has 2 or 3 digits, and a range from at least 1 ns up to "
                    "twice that or more, at most %lld s, not %lld digits from %lld to %lld ns",
                    (long long)(L_HIGHEST_NS_MAX / 1000000000), (long long)wanted.digits,
                    (long long)wanted.lowest, (long long)wanted.highest);
    if (there.number == 0 || wanted.lowest != there.lowest || wanted.highest != there.highest ||
        wanted.digits != there.digits) {
        int64_t next = (number & INT64_C(0x7FFFFFFFFFFF)) + 1, code = make(queue, next, &wanted);
        if (code != SB_OK)
            return code;
        word_store(ring, L_RING_HISTOGRAMS_AT, next);
        histograms_path(path, queue->connection->home, queue->reference, number);
        unlink(path); /* who counts there goes on for one more message */
        number = next;
    }
    word_store(ring, L_RING_RECORDING_AT, number);
    return SB_OK;
}

int64_t sb_latency(sb_queue *queue, int64_t records, int64_t lowest_ns, int64_t highest_ns,
                   int64_t digits, int64_t one_in)
{
    if (one_in < 1 || one_in > ONE_IN_MAX || (one_in & (one_in - 1)))
        return fail(SB_INVALID, "one message in 1, 2, 4 ... %lld is recorded, not one in %lld",
                    (long long)ONE_IN_MAX, (long long)one_in);
    const sb_histograms asked = {.lowest = lowest_ns, .highest = highest_ns, .digits = digits};
    int64_t code = change_begin(queue->connection, NULL, NULL);
    if (code != SB_OK)
        return code;
    if (queue_is_usable(queue, &code)) {
        word_store(queue->ring.memory, L_RING_SAMPLE_AT, one_in - 1);
        if (records)
            code = record_in(queue, &asked);
        else
            word_store(queue->ring.memory, L_RING_RECORDING_AT, 0);
    }
    connection_unlock(queue->connection);
    return code;
}

/* --- reading ---------------------------------------------------------------------------------- */

int64_t sb_histograms_told(sb_connection *connection, int64_t reference, sb_histograms *told)
{
    segment attached;
    int64_t recording, number, code = atomic_load(&connection->closed);
    *told = (sb_histograms){0};
    for (int look = 0; code == SB_OK && look < LOOKS; look++) {
        code = numbers_of(connection, reference, &recording, &number);
        if (code != SB_OK || number == 0)
            return code;
        code = attach(connection, reference, number, &attached);
        if (code == SB_SYSTEM) {
            code = look + 1 < LOOKS ? SB_OK : code; /* another range was asked for just now */
            continue;
        }
        if (code == SB_OK) {
            code = range_of(&attached, told);
            told->kinds = word_load(stripe_word(&attached, 0), L_STRIPE_COMMITTED_AT);
            segment_detach(&attached);
        }
        told->number = number;
        told->recording = recording == number;
        return code;
    }
    return code;
}

int64_t sb_counts(sb_connection *connection, int64_t reference, int64_t number, int64_t kind,
                  int64_t *counts)
{
    segment attached;
    sb_histograms told;
    int64_t code = atomic_load(&connection->closed);
    if (code != SB_OK)
        return code;
    if (kind < 0 || kind >= L_KINDS)
        return fail(SB_INVALID, "times of kind %lld are not counted", (long long)kind);
    code = attach(connection, reference, number, &attached);
    if (code != SB_OK)
        return code == SB_SYSTEM ? fail(SB_GONE, "the queue has other histograms now") : code;
    code = range_of(&attached, &told);
    if (code == SB_OK)
        memset(counts, 0, (size_t)(told.length + 1) * 8);
    for (int64_t stripe = 0; code == SB_OK && stripe < L_STRIPES; stripe++) {
        if (word_load(stripe_word(&attached, stripe), L_STRIPE_COMMITTED_AT) <= kind)
            continue; /* it has no memory: to look could be a SIGBUS */
        int64_t at = counts_at(stripe, told.length) + kind * sb_histogram_bytes(told.length);
        sb_counts_add((int64_t *)((char *)attached.memory + at), told.length, counts);
    }
    segment_detach(&attached);
    return code;
}
