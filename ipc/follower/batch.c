/* A batch: what came into the queues of a follower, written as records into a buffer.
 *
 * Each queue that is ready has its share of the room, in turn, so that none waits for another's.
 * Nothing is copied but from the arena into the buffer.  No checksum is computed: whoever writes a
 * record to a file seals it there, and a link seals its frames. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "follower/source.h"
#include "journal/format.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define SHARE_BYTES (INT64_C(16) << 10) /* of the room, at least, for each queue */
#define AHEAD_BYTES 2048
#define SLOTS_AHEAD 4

/* --- records ---------------------------------------------------------------------------------- */

static int64_t write_record(writing *to, int64_t kind, int64_t queue, int64_t position,
                            const void *body, int64_t length)
{
    int64_t bytes = record_bytes(length);
    if (bytes > to->left) {
        to->batch->needed = bytes;
        return SB_TOO_SMALL;
    }
    memset(to->at + bytes - 8, 0, 8); /* the zeros behind the body, before it comes */
    if (length > 0)
        copy_far(to->at + HEAD, body, (size_t)length);
    const record_head head = {
        .length = (uint32_t)length,
        .queue = (uint64_t)queue,
        .where = (uint64_t)position | (uint64_t)kind << KIND_SHIFT,
    };
    memcpy(to->at, &head, sizeof head);
    to->at += bytes;
    to->left -= bytes;
    to->batch->records++;
    return SB_OK;
}

/* --- queues ----------------------------------------------------------------------------------- */

static int64_t write_gone(sb_follower *of, writing *to)
{
    int64_t code = SB_OK;
    while (of->gone_count > 0 && code == SB_OK) {
        int64_t number = of->gone[of->gone_count - 1];
        code = write_record(to, SB_RECORD_QUEUE_GONE, number, 0, "", 0);
        of->gone_count -= code == SB_OK;
    }
    return code;
}

static int64_t write_declaration(source *of, writing *to)
{
    char entry[L_ENTRY_BYTES], body[DECLARATION_ROOM];
    void *catalog = of->of->connection->catalog.memory;
    int64_t row = of->queue->reference & L_REFERENCE_INDEX_MASK;
    if (of->is_told || sb_row_copy(catalog, L_QUEUES, row, entry) != of->queue->reference)
        return SB_OK; /* the reader knows it; or it was deleted, and we are about to hear of it */
    int64_t length = declaration_of(of->queue, entry, body);
    int64_t code = length < 0 ? SB_OK
                              : write_record(to, SB_RECORD_QUEUE, of->number,
                                             of->cursor.position, body, length);
    of->is_told = code == SB_OK;
    return code;
}

/* --- messages --------------------------------------------------------------------------------- */

/* Start to fetch what is behind a message: most often the next one, as long as this; and a slot
 * some positions on. */
static void prefetch_behind(const source *from, const char *end, int64_t length)
{
    slot_prefetch(from->queue, from->cursor.position + SLOTS_AHEAD);
    for (int64_t at = 0; at < length && at < AHEAD_BYTES; at += L_LINE_BYTES)
        __builtin_prefetch(end + at);
}

static int64_t state_of(const sb_message *message)
{
    return (message->word >> L_STATE_SHIFT) & L_STATE_MASK;
}

static bool is_enough(const sb_follower_batch *batch)
{
    return batch->most > 0 && batch->messages >= batch->most;
}

/* Up to so many bytes are left: SB_OK, there may be more; SB_EMPTY; SB_TOO_SMALL. */
static int64_t write_messages(source *from, writing *to, int64_t least)
{
    sb_message message;
    int64_t code = write_declaration(from, to);
    while (code == SB_OK && to->left > least && !is_enough(to->batch)) {
        if (from->cursor.position >= from->end)
            return SB_EMPTY;
        code = sb_cursor_next(&from->cursor, &message);
        if (code == SB_EMPTY)
            return SB_EMPTY;
        if (code == SB_DAMAGED) {
            log_note(from->of->connection, "queue '%s': message %lld is damaged, and passed over",
                     from->queue->name, (long long)from->cursor.position);
            from->cursor.position++;
            code = SB_OK;
            continue;
        }
        if (code != SB_OK)
            return fail(SB_STALE, "queue '%s': our gate was taken from us", from->queue->name);
        const char *end = (const char *)message.body + message.length;
        if (message.position >= from->end) { /* duplicates were passed over */
            from->cursor.position = message.position;
            return SB_EMPTY;
        }
        if (from->of->skips && state_of(&message) == L_DONE)
            continue;
        int64_t length = end - (const char *)message.chunk;
        prefetch_behind(from, end, length);
        code = write_record(to, SB_RECORD_MESSAGE, from->number, message.position, message.chunk,
                            length);
        if (code == SB_OK)
            to->batch->messages++;
        else
            from->cursor.position = message.position;
    }
    return code;
}

