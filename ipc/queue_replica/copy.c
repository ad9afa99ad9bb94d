/* The applier of replicas: chunks are filled as records come, and all that belongs to a moment is
 * shown at once.  Until then everybody sees what was there before. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "commit/commit.h"
#include "follower/follower.h"
#include "journal/format.h"
#include "queue_replica/queue_replica.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

typedef struct staged {
    int64_t position, chunk;
} staged;

typedef struct copy {
    sb_port port;
    sb_queue *queue;
    int64_t number, later;
    staged *staged;
    int64_t count, room;
    int64_t next;     /* all below is staged, or shown */
    int64_t head;     /* of the original, as told last */
    int64_t end;      /* of what is known, as told last */
    char *bits;       /* what is done with from head on */
    int64_t length, bits_room;
    bool has_news;    /* it was told how the original stands */
    bool is_compared; /* and that nothing came back there */
    int64_t revived;  /* 1 + the position of what did */
    int64_t code, failed_at;
    struct copy *following;
} copy;

struct sb_copies {
    sb_connection *connection;
    copy *first;
};

/* --- opening ---------------------------------------------------------------------------------- */

int64_t sb_copies_open(sb_connection *connection, sb_copies **made)
{
    int64_t code = change_code(connection);
    if (code != SB_OK)
        return code;
    *made = calloc(1, sizeof **made);
    if (!*made)
        return fail_system("memory for replicas");
    (*made)->connection = connection;
    return SB_OK;
}

static copy **place_of(sb_copies *all, int64_t number)
{
    copy **at = &all->first;
    while (*at && (*at)->number != number)
        at = &(*at)->following;
    return at;
}

static int64_t tail_of(const sb_queue *queue)
{
    return word_load(queue->ring.memory, L_RING_TAIL_AT) & L_POSITION_MASK;
}

static int64_t open_port(copy *made)
{
    queue_note_use(made->queue, L_USE_SERVES); /* it keeps nobody from deleting it */
    int64_t code = port_to_look(made->queue, &made->port);
    made->next = made->end = tail_of(made->queue);
    made->head = retired_head(made->queue);
    return code;
}

int64_t sb_copies_add(sb_copies *all, sb_queue *queue, int64_t number, int64_t later)
{
    copy *made = NULL;
    int64_t code;
    sb_copies_drop(all, number);
    if (!queue_look(queue, &code))
        return code;
    if (posix_memalign((void **)&made, 128, sizeof *made) == 0) {
        memset(made, 0, sizeof *made);
        made->queue = queue;
        made->number = number;
        made->later = later;
        code = open_port(made);
    } else {
        code = fail_system("memory for a replica");
    }
    queue_looked(queue);
    if (code != SB_OK) {
        free(made);
        return code;
    }
    made->following = all->first;
    all->first = made;
    return SB_OK;
}

int64_t sb_copies_drop(sb_copies *all, int64_t number)
{
    copy **at = place_of(all, number), *dropped = *at;
    int64_t code;
    if (!dropped)
        return SB_OK;
    *at = dropped->following;
    if (queue_look(dropped->queue, &code)) {
        sb_port_close(&dropped->port);
        queue_looked(dropped->queue);
    }
    free(dropped->staged);
    free(dropped->bits);
    free(dropped);
    return SB_OK;
}

void sb_copies_close(sb_copies *all)
{
    while (all->first)
        sb_copies_drop(all, all->first->number);
    free(all);
}

int64_t sb_copies_stands(sb_copies *all, int64_t number, sb_copy_place *place)
{
    copy *one = *place_of(all, number);
    int64_t code;
    if (!one)
        return fail(SB_NOT_FOUND, "no replica with this number is there");
    if (!queue_look(one->queue, &code))
        return SB_NOT_FOUND;
    *place = (sb_copy_place){.next = one->next, .head = retired_head(one->queue),
                             .tail = tail_of(one->queue), .slots = one->queue->slots,
                             .staged = one->count, .code = one->code,
                             .failed_at = one->failed_at, .revived = one->revived};
    queue_looked(one->queue);
    return SB_OK;
}

/* --- staging ---------------------------------------------------------------------------------- */

static void fails(copy *one, int64_t code, int64_t position)
{
    if (one->code != SB_OK)
        return;
    one->code = code;
    one->failed_at = position;
}

static int64_t stage(copy *one, int64_t position, const void *body, int64_t length)
{
    if (one->count == one->room) {
        int64_t room = one->room ? 2 * one->room : 256;
        staged *made = realloc(one->staged, (size_t)room * sizeof *made);
        if (!made)
            return SB_NO_MEMORY;
        one->staged = made;
        one->room = room;
    }
    int64_t chunk = chunk_reserved_for(&one->port, body, length);
    if (chunk < 0)
        return chunk == SB_JOURNAL_DAMAGED ? SB_INVALID : chunk;
    char *to = (char *)sb_port_arena_data(&one->port) + chunk;
    int64_t expiry = expiry_of_chunk(to);
    if (expiry)
        word_store(to, L_CHUNK_EXPIRY_AT, expiry + one->later > 0 ? expiry + one->later : 1);
    word_store(to, L_CHUNK_ORIGIN_AT, 0); /* who has published it is known there */
    sb_port_replica_stage(&one->port, chunk, position);
    one->staged[one->count++] = (staged){.position = position, .chunk = chunk};
    one->next = position + 1;
    return SB_OK;
}

