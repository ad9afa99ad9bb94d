/* Showing a moment: what belongs to it is there in all replicas, or in none, also after a death.
 *
 * What is to be done is written into a file of the vhost's home first; then it is done; then the
 * file says that nothing is.  Whoever comes after somebody who was killed in between does the rest:
 * all of it again, which changes nothing where it was done.  The file is in memory, as the rings
 * are, and goes with them.
 *
 * To the journaler a moment of durable replicas is a transaction (core/commit.py): so all of it is
 * one frame.  The next one is shown when that frame is confirmed.  Then the journal's gates have
 * passed all that is there, so whatever is done with is free at once, and positions that never came
 * are passed over (replica_begin). */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "commit/commit.h"
#include "follower/follower.h"
#include "queue_replica/copy.h"
#include "queue_replica/queue_replica.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define KEPT_BYTES 4096             /* of a file that was made just now */
#define KEPT_BYTES_MAX (1 << 20)    /* it is not left longer than this */

/* The file begins so. */
typedef struct kept_head {
    int64_t bytes; /* that follow, 0: nothing is being shown */
    int64_t arena; /* the identity of the vhost's: made again, it has another */
} kept_head;

/* Then, of each replica. */
typedef struct kept {
    int64_t reference, head, end;
    int64_t length; /* of the bits that follow */
    int64_t count;  /* of what is staged, behind them */
} kept;

/* --- one replica ------------------------------------------------------------------------------ */

static bool is_done(const copy *one, int64_t position)
{
    int64_t bit = position - one->head;
    return bit < 0 || (bit / 8 < one->length && one->bits[bit / 8] >> bit % 8 & 1);
}

/* Whether its slots are enough: before anything of it is seen. */
static bool has_slots(copy *one)
{
    int64_t first = one->head;
    while (first < one->end && is_done(one, first))
        first++;
    if (one->end - first <= one->queue->slots)
        return true;
    one->code = SB_FULL;
    one->failed_at = first + one->queue->slots;
    return false;
}

/* The journaler looks so far for what is done with. */
static void note_done(copy *one)
{
    _Atomic int64_t *end =
        (_Atomic int64_t *)((char *)one->queue->ring.memory + L_RING_ACKNOWLEDGED_AT);
    int64_t tail = copy_tail(one->queue), most = one->head + 8 * one->length;
    most = most < tail ? most : tail;
    if (atomic_load(end) < most)
        atomic_store(end, most);
}

/* What makes room first: it was done with before what follows came.  Only what was here before is
 * looked at for what came back: a message that was taken there before it was copied is a hole from
 * the beginning. */
static int64_t show(copy *one)
{
    const int64_t bits = (int64_t)(intptr_t)one->bits, known = copy_tail(one->queue);
    note_done(one);
    int64_t code = sb_port_replica_retire(&one->port, one->head);
    if (code == SB_OK)
        code = sb_port_replica_retire_above(&one->port, one->head, bits, one->length);
    for (int64_t each = 0; each < one->count && code == SB_OK; each++) {
        const staged *next = &one->staged[each];
        if (is_done(one, next->position))
            continue;
        one->failed_at = next->position;
        code = sb_port_replica_place(&one->port, next->chunk, next->position);
    }
    if (code == SB_OK)
        code = sb_port_replica_holes(&one->port, one->end);
    if (code == SB_OK)
        code = sb_port_replica_retire_above(&one->port, one->head, bits, one->length);
    if (code == SB_OK && !one->is_compared)
        one->revived = sb_port_replica_revived(&one->port, one->head, bits, one->length,
                                               one->end < known ? one->end : known);
    one->is_compared = true;
    if (one->revived)
        code = SB_STALE;
    one->count = 0;
    one->has_news = false;
    if (code < 0)
        one->code = code;
    return code;
}

/* --- the file --------------------------------------------------------------------------------- */

static int64_t file_made(const char *path)
{
    segment made;
    int64_t code = segment_make(&made, path, KEPT_BYTES, KEPT_BYTES);
    if (code == SB_OK)
        code = segment_name(&made, path);
    segment_detach(&made);
    return code == SB_EXISTS ? SB_OK : code;
}

