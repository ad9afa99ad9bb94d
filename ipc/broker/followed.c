/* The durable queues that the journaler follows: of each its gate, which is adopted, what is done
 * with above its head, and the times that are recorded.
 *
 * The barrier of a queue waits for that gate, and for those of replicas (replica.c).  It is moved
 * only after the sync (turn.c), by CAS
 * from the word that says that it is ours: a broker that was replaced finds that out there, and
 * confirms nothing any more. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "broker/broker.h"
#include "broker/journaler.h"
#include "catalog/catalog.h"
#include "follower/follower.h"
#include "journal/journal.h"
#include "ring/ring.h"

#define RESERVE_OF_PAGES 3 /* one for what waited before, one for what came out, and the last */

/* --- its gate and its head -------------------------------------------------------------------- */

static int64_t adopt(followed *each)
{
    int64_t gate = word_load(each->queue->ring.memory, L_RING_JOURNAL_GATE_AT) - 1;
    int64_t position = gate_seize(&each->port, each->queue, gate);
    if (position < 0)
        return fail(SB_STALE, "queue '%s' has another journaler by now", each->queue->name);
    each->cursor = (sb_cursor){.port = &each->port, .position = position, .gate = gate};
    each->safe = each->written = each->adopted = position;
    each->retired = -1;
    /* the former one may have died before it moved the barrier, or woke who sleeps on a bell */
    sb_port_barrier_raise(&each->port);
    sb_port_copied_below(&each->port, -1);
    sb_port_wake_all(&each->port);
    return SB_OK;
}

/* How far to look for what is done with: if there is no time for more, only as far as transactions
 * have acknowledged. */
static int64_t end_of_look(const followed *each, bool all)
{
    int64_t settled = word_load(each->queue->ring.memory, L_RING_ACKNOWLEDGED_AT);
    int64_t before = each->done.head + 8 * each->done.length;
    int64_t end = settled > before ? settled : before;
    return all || end > each->safe ? each->safe : end;
}

int64_t followed_look_above(followed *each, bool all)
{
    return retired_look(&each->done, each->queue, &each->port, end_of_look(each, all));
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
    if (ROOM_FOR(each->published, each->published_room, each->published_count + 1))
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
    free(freed->done.bits);
    free(freed);
}

static int64_t make_room(sb_journaler *journaler)
{
    if (journaler->following.count < journaler->room)
        return SB_OK;
    int64_t room = journaler->room ? 2 * journaler->room : 64;
    void *queues = realloc(journaler->queues, (size_t)room * sizeof *journaler->queues);
    journaler->queues = queues ? queues : journaler->queues;
    void *waits = realloc(journaler->waits, (size_t)room * sizeof *journaler->waits);
    journaler->waits = waits ? waits : journaler->waits;
    if (!queues || !waits)
        return fail_system("memory for %lld durable queues", (long long)room);
    journaler->room = room;
    return SB_OK;
}

int64_t journaler_concerned(const sb_journaler *journaler)
{
    return journaler->passes ? journaler->count : journaler->ready.count;
}

followed *journaler_concerns(const sb_journaler *journaler, int64_t index)
{
    return journaler->passes ? journaler->queues[index] : journaler->ready.ready[index]->of;
}

static int64_t came(void *context, sb_queue *queue, const char *entry, void **kept)
{
    sb_journaler *journaler = context;
    sb_connection *connection = journaler->connection;
    followed *made = NULL;
    int64_t code = make_room(journaler);
    if (code == SB_OK && posix_memalign((void **)&made, 128, sizeof *made) != 0)
        code = fail_system("memory for a durable queue");
    if (code != SB_OK)
        return code;
    memset(made, 0, sizeof *made);
    made->queue = queue;
    made->number = word_load(entry, L_QUEUE_IDENTITY_LOW_AT) & INT64_MAX;
    pthread_mutex_lock(&connection->mutex);
    recorder_begin(made);
    pthread_mutex_unlock(&connection->mutex);
    if (!sb_is_durable(queue))
        code = fail(SB_DAMAGED, "queue '%s' is durable by its entry, and not by its ring",
                    queue->name);
    if (code == SB_OK)
        code = sb_port_open(&made->port, queue->ring.memory, queue->ring.bytes,
                            connection->arena.memory, connection->arena.bytes, connection->id);
    if (code == SB_OK)
        code = adopt(made);
    if (code == SB_OK)
        replicas_follow(journaler, made);
    if (code == SB_OK)
        code = dedup_log_begin(&made->once, queue, made->number, &made->cursor);
    if (code == SB_OK)
        code = ready_add(&journaler->ready, &made->ready, queue, made);
    if (code == SB_OK)
        *kept = made;
    else
        followed_free(made);
    return code;
}

static int64_t gone(void *context, void *kept)
{
    sb_journaler *journaler = context;
    followed *one = kept;
    int64_t code = sb_journal_stage(journaler->journal, SB_RECORD_QUEUE_GONE, one->number, 0, "",
                                    0);
    if (code == SB_OK)
        code = journal_retire_then(journaler->journal, one->number, SB_JOURNAL_ALL);
    if (code == SB_OK)
        code = dedup_log_gone(&one->once, journaler->journal);
    if (code != SB_OK)
        return code;
    ready_drop(&journaler->ready, &one->ready);
    unfinished_forget(journaler, one);
    unplaced_forget(journaler, one);
    followed_free(one);
    return SB_OK;
}

static const following_user USER = {.came = came, .gone = gone};

int64_t journaler_follow(sb_journaler *journaler)
{
    following *of = &journaler->following;
    of->generation = journaler->generation = -1;
    ready_begin(&journaler->ready, journaler->connection,
                follower_bell_seize(journaler->connection, L_FOLLOWER_JOURNALER));
    journaler->passed_at = 0; /* who rang the bell until now has told nobody */
    if (of->references)
        return SB_OK; /* of a start that failed */
    return following_begin(of, journaler->connection, L_QUEUE_DURABLE, &USER, journaler);
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

int64_t journaler_look_at_queues(sb_journaler *journaler)
{
    following *of = &journaler->following;
    if (!following_is_behind(of))
        return SB_OK;
    int64_t code = following_look(of);
    for (int64_t each = 0; each < of->count; each++)
        journaler->queues[each] = of->rows[each].kept;
    journaler->count = of->count;
    if (code == SB_OK)
        count_inboxes(journaler);
    return code;
}

int64_t journaler_stage_catalog(sb_journaler *journaler)
{
    sb_connection *connection = journaler->connection;
    int64_t generation = sb_catalog_generation(connection->catalog.memory), code = SB_OK;
    if (generation == journaler->generation)
        return SB_OK;
    uint64_t digest = catalog_digest(connection);
    if (digest != journaler->digest)
        code = catalog_stage(connection, journaler->journal, &digest); /* it may have changed */
    if (code == SB_OK) {
        journaler->generation = generation;
        journaler->digest = digest;
    }
    return code;
}