static int64_t note_stands(copy *one, int64_t head, const char *body, int64_t length)
{
    if (length < 8 || length % 8)
        return SB_INVALID;
    length -= 8;
    if (length > one->bits_room) {
        char *made = realloc(one->bits, (size_t)length);
        if (!made)
            return SB_NO_MEMORY;
        one->bits = made;
        one->bits_room = length;
    }
    if (length)
        memcpy(one->bits, body + 8, (size_t)length);
    one->length = length;
    one->head = head;
    one->end = word_load(body, 0);
    one->next = one->next > one->end ? one->next : one->end;
    one->has_news = true;
    return one->end < head || one->end > L_POSITION_MASK ? SB_INVALID : SB_OK;
}

static int64_t take(copy *one, const record_head *head, const char *body)
{
    int64_t kind = record_kind(head), position = record_position(head), code;
    if (kind == RECORD_STANDS)
        return note_stands(one, position, body, head->length);
    if (kind != SB_RECORD_MESSAGE)
        return SB_INVALID;
    if (position < one->next)
        return SB_OK; /* it is known */
    code = stage(one, position, body, head->length);
    if (code != SB_OK && code != SB_INVALID) {
        fails(one, code, position);
        return SB_OK;
    }
    return code;
}

int64_t sb_copies_take(sb_copies *all, const void *records, int64_t bytes)
{
    const char *at = records, *end = at + bytes;
    while (at < end) {
        record_head head;
        int64_t code;
        if (end - at < HEAD)
            return fail(SB_INVALID, "a record of an original is cut off");
        memcpy(&head, at, sizeof head);
        if (record_bytes(head.length) > end - at)
            return fail(SB_INVALID, "a record of an original is cut off");
        copy *one = *place_of(all, (int64_t)head.queue);
        if (one && one->code == SB_OK && queue_look(one->queue, &code)) {
            code = take(one, &head, at + HEAD);
            queue_looked(one->queue);
            if (code != SB_OK)
                return fail(code, "a record of an original contradicts itself");
        }
        at += record_bytes(head.length);
    }
    return SB_OK;
}

/* --- showing ---------------------------------------------------------------------------------- */

static bool is_done(const copy *one, int64_t position)
{
    int64_t bit = position - one->head;
    return bit < 0 || (bit / 8 < one->length && one->bits[bit / 8] >> bit % 8 & 1);
}

/* Otherwise a part of the moment would be shown. */
static bool has_room(copy *one)
{
    int64_t first = one->head;
    while (first < one->end && is_done(one, first))
        first++;
    one->failed_at = first + one->queue->slots;
    return one->end - first <= one->queue->slots;
}

/* What makes room first: it was done with before what follows came.  Only what was here before is
 * looked at for what came back: a message that was taken there before it was copied is a hole from
 * the beginning. */
static int64_t show(copy *one)
{
    int64_t known = tail_of(one->queue);
    int64_t code = has_room(one) ? sb_port_replica_retire(&one->port, one->head) : SB_FULL;
    if (code == SB_OK)
        code = sb_port_replica_retire_above(&one->port, one->head, (int64_t)(intptr_t)one->bits,
                                            one->length);
    for (int64_t each = 0; each < one->count && code == SB_OK; each++) {
        const staged *next = &one->staged[each];
        if (is_done(one, next->position))
            continue;
        one->failed_at = next->position;
        code = sb_port_replica_place(&one->port, next->chunk, next->position);
    }
    if (code == SB_OK)
        code = sb_port_replica_holes(&one->port, one->end);
    if (code == SB_OK)
        code = sb_port_replica_retire_above(&one->port, one->head, (int64_t)(intptr_t)one->bits,
                                            one->length);
    if (code == SB_OK && !one->is_compared)
        one->revived = sb_port_replica_revived(&one->port, one->head,
                                               (int64_t)(intptr_t)one->bits, one->length,
                                               one->end < known ? one->end : known);
    one->is_compared = true;
    if (one->revived)
        code = SB_STALE;
    one->count = 0;
    one->has_news = false;
    if (code < 0)
        one->code = code;
    return code;
}

/* To who follows the replicas in turn it is a transaction: what is read behind it is of another
 * moment. */
int64_t sb_copies_show(sb_copies *all)
{
    int64_t failed = 0, code;
    commit_count_plain(all->connection);
    for (copy *one = all->first; one; one = one->following) {
        if (one->code == SB_OK && one->has_news && queue_look(one->queue, &code)) {
            show(one);
            queue_looked(one->queue);
        }
        failed += one->code != SB_OK;
    }
    return failed;
}
