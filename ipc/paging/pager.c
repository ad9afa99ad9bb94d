/* The pager: one thread of a broker with a store, between the inboxes of queues that page, their
 * page files and their rings (inbox.c has the picture, and how order is kept).
 *
 * In each turn, for each queue that has news or waits for room: what is in the inbox goes to the
 * ring, if nothing is in pages and the ring has room, else to the files with one write; then the
 * gate of the inbox is moved behind it, and so there is room for producers.  What is in the files
 * goes to the ring as far as that has room, ahead of the consumers.
 *
 * A message is known by its position in the inbox, and each step can be done again:
 *
 *     inbox to file    who dies after the write and before the gate leaves it in both; whoever
 *                      comes then writes it once more, and reading skips what was read
 *     to the ring      its number there is its position + 1 (core/producer.py): with tail helped to
 *                      the truth, the ring tells up to which it has them
 *
 * So a message is never lost or doubled by a death, and nothing of ours has to be written down.
 *
 * Of a durable queue, whose inbox is durable, we read what the journal has.  Here each step is done
 * when it is on disk, as the machine may die:
 *
 *     inbox to file    the file is synced, before the gate is moved
 *     to the ring      the journal has passed it there: only then the file goes, or, if it was in
 *                      none, the gate is moved.  Its number is in the journal with it
 *                      (deduplication.c)
 *
 * Files begin only when the journal has passed in the ring all that went there before: else, after
 * a power loss, they would have what comes after a message that is in the inbox alone.
 *
 * What the journal has passed in the ring is looked at in steps: when it is behind all that was
 * there at one moment, all that we had put there until then is safe. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "journal/format.h"
#include "paging/pager.h"
#include "paging/paging.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define PAGE_BYTES (INT64_C(10) << 20)
#define IDLE_NS INT64_C(1000000000)
#define NAP_NS INT64_C(1000000) /* what is in pages waits for room: at first, and at most */
#define NAP_NS_MAX INT64_C(16000000)
#define DISK_FULL_NS INT64_C(100000000)

void pager_ring(const sb_queue *inbox)
{
    follower_told(inbox->connection, L_FOLLOWER_PAGER, inbox->reference);
}

/* --- the thread ------------------------------------------------------------------------------- */

static void told(sb_pager *pager, int64_t code)
{
    if (code != SB_OK)
        snprintf(pager->why, sizeof pager->why, "%s", sb_detail(code));
    if (atomic_exchange(&pager->code, code) != code)
        sb_system_wake((int64_t)(intptr_t)&pager->code, INT32_MAX);
}

static int64_t folder_refused(const char *doing, const char *folder)
{
    if (is_full_disk(errno))
        return fail(SB_DISK_FULL, "%s, %s %s", strerror(errno), doing, folder);
    return fail_system("%s %s", doing, folder);
}

static int64_t folder_made(sb_pager *pager)
{
    char parent[PATH_MAX];
    if (pager->has_folder)
        return SB_OK;
    if (mkdir(pager->folder, 0700) != 0 && errno != EEXIST)
        return folder_refused("making the folder", pager->folder);
    snprintf(parent, sizeof parent, "%s/..", pager->folder);
    int file = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int64_t code = file >= 0 && fsync(file) == 0 ? SB_OK : folder_refused("syncing", parent);
    if (file >= 0)
        close(file);
    pager->has_folder = code == SB_OK;
    return code;
}

/* Those that have news, wait for room, or were read in part; and now and then all, as one may have
 * been killed before he rang. */
static int64_t serve_ready(sb_pager *pager, bool *waits)
{
    int64_t moved = 0, code = SB_OK, now = sb_system_clock();
    ready_take_rung(&pager->ready);
    if (now - pager->passed_at >= IDLE_NS) {
        ready_mark_all(&pager->ready);
        pager->passed_at = now;
    }
    for (int64_t at = pager->ready.count - 1; at >= 0 && code >= 0; at--) {
        paged *each = at < pager->ready.count ? pager->ready.ready[at]->of : NULL;
        bool is_left = false;
        if (!each)
            continue; /* it was there twice */
        if (!queue_is_usable(each->queue, &code) || !queue_is_usable(each->inbox, &code)) {
            code = SB_OK; /* the catalog has changed */
            continue;
        }
        code = paged_serve(each, &is_left);
        moved += code > 0 ? code : 0;
        if (code == SB_OK && !is_left)
            paged_rest(each);
        *waits |= is_left;
    }
    return code < 0 ? code : moved;
}

/* How many messages were moved, or why we end. */
static int64_t turn(sb_pager *pager, bool *waits)
{
    int64_t code = folder_made(pager);
    if (code == SB_OK)
        code = pager_look_at_catalog(pager);
    if (code == SB_OK)
        code = serve_ready(pager, waits);
    pager->is_full = code == SB_DISK_FULL;
    if (pager->is_full) /* it has not even room for a folder: later */
        return *waits = true, told(pager, code), 0;
    if (code < 0)
        return code;
    bool tells_full = false;
    for (int64_t at = 0; at < pager->ready.count; at++) { /* who has no room is ready */
        const paged *each = pager->ready.ready[at]->of;
        pager->is_full |= each->is_full;
        tells_full |= each->tells_full;
    }
    if (tells_full != (atomic_load(&pager->code) == SB_DISK_FULL))
        told(pager, tells_full ? SB_DISK_FULL : SB_OK);
    return code;
}

