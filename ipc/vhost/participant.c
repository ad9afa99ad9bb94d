/* Participants: who takes part in a vhost, who of them is dead, and what the dead have left.
 *
 * Whoever joins takes an id from 1 to 4095 and locks the byte of the segment's file with that
 * number (an open-file-description lock).  The kernel drops the lock whatever kills the process;
 * the lock alone says who lives.  Before memory is freed, the process itself must be gone as well:
 * a descriptor may have been closed by mistake.
 *
 * To repair what a dead one left, lock its byte: nobody else then repairs it, and its id is not
 * given away while an old repair of it may still run.  A repairer that dies drops that lock too.
 *
 * A participant notes each queue in its list before it touches the ring, so that its death costs a
 * repair of these queues only.  What its list has no place for it notes in a byte of the queue's
 * row: then its death costs a repair of all queues, but it keeps no row and no memory of others. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "vhost/vhost.h"

#define PAGER_BYTE L_PARTICIPANTS /* and who pages its queues, this one */

#define JOURNAL_BYTE 0 /* ids begin with 1: who writes the journal of the vhost has it locked */

bool participant_lock_byte(int file, int64_t byte, short kind)
{
    struct flock lock = {.l_type = kind, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

bool participant_lock_journal(sb_connection *connection)
{
    return participant_lock_byte(connection->lock_file, JOURNAL_BYTE, F_WRLCK);
}

void participant_unlock_journal(sb_connection *connection)
{
    if (connection->lock_file >= 0) /* else it fell as the connection was closed */
        participant_lock_byte(connection->lock_file, JOURNAL_BYTE, F_UNLCK);
}

bool participant_lock_pager(sb_connection *connection)
{
    return participant_lock_byte(connection->lock_file, PAGER_BYTE, F_WRLCK);
}

void participant_unlock_pager(sb_connection *connection)
{
    if (connection->lock_file >= 0)
        participant_lock_byte(connection->lock_file, PAGER_BYTE, F_UNLCK);
}

bool participant_pager_runs(sb_connection *connection)
{
    struct flock lock = {
        .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = PAGER_BYTE, .l_len = 1};
    /* by another description than ours: it may be us */
    return fcntl(connection->repair_file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

int64_t pid_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? (int64_t)status.st_ino : 0;
}

int64_t start_of(int64_t pid)
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

char *participant_entry(sb_connection *connection, int64_t id)
{
    return (char *)connection->participants.memory + participant_at(id);
}

int64_t participants_high(sb_connection *connection)
{
    int64_t value = word_load(connection->participants.memory, L_PARTICIPANTS_HIGH_AT);
    return value < 1 ? 1 : value > L_PARTICIPANTS ? L_PARTICIPANTS : value;
}

void raise_high(sb_connection *connection, int64_t wanted)
{
    _Atomic int64_t *at = (_Atomic int64_t *)((char *)connection->participants.memory +
                                              L_PARTICIPANTS_HIGH_AT);
    int64_t seen = atomic_load(at);
    while (seen < wanted && !atomic_compare_exchange_weak(at, &seen, wanted))
        ;
}

/* By write(), not by a store: whoever watches the file learns of it (watch.c). */
void participant_state_set(sb_connection *connection, int64_t id, int64_t state)
{
    int64_t at = participant_at(id) + L_PARTICIPANT_STATE_AT;
    if (pwrite(connection->participants.file, &state, sizeof state, at) != sizeof state)
        word_store(connection->participants.memory, at, state);
}

/* 1 if the process runs although its lock is gone: then it is not dead. */
bool participant_still_runs(char *entry)
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

int64_t participant_list_length(const char *entry)
{
    int64_t used = word_load(entry, L_PARTICIPANT_QUEUES_AT);
    return used < 0 ? 0 : used;
}

int64_t sb_participant_lives(sb_connection *connection, int64_t id)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = id, .l_len = 1};
    if (id == connection->id)
        return 1;
    return fcntl(connection->repair_file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/* --- more queues than the list holds ---------------------------------------------------------- */

bool participant_list_is_full(const char *entry)
{
    return participant_list_length(entry) > L_PARTICIPANT_LIST;
}

static int64_t uses_at(int64_t id)
{
    return L_PARTICIPANTS_USES_AT + id * L_USES_BYTES;
}

/* What it uses the queue of this row for, if its list was full then; the row is not given to
 * another queue before it is let go of. */
_Atomic unsigned char *participant_row_byte(sb_connection *connection, int64_t id, int64_t row)
{
    return (_Atomic unsigned char *)connection->participants.memory + uses_at(id) + row;
}

/* Its use of a queue that is not in its list: the bits of USES, and USE_LISTED above them. */
static int64_t use_beyond_list(sb_connection *connection, int64_t id, int64_t reference)
{
    if (!participant_list_is_full(participant_entry(connection, id)))
        return 0;
    return atomic_load(participant_row_byte(connection, id, reference & L_REFERENCE_INDEX_MASK));
}

/* The bytes have memory before it is said that they count. */
static int64_t begin_bytes(sb_connection *connection, int64_t id)
{
    char *entry = participant_entry(connection, id);
    if (participant_list_is_full(entry))
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
        atomic_fetch_or(
            participant_row_byte(connection, connection->id, reference & L_REFERENCE_INDEX_MASK),
            (unsigned char)(use >> L_USE_SHIFT | L_USE_LISTED));
    return code;
}

int64_t participant_uses(sb_connection *connection, int64_t reference, int64_t use)
{
    char *entry = participant_entry(connection, connection->id);
    int64_t used = participant_list_length(entry);
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

void participant_uses_no_more(sb_connection *connection, int64_t reference, int64_t use)
{
    char *entry = participant_entry(connection, connection->id);
    int64_t used = participant_list_length(entry);
    for (int64_t index = 0; index < used && index < L_PARTICIPANT_LIST; index++) {
        int64_t at = L_PARTICIPANT_LIST_AT + 8 * index, word = word_load(entry, at);
        if ((word & ~L_USES) == reference)
            word_store(entry, at, word & ~use);
    }
    if (participant_list_is_full(entry))
        atomic_fetch_and(
            participant_row_byte(connection, connection->id, reference & L_REFERENCE_INDEX_MASK),
            (unsigned char)~(use >> L_USE_SHIFT));
}

static bool is_live(const char *entry)
{
    return word_load(entry, L_PARTICIPANT_STATE_AT) == L_PARTICIPANT_LIVE;
}

/* What it uses the queue for: bits of USES, and USE_LISTED; 0: it does not. */
static int64_t use_of(sb_connection *connection, int64_t id, int64_t reference)
{
    const char *entry = participant_entry(connection, id);
    int64_t used = participant_list_length(entry), use = use_beyond_list(connection, id, reference);
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
    for (int64_t id = 1; id < participants_high(connection); id++)
        if (id != connection->id && is_live(participant_entry(connection, id)) &&
            use_of(connection, id, reference))
            return true;
    return false;
}

int64_t row_last_reference(sb_connection *connection, int64_t row)
{
    int64_t live = sb_row_reference(connection->catalog.memory, L_QUEUES, row);
    if (live >= 0)
        return live;
    return row_next_reference(connection, row) - (INT64_C(1) << L_REFERENCE_INDEX_BITS);
}

bool participant_runs(sb_connection *connection, int64_t id)
{
    return sb_participant_lives(connection, id) &&
           (id == connection->id || participant_still_runs(participant_entry(connection, id)));
}

int64_t participant_heir(sb_connection *connection, int64_t reference, int64_t former)
{
    int64_t end = participants_high(connection);
    for (int64_t id = 1; id < end; id++) {
        char *entry = participant_entry(connection, id);
        if (id == former || word_load(entry, L_PARTICIPANT_STATE_AT) != L_PARTICIPANT_LIVE ||
            word_load(entry, L_PARTICIPANT_OWNS_AT) & L_OWNS_NO_MORE)
            continue;
        if (use_of(connection, id, reference) & L_USE_CONSUMES >> L_USE_SHIFT)
            return id;
    }
    return 0;
}

void participant_opens(sb_connection *connection, int64_t more)
{
    char *entry = participant_entry(connection, connection->id);
    atomic_fetch_add((_Atomic int64_t *)(entry + L_PARTICIPANT_OPEN_AT), more);
}

void participant_repairs(sb_connection *connection)
{
    char *entry = participant_entry(connection, connection->id);
    word_store(entry, L_PARTICIPANT_OWNS_AT, word_load(entry, L_PARTICIPANT_OWNS_AT) | L_REPAIRS);
}

int64_t participant_others(sb_connection *connection, int64_t reference)
{
    int64_t others = 0, end = participants_high(connection);
    for (int64_t id = 1; id < end; id++) {
        const char *entry = participant_entry(connection, id);
        int64_t use = is_live(entry) ? use_of(connection, id, reference) : 0;
        others += id != connection->id && use &&
                  use != (L_USE_SERVES >> L_USE_SHIFT | L_USE_LISTED) &&
                  !(word_load(entry, L_PARTICIPANT_OWNS_AT) & L_REPAIRS);
    }
    return others;
}

int64_t participant_users(sb_connection *connection, int64_t reference, int64_t use)
{
    int64_t users = 0, end = participants_high(connection);
    for (int64_t id = 1; id < end; id++)
        users += is_live(participant_entry(connection, id)) &&
                 (use_of(connection, id, reference) & use >> L_USE_SHIFT) != 0;
    return users;
}
