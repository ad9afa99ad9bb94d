/* A connection: one process taking part in one vhost.  Any of its threads may use it.
 *
 * Closing comes in two steps.  sb_disconnect gives back what we hold and leaves; from then on every
 * call answers SB_CLOSED, also in threads that were just about to make one.  sb_connection_free
 * unmaps and frees, and is for when nobody can make a call any more.
 *
 * After fork the child's copies answer SB_FORKED: the parent's ports and locks are not theirs. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "latency/latency.h"
#include "paging/paging.h"
#include "queue/queue.h"
#include "request/request.h"
#include "schedule/schedule.h"
#include "settings/settings.h"
#include "transaction/transaction.h"
#include "vhost/vhost.h"

#define PAUSE_NS 25         /* about what one look takes */
#define SPIN_NS 10000       /* a fraction of what waking somebody takes */
#define LOCK_TRIES 5000     /* some 5 s: a change of the catalog takes microseconds */
#define LOCK_FILE_NUMBER_MIN 768 /* the live lock of a broker has a lower one: live_lock.py */
#define LOCK_PAUSE_NS 1000000
#define DEAD_LETTER_STEPS 64 /* of a chain of dead-letter queues that is looked at for a loop */

/* --- all connections of this process, for fork --------------------------------------------------- */

static pthread_mutex_t all_mutex = PTHREAD_MUTEX_INITIALIZER;
static sb_connection *all;

static void before_fork(void)
{
    pthread_mutex_lock(&all_mutex);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&all_mutex);
}

