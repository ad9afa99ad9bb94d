/* Which queues page: the pager follows their inboxes, by gates that it adopts, and removes the
 * files of those that are no more. */

#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "follower/follower.h"
#include "paging/page_store.h"
#include "paging/pager.h"
#include "paging/paging.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define IDENTITY 1 /* under which we are numbered: those of named producers are hashes */
#define FOLDER_NAME "%016llx%016llx"

static void folder_of(const sb_pager *pager, const sb_queue *queue, char *path)
{
    snprintf(path, PATH_MAX, "%s/" FOLDER_NAME, pager->folder, (unsigned long long)queue->key[0],
             (unsigned long long)queue->key[1]);
}

static int64_t adopt(paged *each)
{
    sb_connection *connection = each->pager->connection;
    each->durable = sb_is_durable(each->inbox);
    int64_t code = sb_port_open(&each->in, each->inbox->ring.memory, each->inbox->ring.bytes,
                                connection->arena.memory, connection->arena.bytes, connection->id);
    if (code == SB_OK)
        code = sb_port_open(&each->out, each->queue->ring.memory, each->queue->ring.bytes,
                            connection->arena.memory, connection->arena.bytes, connection->id);
    if (code != SB_OK)
        return code;
    each->out.file = connection->arena.file;
    each->gate = gate_find(each->inbox, L_GATE_PAGER, "");
    int64_t position = gate_seize(&each->in, each->inbox, each->gate);
    if (position < 0)
        return fail(SB_STALE, "queue '%s' has another pager by now", each->queue->name);
    each->cursor = (sb_cursor){.port = &each->in, .position = position, .gate = each->gate};
    int64_t last = sb_port_number(&each->out, IDENTITY);
    if (last < 0)
        return fail(last, "queue '%s': %s", each->queue->name, sb_strerror(last));
    int64_t dropped = word_load(each->inbox->ring.memory, L_RING_PAGED_NEXT_AT);
    paged_set_next(each,
                   dropped > last && dropped <= sb_port_true_tail(&each->in) ? dropped : last);
    each->put = each->direct = last; /* what of it was in a file is not known */
    paged_mark(each);
    return SB_OK;
}

static void leave(paged *each)
{
    if (each->news.of)
        ready_drop(&each->pager->ready, &each->news);
    if (each->put_news.of)
        ready_drop(&each->pager->ready, &each->put_news);
    sb_port_close(&each->out);
    sb_port_close(&each->in);
    atomic_fetch_sub(&each->queue->held, 1);
    if (each->store)
        page_store_close(each->store);
    free(each);
}

/* The queue of an inbox, held: SB_NOT_FOUND if it was deleted. */
static int64_t queue_of(sb_connection *connection, const sb_queue *inbox, sb_queue **queue)
{
    int64_t code;
    pthread_mutex_lock(&connection->mutex);
    code = queue_handle(connection, setting(inbox, L_SETTING_INBOX_OF_AT), queue);
    if (code == SB_OK) {
        participant_uses(connection, (*queue)->reference, 0);
        participant_uses(connection, inbox->reference, 0);
        atomic_fetch_add(&(*queue)->held, 1);
    }
    pthread_mutex_unlock(&connection->mutex);
    if (code != SB_OK)
        return code;
    if ((*queue)->pages && inbox_of(*queue, true, &code) == inbox)
        return SB_OK;
    atomic_fetch_sub(&(*queue)->held, 1);
    return code == SB_OK ? SB_NOT_FOUND : code;
}

static int64_t came(void *context, sb_queue *inbox, const char *entry, void **kept)
{
    sb_pager *pager = context;
    char path[PATH_MAX];
    paged *made = NULL;
    (void)entry;
    if (posix_memalign((void **)&made, 128, sizeof *made) != 0)
        return fail_system("memory for a queue that pages");
    memset(made, 0, sizeof *made);
    made->pager = pager;
    made->inbox = inbox;
    int64_t code = queue_of(pager->connection, inbox, &made->queue);
    if (code != SB_OK) {
        free(made);
        return code;
    }
    folder_of(pager, made->queue, path);
    code = adopt(made);
    const page_safety safety = {.epoch = pager->epoch, .next = made->next,
                                .backed = made->cursor.position};
    if (code == SB_OK)
        code = page_store_open(path, pager->page_bytes, made->durable ? &safety : NULL, paged_tell,
                               made, &made->store);
    if (code == SB_OK)
        code = ready_add(&pager->ready, &made->news, inbox, made);
    if (code == SB_OK)
        code = ready_add(&pager->ready, &made->put_news, made->queue, made);
    if (code == SB_OK)
        *kept = made;
    else
        leave(made);
    return code;
}

static int64_t gone(void *context, void *kept)
{
    char path[PATH_MAX];
    paged *each = kept;
    folder_of(context, each->queue, path);
    leave(each);
    page_store_remove(path);
    return SB_OK;
}

static const following_user USER = {.came = came, .gone = gone};

int64_t pager_follow(sb_pager *pager)
{
    ready_begin(&pager->ready, pager->connection,
                follower_bell_seize(pager->connection, L_FOLLOWER_PAGER));
    return following_begin(&pager->following, pager->connection, L_QUEUE_INBOX, &USER, pager);
}

/* Pages of queues that are no more: of a vhost that was, or deleted while nobody paged. */
static void remove_left(sb_pager *pager)
{
    DIR *directory = opendir(pager->folder);
    struct dirent *each;
    while (directory && (each = readdir(directory))) {
        char path[PATH_MAX], name[FOLDER_NAME_BYTES + 1];
        bool is_there = strlen(each->d_name) != FOLDER_NAME_BYTES ||
                        strspn(each->d_name, "0123456789abcdef") != FOLDER_NAME_BYTES;
        for (int64_t at = 0; at < pager->following.count && !is_there; at++) {
            const paged *one = pager->following.rows[at].kept;
            snprintf(name, sizeof name, FOLDER_NAME, (unsigned long long)one->queue->key[0],
                     (unsigned long long)one->queue->key[1]);
            is_there = strcmp(name, each->d_name) == 0;
        }
        snprintf(path, sizeof path, "%s/%.32s", pager->folder, each->d_name);
        if (!is_there)
            page_store_remove(path);
    }
    if (directory)
        closedir(directory);
}

int64_t pager_look_at_catalog(sb_pager *pager)
{
    following *of = &pager->following;
    if (!following_is_behind(of) || atomic_load(&pager->connection->closed))
        return SB_OK;
    bool is_first = of->generation < 0;
    int64_t code = following_look(of);
    sb_wait *waits = realloc(pager->waits, (size_t)(of->count + 1) * sizeof *waits);
    if (!waits)
        return fail_system("memory for %lld queues that page", (long long)of->count);
    pager->waits = waits;
    if (code == SB_OK && is_first) /* all that page are followed: not before */
        code = fence_check(&pager->fence);
    if (code == SB_OK && is_first)
        remove_left(pager);
    return code;
}

void pager_leave_all(sb_pager *pager)
{
    for (int64_t each = 0; each < pager->following.count; each++)
        leave(pager->following.rows[each].kept);
    following_end(&pager->following);
    ready_end(&pager->ready);
}
