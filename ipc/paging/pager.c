/* The pager: one thread of a broker with a store, between the inboxes of queues that page, their
 * page files and their rings (inbox.c has the picture, and how order is kept).
 *
 * In each turn, for each queue: what is in the inbox goes to the ring, if nothing is in pages and
 * the ring has room, else to the files with one write; then the gate of the inbox is moved behind
 * it, and so there is room for producers.  What is in the files goes to the ring as far as that has
 * room, ahead of the consumers.
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
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "journal/format.h"
#include "paging/paging.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define PAGE_BYTES (INT64_C(10) << 20)
#define GATHER_MESSAGES 4096 /* of one queue, before it is another's turn */
#define IDLE_NS INT64_C(1000000000)
#define NAP_NS INT64_C(1000000) /* what is in pages waits for room: at first, and at most */
#define NAP_NS_MAX INT64_C(16000000)
#define DISK_FULL_NS INT64_C(100000000)
#define IDENTITY 1 /* under which we are numbered: those of named producers are hashes */
#define FOLDER_NAME "%016llx%016llx"
#define FOLDER_NAME_BYTES 32

typedef struct paged {
    sb_pager *pager;
    sb_queue *queue, *inbox;
    sb_port in, out;
    sb_cursor cursor; /* of the inbox */
    page_store *store;
    int64_t next;       /* all below is in the ring, or dropped: a position in the inbox */
    int64_t bytes_left; /* at least so many may be put into the ring */
    bool is_full;       /* the disk is */
    bool durable;
    bool awaits_journal; /* with what is in the inbox */
    int64_t gate;        /* ours, of the inbox: behind the journal's if there is one */
    int64_t put;         /* all that was put into the ring is below */
    int64_t direct;      /* the same, of what is in no file */
    int64_t safe;        /* all of that below is in the journal again */
    int64_t marked;      /* `put` at one moment, */
    int64_t marked_tail; /* and the tail of the ring then */
    struct paged *before;
} paged;

struct sb_pager {
    sb_connection *connection;
    pthread_t thread;
    char folder[PATH_MAX - FOLDER_NAME_BYTES - 64];
    bool has_folder;
    int64_t page_bytes;
    int64_t epoch;
    fence fence;
    _Atomic int64_t stopping, code;
    paged *queues;
    sb_wait *waits;
    int64_t count;
    int64_t generation; /* of the catalog, when we looked at it last */
    int64_t nap_ns;
    char why[512];
};

static char *bell_of(sb_connection *connection)
{
    return (char *)connection->participants.memory + L_PARTICIPANTS_PAGER_BELL_AT;
}

void pager_ring(sb_connection *connection)
{
    _Atomic int64_t *bell = (_Atomic int64_t *)bell_of(connection);
    int64_t asleep = 0;
    if (atomic_compare_exchange_strong(bell, &asleep, 1))
        sb_system_wake((int64_t)(intptr_t)bell, INT32_MAX);
}

static void tell(void *context, const char *text)
{
    paged *each = context;
    log_note(each->pager->connection, "pages of queue '%s': %s", each->queue->name, text);
}

/* --- into the ring ---------------------------------------------------------------------------- */

/* How many messages the ring has room for. */
static int64_t slots_left(paged *each)
{
    sb_queue *queue = each->queue;
    int64_t most = queue->max_messages > 0 && queue->max_messages < queue->slots
                       ? queue->max_messages : queue->slots;
    while (sb_port_reclaim(&each->out) > 0)
        ;
    return most - sb_port_window(&each->out);
}

/* Counting looks at every message in the ring, so it is done again only when it says no. */
static bool has_room_for(paged *each, int64_t length)
{
    if (each->bytes_left < length)
        each->bytes_left = each->queue->max_bytes - sb_port_bytes_held(&each->out);
    return each->bytes_left >= length || sb_port_window(&each->out) == 0;
}

static void set_next(paged *each, int64_t next)
{
    each->next = next;
    word_store(each->inbox->ring.memory, L_RING_PAGED_NEXT_AT, next);
}

static void mark(paged *each)
{
    int64_t tail = sb_port_true_tail(&each->out);
    each->marked = each->put;
    each->marked_tail = tail < 0 ? INT64_MAX : tail; /* it is damaged: nothing is safe */
}

/* What the journal has of what we have put into the ring. */
static void look_what_is_safe(paged *each)
{
    while (each->durable && each->safe < each->put &&
           sb_port_gate_position(&each->out, 0) >= each->marked_tail) {
        each->safe = each->marked;
        mark(each);
    }
    if (each->durable && each->store)
        page_store_journaled(each->store, each->safe);
}

