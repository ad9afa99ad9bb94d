/* One queue that pages: out of its inbox, into its files, and from there into its ring; how order
 * is kept, and what a death in each step leaves, is told in pager.c. */

#define _GNU_SOURCE
#include <stdio.h>

#include "base/base.h"
#include "paging/page_store.h"
#include "paging/pager.h"
#include "paging/paging.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define ROOM_NS INT64_C(1000000000) /* a disk that was full has room when it took all so long */
#define GATHER_MESSAGES 4096 /* of one queue, before it is another's turn */

void paged_tell(void *context, const char *text)
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

void paged_set_next(paged *each, int64_t next)
{
    each->next = next;
    word_store(each->inbox->ring.memory, L_RING_PAGED_NEXT_AT, next);
}

void paged_mark(paged *each)
{
    int64_t tail = sb_port_true_tail(&each->out);
    each->marked = each->put;
    each->marked_tail = tail < 0 ? INT64_MAX : tail; /* it is damaged: nothing is safe */
}

/* What the journal has of what we have put into the ring. */
static void look_what_is_safe(paged *each)
{
    while (each->durable && each->safe < each->put &&
           confirmed_below(each->queue) >= each->marked_tail) {
        each->safe = each->marked;
        paged_mark(each);
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
    int64_t chunk = sb_port_loan_copied(&each->out, message->chunk, message->length);
    if (chunk == SB_ARENA_FULL || chunk == SB_NO_MEMORY)
        return SB_FULL;
    if (chunk < 0)
        return chunk;
    int64_t expiry = sb_chunk_expiry(message->chunk);
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
    paged_set_next(each, message->position + 1);
    each->put = each->next;
    return SB_OK;
}

/* Messages up to this position are nowhere. */
static void miss(paged *each, int64_t position)
{
    char text[128];
    snprintf(text, sizeof text, "%lld messages are missing (%lld to %lld)",
             (long long)(position - each->next), (long long)each->next, (long long)(position - 1));
    paged_tell(each, text);
    atomic_fetch_add((_Atomic int64_t *)((char *)each->inbox->ring.memory + L_COUNTER_MISSING_AT),
                     position - each->next);
    paged_set_next(each, position);
}

/* From the files: how many. */
static int64_t refill(paged *each)
{
    paged_message message;
    int64_t code, moved = 0, room = slots_left(each);
    while ((code = page_store_look(each->store, &message)) == SB_OK) {
        if (!message.chunk && message.position > each->next)
            paged_set_next(each, message.position); /* what was between was purged */
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

/* A disk that is nearly full takes some writes and refuses others. */
static void tell_disk(paged *each, int64_t code)
{
    int64_t now = sb_system_clock();
    if (each->is_full)
        each->full_at = now;
    bool is_full = each->is_full || (each->tells_full && now - each->full_at < ROOM_NS);
    if (is_full == each->tells_full)
        return;
    each->tells_full = is_full;
    word_store(each->inbox->ring.memory, L_RING_PAGES_CODE_AT, is_full ? SB_DISK_FULL : SB_OK);
    paged_tell(each, is_full ? sb_detail(code) : "there is room on the disk again");
    sb_port_wake_all(&each->in); /* who waits for room is to be told */
}

/* Of a durable queue, what the journal has. */
static int64_t end_of_inbox(paged *each)
{
    return each->durable ? confirmed_below(each->inbox) : INT64_MAX;
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
            paged_tell(each, "a message in memory is damaged, and is dropped");
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
        each->is_full = wrote == SB_DISK_FULL;
    tell_disk(each, wrote);
    code = release(each);
    return code == SB_OK ? many : code;
}

/* Nothing is in the inbox, not even what the journal has not yet. */
static bool is_read(paged *each)
{
    return !each->durable || each->cursor.position == sb_port_true_tail(&each->in);
}

/* --- both, in turns --------------------------------------------------------------------------- */

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
    paged_set_next(each, below);
    return SB_OK;
}

/* How many messages were moved, or a code.  *waits: some are left. */
int64_t paged_serve(paged *each, bool *waits)
{
    int64_t since = sb_paging_seen(each->inbox->ring.memory);
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
    *waits |= !is_over || each->tells_full;
    if (is_over && gathered == 0 && since != 0 && is_read(each))
        sb_paging_end(each->inbox->ring.memory, since); /* else somebody has published meanwhile */
    return gathered + moved;
}

/* Whether a ring is confirmed so far; its next step is told to us. */
static bool is_confirmed_below(paged *each, sb_queue *queue, int64_t position)
{
    char *bell = (char *)queue->ring.memory + L_RING_CONFIRM_BELL_AT;
    sb_bell_follow((int64_t *)(void *)bell, each->pager->ready.bell);
    return confirmed_below(queue) >= position;
}

void paged_rest(paged *each)
{
    ready_set *ready = &each->pager->ready;
    int64_t next = each->cursor.position + 1;
    if (!each->durable) {
        if (ready_rest(ready, &each->news, &each->cursor))
            ready_leave(ready, &each->put_news);
        return;
    }
    if (!each->awaits_journal && is_confirmed_below(each, each->inbox, next))
        return;
    if (each->safe < each->put && is_confirmed_below(each, each->queue, each->marked_tail))
        return;
    ready_leave(ready, &each->news);
    ready_leave(ready, &each->put_news);
}