static void after_fork_child(void)
{
    for (sb_connection *each = all; each; each = each->next) {
        if (atomic_exchange(&each->closed, SB_FORKED) != 0)
            continue;
        /* our copies of the descriptors would keep the parent alive after its death */
        close(each->lock_file);
        close(each->sweep_file);
        close(each->catalog_lock_file);
    }
    all = NULL;
    pthread_mutex_unlock(&all_mutex);
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static void list_add(sb_connection *connection)
{
    pthread_mutex_lock(&all_mutex);
    connection->next = all;
    all = connection;
    pthread_mutex_unlock(&all_mutex);
}

static void list_remove(sb_connection *connection)
{
    pthread_mutex_lock(&all_mutex);
    for (sb_connection **at = &all; *at; at = &(*at)->next)
        if (*at == connection) {
            *at = connection->next;
            break;
        }
    pthread_mutex_unlock(&all_mutex);
}

/* --- attaching ----------------------------------------------------------------------------------- */

static int64_t check_catalog(sb_connection *connection)
{
    void *catalog = connection->catalog.memory;
    int64_t code = sb_catalog_check(catalog, connection->catalog.bytes);
    if (code == SB_OTHER_VERSION)
        return fail(code, "its catalog has layout version %lld, this shmbroker speaks %lld: use "
                    "the shmbroker that made it, or delete the vhost",
                    (long long)word_load(catalog, L_CATALOG_VERSION_AT),
                    (long long)L_LAYOUT_VERSION);
    if (code != SB_OK)
        return fail(code, "its catalog is no catalog of shmbroker, or is damaged: delete the vhost");
    size_t length = (size_t)word_load(catalog, L_CATALOG_NAME_LENGTH_AT);
    const char *name = (const char *)catalog + L_CATALOG_NAME_AT;
    if (length != strlen(connection->vhost) || memcmp(name, connection->vhost, length) != 0)
        return fail(SB_NOT_A_SEGMENT, "its catalog belongs to vhost '%.*s': was the file renamed?",
                    (int)length, name);
    if (!connection->restores && word_load(catalog, L_CATALOG_RESTORING_AT))
        return fail(SB_NO_VHOST, "vhost '%s' is being restored from its journal: wait until its "
                    "broker is live", connection->vhost);
    if (boot_hash() == 0)
        return fail(SB_SYSTEM, "/proc/sys/kernel/random/boot_id cannot be read: who is alive "
                    "cannot be told without /proc, mount it");
    if (word_load(catalog, L_CATALOG_BOOT_AT) != boot_hash())
        return fail(SB_OTHER_BOOT, "it was made in another boot of the machine (%llx, now %llx): "
                    "delete it", (unsigned long long)word_load(catalog, L_CATALOG_BOOT_AT),
                    (unsigned long long)boot_hash());
    return SB_OK;
}

static int64_t check_others(sb_connection *connection)
{
    void *participants = connection->participants.memory;
    int64_t identity = word_load(connection->catalog.memory, L_CATALOG_ARENA_AT);
    if (word_load(participants, L_PARTICIPANTS_MAGIC_AT) != L_PARTICIPANTS_MAGIC)
        return fail(SB_NOT_A_SEGMENT, "its table of participants is none: delete the vhost");
    if (word_load(participants, L_PARTICIPANTS_VERSION_AT) != L_LAYOUT_VERSION)
        return fail(SB_OTHER_VERSION, "its table of participants has layout version %lld, this "
                    "shmbroker speaks %lld",
                    (long long)word_load(participants, L_PARTICIPANTS_VERSION_AT),
                    (long long)L_LAYOUT_VERSION);
    void *transactions = connection->transactions.memory;
    if (word_load(transactions, L_TRANSACTIONS_MAGIC_AT) != L_TRANSACTIONS_MAGIC)
        return fail(SB_NOT_A_SEGMENT, "its table of transactions is none: delete the vhost");
    if (word_load(transactions, L_TRANSACTIONS_VERSION_AT) != L_LAYOUT_VERSION)
        return fail(SB_OTHER_VERSION, "its table of transactions has layout version %lld, this "
                    "shmbroker speaks %lld",
                    (long long)word_load(transactions, L_TRANSACTIONS_VERSION_AT),
                    (long long)L_LAYOUT_VERSION);
    int64_t code = sb_arena_check(connection->arena.memory, connection->arena.bytes);
    if (code != SB_OK)
        return fail(code, "its arena cannot be used: %s", sb_strerror(code));
    if (word_load(participants, L_PARTICIPANTS_ARENA_AT) != identity ||
        word_load(transactions, L_TRANSACTIONS_ARENA_AT) != identity ||
        word_load(connection->arena.memory, L_ARENA_IDENTITY_AT) != identity)
        return fail(SB_WRONG_ARENA, "its segments do not belong together: delete the vhost");
    return SB_OK;
}

static int64_t open_code(sb_connection *connection)
{
    return atomic_load(&connection->closed);
}

static int64_t attach(sb_connection *connection)
{
    char path[NAME_ROOM];
    vhost_path(path, connection->vhost, "catalog");
    int64_t code = segment_attach(&connection->catalog, path, L_CATALOG_IDENTITY_BYTES,
                                  &connection->whose);
    if (code == SB_SYSTEM && errno == ENOENT)
        return fail(SB_NO_VHOST, "there is no vhost '%s': create it first (shmbroker vhost create "
                    "%s)", connection->vhost, connection->vhost);
    if (code == SB_OK)
        code = check_catalog(connection);
    vhost_path(path, connection->vhost, "arena");
    if (code == SB_OK)
        code = segment_attach(&connection->arena, path, L_ARENA_TABLE_AT, &connection->whose);
    vhost_path(path, connection->vhost, "participants");
    if (code == SB_OK)
        code = segment_attach(&connection->participants, path, L_PARTICIPANTS_BYTES,
                              &connection->whose);
    vhost_path(path, connection->vhost, "transactions");
    if (code == SB_OK)
        code = segment_attach(&connection->transactions, path, L_TRANSACTIONS_BYTES,
                              &connection->whose);
    if (code == SB_OK)
        code = check_others(connection);
    return code;
}

/* A description of a file of its own, for locks that do not mix with others'. */
static int64_t open_again(sb_connection *connection, const char *kind, int *file)
{
    char path[NAME_ROOM];
    vhost_path(path, connection->vhost, kind);
    return trusted_segment(path, O_RDWR, &connection->whose, file);
}

/* A process that is killed lets go of its files one after the other, those of high numbers first; an
 * inotify file takes it 10 ms and more (the kernel waits for all who may look at it).  So whoever
 * waits for the lock that tells of the death gets it first. */
static void to_high_number(int *file)
{
    int high = fcntl(*file, F_DUPFD_CLOEXEC, LOCK_FILE_NUMBER_MIN);
    if (high < 0)
        return; /* the process may not have so many */
    close(*file);
    *file = high;
}

static int64_t open_locks(sb_connection *connection)
{
    int64_t code = open_again(connection, "participants", &connection->lock_file);
    if (code == SB_OK)
        to_high_number(&connection->lock_file);
    if (code == SB_OK)
        code = open_again(connection, "participants", &connection->sweep_file);
    if (code == SB_OK)
        code = open_again(connection, "catalog", &connection->catalog_lock_file);
    return code;
}

static void close_locks(sb_connection *connection)
{
    int *const files[] = {&connection->lock_file, &connection->sweep_file,
                          &connection->catalog_lock_file};
    for (int each = 0; each < 3; each++) {
        if (*files[each] >= 0)
            close(*files[each]);
        *files[each] = -1;
    }
}

static int64_t connect_as(const char *vhost, const char *name, bool joins, bool restores,
                          sb_connection **made)
{
    *made = NULL;
    if (!vhost_name_is_good(vhost))
        return fail(SB_BAD_NAME, "'%s' is no vhost: its name is 1 to %d letters, digits, '-' and "
                    "'_'", vhost ? vhost : "", (int)L_CATALOG_NAME_BYTES_MAX);
    sb_connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return fail_system("memory for a connection");
    strcpy(connection->vhost, vhost);
    connection->catalog.file = connection->arena.file = connection->participants.file = -1;
    connection->transactions.file = -1;
    connection->lock_file = connection->sweep_file = connection->catalog_lock_file = -1;
    connection->spins = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? SPIN_NS / PAUSE_NS : 0;
    connection->spins_as_it_pays = true;
    connection->restores = restores;
    connection->whose = trust_segments;
    connection->whose.looks = !joins && !restores; /* an attached one joins later */
    pthread_mutex_init(&connection->mutex, NULL);
    pthread_mutex_init(&connection->repair, NULL);
    pthread_mutex_init(&connection->settle, NULL);
    pthread_mutex_init(&connection->slow, NULL);
    connection->queues = calloc(L_QUEUE_ROWS, sizeof *connection->queues);
    int64_t code = connection->queues ? attach(connection) : fail_system("memory");
    if (code == SB_OK)
        code = open_locks(connection);
    if (code == SB_OK && joins)
        code = participant_join(connection, name ? name : program_invocation_short_name, true);
    if (code != SB_OK) {
        atomic_store(&connection->closed, code);
        sb_connection_free(connection);
        return code;
    }
    list_add(connection);
    *made = connection;
    return SB_OK;
}

int64_t sb_connect(const char *vhost, const char *name, sb_connection **made)
{
    return connect_as(vhost, name, true, false, made);
}

int64_t sb_restore_begin(const char *vhost, int64_t arena_bytes, const char *name,
                         sb_connection **made)
{
    int64_t code = vhost_create(vhost, arena_bytes, true);
    return code == SB_OK ? connect_as(vhost, name, true, true, made) : code;
}

int64_t sb_observe(const char *vhost, sb_connection **made)
{
    return connect_as(vhost, NULL, false, false, made);
}

int64_t sb_attach(const char *vhost, sb_connection **made)
{
    return connect_as(vhost, NULL, false, true, made);
}

/* As quick as can be: what the dead have left is repaired by others, or by us later. */
int64_t sb_join(sb_connection *connection, const char *name)
{
    struct stat status;
    if (connection->id)
        return fail(SB_INVALID, "the connection takes part in vhost '%s' already", connection->vhost);
    if (fstat(connection->catalog.file, &status) != 0 || status.st_nlink == 0)
        return fail(SB_NO_VHOST, "vhost '%s' was deleted meanwhile", connection->vhost);
    if (word_load(connection->catalog.memory, L_CATALOG_RESTORING_AT))
        return fail(SB_NO_VHOST, "vhost '%s' is not whole", connection->vhost);
    int64_t code = open_code(connection);
    if (code == SB_OK)
        code = participant_join(connection, name, false);
    return code == SB_TOO_MANY ? participant_join(connection, name, true) : code;
}

int64_t sb_disconnect(sb_connection *connection)
{
    int64_t open = 0;
    if (!atomic_compare_exchange_strong(&connection->closed, &open, SB_CLOSED) &&
        open != SB_CLOSED && open != SB_SLOW)
        return open;
    if (atomic_exchange(&connection->left, 1))
        return SB_OK;
    list_remove(connection);
    clerk_end(connection);
    pager_end(connection);
    pthread_mutex_lock(&connection->mutex);
    pthread_mutex_unlock(&connection->mutex); /* a change of the catalog is finished */
    for (int64_t row = 0; row < L_QUEUE_ROWS; row++)
        if (connection->queues[row])
            queue_shut(connection->queues[row]);
    for (sb_queue *each = connection->gone; each; each = each->next)
        if (each->ring.memory)
            queue_shut(each);
    for (lane *each = connection->lent; each; each = each->next)
        sb_port_stop(&each->port);
    reply_shut(connection);
    /* a commit and a repair that are under way end first: our locks are theirs */
    pthread_mutex_lock(&connection->settle);
    pthread_mutex_lock(&connection->repair);
    if (connection->id)
        participant_leave(connection);
    close_locks(connection);
    pthread_mutex_unlock(&connection->repair);
    pthread_mutex_unlock(&connection->settle);
    return SB_OK;
}

void sb_connection_free(sb_connection *connection)
{
    if (!connection)
        return;
    if (atomic_load(&connection->closed) == 0 || atomic_load(&connection->closed) == SB_SLOW)
        sb_disconnect(connection);
    bool forked = atomic_load(&connection->closed) == SB_FORKED;
    while (connection->exchanges)
        exchange_close(connection->exchanges);
    for (int64_t row = 0; connection->queues && row < L_QUEUE_ROWS; row++)
        if (connection->queues[row])
            queue_free(connection->queues[row]);
    departed_free(connection);
    reply_free(connection);
    request_free(connection);
    while (connection->lent) {
        lane *last = connection->lent;
        connection->lent = last->next;
        recorder_free(&last->recorder);
        free(last);
    }
    lanes_free(connection);
    if (!forked)
        close_locks(connection);
    segment_detach(&connection->catalog);
    segment_detach(&connection->arena);
    segment_detach(&connection->participants);
    segment_detach(&connection->transactions);
    free(connection->queues);
    free(connection);
}

int64_t sb_spin(sb_connection *connection, int64_t ns)
{
    if (ns < 0)
        return fail(SB_INVALID, "a wait cannot spin for %lld ns: 0 or more", (long long)ns);
    connection->spins = ns / PAUSE_NS;
    connection->spins_as_it_pays = false;
    return SB_OK;
}

int64_t sb_wait_in_slices(sb_connection *connection)
{
    connection->waits_in_slices = true;
    return SB_OK;
}

int64_t sb_participant(sb_connection *connection)
{
    return connection->id;
}

int64_t sb_closed(sb_connection *connection)
{
    return atomic_load(&connection->closed);
}

void *sb_catalog(sb_connection *connection)
{
    return connection->catalog.memory;
}

void *sb_participants(sb_connection *connection)
{
    return connection->participants.memory;
}

void *sb_arena(sb_connection *connection, int64_t *bytes)
{
    int64_t data_at = sb_arena_data_at(word_load(connection->arena.memory, L_ARENA_BLOCKS_AT));
    *bytes = connection->arena.bytes - data_at;
    return (char *)connection->arena.memory + data_at;
}

void sb_arena_shares(sb_connection *connection, int64_t *shares)
{
    void *arena = connection->arena.memory;
    int64_t blocks = word_load(arena, L_ARENA_BLOCKS_AT);
    int64_t committed = word_load(arena, L_ARENA_COMMITTED_AT);
    memset(shares, 0, sizeof *shares * L_PARTICIPANTS);
    for (int64_t block = 0; block < committed && block < blocks; block++) {
        int64_t word = word_load(arena, L_ARENA_TABLE_AT + (block << L_BLOCK_ENTRY_SHIFT));
        if (((word >> L_BLOCK_STATE_SHIFT) & L_STATE_MASK) != L_BLOCK_FREE)
            shares[(word >> L_BLOCK_OWNER_SHIFT) & L_OWNER_MASK] += L_BLOCK_BYTES;
    }
}

/* --- changing the catalog ------------------------------------------------------------------------ */

static int64_t lock_within(sb_connection *connection, int most)
{
    pthread_mutex_lock(&connection->mutex);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    const struct timespec pause = {0, LOCK_PAUSE_NS};
    for (int tries = 0; tries < most; tries++) {
        if (fcntl(connection->catalog_lock_file, F_OFD_SETLK, &lock) == 0) {
            /* the last one died while it changed something: it may not have told anybody */
            if (word_load(connection->catalog.memory, L_CATALOG_CHANGING_AT))
                catalog_tidy(connection);
            word_store(connection->catalog.memory, L_CATALOG_CHANGING_AT, 1);
            return SB_OK;
        }
        if (errno != EAGAIN && errno != EACCES && errno != EINTR) {
            pthread_mutex_unlock(&connection->mutex);
            return fail_system("locking the catalog of vhost '%s'", connection->vhost);
        }
        if (tries < 64)
            sched_yield();
        else
            nanosleep(&pause, NULL);
    }
    pthread_mutex_unlock(&connection->mutex);
    if (most < LOCK_TRIES)
        return SB_LOCKED;
    return fail(SB_LOCKED, "somebody has held the catalog's lock of vhost '%s' for 5 s: is a "
                "participant stopped?", connection->vhost);
}

int64_t connection_lock(sb_connection *connection)
{
    return lock_within(connection, LOCK_TRIES);
}

int64_t connection_try_lock(sb_connection *connection)
{
    return lock_within(connection, 1);
}

void connection_unlock(sb_connection *connection)
{
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    word_store(connection->catalog.memory, L_CATALOG_CHANGING_AT, 0);
    fcntl(connection->catalog_lock_file, F_OFD_SETLK, &lock);
    pthread_mutex_unlock(&connection->mutex);
}

/* How many bytes the UTF-8 character here has, 0 if it is none. */
static int character_bytes(const unsigned char *at)
{
    int bytes = at[0] < 0x80 ? 1 : (at[0] >> 5) == 6 ? 2 : (at[0] >> 4) == 14 ? 3
              : (at[0] >> 3) == 30 ? 4 : 0;
    for (int each = 1; each < bytes; each++)
        if ((at[each] & 0xC0) != 0x80)
            return 0;
    if ((bytes == 2 && at[0] < 0xC2) || (bytes == 3 && at[0] == 0xE0 && at[1] < 0xA0) ||
        (bytes == 3 && at[0] == 0xED && at[1] > 0x9F) || (bytes == 4 && at[0] == 0xF0 && at[1] < 0x90) ||
        (bytes == 4 && (at[0] > 0xF4 || (at[0] == 0xF4 && at[1] > 0x8F))))
        return 0;
    return bytes;
}

int64_t name_check(const char *kind, const char *name)
{
    size_t length = name ? strlen(name) : 0;
    if (length == 0 || length > L_NAME_BYTES_MAX)
        return fail(SB_BAD_NAME, "the name of a %s is 1 to %d bytes, this one has %zu", kind,
                    (int)L_NAME_BYTES_MAX, length);
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strchr(name, '/'))
        return fail(SB_BAD_NAME, "'%s' looks like a path: the name of a %s contains no '/'", name,
                    kind);
    for (const char *each = name; *each;) {
        int bytes = character_bytes((const unsigned char *)each);
        if (bytes == 0)
            return fail(SB_BAD_NAME, "the name of a %s is UTF-8, this one is not", kind);
        if ((unsigned char)*each < 0x20 || *each == 0x7F)
            return fail(SB_BAD_NAME, "the name of a %s contains no control characters", kind);
        each += bytes;
    }
    return SB_OK;
}

