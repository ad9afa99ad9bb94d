/* Which queues page, by the catalog: the pager follows their inboxes, by gates that it adopts, and
 * removes the files of those that are no more. */

#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
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
    each->gate = each->durable ? 1 : 0;
    int64_t gate = word_load(each->inbox->ring.memory, L_RING_GATES_AT + each->gate * L_GATE_BYTES);
    int64_t code = sb_port_open(&each->in, each->inbox->ring.memory, each->inbox->ring.bytes,
                                connection->arena.memory, connection->arena.bytes, connection->id);
    if (code == SB_OK)
        code = sb_port_open(&each->out, each->queue->ring.memory, each->queue->ring.bytes,
                            connection->arena.memory, connection->arena.bytes, connection->id);
    if (code != SB_OK)
        return code;
    each->out.file = connection->arena.file;
    int64_t position =
        sb_port_gate_adopt(&each->in, each->gate, (gate >> L_GATE_OWNER_SHIFT) & L_OWNER_MASK);
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
    sb_port_close(&each->out);
    sb_port_close(&each->in);
    atomic_fetch_sub(&each->queue->held, 1);
    atomic_fetch_sub(&each->inbox->held, 1);
    if (each->store)
        page_store_close(each->store);
    free(each);
}

static int64_t follow(sb_pager *pager, int64_t reference)
{
    sb_connection *connection = pager->connection;
    char path[PATH_MAX];
    paged *made = NULL;
    sb_queue *inbox, *queue = NULL;
    if (posix_memalign((void **)&made, 128, sizeof *made) != 0)
        return fail_system("memory for a queue that pages");
    memset(made, 0, sizeof *made);
    made->pager = pager;
    pthread_mutex_lock(&connection->mutex);
    int64_t code = queue_handle(connection, reference, &inbox);
    if (code == SB_OK)
        code = queue_handle(connection, setting(inbox, L_SETTING_INBOX_OF_AT), &queue);
    if (code == SB_OK)
        participant_uses(connection, queue->reference, 0);
    if (code == SB_OK) {
        participant_uses(connection, reference, 0);
        atomic_fetch_add(&queue->held, 1);
        atomic_fetch_add(&inbox->held, 1);
    }
    pthread_mutex_unlock(&connection->mutex);
    bool held = code == SB_OK;
    if (code == SB_OK && queue->pages)
        made->inbox = inbox_of(queue, true, &code);
    if (code != SB_OK || made->inbox != inbox) {
        if (held) {
            atomic_fetch_sub(&queue->held, 1);
            atomic_fetch_sub(&inbox->held, 1);
        }
        free(made);
        return code == SB_NOT_FOUND ? SB_OK : code; /* deleted while we looked */
    }
    made->queue = queue;
    folder_of(pager, queue, path);
    code = adopt(made);
    const page_safety safety = {.epoch = pager->epoch, .next = made->next,
                                .backed = made->cursor.position};
    if (code == SB_OK)
        code = page_store_open(path, pager->page_bytes, made->durable ? &safety : NULL, paged_tell,
                               made,
                               &made->store);
    if (code != SB_OK) {
        leave(made);
        return code;
    }
    made->before = pager->queues;
    pager->queues = made;
    pager->count++;
    return SB_OK;
}

static bool is_followed(const sb_pager *pager, int64_t reference)
{
    for (const paged *each = pager->queues; each; each = each->before)
        if (each->inbox->reference == reference)
            return true;
    return false;
}

static void unfollow_gone(sb_pager *pager)
{
    int64_t code, gone = 0;
    for (paged **at = &pager->queues; *at;) {
        paged *each = *at;
        char path[PATH_MAX];
        if (atomic_load(&pager->connection->closed) ||
            (queue_is_usable(each->queue, &code) && queue_is_usable(each->inbox, &code))) {
            at = &each->before;
            continue;
        }
        *at = each->before;
        folder_of(pager, each->queue, path);
        leave(each);
        page_store_remove(path);
        pager->count--;
        gone++;
    }
    if (gone)
        deleted_forget(pager->connection);
}

int64_t pager_look_at_catalog(sb_pager *pager)
{
    void *catalog = pager->connection->catalog.memory;
    int64_t generation = word_load(catalog, L_CATALOG_GENERATION_AT), row = 0, code = SB_OK;
    if (generation == pager->generation)
        return SB_OK;
    unfollow_gone(pager);
    for (; code == SB_OK && (row = sb_row_next(catalog, L_QUEUES, row)) >= 0; row++) {
        int64_t flags = word_load(catalog, sb_catalog_entry_at(L_QUEUES, row) + L_QUEUE_FLAGS_AT);
        int64_t reference = sb_row_reference(catalog, L_QUEUES, row);
        if (flags & L_QUEUE_INBOX && reference >= 0 && !is_followed(pager, reference))
            code = follow(pager, reference);
    }
    sb_wait *waits = realloc(pager->waits, (size_t)(2 * pager->count + 1) * sizeof *waits);
    if (!waits)
        return fail_system("memory for %lld queues that page", (long long)pager->count);
    pager->waits = waits;
    if (code == SB_OK)
        pager->generation = generation;
    return code;
}

/* Pages of queues that are no more: of a vhost that was, or deleted while nobody paged. */
void pager_remove_left(sb_pager *pager)
{
    DIR *directory = opendir(pager->folder);
    struct dirent *each;
    while (directory && (each = readdir(directory))) {
        char path[PATH_MAX], name[FOLDER_NAME_BYTES + 1];
        bool is_there = strlen(each->d_name) != FOLDER_NAME_BYTES ||
                        strspn(each->d_name, "0123456789abcdef") != FOLDER_NAME_BYTES;
        for (const paged *one = pager->queues; one && !is_there; one = one->before) {
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

void pager_leave_all(sb_pager *pager)
{
    while (pager->queues) {
        paged *first = pager->queues;
        pager->queues = first->before;
        leave(first);
    }
}