/* SB_OK; SB_FULL: later. */
static int64_t put_in_ring(paged *each, const paged_message *message)
{
    int64_t bytes = (message->length + L_LINE_BYTES - 1) & -L_LINE_BYTES;
    if (!has_room_for(each, bytes))
        return SB_FULL;
    int64_t chunk = chunk_reserved_for(&each->out, message->chunk, message->length);
    if (chunk == SB_ARENA_FULL || chunk == SB_NO_MEMORY)
        return SB_FULL;
    if (chunk < 0)
        return chunk;
    int64_t expiry = expiry_of_chunk(message->chunk);
    if (expiry && message->later) {
        char *copied = (char *)sb_port_loan_body(&each->out, chunk) - L_CHUNK_HEADER_BYTES;
        expiry = expiry + message->later > 0 ? expiry + message->later : 1;
        word_store(copied, L_CHUNK_EXPIRY_AT, expiry);
    }
    word_store(&each->out, L_PORT_SEQUENCE, message->position);
    int64_t code = sb_port_publish_chunk(&each->out, chunk);
    if (code < 0) {
        sb_port_unreserve(&each->out, chunk);
        return code;
    }
    if (expiry)
        expiry_note(each->queue, expiry);
    each->bytes_left -= bytes;
    set_next(each, message->position + 1);
    each->put = each->next;
    return SB_OK;
}

/* Messages up to this position are nowhere. */
static void miss(paged *each, int64_t position)
{
    char text[128];
    snprintf(text, sizeof text, "%lld messages are missing (%lld to %lld)",
             (long long)(position - each->next), (long long)each->next, (long long)(position - 1));
    tell(each, text);
    atomic_fetch_add((_Atomic int64_t *)((char *)each->inbox->ring.memory + L_COUNTER_MISSING_AT),
                     position - each->next);
    set_next(each, position);
}

/* From the files: how many. */
static int64_t refill(paged *each)
{
    paged_message message;
    int64_t code, moved = 0, room = slots_left(each);
    while ((code = page_store_look(each->store, &message)) == SB_OK) {
        if (!message.chunk && message.position > each->next)
            set_next(each, message.position); /* what was between was purged */
        if (message.position > each->next)
            miss(each, message.position);
        if (message.chunk && message.position == each->next) {
            if (moved >= GATHER_MESSAGES || moved >= room)
                return moved;
            code = put_in_ring(each, &message);
            if (code == SB_FULL)
                return moved;
            if (code == SB_JOURNAL_DAMAGED)
                miss(each, message.position + 1);
            else if (code != SB_OK)
                return code;
            moved++;
        }
        page_store_pass(each->store);
    }
    return code == SB_EMPTY ? moved : code;
}

/* --- out of the inbox ------------------------------------------------------------------------- */

/* What the pager has read of the inbox is in a file or in the ring. */
static int64_t release(paged *each)
{
    int64_t gate = sb_port_gate_position(&each->in, each->gate);
    sb_cursor done = each->cursor;
    if (each->durable && each->safe < each->direct && each->safe < done.position)
        done.position = each->safe;
    if (gate >= done.position)
        return SB_OK;
    if (sb_cursor_release(&done) < 0)
        return fail(SB_STALE, "queue '%s' has another pager by now", each->queue->name);
    while (sb_port_reclaim(&each->in) > 0)
        ;
    sb_port_tell_producers(&each->in);
    return SB_OK;
}

/* One message of the inbox: SB_OK, or it stays there; SB_FULL: until the journal is further. */
static int64_t take_up(paged *each, const sb_message *message, int64_t *room)
{
    const paged_message found = {
        .position = message->position,
        .chunk = message->chunk,
        .length = (const char *)message->body + message->length - (const char *)message->chunk,
    };
    if (found.position < each->next)
        return SB_OK; /* in the ring already, or purged */
    if (page_store_is_empty(each->store)) {
        int64_t code = *room > 0 ? put_in_ring(each, &found) : SB_FULL;
        --*room;
        if (code == SB_OK)
            each->direct = each->put;
        if (code != SB_FULL)
            return code;
        each->awaits_journal = each->durable && each->safe < each->direct;
        if (each->awaits_journal)
            return SB_FULL;
    }
    return page_store_put(each->store, &found);
}

static void disk_is(paged *each, int64_t code)
{
    bool is_full = code == SB_DISK_FULL;
    if (is_full == each->is_full)
        return;
    each->is_full = is_full;
    word_store(each->inbox->ring.memory, L_RING_PAGES_CODE_AT, is_full ? SB_DISK_FULL : SB_OK);
    tell(each, is_full ? sb_detail(code) : "there is room on the disk again");
    sb_port_wake_all(&each->in); /* who waits for room is to be told */
}

