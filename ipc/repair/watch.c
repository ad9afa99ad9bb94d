/* The repairer: repairs what a participant has left as soon as it dies.
 *
 * The kernel tells of a death through the pidfd of each participant; of newcomers through inotify,
 * because everybody who joins or leaves writes its state to the file (participant.c).  A process
 * of another pid namespace has no pidfd for us, and there may be no descriptors left for either: as
 * long as that is so, we look every 100 ms. */

#define _GNU_SOURCE
#include <poll.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "queue/queue.h"
#include "repair/repair.h"
#include "ring/ring.h"
#include "schedule/schedule.h"
#include "vhost/vhost.h"

#define LOOK_NS 100000000
#define REPAIR_NS 1000000000
#define SPARE_FILES 64 /* of those that the process may open: others in it need some */

typedef struct watch {
    struct pollfd files[L_PARTICIPANTS + 1];
    int64_t count;
    bool blind; /* somebody lives, or comes, whom we cannot watch */
} watch;

/* False: there is no such descriptor, or others will need it. */
static bool watch_one(watch *made, int file)
{
    bool watches = file >= 0 && file < sysconf(_SC_OPEN_MAX) - SPARE_FILES;
    if (watches)
        made->files[made->count++] = (struct pollfd){.fd = file, .events = POLLIN};
    else if (file >= 0)
        close(file);
    made->blind |= !watches;
    return watches;
}

static void watch_news(sb_connection *connection, watch *made)
{
    char path[NAME_ROOM];
    vhost_path(path, connection->home, "participants");
    int news = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch_one(made, news) && inotify_add_watch(news, path, IN_MODIFY) < 0)
        made->blind = true;
}

static void watch_all(sb_connection *connection, watch *made)
{
    char *participants = connection->participants.memory;
    int64_t end = word_load(participants, L_PARTICIPANTS_HIGH_AT);
    for (int64_t id = 1; id < end && id < L_PARTICIPANTS; id++) {
        char *entry = participants + participant_at(id);
        if (id == connection->id || word_load(entry, L_PARTICIPANT_STATE_AT) != L_PARTICIPANT_LIVE)
            continue;
        watch_one(made, participant_pidfd(entry));
    }
}

/* To look at a queue is no use of it. */
static void visit(sb_connection *connection, int64_t reference,
                  void (*looks)(sb_queue *, sb_port *))
{
    int64_t code;
    sb_queue *queue = NULL;
    if (reference < 0 || queue_find(connection, reference, &queue) != SB_OK)
        return;
    if (~atomic_load(&queue->uses) & L_USE_SERVES)
        queue_note_first_use(queue, L_USE_SERVES);
    lane *in = lane_enter(queue, &code);
    if (in) {
        looks(queue, &in->port);
        lane_leave(in);
    }
    queue_looked(queue);
}

static void expire_and_look(sb_queue *queue, sb_port *port)
{
    queue_expire(queue, port);
    slow_look(queue, port);
}

/* What is expired leaves, also queues that nobody uses; and those go whose time it is. */
static void repair_all(sb_connection *connection)
{
    int64_t row = 0;
    bool searched = false;
    while ((row = sb_row_next(connection->catalog.memory, L_QUEUES, row)) >= 0) {
        int64_t reference = sb_row_reference(connection->catalog.memory, L_QUEUES, row);
        int64_t flags = word_load(connection->catalog.memory,
                                  sb_catalog_entry_at(L_QUEUES, row++) + L_QUEUE_FLAGS_AT);
        bool searches = reference >= 0 && queue_needs_repair(connection, reference);
        if (searches || (reference >= 0 && flags & L_QUEUE_SLOW))
            visit(connection, reference, expire_and_look);
        searched |= searches;
    }
    if (searched)
        connections_unmap(); /* each message was looked at */
    mover_repair(connection);
    auto_delete(connection, 0);
    deleted_forget(connection, true);
}

/* Queues in which nobody waits may have sealed blocks without a message, and others lack them. */
static void relieve_arena(sb_connection *connection)
{
    int64_t *heads = arena_is_short(connection) ? calloc(L_QUEUE_MASK + 1, sizeof *heads) : NULL;
    if (!heads)
        return;
    memory_return(connection, heads);
    for (int64_t row = 0; row < L_QUEUE_ROWS; row++)
        if (heads[row] == -1)
            visit(connection, sb_row_reference(connection->catalog.memory, L_QUEUES, row),
                  queue_repair_alone);
    free(heads);
}

static int64_t repair_and_wait(sb_connection *connection, watch *made, int64_t deadline)
{
    watch_news(connection, made);
    watch_all(connection, made);
    int64_t repaired = sb_repair(connection); /* whoever died before we watched */
    repair_all(connection);
    relieve_arena(connection);
    int64_t left = deadline - sb_system_clock();
    if (repaired != 0 || left <= 0)
        return repaired;
    if (left > REPAIR_NS)
        left = REPAIR_NS;
    if (made->blind && left > LOOK_NS)
        left = LOOK_NS;
    struct timespec timeout = {left / 1000000000, left % 1000000000};
    int ready = ppoll(made->files, (nfds_t)made->count, &timeout, NULL);
    if (ready < 0)
        return errno == EINTR ? SB_INTERRUPTED : fail_system("watching participants");
    return sb_repair(connection);
}

int64_t sb_repair_for(sb_connection *connection, int64_t timeout_ns)
{
    int64_t code = usable_code(connection);
    if (code != SB_OK)
        return code;
    participant_repairs(connection);
    watch *made = calloc(1, sizeof *made);
    if (!made)
        return fail_system("memory for watching participants");
    code = repair_and_wait(connection, made, monotonic_deadline(timeout_ns));
    for (int64_t each = 0; each < made->count; each++)
        close(made->files[each].fd);
    free(made);
    return code;
}