int64_t change_code(sb_connection *connection)
{
    detail_forget();
    if (connection->id == 0)
        return fail(SB_INVALID, "the connection only observes: connect to change something");
    return open_code(connection);
}

/* --- queues -------------------------------------------------------------------------------------- */

int64_t queue_handle(sb_connection *connection, int64_t reference, sb_queue **queue)
{
    int64_t row = sb_row_of(connection->catalog.memory, L_QUEUES, reference);
    if (row < 0)
        return fail(SB_NOT_FOUND, "the queue was deleted");
    sb_queue **known = &connection->queues[row];
    if (*known && (*known)->reference != reference) {
        departed_add(*known);
        *known = NULL;
    }
    if (!*known) {
        int64_t code = queue_map(connection, reference, known);
        if (code != SB_OK)
            return code;
    }
    *queue = *known;
    return SB_OK;
}

int64_t queue_find(sb_connection *connection, int64_t reference, sb_queue **queue)
{
    pthread_mutex_lock(&connection->mutex);
    int64_t code = queue_handle(connection, reference, queue);
    if (code == SB_OK)
        atomic_fetch_add(&(*queue)->looks, 1);
    pthread_mutex_unlock(&connection->mutex);
    return code;
}

/* A row for a new queue.  Blocks name their queue by its row only, so a row whose former queue is
 * still in somebody's hands is left alone. */