static int64_t write_ready(sb_follower *of, writing *to)
{
    int64_t code = SB_OK, begun = of->ready.count;
    int64_t share = begun > 1 ? to->left / begun : to->left;
    share = share > SHARE_BYTES ? share : SHARE_BYTES;
    for (int64_t many = 0; many < begun && of->ready.count > 0 && code == SB_OK; many++) {
        of->turn = of->turn < of->ready.count ? of->turn : 0;
        source *each = of->ready.ready[of->turn]->of;
        code = write_messages(each, to, to->left > share ? to->left - share : 0);
        if (code == SB_EMPTY) {
            if (of->in_moment || !ready_rest(&of->ready, &each->ready, &each->cursor))
                of->turn++;
            code = SB_OK;
        } else if (code == SB_OK) {
            of->turn++;
        }
    }
    return code;
}

/* --- what is retired -------------------------------------------------------------------------- */

/* Below what was read only: a reader hears of a message first. */
static int64_t write_retired(source *of, writing *to)
{
    int64_t read = of->cursor.position, head;
    int64_t code = retired_look(&of->done, of->queue, &of->port, read);
    retired_set *done = &of->done;
    if (code != SB_OK)
        return code;
    head = done->head < read ? done->head : read;
    bool is_news = done->length > 0 && done->digest != of->above;
    if (head <= of->told && !is_news)
        return SB_OK;
    code = write_record(to, SB_RECORD_RETIRED, of->number, head, done->bits,
                        is_news ? done->length : 0);
    if (code == SB_OK) {
        of->told = head;
        of->above = is_news ? done->digest : of->above;
    }
    return code;
}

static int64_t write_all_retired(sb_follower *of, writing *to)
{
    int64_t code = SB_OK;
    for (int64_t each = 0; each < of->following.count && code == SB_OK; each++)
        code = write_retired(of->following.rows[each].kept, to);
    return code;
}

/* --- the moment ------------------------------------------------------------------------------- */

static int64_t see(void *context)
{
    sb_follower *of = context;
    for (int64_t each = 0; each < of->following.count; each++) {
        source *one = of->following.rows[each].kept;
        int64_t tail = one->queue->durable ? confirmed_below(one->queue)
                                           : sb_port_true_tail(&one->port);
        one->end = tail < 0 ? INT64_MAX : tail; /* if it is wrong, the cursor tells */
    }
    return SB_OK;
}

static int64_t see_a_moment(sb_follower *of)
{
    if (of->in_moment)
        return SB_OK;
    bool is_durable = false;
    for (int64_t each = 0; each < of->following.count; each++)
        is_durable |= ((source *)of->following.rows[each].kept)->queue->durable;
    int64_t code = is_durable
                       ? of->connection->duties->at_a_moment(of->connection, see, of) : see(of);
    of->in_moment = code == SB_OK;
    if (code == SB_OK)
        sources_all_ready(of);
    return code;
}

static bool is_whole(const sb_follower *of)
{
    for (int64_t each = 0; each < of->ready.count; each++) {
        const source *one = of->ready.ready[each]->of;
        if (one->cursor.position < one->end)
            return false;
    }
    return true;
}

static void end_moment(sb_follower *of)
{
    for (int64_t each = 0; each < of->following.count; each++)
        ((source *)of->following.rows[each].kept)->end = INT64_MAX;
    of->in_moment = false;
}

int64_t batch_fill(sb_follower *of, writing *to)
{
    bool moment = to->batch->moment || of->in_moment;
    int64_t code = write_gone(of, to);
    if (code == SB_OK && moment)
        code = see_a_moment(of);
    if (code == SB_OK)
        code = write_ready(of, to);
    if (code == SB_OK && to->batch->retired && (!moment || is_whole(of)))
        code = write_all_retired(of, to);
    to->batch->whole = code == SB_OK && moment && is_whole(of);
    if (to->batch->whole)
        end_moment(of);
    return code;
}
