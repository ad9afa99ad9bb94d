/* Participants: who takes part in a vhost, who of them is dead, and what the dead have left.
 *
 * Whoever joins takes an id from 1 to 4095 and locks the byte of the segment's file with that
 * number (an open-file-description lock).  The kernel drops the lock whatever kills the process;
 * the lock alone says who lives.  Before memory is freed, the process itself must be gone as well:
 * a descriptor may have been closed by mistake.
 *
 * To repair what a dead one left, lock its byte: nobody else then repairs it, and its id is not
 * given away while an old sweep of it may still run.  A repairer that dies drops that lock too.
 *
 * A participant notes each queue in its list before it touches the ring, so that its death costs
 * a sweep of these queues only.  What its list has no place for it notes in a byte of the queue's row:
 * then its death costs a sweep of all queues, but it keeps no row and no memory of others. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "queue/queue.h"
#include "transaction/transaction.h"
#include "vhost/vhost.h"

#define PAGER_BYTE L_PARTICIPANTS /* and who pages its queues, this one */
#define JOURNAL_BYTE 0 /* ids begin with 1: who writes the journal of the vhost has it locked */

static bool lock_byte(int file, int64_t byte, short kind)
{
    struct flock lock = {.l_type = kind, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

bool participant_lock_journal(sb_connection *connection)
{
    return lock_byte(connection->lock_file, JOURNAL_BYTE, F_WRLCK);
}

void participant_unlock_journal(sb_connection *connection)
{
    if (connection->lock_file >= 0) /* else it fell as the connection was closed */
        lock_byte(connection->lock_file, JOURNAL_BYTE, F_UNLCK);
}

bool participant_lock_pager(sb_connection *connection)
{
    return lock_byte(connection->lock_file, PAGER_BYTE, F_WRLCK);
}

void participant_unlock_pager(sb_connection *connection)
{
    if (connection->lock_file >= 0)
        lock_byte(connection->lock_file, PAGER_BYTE, F_UNLCK);
}

bool participant_pager_runs(sb_connection *connection)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = PAGER_BYTE, .l_len = 1};
    /* by another description than ours: it may be us */
    return fcntl(connection->sweep_file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static int64_t pid_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? (int64_t)status.st_ino : 0;
}

/* When a process started, in ticks since the boot; 0 if there is none that runs. */
static int64_t start_of(int64_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : 0;
    if (file >= 0)
        close(file);
    if (length <= 0)
        return 0;
    text[length] = 0;
    /* behind the name, which may contain anything: state, then 18 numbers, then the start */
    char *after = strrchr(text, ')');
    if (!after || after[1] != ' ' || after[2] == 'Z' || after[2] == 'X')
        return 0;
    char *field = after + 2;
    for (int skipped = 0; skipped < 19 && field; skipped++)
        field = strchr(field + 1, ' ');
    return field ? strtoll(field, NULL, 10) : 0;
}

static char *entry_of(sb_connection *connection, int64_t id)
{
    return (char *)connection->participants.memory + participant_at(id);
}

static int64_t high(sb_connection *connection)
{
    int64_t value = word_load(connection->participants.memory, L_PARTICIPANTS_HIGH_AT);
    return value < 1 ? 1 : value > L_PARTICIPANTS ? L_PARTICIPANTS : value;
}

static void raise_high(sb_connection *connection, int64_t wanted)
{
    _Atomic int64_t *at = (_Atomic int64_t *)((char *)connection->participants.memory +
                                              L_PARTICIPANTS_HIGH_AT);
    int64_t seen = atomic_load(at);
    while (seen < wanted && !atomic_compare_exchange_weak(at, &seen, wanted))
        ;
}

/* By write(), not by a store: whoever watches the file learns of it (caretaker.c). */
static void set_state(sb_connection *connection, int64_t id, int64_t state)
{
    int64_t at = participant_at(id) + L_PARTICIPANT_STATE_AT;
    if (pwrite(connection->participants.file, &state, sizeof state, at) != sizeof state)
        word_store(connection->participants.memory, at, state);
}

/* 1 if the process runs although its lock is gone: then it is not dead. */
static bool still_runs(char *entry)
{
    if (word_load(entry, L_PARTICIPANT_STATE_AT) == L_PARTICIPANT_LEAVING)
        return false;
    if (word_load(entry, L_PARTICIPANT_NAMESPACE_AT) != pid_namespace())
        return false;
    int64_t start = start_of(word_load(entry, L_PARTICIPANT_PID_AT));
    return start != 0 && start == word_load(entry, L_PARTICIPANT_START_AT);
}

int participant_pidfd(const char *entry)
{
    if (word_load(entry, L_PARTICIPANT_NAMESPACE_AT) != pid_namespace())
        return -1;
    return (int)syscall(SYS_pidfd_open, (pid_t)word_load(entry, L_PARTICIPANT_PID_AT), 0);
}

static int64_t list_length(const char *entry)
{
    int64_t used = word_load(entry, L_PARTICIPANT_QUEUES_AT);
    return used < 0 ? 0 : used;
}

/* Sweep one queue of what `dead` left there, under the catalog's lock: a queue that is deleted and
 * declared again meanwhile would be another one. */
static int64_t sweep_queue(sb_connection *connection, int64_t reference, int64_t dead,
                           bool publishes)
{
    sb_queue *queue;
    int64_t code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    code = queue_handle(connection, reference, &queue);
    if (code == SB_OK)
        code = queue_sweep(queue, dead, publishes);
    else if (code == SB_NOT_FOUND)
        participant_forgets(connection, dead, reference);
    connection_unlock(connection);
    return code == SB_NOT_FOUND ? 0 : code;
}

static int64_t sweep_all(sb_connection *connection, int64_t dead, bool publishes)
{
    int64_t repaired = 0, row = 0;
    while ((row = sb_row_next(connection->catalog.memory, L_QUEUES, row)) >= 0) {
        int64_t reference = sb_row_reference(connection->catalog.memory, L_QUEUES, row++);
        int64_t code = reference < 0 ? 0 : sweep_queue(connection, reference, dead, publishes);
        if (code < 0 && code != SB_DAMAGED)
            return code;
        repaired += code > 0 ? code : 0;
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
    catalog_tidy(connection);
    connection_unlock(connection);
    return SB_OK;
}

/* Sweep the queues of the owner of this id. */
static int64_t sweep_queues(sb_connection *connection, int64_t dead, bool publishes)
{
    char *entry = entry_of(connection, dead);
    int64_t repaired = 0, used = list_length(entry);
    int64_t code = ownership_end(connection, dead);
    if (code < 0)
        return code;
    if (used > L_PARTICIPANT_LIST) {
        repaired = sweep_all(connection, dead, publishes);
        if (repaired < 0)
            return repaired;
        code = publishes ? SB_OK : forget_all(connection, entry);
        if (code < 0)
            return code;
    } else {
        for (int64_t index = 0; index < used; index++) {
            int64_t word = word_load(entry, L_PARTICIPANT_LIST_AT + 8 * index);
            int64_t reference = word & ~L_USES;
            code = reference ? sweep_queue(connection, reference, dead, publishes) : 0;
            if (code < 0 && code != SB_DAMAGED)
                return code; /* the next who looks goes on */
            repaired += code > 0 ? code : 0;
        }
    }
    return repaired;
}

/* Repair what the owner of this id has left.  Its byte is locked by us.  What it has committed
 * happens first: its messages go back only when those that it acknowledged are done with, and its
 * memory only when all that it published is.  SB_UNFINISHED: some of that waits for room. */
static int64_t sweep_owner(sb_connection *connection, int64_t dead)
{
    int64_t settled = record_settle(connection, dead);
    if (settled < 0 && settled != SB_UNFINISHED)
        return settled;
    int64_t repaired = sweep_queues(connection, dead, settled == SB_UNFINISHED);
    return settled == SB_UNFINISHED && repaired >= 0 ? settled : repaired;
}

/* What it left is repaired: its id is free, and people can read what happened. */
static void note_death(sb_connection *connection, int64_t id)
{
    char *entry = entry_of(connection, id);
    if (word_load(entry, L_PARTICIPANT_STATE_AT) == L_PARTICIPANT_LIVE)
        log_note(connection, "participant %.*s (pid %lld) died without closing",
                 (int)L_PARTICIPANT_NAME_BYTES_MAX, entry + L_PARTICIPANT_NAME_AT,
                 (long long)word_load(entry, L_PARTICIPANT_PID_AT));
    set_state(connection, id, L_PARTICIPANT_FREE);
}

int64_t sb_participant_lives(sb_connection *connection, int64_t id)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = id, .l_len = 1};
    if (id == connection->id)
        return 1;
    return fcntl(connection->sweep_file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

static int64_t repair_one(sb_connection *connection, int64_t id)
{
    char *entry = entry_of(connection, id);
    if (word_load(entry, L_PARTICIPANT_STATE_AT) == L_PARTICIPANT_FREE)
        return 0;
    if (!lock_byte(connection->sweep_file, id, F_WRLCK))
        return 0; /* alive, or in the hands of another repairer */
    int64_t repaired = 0;
    int64_t state = word_load(entry, L_PARTICIPANT_STATE_AT);
    if (state != L_PARTICIPANT_FREE && !still_runs(entry)) {
        repaired = sweep_owner(connection, id);
        if (repaired >= 0)
            note_death(connection, id);
        if (repaired == SB_UNFINISHED)
            repaired = 0; /* the next who looks goes on */
    }
    lock_byte(connection->sweep_file, id, F_UNLCK);
    return repaired;
}

/* A transaction of ours that is committed, and waited for room when its caller was interrupted. */
static void settle_own(sb_connection *connection)
{
    if (word_load(participant_transaction(connection, connection->id), 0) == L_TRANSACTION_NONE ||
        pthread_mutex_trylock(&connection->settle) != 0)
        return;
    record_settle(connection, connection->id);
    pthread_mutex_unlock(&connection->settle);
}

int64_t sb_repair(sb_connection *connection)
{
    int64_t closed = atomic_load(&connection->closed);
    if (closed || connection->id == 0)
        return closed;
    if (pthread_mutex_trylock(&connection->repair) != 0)
        return 0; /* another thread of ours is at it */
    int64_t repaired = 0, end = high(connection);
    settle_own(connection);
    for (int64_t id = 1; id < end && repaired >= 0; id++) {
        if (id == connection->id)
            continue;
        int64_t code = repair_one(connection, id);
        repaired = code < 0 ? code : repaired + code;
    }
    pthread_mutex_unlock(&connection->repair);
    return repaired;
}

static void fill_in(sb_connection *connection, int64_t id, const char *name)
{
    char *entry = entry_of(connection, id);
    size_t length = strlen(name);
    if (length > L_PARTICIPANT_NAME_BYTES_MAX)
        length = L_PARTICIPANT_NAME_BYTES_MAX;
    memset(entry + 8, 0, (size_t)L_PARTICIPANT_BYTES - 8);
    word_store(entry, L_PARTICIPANT_PID_AT, getpid());
    word_store(entry, L_PARTICIPANT_START_AT, start_of(getpid()));
    word_store(entry, L_PARTICIPANT_NAMESPACE_AT, pid_namespace());
    word_store(entry, L_PARTICIPANT_JOINED_AT, realtime_ns());
    word_store(entry, L_PARTICIPANT_NAME_LENGTH_AT, (int64_t)length);
    memcpy(entry + L_PARTICIPANT_NAME_AT, name, length);
}

int64_t participant_join(sb_connection *connection, const char *name, bool repairs)
{
    for (int64_t id = 1; id < L_PARTICIPANTS; id++) {
        if (!lock_byte(connection->lock_file, id, F_WRLCK))
            continue;
        int64_t code = SB_OK;
        if (id >= high(connection))
            code = sb_system_allocate(connection->participants.file, participant_at(id),
                                      L_PARTICIPANT_BYTES);
        if (code != SB_OK)
            return fail_system("memory for a participant");
        raise_high(connection, id + 1);
        char *entry = entry_of(connection, id);
        connection->id = id;
        if (word_load(entry, L_PARTICIPANT_STATE_AT) != L_PARTICIPANT_FREE) {
            /* its former owner is dead or leaving: first put right what it left */
            if (!repairs || still_runs(entry) || sweep_owner(connection, id) < 0) {
                lock_byte(connection->lock_file, id, F_UNLCK);
                continue;
            }
            note_death(connection, id);
        }
        fill_in(connection, id, name);
        set_state(connection, id, L_PARTICIPANT_LIVE);
        return SB_OK;
    }
    connection->id = 0;
    return fail(SB_TOO_MANY, "vhost '%s' has %d participants already: close some",
                connection->vhost, (int)L_PARTICIPANTS - 1);
}

void participant_leave(sb_connection *connection)
{
    int64_t id = connection->id;
    set_state(connection, id, L_PARTICIPANT_LEAVING);
    /* what we took and did not deal with goes to others at once */
    if (sweep_owner(connection, id) >= 0)
        set_state(connection, id, L_PARTICIPANT_FREE);
    lock_byte(connection->lock_file, id, F_UNLCK);
}

/* --- more queues than the list holds ------------------------------------------------------------- */

static bool is_list_full(const char *entry)
{
    return list_length(entry) > L_PARTICIPANT_LIST;
}

static int64_t uses_at(int64_t id)
{
    return L_PARTICIPANTS_USES_AT + id * L_USES_BYTES;
}

/* What it uses the queue of this row for, if its list was full then; the row is not given to another
 * queue before it is let go of. */
static _Atomic unsigned char *byte_of_row(sb_connection *connection, int64_t id, int64_t row)
{
    return (_Atomic unsigned char *)connection->participants.memory + uses_at(id) + row;
}

/* Its use of a queue that is not in its list: the bits of USES, and USE_LISTED above them. */
static int64_t use_beyond_list(sb_connection *connection, int64_t id, int64_t reference)
{
    if (!is_list_full(entry_of(connection, id)))
        return 0;
    return atomic_load(byte_of_row(connection, id, reference & L_REFERENCE_INDEX_MASK));
}

/* The bytes have memory before it is said that they count. */
static int64_t begin_bytes(sb_connection *connection, int64_t id)
{
    char *entry = entry_of(connection, id);
    if (is_list_full(entry))
        return SB_OK;
    int64_t code = sb_system_allocate(connection->participants.file, uses_at(id), L_USES_BYTES);
    if (code != SB_OK)
        return fail_system("memory for the queues that a participant uses");
    memset((char *)connection->participants.memory + uses_at(id), 0, L_USES_BYTES);
    atomic_thread_fence(memory_order_release);
    word_store(entry, L_PARTICIPANT_QUEUES_AT, L_PARTICIPANT_LIST + 1);
    return SB_OK;
}

static int64_t use_beyond(sb_connection *connection, int64_t reference, int64_t use)
{
    int64_t code = begin_bytes(connection, connection->id);
    if (code == SB_OK)
        atomic_fetch_or(byte_of_row(connection, connection->id, reference & L_REFERENCE_INDEX_MASK),
                        (unsigned char)(use >> L_USE_SHIFT | L_USE_LISTED));
    return code;
}

int64_t participant_uses(sb_connection *connection, int64_t reference, int64_t use)
{
    char *entry = entry_of(connection, connection->id);
    int64_t used = list_length(entry);
    int64_t empty = -1;
    for (int64_t index = 0; index < used && index < L_PARTICIPANT_LIST; index++) {
        int64_t at = L_PARTICIPANT_LIST_AT + 8 * index;
        int64_t word = word_load(entry, at);
        if ((word & ~L_USES) == reference) {
            word_store(entry, at, word | use);
            return SB_OK;
        }
        if (word == 0 && empty < 0)
            empty = index;
    }
    if (empty < 0 && used >= L_PARTICIPANT_LIST)
        return use_beyond(connection, reference, use);
    empty = empty < 0 ? used : empty;
    word_store(entry, L_PARTICIPANT_LIST_AT + 8 * empty, reference | use);
    if (empty == used)
        word_store(entry, L_PARTICIPANT_QUEUES_AT, used + 1);
    return SB_OK;
}

static bool is_live(const char *entry)
{
    return word_load(entry, L_PARTICIPANT_STATE_AT) == L_PARTICIPANT_LIVE;
}

/* What it uses the queue for: bits of USES, and USE_LISTED; 0: it does not. */
static int64_t use_of(sb_connection *connection, int64_t id, int64_t reference)
{
    const char *entry = entry_of(connection, id);
    int64_t used = list_length(entry), use = use_beyond_list(connection, id, reference);
    for (int64_t index = 0; index < used && index < L_PARTICIPANT_LIST; index++) {
        int64_t word = word_load(entry, L_PARTICIPANT_LIST_AT + 8 * index);
        if ((word & ~L_USES) == reference)
            return use | (word & L_USES) >> L_USE_SHIFT | L_USE_LISTED;
    }
    return use;
}

bool participant_used(sb_connection *connection, int64_t reference)
{
    if (use_of(connection, connection->id, reference))
        return true;
    for (int64_t id = 1; id < high(connection); id++)
        if (id != connection->id && is_live(entry_of(connection, id)) &&
            use_of(connection, id, reference))
            return true;
    return false;
}

/* The queue that has the row, or was the last that had it. */
static int64_t last_of_row(sb_connection *connection, int64_t row)
{
    int64_t live = sb_row_reference(connection->catalog.memory, L_QUEUES, row);
    if (live >= 0)
        return live;
    return row_next_reference(connection, row) - (INT64_C(1) << L_REFERENCE_INDEX_BITS);
}

void participant_forgets(sb_connection *connection, int64_t id, int64_t reference)
{
    char *entry = entry_of(connection, id);
    for (int64_t index = 0; index < list_length(entry) && index < L_PARTICIPANT_LIST; index++) {
        int64_t at = L_PARTICIPANT_LIST_AT + 8 * index;
        if ((word_load(entry, at) & ~L_USES) == reference)
            word_store(entry, at, 0);
    }
    int64_t row = reference & L_REFERENCE_INDEX_MASK;
    if (last_of_row(connection, row) != reference)
        return; /* we never used it, or its row would not be another's: what is there is of that one */
    if (is_list_full(entry))
        atomic_store(byte_of_row(connection, id, row), 0);
    if (sb_row_reference(connection->catalog.memory, L_QUEUES, row) < 0 &&
        !participant_used(connection, reference))
        blocks_drop(connection, row);
}

bool participant_runs(sb_connection *connection, int64_t id)
{
    return sb_participant_lives(connection, id) &&
           (id == connection->id || still_runs(entry_of(connection, id)));
}

int64_t participant_heir(sb_connection *connection, int64_t reference, int64_t former)
{
    int64_t end = high(connection);
    for (int64_t id = 1; id < end; id++) {
        char *entry = entry_of(connection, id);
        if (id == former || word_load(entry, L_PARTICIPANT_STATE_AT) != L_PARTICIPANT_LIVE ||
            word_load(entry, L_PARTICIPANT_OWNS_AT) & L_OWNS_NO_MORE)
            continue;
        if (use_of(connection, id, reference) & L_USE_CONSUMES >> L_USE_SHIFT)
            return id;
    }
    return 0;
}

void participant_tends(sb_connection *connection)
{
    char *entry = entry_of(connection, connection->id);
    word_store(entry, L_PARTICIPANT_OWNS_AT, word_load(entry, L_PARTICIPANT_OWNS_AT) | L_TENDS);
}

int64_t participant_others(sb_connection *connection, int64_t reference)
{
    int64_t others = 0, end = high(connection);
    for (int64_t id = 1; id < end; id++) {
        const char *entry = entry_of(connection, id);
        int64_t use = is_live(entry) ? use_of(connection, id, reference) : 0;
        others += id != connection->id && use &&
                  use != (L_USE_SERVES >> L_USE_SHIFT | L_USE_LISTED) &&
                  !(word_load(entry, L_PARTICIPANT_OWNS_AT) & L_TENDS);
    }
    return others;
}

int64_t participant_users(sb_connection *connection, int64_t reference, int64_t use)
{
    int64_t users = 0, end = high(connection);
    for (int64_t id = 1; id < end; id++)
        users += is_live(entry_of(connection, id)) &&
                 (use_of(connection, id, reference) & use >> L_USE_SHIFT) != 0;
    return users;
}