static int64_t free_row(sb_connection *connection)
{
    void *catalog = connection->catalog.memory;
    for (int64_t row = sb_row_free(catalog, L_QUEUES); row >= 0 && row < L_QUEUE_ROWS; row++)
        if (row_is_deserted(connection, row))
            return row;
    return fail(SB_TABLE_FULL, "vhost '%s' has %d queues, and can have no more: delete some",
                connection->vhost, (int)L_QUEUE_ROWS);
}

/* The gate of the journal, or of the pager, is there from the beginning, in nobody's hand: nothing is
 * taken, or dropped, before the broker has adopted it and moved it.  If there are both, the journal's
 * is the first. */
void ring_add_gate(void *ring, int64_t position)
{
    int64_t gate = word_load(ring, L_RING_GATES_HIGH_AT);
    word_store(ring, L_RING_GATES_AT + gate * L_GATE_BYTES,
               L_GATE_ACTIVE | (int64_t)L_GATE_LASTING << L_GATE_KIND_SHIFT | position);
    word_store(ring, L_RING_GATES_HIGH_AT, gate + 1);
}

int64_t ring_begin(sb_connection *connection, segment *ring, int64_t row, int64_t slots,
                   const char *settings)
{
    int64_t ids = word_load(settings, L_SETTING_DUPLICATE_IDS_AT);
    int64_t code = segment_make(ring, sb_ring_bytes_with(slots, ids), sb_ring_bytes(slots)); /* duplicates.c commits the rest */
    if (code != SB_OK)
        return code;
    bool is_inbox = word_load(settings, L_SETTING_INBOX_OF_AT); /* nobody takes from it */
    sb_ring_format(ring->memory, slots, row, is_inbox ? L_RING_BROADCAST : 0,
                   word_load(connection->catalog.memory, L_CATALOG_ARENA_AT));
    word_store(ring->memory, L_RING_IDS_AT, ids);
    word_store(ring->memory, L_RING_USED_AT, sb_system_clock());
    memcpy((char *)ring->memory + L_RING_SETTINGS_AT, settings + L_RING_SETTINGS_AT,
           (size_t)(L_RING_GATES_AT - L_RING_SETTINGS_AT));
    word_store(ring->memory, L_RING_MODE_AT, settings_mode(settings));
    bool is_durable = word_load(settings, L_SETTING_DURABLE_AT);
    if (is_durable)
        ring_add_gate(ring->memory, 0);
    if (is_durable)
        word_store(ring->memory, L_RING_BARRIER_AT, 1);
    if (is_inbox)
        ring_add_gate(ring->memory, 0);
    return SB_OK;
}