static void repair_queues(sb_pager *pager)
{
    int64_t count = pager->following.count;
    for (int64_t at = 0; at < count; at++)
        pager->waits[at] = (sb_wait){.queue = pager->following.rows[at].queue};
    if (count > 0)
        pager->connection->duties->repair_rings(pager->waits, count);
}

/* Until a bell is rung, or it is time to try again. */
static void rest(sb_pager *pager, bool waits)
{
    pager->nap_ns = 2 * pager->nap_ns < NAP_NS_MAX ? 2 * pager->nap_ns : NAP_NS_MAX;
    int64_t longest = pager->is_full ? DISK_FULL_NS : waits ? pager->nap_ns : IDLE_NS;
    system_word bell = ready_armed(&pager->ready);
    if (ready_take_rung(&pager->ready) || following_is_behind(&pager->following) ||
        atomic_load(&pager->stopping))
        return;
    if (sb_system_wait(bell.address, bell.value, longest) == SB_EMPTY && longest == IDLE_NS)
        repair_queues(pager);
}

static void *work(void *context)
{
    sb_pager *pager = context;
    int64_t code = SB_OK;
    while (code >= 0 && !atomic_load(&pager->stopping) &&
           (code = atomic_load(&pager->connection->closed)) == SB_OK) {
        bool waits = false;
        code = turn(pager, &waits);
        if (code > 0)
            pager->nap_ns = NAP_NS / 2;
        else if (code == SB_OK)
            rest(pager, waits);
    }
    bool is_closed = code >= 0 || atomic_load(&pager->connection->closed) != SB_OK;
    if (!is_closed)
        log_note(pager->connection, "pages: %s: %s", sb_strerror(code), sb_detail(code));
    told(pager, is_closed ? SB_CLOSED : code);
    return NULL;
}

/* --- beginning and end ------------------------------------------------------------------------ */

int64_t sb_pager_start(sb_connection *connection, const char *folder, int64_t page_bytes,
                       const sb_pager_fence *fence, sb_pager **started)
{
    int64_t code = change_code(connection);
    if (code != SB_OK)
        return code;
    if (page_bytes < 0 || strlen(folder) >= sizeof((sb_pager){0}).folder)
        return fail(SB_INVALID, "a page has 1 byte or more, and its folder a shorter name");
    if (!participant_lock_pager(connection))
        return fail(SB_IN_USE, "another broker pages the queues of vhost '%s' already",
                    connection->vhost);
    sb_pager *pager = calloc(1, sizeof *pager);
    if (pager) {
        pager->connection = connection;
        pager->page_bytes = page_bytes ? page_bytes : PAGE_BYTES;
        strcpy(pager->folder, folder);
        pager->fence.file = fence ? (int)fence->file : -1;
        pager->fence.lease = fence ? (const _Atomic int64_t *)fence->until_ns : NULL;
        pager->epoch = fence ? fence->epoch : 0;
        fence_begin(&pager->fence, pager->epoch);
        code = pager_follow(pager);
    } else {
        code = fail_system("memory for a pager");
    }
    if (code == SB_OK)
        code = folder_made(pager);
    if (code == SB_OK)
        /* what is wrong is told to the caller, not to the log */
        code = pager_look_at_catalog(pager);
    if (code == SB_DISK_FULL) { /* the thread waits for room */
        told(pager, code);
        code = SB_OK;
    }
    if (code == SB_OK) {
        participant_repairs(connection);
        word_store(connection->participants.memory, L_PARTICIPANTS_PAGES_AT, 1);
        code = thread_start(&pager->thread, work, pager, "the pager");
    }
    if (code == SB_OK) {
        *started = connection->pager = pager;
        return SB_OK;
    }
    participant_unlock_pager(connection);
    if (pager) {
        pager_leave_all(pager);
        free(pager->waits);
        free(pager);
    }
    return code;
}

int64_t sb_pager_code(sb_pager *pager)
{
    return atomic_load(&pager->code);
}

int64_t sb_pager_await(sb_pager *pager, int64_t seen, int64_t timeout_ns)
{
    if (atomic_load(&pager->code) == seen)
        sb_system_wait((int64_t)(intptr_t)&pager->code, seen, timeout_ns);
    return atomic_load(&pager->code);
}

const char *sb_pager_why(sb_pager *pager)
{
    return pager->why;
}

void pager_end(sb_connection *connection)
{
    sb_pager *pager = connection->pager;
    if (!pager)
        return;
    atomic_store(&pager->stopping, 1);
    sb_follower_rouse(connection, L_FOLLOWER_PAGER);
    if (pthread_equal(pthread_self(), pager->thread))
        return; /* we were disconnected as a slow consumer, and it found out: it is about to end */
    connection->pager = NULL;
    pthread_join(pager->thread, NULL);
    pager_leave_all(pager);
    participant_unlock_pager(connection);
}

void sb_pager_stop(sb_pager *pager)
{
    /* whoever has disconnected has ended it; and after a fork it is the parent's */
    if (atomic_load(&pager->connection->closed) != SB_FORKED)
        pager_end(pager->connection);
}

void sb_pager_free(sb_pager *pager)
{
    sb_pager_stop(pager);
    free(pager->waits);
    free(pager);
}