int64_t moment_open(sb_connection *connection, int *file)
{
    char path[NAME_ROOM];
    vhost_path(path, connection->home, "moment");
    int64_t code = access(path, F_OK) == 0 ? SB_OK : file_made(path);
    return code == SB_OK ? trusted_segment(path, O_RDWR, &connection->whose, file) : code;
}

static int64_t write_at(int file, const void *from, int64_t bytes, int64_t at)
{
    for (int64_t done = 0; done < bytes;) {
        ssize_t some = pwrite(file, (const char *)from + done, (size_t)(bytes - done), at + done);
        if (some < 0 && errno != EINTR)
            return fail_system("memory for a moment of replicas");
        done += some > 0 ? some : 0;
    }
    return SB_OK;
}

static int64_t kept_bytes(const copy *one)
{
    return (int64_t)sizeof(kept) + one->length + one->count * (int64_t)sizeof(staged);
}

static char *keep_one(char *to, const copy *one)
{
    const kept head = {.reference = one->queue->reference, .head = one->head, .end = one->end,
                       .length = one->length, .count = one->count};
    memcpy(to, &head, sizeof head);
    to += sizeof head;
    if (one->length)
        memcpy(to, one->bits, (size_t)one->length);
    to += one->length;
    if (one->count)
        memcpy(to, one->staged, (size_t)one->count * sizeof *one->staged);
    return to + one->count * (int64_t)sizeof *one->staged;
}

static bool is_to_be_shown(const copy *one)
{
    return one->code == SB_OK && one->has_news;
}

static int64_t arena_of(const sb_connection *connection)
{
    return word_load(connection->transactions.memory, L_TRANSACTIONS_ARENA_AT);
}

/* The length comes last: with it all of the rest is there. */
static int64_t keep(sb_copies *all)
{
    int64_t bytes = 0;
    for (const copy *one = all->first; one; one = one->following)
        bytes += is_to_be_shown(one) ? kept_bytes(one) : 0;
    char *made = malloc((size_t)bytes + 1), *to = made;
    if (!made)
        return fail_system("memory for a moment of replicas");
    for (const copy *one = all->first; one; one = one->following)
        to = is_to_be_shown(one) ? keep_one(to, one) : to;
    const kept_head head = {.bytes = bytes, .arena = arena_of(all->connection)};
    int64_t code = write_at(all->file, made, bytes, sizeof head);
    if (code == SB_OK)
        code = write_at(all->file, &head, sizeof head, 0);
    free(made);
    return code;
}

static int64_t forget(int file)
{
    static const kept_head nothing = {0};
    int64_t code = write_at(file, &nothing, sizeof nothing, 0);
    off_t length = lseek(file, 0, SEEK_END);
    if (code == SB_OK && length > KEPT_BYTES_MAX && ftruncate(file, KEPT_BYTES) != 0)
        code = fail_system("memory for a moment of replicas");
    return code;
}

/* --- the moment ------------------------------------------------------------------------------- */

static bool is_any_durable(const sb_copies *all)
{
    for (const copy *one = all->first; one; one = one->following)
        if (is_to_be_shown(one) && one->queue->durable)
            return true;
    return false;
}

static void look_at_all(sb_copies *all)
{
    int64_t code;
    for (copy *one = all->first; one; one = one->following) {
        one->is_looked_at = is_to_be_shown(one) && queue_look(one->queue, &code);
        one->has_news = one->has_news && one->is_looked_at;
        if (one->is_looked_at && !has_slots(one))
            one->has_news = false;
    }
}

static int64_t looked_at_all(sb_copies *all)
{
    int64_t failed = 0;
    for (copy *one = all->first; one; one = one->following) {
        if (one->is_looked_at)
            queue_looked(one->queue);
        one->is_looked_at = false;
        failed += one->code != SB_OK;
    }
    return failed;
}

/* To who follows the replicas in turn it is a transaction: what is read behind it is of another
 * moment. */
int64_t sb_copies_show(sb_copies *all)
{
    void *transactions = all->connection->transactions.memory;
    look_at_all(all);
    bool is_durable = is_any_durable(all);
    int64_t code = keep(all);
    if (code == SB_OK && is_durable) {
        commit_gate_wait(all->connection);
        all->stamp = sb_commit_show(transactions);
    } else if (code == SB_OK) {
        commit_count_plain(all->connection);
    }
    for (copy *one = all->first; one && code == SB_OK; one = one->following)
        if (is_to_be_shown(one))
            show(one);
    sb_commit_shown(transactions);
    if (code == SB_OK)
        code = forget(all->file);
    int64_t failed = looked_at_all(all);
    if (is_durable)
        follower_rouse(all->connection, L_FOLLOWER_JOURNALER);
    return code == SB_OK ? failed : code;
}