int64_t ring_name(sb_connection *connection, const segment *ring, int64_t reference)
{
    char path[NAME_ROOM];
    queue_path(path, connection->vhost, reference);
    unlink(path); /* left by one who died before the catalog knew of it */
    return segment_name(ring, path);
}

static int64_t entry_begin(sb_connection *connection, int64_t row)
{
    void *catalog = connection->catalog.memory;
    int64_t entry = sb_catalog_entry_at(L_QUEUES, row);
    int64_t code = sb_system_allocate(connection->catalog.file, entry, L_ENTRY_BYTES);
    if (code != SB_OK)
        return fail_system("memory for the catalog of vhost '%s'", connection->vhost);
    memset((char *)catalog + entry, 0, L_ENTRY_BYTES);
    return entry;
}

int64_t queue_put(sb_connection *connection, int64_t row, const char *name,
                  const declaration_head *declared)
{
    int64_t code = entry_begin(connection, row);
    if (code < 0)
        return code;
    return sb_queue_put(connection->catalog.memory, row, name, (int64_t)strlen(name),
                        declared->slots, declared->flags, declared->created, declared->identity[0],
                        declared->identity[1]);
}

int64_t queue_add(sb_connection *connection, const char *name, int64_t slots, const char *settings,
                  int64_t flags)
{
    void *catalog = connection->catalog.memory;
    segment ring;
    int64_t identity[2];
    int64_t row = free_row(connection);
    if (row < 0)
        return row;
    int64_t entry = entry_begin(connection, row);
    if (entry < 0)
        return entry;
    int64_t code = ring_begin(connection, &ring, row, slots, settings);
    if (code != SB_OK)
        return code;
    code = ring_name(connection, &ring, row_next_reference(connection, row));
    segment_detach(&ring);
    if (code != SB_OK)
        return code;
    if (getrandom(identity, sizeof identity, 0) != sizeof identity)
        return fail_system("random numbers");
    if (flags & L_QUEUE_INBOX)
        identity[0] = inbox_identity(connection, settings);
    if (word_load(settings, L_SETTING_AUTO_DELETE_AT))
        flags |= L_QUEUE_AUTO_DELETE;
    if (word_load(settings, L_SETTING_SLOW_CONSUMER_THRESHOLD_AT))
        flags |= L_QUEUE_SLOW;
    if (word_load(settings, L_SETTING_DURABLE_AT))
        flags |= L_QUEUE_DURABLE;
    /* who closes deals with what it owns under this lock, after it has set `closed` */
    if (ownership_begins_with(flags) && open_code(connection) != SB_OK)
        return open_code(connection);
    if (ownership_begins_with(flags))
        ownership_give(connection, entry, connection->id);
    code = sb_queue_put(catalog, row, name, (int64_t)strlen(name), slots, flags, realtime_ns(),
                        identity[0], identity[1]);
    if (flags & L_QUEUE_DURABLE)
        journaler_rouse(connection);
    return code;
}

static int64_t reference_of(sb_connection *connection, const char *name)
{
    return sb_reference_find(connection->catalog.memory, L_QUEUES, name, (int64_t)strlen(name));
}

bool leads_back(sb_connection *connection, const char *name, const char *first, int64_t setting_at)
{
    char next[L_NAME_BYTES_MAX + 1];
    strcpy(next, first);
    for (int step = 0; step < DEAD_LETTER_STEPS; step++) {
        sb_queue *queue;
        if (strcmp(next, name) == 0)
            return true;
        int64_t reference = reference_of(connection, next);
        if (reference < 0 || queue_handle(connection, reference, &queue) != SB_OK ||
            setting_name(queue, setting_at, next) == 0)
            return false;
    }
    return false;
}

static int64_t check_loop(sb_connection *connection, const char *name, const void *page, int64_t at,
                          const char *what)
{
    char first[L_NAME_BYTES_MAX + 1];
    if (name_in(page, at, first) && leads_back(connection, name, first, at))
        return fail(SB_INVALID, "%s '%s' of queue '%s' leads back to it: name another", what, first,
                    name);
    return SB_OK;
}

/* Where the dead go is made with the queue that they come from.  They die no more there. */
static int64_t make_grave(sb_connection *connection, const void *page, int64_t at, int64_t slots)
{
    static const char given[] = "\x81\xAEmax_deliveries\xC0";
    char name[L_NAME_BYTES_MAX + 1], of_grave[L_RING_GATES_AT] = "";
    const sb_settings settings = {.max_deliveries = SB_UNLIMITED, .given = given,
                                  .given_length = sizeof given - 1,
                                  .durable = word_load(page, L_SETTING_DURABLE_AT)};
    if (name_in(page, at, name) == 0 || reference_of(connection, name) >= 0)
        return SB_OK;
    settings_write(&settings, of_grave);
    settings_default(of_grave, SB_SET_MAX_DELIVERIES);
    word_store(of_grave, L_SETTINGS_SET_AT, 0); /* whoever declares it later need not know */
    int64_t reference = queue_add(connection, name, slots, of_grave, 0);
    return reference < 0 ? reference : SB_OK;
}

