/* Messages that a committed transaction has still to publish, for want of room in a queue: with the
 * rest of it they are one frame, so no journal and no replica ever has a part of a transaction.
 *
 *     unplaced   queue, position: an id | the chunk         it has no place yet
 *                queue, position: the same id | nothing     it has one, or is not needed any more
 *
 * What has no place is looked at before the rings are (moment.c).  Each message that is staged is
 * compared with what was noted: the frame that has it at its place says so.  A segment begins with
 * all that is left; whoever reads the journal forgets at that moment what was before, and publishes
 * in the end what then is left (restoring.py).
 *
 * What will be no message, as a second copy of one with an id or because its queue cannot be used,
 * is over when its number is in the ring's table, or the transaction is over, and all of the ring
 * is staged that was there then.
 *
 * Who takes over knows nothing of it.  Some of the messages may have places above the gates, and
 * the others none: all of that is the first frame again. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "broker/journaler.h"
#include "commit/commit.h"
#include "vhost/vhost.h"

static void say_that_there_are(sb_connection *connection, int64_t any)
{
    word_store(connection->transactions.memory, L_TRANSACTIONS_UNPLACED_AT, any);
}

bool unplaced_was_left(sb_connection *connection)
{
    return word_load(connection->transactions.memory, L_TRANSACTIONS_UNPLACED_AT);
}

/* --- what has no place ------------------------------------------------------------------------ */

static int64_t length_of(const unplaced *one, void *to, int64_t room)
{
    return sb_port_transaction_unplaced(&one->in->port, one->where, one->origin,
                                        (int64_t)(intptr_t)to, room);
}

/* Where it is, or the next is put. */
static unplaced **place_of(sb_journaler *journaler, const unplaced *one)
{
    unplaced **at = &journaler->unplaced;
    while (*at && ((*at)->in != one->in || (*at)->origin != one->origin))
        at = &(*at)->next;
    return at;
}

/* Copy it, if it has no place. */
static int64_t note(sb_journaler *journaler, const unplaced *one)
{
    unplaced **at = place_of(journaler, one), *made = NULL;
    int64_t room = 0, length;
    if (*at)
        return SB_OK;
    while ((length = length_of(one, made ? made->chunk : NULL, room)) > room) {
        free(made);
        made = malloc(sizeof *made + (size_t)length);
        if (!made)
            return fail_system("memory for a message of %lld bytes", (long long)length);
        room = length;
    }
    if (length == 0) {
        free(made);
        return SB_OK;
    }
    *made = *one;
    made->length = length;
    made->id = ++journaler->unplaced_id;
    *at = made;
    return SB_OK;
}

static followed *followed_by(const sb_journaler *journaler, int64_t reference)
{
    for (int64_t each = 0; each < journaler->count; each++)
        if (journaler->queues[each]->queue->reference == reference)
            return journaler->queues[each];
    return NULL;
}

/* Of one commit.  SB_EMPTY: there is a queue that we perhaps do not follow yet. */
static int64_t note_all(sb_journaler *journaler, const char *record, int64_t id, int64_t serial)
{
    int64_t code = SB_OK, count = word_load(record, L_TRANSACTION_COUNT_AT);
    bool is_known = true;
    for (int64_t index = 0; index < count && code == SB_OK; index++) {
        const char *at = record + L_TRANSACTION_OPERATIONS_AT + index * L_OPERATION_BYTES;
        int64_t reference = word_load(at, L_OPERATION_QUEUE_AT);
        unplaced one = {.in = followed_by(journaler, reference), .participant = id,
                        .serial = serial, .where = word_load(at, L_OPERATION_WHERE_AT),
                        .origin = word_load(at, L_OPERATION_WORD_AT)};
        if (reference & L_OPERATION_ACKS)
            continue;
        is_known &= one.in != NULL;
        code = one.in ? note(journaler, &one) : SB_OK;
    }
    bool is_all = is_known || !following_is_behind(&journaler->following);
    return code != SB_OK ? code : is_all ? SB_OK : SB_EMPTY;
}