static bool is_confirmed_up_to(sb_connection *connection, int64_t stamp)
{
    const void *memory = connection->transactions.memory;
    return word_load(memory, L_TRANSACTIONS_CONFIRMED_AT) >= stamp;
}

int64_t sb_copies_confirmed(sb_copies *all)
{
    bool confirmed = true;
    int64_t code;
    for (copy *one = all->first; one && confirmed; one = one->following)
        if (one->queue->durable && queue_look(one->queue, &code)) {
            confirmed = is_confirmed_up_to(all->connection, all->stamp) &&
                        confirmed_below(one->queue) >= copy_tail(one->queue);
            queue_looked(one->queue);
        }
    return confirmed;
}

/* --- after a death ---------------------------------------------------------------------------- */

static int64_t finish_one(sb_connection *connection, const kept *head, char *bits, staged *all)
{
    copy one = {.head = head->head, .end = head->end, .bits = bits, .length = head->length,
                .staged = all, .count = head->count, .is_compared = true};
    int64_t code = queue_find(connection, head->reference, &one.queue);
    if (code != SB_OK)
        return SB_OK; /* it was deleted, or is another one by now */
    if (word_load(one.queue->ring.memory, L_RING_CLOSED_AT)) {
        code = port_to_look(one.queue, &one.port);
        if (code == SB_OK)
            code = show(&one);
    }
    if (code != SB_OK)
        log_note(connection, "replica '%s': %s: it shows a moment in half", one.queue->name,
                 sb_strerror(code));
    queue_looked(one.queue);
    return SB_OK;
}

static int64_t finish(sb_connection *connection, char *at, int64_t bytes)
{
    int64_t code = SB_OK;
    for (char *end = at + bytes; at < end && code == SB_OK;) {
        kept head;
        if (end - at < (int64_t)sizeof head)
            return fail(SB_DAMAGED, "a moment of replicas is cut off");
        memcpy(&head, at, sizeof head);
        at += sizeof head;
        if (head.length < 0 || head.length % 8 || head.length > end - at || head.count < 0 ||
            head.count > (end - at - head.length) / (int64_t)sizeof(staged))
            return fail(SB_DAMAGED, "a moment of replicas contradicts itself");
        code = finish_one(connection, &head, at, (staged *)(void *)(at + head.length));
        at += head.length + head.count * (int64_t)sizeof(staged);
    }
    return code;
}

static int64_t read_and_finish(sb_connection *connection, int file, int64_t bytes)
{
    void *transactions = connection->transactions.memory;
    char *read = malloc((size_t)bytes);
    if (!read)
        return fail_system("memory for a moment of replicas");
    int64_t code = pread(file, read, (size_t)bytes, sizeof(kept_head)) == bytes
                       ? SB_OK : fail(SB_DAMAGED, "a moment of replicas is cut off");
    if (code == SB_OK) {
        sb_commit_show(transactions);
        code = finish(connection, read, bytes);
    }
    free(read);
    return code;
}

int64_t moment_finish(sb_connection *connection, int file)
{
    kept_head head;
    if (pread(file, &head, sizeof head, 0) != sizeof head)
        return fail_system("looking at a moment of replicas");
    int64_t code = head.bytes > 0 && head.arena == arena_of(connection)
                       ? read_and_finish(connection, file, head.bytes) : SB_OK;
    if (code == SB_DAMAGED)
        log_note(connection, "replicas: %s", sb_detail(code));
    if (code == SB_OK || code == SB_DAMAGED)
        code = head.bytes ? forget(file) : SB_OK;
    if (code == SB_OK)
        sb_commit_shown(connection->transactions.memory);
    return code;
}

int64_t moments_finish(sb_connection *connection)
{
    char path[NAME_ROOM];
    int file = -1;
    vhost_path(path, connection->home, "moment");
    if (access(path, F_OK) != 0)
        return SB_OK;
    int64_t code = moment_open(connection, &file);
    if (code == SB_OK)
        code = moment_finish(connection, file);
    if (file >= 0)
        close(file);
    return code;
}