/* A queue that is there is the same if it was declared so; what patterns say by now is not asked. */
static int64_t declare_again(sb_connection *connection, int64_t row, const char *name, int64_t slots,
                             const void *asked)
{
    void *catalog = connection->catalog.memory;
    int64_t has = word_load(catalog, sb_catalog_entry_at(L_QUEUES, row) + L_QUEUE_SLOTS_AT);
    int64_t reference = sb_row_reference(catalog, L_QUEUES, row);
    sb_queue *queue;
    if (has != slots)
        return fail(SB_DIFFERENT, "queue '%s' exists with %lld slots, not %lld: declare it so, or "
                    "delete it first", name, (long long)has, (long long)slots);
    int64_t code = queue_handle(connection, reference, &queue);
    if (code == SB_OK && !settings_same(asked, queue->ring.memory))
        return fail(SB_DIFFERENT, "queue '%s' exists with other settings: declare it as it is, or "
                    "delete it first", name);
    return code < 0 ? code : reference;
}

int64_t queue_declare(sb_connection *connection, const char *name, int64_t slots,
                      const sb_settings *settings, int64_t flags)
{
    char page[L_RING_GATES_AT] = "";
    int64_t row = sb_row_find(connection->catalog.memory, L_QUEUES, name, (int64_t)strlen(name));
    int64_t code = settings_write(settings, page);
    if (code == SB_OK)
        code = check_loop(connection, name, page, L_SETTING_DEAD_LETTER_AT, "dead_letter");
    if (code == SB_OK)
        code = check_loop(connection, name, page, L_SETTING_EXPIRY_QUEUE_AT, "expiry_queue");
    if (code == SB_OK && row >= 0)
        return declare_again(connection, row, name, slots, page);
    if (code == SB_OK)
        code = patterns_apply(connection, name, page);
    if (code == SB_OK && word_load(page, L_SETTING_LAST_VALUE_AT) && slots > L_CARRIED_SLOTS_MAX)
        code = fail(SB_INVALID, "a queue with last_value has at most %lld slots, not %lld",
                    (long long)L_CARRIED_SLOTS_MAX, (long long)slots);
    if (code == SB_OK && word_load(page, L_SETTING_WHEN_FULL_AT) == L_PAGE &&
        !word_load(connection->participants.memory, L_PARTICIPANTS_PAGES_AT))
        code = fail(SB_INVALID, "queue '%s' is to page, and nobody writes pages in vhost '%s': run a "
                    "broker with a store (shmbroker create, shmbroker run)", name,
                    connection->vhost);
    if (code == SB_OK)
        code = make_grave(connection, page, L_SETTING_DEAD_LETTER_AT, slots);
    if (code == SB_OK)
        code = make_grave(connection, page, L_SETTING_EXPIRY_QUEUE_AT, slots);
    return code == SB_OK ? queue_add(connection, name, slots, page, flags) : code;
}

int64_t sb_declare_queue(sb_connection *connection, const char *name, int64_t slots)
{
    return sb_declare_queue_with(connection, name, slots, NULL);
}

int64_t queue_check(sb_connection *connection, const char *name, int64_t slots)
{
    int64_t code = change_code(connection);
    if (code == SB_OK)
        code = name_check("queue", name);
    if (code == SB_OK && sb_ring_bytes(slots) < 0)
        return fail(SB_INVALID, "a queue has a power of two of slots, from %lld to %lld, not %lld",
                    (long long)L_SLOTS_MIN, (long long)L_SLOTS_MAX, (long long)slots);
    return code;
}

int64_t sb_declare_queue_with(sb_connection *connection, const char *name, int64_t slots,
                              const sb_settings *settings)
{
    int64_t code = queue_check(connection, name, slots);
    if (code == SB_OK)
        code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    int64_t reference = queue_declare(connection, name, slots, settings, 0);
    connection_unlock(connection);
    return reference < 0 ? reference : SB_OK;
}

int64_t queue_create(sb_connection *connection, const char *name)
{
    int64_t reference = SB_NOT_FOUND, code = SB_OK;
    if (connection->id && sb_row_next(connection->catalog.memory, L_SETTINGS, 0) >= 0) {
        code = connection_lock(connection);
        if (code != SB_OK)
            return code;
        reference = reference_of(connection, name); /* somebody else may have been faster */
        if (reference < 0 && patterns_create(connection, name))
            reference = code = queue_declare(connection, name, L_QUEUE_SLOTS, NULL, 0);
        connection_unlock(connection);
    }
    if (reference >= 0 || code < 0)
        return reference;
    return fail(SB_NOT_FOUND, "there is no queue '%s' in vhost '%s': declare it first", name,
                connection->vhost);
}

int64_t sb_open_queue(sb_connection *connection, const char *name, sb_queue **queue)
{
    void *catalog = connection->catalog.memory;
    int64_t code = open_code(connection);
    if (code == SB_OK)
        code = name_check("queue", name);
    if (code != SB_OK)
        return code;
    departed_some(connection);
    int64_t reference = sb_reference_find(catalog, L_QUEUES, name, (int64_t)strlen(name));
    if (reference < 0)
        reference = queue_create(connection, name);
    if (reference < 0)
        return reference;
    pthread_mutex_lock(&connection->mutex);
    code = queue_handle(connection, reference, queue);
    if (code == SB_OK)
        atomic_fetch_add(&(*queue)->opened, 1);
    pthread_mutex_unlock(&connection->mutex);
    return code;
}

void queue_remove(sb_connection *connection, int64_t reference)
{
    char path[NAME_ROOM];
    void *catalog = connection->catalog.memory;
    int64_t row = reference & L_REFERENCE_INDEX_MASK;
    sb_queue *known = connection->queues[row];
    sb_row_remove(catalog, L_QUEUES, row);
    sb_bindings_remove(catalog, L_QUEUES, reference);
    latency_remove(connection, reference);
    queue_path(path, connection->vhost, reference);
    unlink(path);
    if (known && known->reference == reference)
        atomic_store(&known->gone, SB_NOT_FOUND);
    int64_t schedule = schedule_find(connection, reference);
    if (schedule >= 0)
        queue_remove(connection, schedule);
    int64_t inbox = inbox_find(connection, reference);
    if (inbox >= 0)
        queue_remove(connection, inbox);
}