static int64_t note_helped(sb_journaler *journaler, void *copy)
{
    sb_connection *connection = journaler->connection;
    const int64_t *helped = journaler->commit_gate.helped;
    int64_t high = word_load(connection->participants.memory, L_PARTICIPANTS_HIGH_AT);
    for (int64_t id = 1; id < high && id < L_PARTICIPANTS; id++) {
        if (helped[id] == journaler->unplaced_seen[id])
            continue;
        int64_t code = SB_OK, serial = sb_commit_copy(record_of(connection, id),
                                                      participant_transaction(connection, id),
                                                      copy);
        if (serial == helped[id]) /* else it is over, and all of it has its place */
            code = note_all(journaler, copy, id, serial);
        if (code == SB_OK)
            journaler->unplaced_seen[id] = helped[id];
        if (code != SB_OK && code != SB_EMPTY)
            return code;
    }
    return SB_OK;
}

static bool goes_on(sb_connection *connection, const unplaced *one)
{
    char *record = record_of(connection, one->participant);
    void *far = participant_transaction(connection, one->participant);
    return sb_commit_is_inside(record, far, -1) &&
           word_load(record, L_TRANSACTION_SERIAL_AT) == one->serial;
}

/* Their owners may stand still for ever, and there may be room by now. */
static void help_again(sb_journaler *journaler)
{
    int64_t last = 0, serial;
    for (unplaced *each = journaler->unplaced; each; each = each->next) {
        if (each->participant == last || each->until || !goes_on(journaler->connection, each))
            continue;
        last = each->participant;
        /* nothing that it has committed since: that may not be counted yet */
        record_help(journaler->connection, last, each->serial, &serial);
    }
}

int64_t unplaced_see(sb_journaler *journaler, bool helps)
{
    if (helps)
        help_again(journaler);
    bool is_new = memcmp(journaler->commit_gate.helped, journaler->unplaced_seen,
                         sizeof journaler->unplaced_seen) != 0;
    void *copy = is_new ? malloc(L_TRANSACTION_BYTES) : NULL;
    if (is_new && !copy)
        return fail_system("memory for a commit record");
    int64_t code = is_new ? note_helped(journaler, copy) : SB_OK;
    free(copy);
    for (unplaced *each = journaler->unplaced; each; each = each->next)
        if (!each->until &&
            (!goes_on(journaler->connection, each) || length_of(each, NULL, 0) == 0))
            each->until = sb_port_true_tail(&each->in->port);
    return code;
}

/* --- in frames -------------------------------------------------------------------------------- */

static int64_t stage(sb_journaler *journaler, const unplaced *one, int64_t length)
{
    return sb_journal_stage(journaler->journal, SB_RECORD_UNPLACED, one->in->number, one->id,
                            one->chunk, length);
}

int64_t unplaced_stage(sb_journaler *journaler)
{
    int64_t code = SB_OK;
    for (unplaced *each = journaler->unplaced; each && code == SB_OK; each = each->next) {
        if (each->is_staged)
            continue;
        say_that_there_are(journaler->connection, 1);
        code = stage(journaler, each, each->length);
        each->is_staged = code == SB_OK;
    }
    return code;
}

int64_t unplaced_stage_all(sb_journaler *journaler)
{
    int64_t code = SB_OK;
    for (unplaced *each = journaler->unplaced; each && code == SB_OK; each = each->next)
        code = stage(journaler, each, each->length);
    return code;
}

/* It is needed no more: the frame says so. */
static int64_t stage_over(sb_journaler *journaler, unplaced **at)
{
    unplaced *over = *at;
    int64_t code = stage(journaler, over, 0);
    *at = over->next;
    free(over);
    return code;
}

int64_t unplaced_has_place(sb_journaler *journaler, const followed *in, const void *chunk)
{
    const unplaced one = {.in = (followed *)in, .origin = word_load(chunk, L_CHUNK_ORIGIN_AT)};
    unplaced **at = place_of(journaler, &one);
    return *at ? stage_over(journaler, at) : SB_OK;
}

int64_t unplaced_stage_over(sb_journaler *journaler)
{
    int64_t code = SB_OK;
    for (unplaced **at = &journaler->unplaced; *at && code == SB_OK;)
        if ((*at)->until && (*at)->in->cursor.position >= (*at)->until)
            code = stage_over(journaler, at);
        else
            at = &(*at)->next;
    return code;
}

void unplaced_committed(sb_journaler *journaler)
{
    if (!journaler->unplaced && unplaced_was_left(journaler->connection))
        say_that_there_are(journaler->connection, 0);
}

void unplaced_forget(sb_journaler *journaler, const followed *gone)
{
    for (unplaced **at = &journaler->unplaced; *at;) {
        unplaced *one = *at;
        if (one->in != gone && gone) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        free(one);
    }
}