/* Of a durable queue, what the journal has. */
static int64_t end_of_inbox(paged *each)
{
    return each->durable ? sb_port_gate_position(&each->in, 0) : INT64_MAX;
}

static int64_t write_pages(paged *each)
{
    int64_t code = each->durable ? fence_check(&each->pager->fence) : SB_OK;
    if (code == SB_OK)
        code = page_store_write(each->store);
    return code == SB_OK && each->durable ? fence_check(&each->pager->fence) : code;
}

/* How many. */
static int64_t gather(paged *each)
{
    sb_message message;
    int64_t code = SB_OK, many = 0, begun = each->cursor.position, room = slots_left(each);
    int64_t end = end_of_inbox(each);
    while (many < GATHER_MESSAGES && each->cursor.position < end) {
        if (each->durable && page_store_is_due(each->store))
            break; /* consumers do not wait for several syncs, and a death repeats one at most */
        int64_t position = each->cursor.position;
        code = sb_cursor_next(&each->cursor, &message);
        if (code == SB_EMPTY)
            break;
        if (code == SB_DAMAGED) {
            tell(each, "a message in memory is damaged, and is dropped");
            each->cursor.position = position + 1;
            continue;
        }
        if (code != SB_OK)
            return fail(SB_STALE, "queue '%s': the gate of its inbox was taken from us",
                        each->queue->name);
        code = take_up(each, &message, &room);
        if (code != SB_OK) {
            each->cursor.position = position;
            break;
        }
        many++;
    }
    int64_t wrote = code == SB_OK || code == SB_EMPTY || code == SB_FULL ? write_pages(each) : code;
    /* it stays in the inbox; what went to the ring meanwhile is known there */
    if (wrote != SB_OK) {
        page_store_forget(each->store);
        each->cursor.position = each->next > begun ? each->next : begun;
        if (wrote != SB_DISK_FULL)
            return wrote;
        many = 0;
    }
    if (many > 0 || wrote != SB_OK)
        disk_is(each, wrote);
    code = release(each);
    return code == SB_OK ? many : code;
}

/* Nothing is in the inbox, not even what the journal has not yet. */
static bool is_read(paged *each)
{
    return !each->durable || each->cursor.position == sb_port_true_tail(&each->in);
}

/* --- a turn ----------------------------------------------------------------------------------- */

/* SB_FULL: first what is on its way to the journal is to be there. */
static int64_t purge(paged *each)
{
    char *ring = each->inbox->ring.memory;
    int64_t below = word_load(ring, L_RING_PURGE_AT);
    if (below <= each->next || below > sb_port_true_tail(&each->in))
        return SB_OK;
    if (each->durable && each->safe < each->put)
        return SB_FULL;
    int64_t code = each->durable ? fence_check(&each->pager->fence) : SB_OK;
    if (code == SB_OK)
        code = page_store_clear(each->store, below); /* all of it is below */
    if (code != SB_OK)
        return code;
    atomic_fetch_add((_Atomic int64_t *)(ring + L_COUNTER_PURGED_AT), below - each->next);
    set_next(each, below);
    return SB_OK;
}

/* How many messages were moved, or a code.  *waits: some are left. */
static int64_t serve(paged *each, bool *waits)
{
    int64_t since = paging_begun(each->inbox);
    look_what_is_safe(each);
    int64_t code = purge(each);
    each->awaits_journal = code == SB_FULL;
    if (code == SB_FULL)
        return release(each);
    if (code != SB_OK)
        return code;
    if (page_store_is_empty(each->store) && each->next < each->cursor.position)
        miss(each, each->cursor.position); /* the files had all below that */
    int64_t gathered = gather(each);
    if (gathered < 0)
        return gathered;
    if (gathered > 0 && since == 0)
        inbox_noted(each->inbox); /* who published it has died before it could */
    int64_t moved = page_store_is_empty(each->store) ? 0 : refill(each);
    word_store(each->inbox->ring.memory, L_RING_PAGED_BYTES_AT, page_store_bytes(each->store));
    if (moved < 0)
        return moved;
    bool is_over = page_store_is_empty(each->store) && !each->is_full;
    *waits |= !is_over;
    if (is_over && gathered == 0 && since != 0 && is_read(each))
        paging_ended(each->inbox, since); /* else somebody has published meanwhile */
    return gathered + moved;
}