static int64_t delete_locked(sb_connection *connection, const char *name, int64_t force,
                             bool (*condition)(sb_queue *), sb_queue **deleted)
{
    sb_queue *queue;
    void *catalog = connection->catalog.memory;
    int64_t row = sb_row_find(catalog, L_QUEUES, name, (int64_t)strlen(name));
    if (row < 0)
        return fail(SB_NOT_FOUND, "there is no queue '%s' in vhost '%s'", name, connection->vhost);
    int64_t reference = sb_row_reference(catalog, L_QUEUES, row);
    int64_t users = participant_others(connection, reference);
    if (users > 0 && !force)
        return fail(SB_IN_USE, "queue '%s' is in use by %lld other participant%s: close it there "
                    "first, or force", name, (long long)users, users == 1 ? "" : "s");
    int64_t code = queue_handle(connection, reference, &queue);
    if (condition && (code != SB_OK || !condition(queue)))
        return SB_IN_USE;
    queue_remove(connection, reference);
    if (code == SB_OK) { /* else its ring was damaged or gone: now the rest of it is gone too */
        *deleted = queue;
        atomic_fetch_add(&queue->looks, 1);
    }
    return SB_OK;
}

static int64_t delete_queue(sb_connection *connection, const char *name, int64_t force,
                            bool (*condition)(sb_queue *))
{
    int64_t code = change_code(connection);
    if (code == SB_OK)
        code = name_check("queue", name);
    if (code == SB_OK)
        code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    sb_queue *deleted = NULL;
    code = delete_locked(connection, name, force, condition, &deleted);
    connection_unlock(connection);
    if (!deleted)
        return code;
    departed_shut(deleted);
    return code;
}

int64_t sb_delete_queue(sb_connection *connection, const char *name, int64_t force)
{
    return delete_queue(connection, name, force, NULL);
}

int64_t queue_delete_if(sb_connection *connection, const char *name, bool (*condition)(sb_queue *))
{
    return delete_queue(connection, name, 1, condition);
}

/* --- exchanges and bindings ---------------------------------------------------------------------- */

int64_t exchange_reference(sb_connection *connection, const char *name)
{
    void *catalog = connection->catalog.memory;
    int64_t row = sb_row_find(catalog, L_EXCHANGES, name, (int64_t)strlen(name));
    int64_t reference = row < 0 ? row : sb_row_reference(catalog, L_EXCHANGES, row);
    if (reference < 0)
        return fail(SB_NOT_FOUND, "there is no exchange '%s' in vhost '%s': declare it first",
                    name, connection->vhost);
    return reference;
}

static int64_t declare_exchange_locked(sb_connection *connection, const char *name, int64_t kind,
                                       const char *alternate)
{
    void *catalog = connection->catalog.memory;
    int64_t other = alternate ? exchange_reference(connection, alternate) : 0;
    if (other < 0)
        return other;
    int64_t row = sb_row_find(catalog, L_EXCHANGES, name, (int64_t)strlen(name));
    if (row >= 0) {
        int64_t entry = sb_catalog_entry_at(L_EXCHANGES, row);
        if (word_load(catalog, entry + L_EXCHANGE_KIND_AT) == kind &&
            word_load(catalog, entry + L_EXCHANGE_ALTERNATE_AT) == other)
            return SB_OK;
        return fail(SB_DIFFERENT, "exchange '%s' exists with another kind or alternate: declare it "
                    "so, or delete it first", name);
    }
    row = sb_row_free(catalog, L_EXCHANGES);
    if (row < 0)
        return fail(row, "vhost '%s' has %d exchanges, and can have no more: delete some",
                    connection->vhost, (int)L_EXCHANGE_ROWS);
    int64_t entry = sb_catalog_entry_at(L_EXCHANGES, row);
    int64_t code = sb_system_allocate(connection->catalog.file, entry, L_ENTRY_BYTES);
    if (code != SB_OK)
        return fail_system("memory for the catalog of vhost '%s'", connection->vhost);
    code = sb_exchange_put(catalog, row, name, (int64_t)strlen(name), kind, 0, other);
    return code < 0 ? code : SB_OK;
}

int64_t sb_declare_exchange(sb_connection *connection, const char *name, int64_t kind,
                            const char *alternate)
{
    int64_t code = change_code(connection);
    if (code == SB_OK)
        code = name_check("exchange", name);
    if (code == SB_OK && (kind < L_DIRECT || kind > L_HEADERS))
        code = fail(SB_INVALID, "an exchange is direct, topic, fanout or headers");
    if (code == SB_OK)
        code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    code = declare_exchange_locked(connection, name, kind, alternate);
    connection_unlock(connection);
    return code;
}

static bool is_alternate(sb_connection *connection, int64_t reference)
{
    void *catalog = connection->catalog.memory;
    int64_t row = 0;
    while ((row = sb_row_next(catalog, L_EXCHANGES, row)) >= 0) {
        int64_t entry = sb_catalog_entry_at(L_EXCHANGES, row++);
        if (word_load(catalog, entry + L_EXCHANGE_ALTERNATE_AT) == reference)
            return true;
    }
    return false;
}

static int64_t delete_exchange_locked(sb_connection *connection, const char *name, int64_t force)
{
    void *catalog = connection->catalog.memory;
    int64_t reference = exchange_reference(connection, name);
    if (reference < 0)
        return reference;
    int64_t bindings = sb_bindings_from(catalog, reference) +
                       sb_bindings_to(catalog, L_EXCHANGES, reference);
    if (!force && bindings > 0)
        return fail(SB_IN_USE, "exchange '%s' has %lld binding%s: unbind first, or force", name,
                    (long long)bindings, bindings == 1 ? "" : "s");
    if (!force && is_alternate(connection, reference))
        return fail(SB_IN_USE, "exchange '%s' is another's alternate: delete that one first, or "
                    "force", name);
    sb_row_remove(catalog, L_EXCHANGES, reference & L_REFERENCE_INDEX_MASK);
    sb_bindings_remove(catalog, L_EXCHANGES, reference);
    return SB_OK;
}

