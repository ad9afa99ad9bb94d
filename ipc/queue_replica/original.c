/* Reading originals without gates: what came, and what is done with, as they stood at one moment.
 *
 * A reader without a gate may be too late: what it has not copied when head passes is gone.  Then
 * it is done with, which the next moment tells.  Only a transaction could be seen in half by
 * that, if one was committed between the moment and the copy: so such a moment is not whole, and
 * the reader shows nothing before one is.
 *
 * What is done with is looked for in all of a queue at each moment, as far as it may be above head:
 * whoever reads a long queue does so less often. */

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

#define LEAST_ROOM 4096 /* of a batch: less is not begun */

typedef struct original {
    sb_port port;
    sb_queue *queue;
    sb_cursor cursor;
    int64_t number;
    int64_t end;       /* of the moment */
    retired_set done;  /* at the moment */
    int64_t told_end;
    uint64_t told; /* a digest of what the reader knows to be done with */
    bool is_told;
    struct original *next;
} original;

struct sb_original {
    sb_connection *connection;
    original *first;
    bool in_moment;    /* one was seen, and not all of it is read */
    bool is_late;      /* something of it was gone before it was read */
    int64_t committed; /* when it was seen */
};

typedef struct writing {
    sb_original_batch *batch;
    char *at;
    int64_t left;
} writing;

/* --- opening ---------------------------------------------------------------------------------- */

int64_t sb_original_open(sb_connection *connection, sb_original **made)
{
    int64_t code = usable_code(connection);
    if (code != SB_OK)
        return code;
    *made = calloc(1, sizeof **made);
    if (!*made)
        return fail_system("memory to read originals");
    (*made)->connection = connection;
    return SB_OK;
}