/* --- following -------------------------------------------------------------------------------- */

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
    set_next(each, dropped > last && dropped <= sb_port_true_tail(&each->in) ? dropped : last);
    each->put = each->direct = last; /* what of it was in a file is not known */
    mark(each);
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
        code = page_store_open(path, pager->page_bytes, made->durable ? &safety : NULL, tell, made,
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

static int64_t look_at_catalog(sb_pager *pager)
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
static void remove_left(sb_pager *pager)
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

/* Serve all: how many messages were moved, or why we end. */
static int64_t turn(sb_pager *pager, bool *waits)
{
    int64_t moved = 0, code = folder_made(pager);
    if (code == SB_OK)
        code = look_at_catalog(pager);
    bool is_full = false;
    for (paged *each = pager->queues; each && code >= 0; each = each->before) {
        if (!queue_is_usable(each->queue, &code) || !queue_is_usable(each->inbox, &code)) {
            code = SB_OK; /* the catalog has changed */
            continue;
        }
        code = serve(each, waits);
        moved += code > 0 ? code : 0;
        is_full |= each->is_full;
    }
    if (code == SB_DISK_FULL) /* it has not even room for a folder: later */
        return *waits = true, told(pager, code), 0;
    if (code < 0)
        return code;
    if (is_full != (atomic_load(&pager->code) == SB_DISK_FULL))
        told(pager, is_full ? SB_DISK_FULL : SB_OK);
    return moved;
}

/* The bell is armed, and then everything was looked at. */
static void rest(sb_pager *pager, bool waits)
{
    sb_wait *wait = pager->waits;
    for (paged *each = pager->queues; each; each = each->before) {
        if (!each->awaits_journal)
            *wait++ = (sb_wait){.queue = each->inbox, .position = each->cursor.position,
                                .returned = each->durable ? SB_CONFIRMED : -1};
        if (each->durable && each->safe < each->put)
            *wait++ = (sb_wait){.queue = each->queue, .position = each->marked_tail - 1,
                                .returned = SB_CONFIRMED};
    }
    pager->nap_ns = 2 * pager->nap_ns < NAP_NS_MAX ? 2 * pager->nap_ns : NAP_NS_MAX;
    bool is_full = atomic_load(&pager->code) == SB_DISK_FULL; /* what is in the inboxes cannot go */
    sb_wait_any(pager->waits, is_full ? 0 : wait - pager->waits,
                (const int64_t *)bell_of(pager->connection), 0,
                is_full ? DISK_FULL_NS
                : waits ? pager->nap_ns
                        : IDLE_NS);
}

static void *work(void *context)
{
    sb_pager *pager = context;
    int64_t code = SB_OK;
    while (code >= 0 && !atomic_load(&pager->stopping) &&
           (code = atomic_load(&pager->connection->closed)) == SB_OK) {
        bool waits = false;
        atomic_store((_Atomic int64_t *)bell_of(pager->connection), 0);
        code = turn(pager, &waits);
        if (code > 0)
            pager->nap_ns = NAP_NS / 2;
        else if (code == SB_OK && !atomic_load(&pager->stopping))
            rest(pager, waits);
    }
    bool is_closed = code >= 0 || atomic_load(&pager->connection->closed) != SB_OK;
    if (!is_closed)
        log_note(pager->connection, "pages: %s: %s", sb_strerror(code), sb_detail(code));
    told(pager, is_closed ? SB_CLOSED : code);
    return NULL;
}

static void leave_all(sb_pager *pager)
{
    while (pager->queues) {
        paged *first = pager->queues;
        pager->queues = first->before;
        leave(first);
    }
}

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
        pager->generation = -1;
        strcpy(pager->folder, folder);
        pager->fence.file = fence ? (int)fence->file : -1;
        pager->fence.lease = fence ? (const _Atomic int64_t *)fence->until_ns : NULL;
        pager->epoch = fence ? fence->epoch : 0;
        fence_begin(&pager->fence, pager->epoch);
        code = folder_made(pager);
    } else {
        code = fail_system("memory for a pager");
    }
    if (code == SB_OK)
        code = look_at_catalog(pager); /* what is wrong is told to the caller, not to the log */
    if (code == SB_DISK_FULL) { /* the thread waits for room */
        told(pager, code);
        code = SB_OK;
    }
    if (code == SB_OK) {
        remove_left(pager);
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
        leave_all(pager);
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
    pager_ring(connection);
    if (pthread_equal(pthread_self(), pager->thread))
        return; /* we were disconnected as a slow consumer, and it found out: it is about to end */
    connection->pager = NULL;
    pthread_join(pager->thread, NULL);
    leave_all(pager);
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