int64_t sb_delete_exchange(sb_connection *connection, const char *name, int64_t force)
{
    int64_t code = change_code(connection);
    if (code == SB_OK)
        code = name_check("exchange", name);
    if (code == SB_OK)
        code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    code = delete_exchange_locked(connection, name, force);
    connection_unlock(connection);
    return code;
}

/* What a binding says, with its names looked up. */
typedef struct binding {
    int64_t source, kind, destination;
} binding;

static int64_t binding_find_ends(sb_connection *connection, const sb_binding *asked, binding *found)
{
    void *catalog = connection->catalog.memory;
    int64_t code = name_check("exchange", asked->exchange);
    if (code == SB_OK)
        code = name_check(asked->to_exchange ? "exchange" : "queue", asked->destination);
    if (code != SB_OK)
        return code;
    found->source = exchange_reference(connection, asked->exchange);
    found->kind = asked->to_exchange ? L_EXCHANGES : L_QUEUES;
    if (found->source < 0)
        return found->source;
    int64_t row = sb_row_find(catalog, found->kind, asked->destination,
                              (int64_t)strlen(asked->destination));
    found->destination = row < 0 ? row : sb_row_reference(catalog, found->kind, row);
    if (found->destination < 0)
        return fail(SB_NOT_FOUND, "there is no %s '%s' in vhost '%s': declare it first",
                    asked->to_exchange ? "exchange" : "queue", asked->destination,
                    connection->vhost);
    return SB_OK;
}

static bool binding_is_exclusive(sb_connection *connection, int64_t row)
{
    return word_load(connection->catalog.memory,
                     sb_catalog_entry_at(L_BINDINGS, row) + L_BINDING_EXCLUSIVE_AT) != 0;
}

/* Before the row is live: an exchange without exclusive bindings is searched once. */
static void exclusive_note(sb_connection *connection, int64_t entry, const sb_binding *asked,
                           int64_t source)
{
    void *catalog = connection->catalog.memory;
    int64_t exchange = sb_catalog_entry_at(L_EXCHANGES, source & L_REFERENCE_INDEX_MASK);
    word_store(catalog, entry + L_BINDING_EXCLUSIVE_AT, asked->exclusive != 0);
    if (asked->exclusive)
        word_store(catalog, exchange + L_EXCHANGE_FLAGS_AT,
                   word_load(catalog, exchange + L_EXCHANGE_FLAGS_AT) | L_EXCHANGE_DIVERTS);
}

int64_t binding_add(sb_connection *connection, const sb_binding *asked)
{
    void *catalog = connection->catalog.memory;
    binding ends;
    int64_t code = binding_find_ends(connection, asked, &ends);
    if (code != SB_OK)
        return code;
    if (asked->key_length + asked->arguments_length > L_BINDING_PAYLOAD_BYTES)
        return fail(SB_INVALID, "the key and arguments of a binding have at most %d bytes "
                    "together, not %lld", (int)L_BINDING_PAYLOAD_BYTES,
                    (long long)(asked->key_length + asked->arguments_length));
    code = sb_binding_find(catalog, ends.source, ends.kind, ends.destination, asked->match_any,
                           asked->key, asked->key_length, asked->arguments,
                           asked->arguments_length);
    if (code >= 0 && binding_is_exclusive(connection, code) != (asked->exclusive != 0))
        return fail(SB_DIFFERENT, "exchange '%s' is bound to '%s' and %s: unbind first",
                    asked->exchange, asked->destination,
                    asked->exclusive ? "that is not exclusive" : "that is exclusive");
    if (code >= 0)
        return SB_OK; /* bound already */
    int64_t row = sb_row_free(catalog, L_BINDINGS);
    if (row < 0)
        return fail(row, "vhost '%s' has %d bindings, and can have no more: unbind some",
                    connection->vhost, (int)L_BINDING_ROWS);
    int64_t entry = sb_catalog_entry_at(L_BINDINGS, row);
    code = sb_system_allocate(connection->catalog.file, entry, L_ENTRY_BYTES);
    if (code != SB_OK)
        return fail_system("memory for the catalog of vhost '%s'", connection->vhost);
    exclusive_note(connection, entry, asked, ends.source);
    code = sb_binding_put(catalog, row, ends.source, ends.kind, ends.destination, asked->match_any,
                          asked->key, asked->key_length, asked->arguments,
                          asked->arguments_length);
    return code < 0 ? code : SB_OK;
}

static int64_t unbind_locked(sb_connection *connection, const sb_binding *asked)
{
    void *catalog = connection->catalog.memory;
    binding ends;
    int64_t code = binding_find_ends(connection, asked, &ends);
    if (code != SB_OK)
        return code;
    int64_t row = sb_binding_find(catalog, ends.source, ends.kind, ends.destination,
                                  asked->match_any, asked->key, asked->key_length,
                                  asked->arguments, asked->arguments_length);
    if (row < 0)
        return fail(SB_NOT_FOUND, "'%s' is not bound to exchange '%s' with this key and arguments",
                    asked->destination, asked->exchange);
    sb_row_remove(catalog, L_BINDINGS, row);
    return SB_OK;
}

static int64_t with_lock(sb_connection *connection, const sb_binding *asked,
                         int64_t (*change)(sb_connection *, const sb_binding *))
{
    int64_t code = change_code(connection);
    if (code == SB_OK)
        code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    code = change(connection, asked);
    connection_unlock(connection);
    return code;
}

int64_t sb_bind(sb_connection *connection, const sb_binding *binding)
{
    return with_lock(connection, binding, binding_add);
}

int64_t sb_unbind(sb_connection *connection, const sb_binding *binding)
{
    return with_lock(connection, binding, unbind_locked);
}
