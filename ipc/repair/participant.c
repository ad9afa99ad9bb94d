/* What a dead participant left is repaired: its transaction, its queues, its messages. */

#define _GNU_SOURCE
#include <fcntl.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "commit/commit.h"
#include "repair/repair.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

/* One more is repaired, or cannot be now: of what is wrong the first is kept.  False: nor can any
 * other, as nobody has the catalog's lock for it either. */
static bool add(int64_t *repaired, int64_t code)
{
    if (*repaired >= 0)
        *repaired = code < 0 ? code : *repaired + code;
    return code != SB_LOCKED;
}

/* Repair one queue of what `dead` left there, under the catalog's lock: a queue that is deleted and
 * declared again meanwhile would be another one. */
static int64_t repair_queue(sb_connection *connection, int64_t reference, int64_t dead,
                           bool publishes)
{
    sb_queue *queue;
    int64_t code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    code = queue_handle(connection, reference, &queue);
    if (code == SB_OK)
        code = queue_repair(queue, dead, publishes);
    else if (code == SB_NOT_FOUND)
        participant_forgets(connection, dead, reference);
    bool is_over = code == SB_NOT_FOUND || ring_is_lost(connection, code, "a repair");
    connection_unlock(connection);
    return is_over ? 0 : code;
}

static int64_t repair_all(sb_connection *connection, int64_t dead, bool publishes)
{
    int64_t repaired = 0, row = 0;
    while ((row = sb_row_next(connection->catalog.memory, L_QUEUES, row)) >= 0) {
        int64_t reference = sb_row_reference(connection->catalog.memory, L_QUEUES, row++);
        if (reference >= 0 && !add(&repaired, repair_queue(connection, reference, dead, publishes)))
            break;
    }
    return repaired;
}

/* It may have used any queue, also such as were deleted since: their blocks waited for it. */
static int64_t forget_all(sb_connection *connection, char *entry)
{
    int64_t code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    word_store(entry, L_PARTICIPANT_QUEUES_AT, 0);
    catalog_repair(connection);
    connection_unlock(connection);
    return SB_OK;
}

/* Repair the queues of the owner of this id. */
static int64_t repair_queues(sb_connection *connection, int64_t dead, bool publishes)
{
    char *entry = participant_entry(connection, dead);
    int64_t repaired = 0, used = participant_list_length(entry);
    int64_t code = ownership_end(connection, dead);
    if (code < 0)
        return code;
    if (used > L_PARTICIPANT_LIST) {
        repaired = repair_all(connection, dead, publishes);
        if (repaired < 0)
            return repaired;
        code = publishes ? SB_OK : forget_all(connection, entry);
        if (code < 0)
            return code;
    } else {
        for (int64_t index = 0; index < used; index++) {
            int64_t word = word_load(entry, L_PARTICIPANT_LIST_AT + 8 * index);
            int64_t reference = word & ~L_USES;
            code = reference ? repair_queue(connection, reference, dead, publishes) : 0;
            if (!add(&repaired, code))
                break;
        }
    }
    return repaired;
}

/* Repair what the owner of this id has left.  Its byte is locked by us.  What it has committed
 * happens first: its messages go back only when those that it acknowledged are done with, and its
 * memory only when all that it published is.  SB_UNFINISHED: some of that waits for room. */
int64_t repair_owner(sb_connection *connection, int64_t dead)
{
    record_count(connection, dead);
    int64_t finished = record_finish(connection, dead);
    if (finished < 0 && finished != SB_UNFINISHED)
        return finished;
    int64_t repaired = repair_queues(connection, dead, finished == SB_UNFINISHED);
    return finished == SB_UNFINISHED && repaired >= 0 ? finished : repaired;
}

void note_death(sb_connection *connection, int64_t id)
{
    char *entry = participant_entry(connection, id);
    if (word_load(entry, L_PARTICIPANT_STATE_AT) == L_PARTICIPANT_LIVE)
        log_note(connection, "participant %.*s (pid %lld) died without closing",
                 (int)L_PARTICIPANT_NAME_BYTES_MAX, entry + L_PARTICIPANT_NAME_AT,
                 (long long)word_load(entry, L_PARTICIPANT_PID_AT));
    follower_bells_forget(connection, id);
    participant_state_set(connection, id, L_PARTICIPANT_FREE);
}

static int64_t repair_one(sb_connection *connection, int64_t id)
{
    char *entry = participant_entry(connection, id);
    if (word_load(entry, L_PARTICIPANT_STATE_AT) == L_PARTICIPANT_FREE)
        return 0;
    if (!participant_lock_byte(connection->repair_file, id, F_WRLCK))
        return 0; /* alive, or in the hands of another repairer */
    int64_t repaired = 0;
    int64_t state = word_load(entry, L_PARTICIPANT_STATE_AT);
    if (state != L_PARTICIPANT_FREE && !participant_still_runs(entry)) {
        repaired = repair_owner(connection, id);
        if (repaired >= 0)
            note_death(connection, id);
        if (repaired == SB_UNFINISHED)
            repaired = 0; /* the next who looks goes on */
    }
    participant_lock_byte(connection->repair_file, id, F_UNLCK);
    return repaired;
}

/* A transaction of ours that is committed, and waited for room when its caller was interrupted. */
static void finish_own(sb_connection *connection)
{
    if (word_load(participant_transaction(connection, connection->id), 0) == L_TRANSACTION_NONE ||
        pthread_mutex_trylock(&connection->commit_mutex) != 0)
        return;
    record_finish(connection, connection->id);
    pthread_mutex_unlock(&connection->commit_mutex);
}

int64_t sb_repair(sb_connection *connection)
{
    int64_t closed = usable_code(connection);
    if (closed || connection->id == 0)
        return closed;
    expelled_find_out(connection); /* each wait comes here, whatever it waits for */
    if (pthread_mutex_trylock(&connection->repair) != 0)
        return 0; /* another thread of ours is at it */
    int64_t repaired = 0, end = participants_high(connection);
    finish_own(connection);
    for (int64_t id = 1; id < end; id++)
        if (id != connection->id && !add(&repaired, repair_one(connection, id)))
            break;
    pthread_mutex_unlock(&connection->repair);
    return repaired;
}