static original **place_of(sb_original *all, int64_t number)
{
    original **at = &all->first;
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

static int64_t open_port(original *made)
{
    int64_t code = port_to_look(made->queue, &made->port);
    return code == SB_OK ? sb_cursor_open_lossy(&made->cursor, &made->port, false) : code;
}

int64_t sb_original_add(sb_original *all, sb_queue *queue, int64_t number, int64_t from)
{
    original *made = NULL;
    int64_t code;
    sb_original_drop(all, number);
    if (!queue_look(queue, &code))
        return code;
    if (posix_memalign((void **)&made, 128, sizeof *made) != 0) {
        queue_looked(queue);
        return fail_system("memory to read an original");
    }
    memset(made, 0, sizeof *made);
    made->queue = queue;
    made->number = number;
    if (all->connection->id)
        queue_note_use(queue, L_USE_SERVES); /* it keeps nobody from deleting it */
    code = open_port(made);
    queue_looked(queue);
    if (code != SB_OK) {
        free(made);
        return code;
    }
    if (from > made->cursor.position)
        made->cursor.position = from;
    made->next = all->first;
    all->first = made;
    all->in_moment = false; /* the newcomer belongs to the next one */
    return SB_OK;
}

int64_t sb_original_drop(sb_original *all, int64_t number)
{
    original **at = place_of(all, number), *dropped = *at;
    if (!dropped)
        return SB_OK;
    *at = dropped->next;
    free(dropped->done.bits);
    free(dropped);
    return SB_OK;
}

void sb_original_close(sb_original *all)
{
    while (all->first)
        sb_original_drop(all, all->first->number);
    free(all);
}

static int64_t end_of(original *one)
{
    return one->queue->durable ? confirmed_below(one->queue) : sb_port_true_tail(&one->port);
}

int64_t sb_original_stands(sb_original *all, int64_t number, sb_original_place *place)
{
    original *one = *place_of(all, number);
    int64_t code;
    if (!one)
        return fail(SB_NOT_FOUND, "no queue with this number is read");
    if (!queue_look(one->queue, &code))
        return SB_NOT_FOUND;
    *place = (sb_original_place){
        .high = one->queue->key[0], .low = one->queue->key[1],
        .head = retired_head(one->queue), .tail = end_of(one), .slots = one->queue->slots,
        .next = one->cursor.position, .pages = one->queue->pages,
    };
    queue_looked(one->queue);
    return place->tail < 0 ? place->tail : SB_OK;
}

int64_t sb_original_copied(sb_queue *queue, int64_t position)
{
    sb_port port;
    int64_t code;
    if (!queue_look(queue, &code))
        return code;
    code = port_to_look(queue, &port);
    if (code == SB_OK)
        code = sb_port_copied_below(&port, position);
    queue_looked(queue);
    return code;
}

/* --- the moment ------------------------------------------------------------------------------- */

/* What is done with, then the end: what has replaced a message, or was made of it, is below it. */
static int64_t see(void *context)
{
    sb_original *all = context;
    int64_t code = SB_OK;
    all->committed = commit_count_of_all(all->connection);
    for (original *one = all->first; one && code == SB_OK; one = one->next) {
        int64_t end = end_of(one);
        code = end < 0 ? end : retired_look(&one->done, one->queue, &one->port, end);
    }
    for (original *one = all->first; one && code == SB_OK; one = one->next) {
        one->end = end_of(one);
        code = one->end < 0 ? one->end : SB_OK;
    }
    return code;
}

static int64_t see_a_moment(sb_original *all)
{
    if (all->in_moment)
        return SB_OK;
    bool is_durable = false;
    for (original *one = all->first; one; one = one->next)
        is_durable |= one->queue->durable;
    int64_t code = commit_any_moment(all->connection, is_durable, see, all);
    all->in_moment = code == SB_OK;
    all->is_late = false;
    return code;
}

/* --- records ---------------------------------------------------------------------------------- */

static void write_head(writing *to, int64_t kind, const original *of, int64_t position,
                       int64_t length)
{
    const record_head head = {
        .length = (uint32_t)length,
        .queue = (uint64_t)of->number,
        .where = (uint64_t)position | (uint64_t)kind << KIND_SHIFT,
    };
    int64_t bytes = record_bytes(length);
    memcpy(to->at, &head, sizeof head);
    memset(to->at + HEAD + length, 0, (size_t)(bytes - HEAD - length));
    to->at += bytes;
    to->left -= bytes;
    to->batch->records++;
}

static bool is_done(const original *of, int64_t position)
{
    int64_t bit = position - of->done.head;
    return bit < 0 || (bit / 8 < of->done.length && of->done.bits[bit / 8] >> bit % 8 & 1);
}

static int64_t no_room(writing *to, int64_t length)
{
    to->batch->needed = record_bytes(length);
    to->batch->more = 1;
    return SB_TOO_SMALL;
}

/* The message at the cursor, if it is there still. */
static int64_t write_message(sb_original *all, original *one, writing *to)
{
    sb_message message;
    int64_t position = one->cursor.position;
    int64_t length = sb_cursor_copy_whole(&one->cursor, &message, to->at + HEAD, to->left - HEAD);
    if (length == SB_TOO_SMALL)
        return no_room(to, (const char *)message.body + message.length -
                               (const char *)message.chunk);
    if (length == SB_GONE) {
        all->is_late = true;
        return SB_OK;
    }
    if (length == SB_DAMAGED) {
        log_note(all->connection, "queue '%s': message %lld is damaged, and not in replicas",
                 one->queue->name, (long long)position);
        return SB_OK;
    }
    if (length < 0)
        return length;
    if (message.position >= one->end) { /* others were passed over */
        one->cursor.position = one->end;
        return SB_EMPTY;
    }
    write_head(to, SB_RECORD_MESSAGE, one, message.position, length);
    to->batch->messages++;
    return SB_OK;
}

static int64_t write_messages(sb_original *all, original *one, writing *to)
{
    if (one->cursor.position < one->done.head)
        one->cursor.position = one->done.head;
    while (one->cursor.position < one->end) {
        if (is_done(one, one->cursor.position)) {
            one->cursor.position++;
            continue;
        }
        if (to->left < LEAST_ROOM && to->batch->records > 0)
            return no_room(to, LEAST_ROOM);
        int64_t code = write_message(all, one, to);
        if (code == SB_EMPTY)
            break;
        if (code != SB_OK)
            return code;
    }
    return SB_OK;
}

/* The reader is told each change, and once how it stands at all. */
static int64_t write_stands(original *one, writing *to)
{
    uint64_t digest = one->done.length > 0 ? one->done.digest : (uint64_t)one->done.head;
    int64_t bits = (one->done.length + 7) & -8, length = 8 + bits;
    if (one->is_told && one->told == digest && one->told_end == one->end)
        return SB_OK;
    if (record_bytes(length) > to->left)
        return no_room(to, length);
    memset(to->at + HEAD, 0, (size_t)length);
    word_store(to->at + HEAD, 0, one->end);
    if (one->done.length)
        memcpy(to->at + HEAD + 8, one->done.bits, (size_t)one->done.length);
    write_head(to, RECORD_STANDS, one, one->done.head, length);
    one->told = digest;
    one->told_end = one->end;
    one->is_told = true;
    return SB_OK;
}

static int64_t write_all(sb_original *all, writing *to)
{
    int64_t code = SB_OK;
    for (original *one = all->first; one && code == SB_OK; one = one->next)
        code = write_messages(all, one, to);
    for (original *one = all->first; one && code == SB_OK; one = one->next)
        code = write_stands(one, to);
    return code;
}

/* Those whose ring is gone are left out: who reads is told by `stands`. */
static bool look_at_all(sb_original *all, int64_t *code)
{
    for (original **at = &all->first; *at;)
        if (queue_look((*at)->queue, code))
            at = &(*at)->next;
        else
            sb_original_drop(all, (*at)->number);
    *code = usable_code(all->connection);
    return *code == SB_OK;
}

static void looked_at_all(sb_original *all)
{
    for (original *one = all->first; one; one = one->next)
        queue_looked(one->queue);
}

int64_t sb_original_read(sb_original *all, sb_original_batch *batch)
{
    writing to = {.batch = batch, .at = batch->buffer, .left = batch->room & -8};
    int64_t code;
    batch->bytes = batch->records = batch->messages = batch->whole = batch->more = 0;
    batch->held = 0;
    batch->needed = 0;
    if (look_at_all(all, &code)) {
        code = see_a_moment(all);
        batch->held = code == SB_EMPTY;
        if (code == SB_OK)
            code = write_all(all, &to);
    }
    looked_at_all(all);
    batch->bytes = to.at - (char *)batch->buffer;
    if (code == SB_TOO_SMALL && batch->records > 0)
        return batch->records;
    if (code != SB_OK)
        return code;
    all->in_moment = false;
    batch->whole = !all->is_late || all->committed == commit_count_of_all(all->connection);
    return batch->records > 0 ? batch->records : SB_EMPTY;
}
