/* The applier of replicas: chunks are filled as records come, and all that belongs to a moment is
 * shown at once (showing.c).  Until then everybody sees what was there before. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "commit/commit.h"
#include "follower/follower.h"
#include "journal/format.h"
#include "queue_replica/copy.h"
#include "queue_replica/queue_replica.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

/* --- opening ---------------------------------------------------------------------------------- */

int64_t sb_copies_open(sb_connection *connection, sb_copies **made)
{
    int64_t code = change_code(connection);
    if (code != SB_OK)
        return code;
    sb_copies *all = calloc(1, sizeof *all);
    if (!all)
        return fail_system("memory for replicas");
    all->connection = connection;
    all->file = -1;
    code = moment_open(connection, &all->file);
    if (code == SB_OK)
        code = moment_finish(connection, all->file);
    /* whoever showed them before may have died before that was confirmed */
    all->stamp = commit_gate_begun(connection);
    if (code == SB_OK)
        *made = all;
    else
        sb_copies_close(all);
    return code;
}

static copy **place_of(sb_copies *all, int64_t number)
{
    copy **at = &all->first;
    while (*at && (*at)->number != number)
        at = &(*at)->following;
    return at;
}

static int64_t open_port(copy *made)
{
    queue_note_use(made->queue, L_USE_SERVES); /* it keeps nobody from deleting it */
    int64_t code = port_to_look(made->queue, &made->port);
    made->next = made->end = copy_tail(made->queue);
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
    if (all->file >= 0)
        close(all->file);
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
                             .tail = copy_tail(one->queue), .slots = one->queue->slots,
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
