/* Loans: memory in the arena that becomes a message without being copied. */

#define _GNU_SOURCE

#include "base/base.h"
#include "message/message.h"
#include "paging/paging.h"
#include "queue/queue.h"
#include "ring/ring.h"
#include "schedule/schedule.h"

/* A loan is memory of this queue's. */
static int64_t stays_here(sb_queue *queue, const sb_outgoing *shape)
{
    sb_queue *way;
    int64_t number, code = SB_INTERRUPTED;
    while (code == SB_INTERRUPTED)
        code = grouped_way(queue, shape, SB_FOREVER, &way, &number);
    if (code == SB_OK)
        return fail(SB_INVALID, "a message of this group goes to another node, and cannot be lent: "
                    "publish a copy");
    return code == SB_UNDECIDED ? SB_OK : code;
}

int64_t sb_loan_take(sb_queue *queue, const sb_outgoing *shape, sb_loan *loan)
{
    int64_t code = outgoing_check(shape);
    if (code == SB_OK && queue->pages)
        code = inbox_admits(queue, shape);
    if (code == SB_OK)
        code = stays_here(queue, shape);
    lane *in = code == SB_OK ? lane_enter(queue, &code) : NULL;
    if (!in)
        return code;
    queue_note_use(queue, L_USE_PRODUCES);
    int64_t chunk = is_scheduled(shape)
                        ? fail(SB_INVALID, "what is lent cannot be scheduled: publish a copy")
                        : queue_reserve(queue, &in->port, shape);
    if (chunk < 0) {
        lane_leave(in);
        return explained(queue, chunk);
    }
    *loan = (sb_loan){.lane = in, .chunk = chunk, .body = sb_port_loan_body(&in->port, chunk),
                      .length = shape->length};
    atomic_store(&in->busy, ON_LOAN); /* the chunk is of this port: nobody else enters it */
    return SB_OK;
}

static lane *loan_enter(sb_queue *queue, sb_loan *loan, int64_t *code)
{
    lane *in = loan->lane;
    int64_t lent = ON_LOAN;
    if (!in) {
        *code = fail(SB_INVALID, "the loan was published or dropped before");
        return NULL;
    }
    if (in->recorder.queue != queue) {
        *code = fail(SB_INVALID, "the loan is one of another queue than '%s'", queue->name);
        return NULL;
    }
    *code = atomic_load(&queue->connection->closed);
    if (*code != SB_OK)
        return NULL;
    if (!atomic_compare_exchange_strong(&in->busy, &lent, IN)) {
        *code = fail(SB_INVALID, "the loan is in use by another thread, or none any more");
        return NULL;
    }
    if (queue_is_usable(queue, code))
        return in;
    /* nobody will see it: it ends with its queue */
    if (*code == SB_NOT_FOUND)
        loan->lane = NULL;
    atomic_store(&in->busy, *code == SB_NOT_FOUND ? IDLE : ON_LOAN);
    if (*code == SB_NOT_FOUND)
        deleted_some(queue->connection);
    return NULL;
}

/* What is on loan, as far as a limit looks at it. */
static sb_outgoing lent(const sb_loan *loan, const void *chunk)
{
    const sb_message message = {.chunk = chunk, .shape = word_load(chunk, L_CHUNK_SHAPE_AT),
                                .mark = word_load(chunk, L_CHUNK_MARK_AT)};
    sb_outgoing shape = {.length = loan->length};
    shape.key = sb_message_key(&message, &shape.key_length);
    return shape;
}

static int64_t loan_offer(sb_queue *queue, lane *in, const sb_loan *loan, const void *memory)
{
    int64_t code;
    const sb_outgoing shape = lent(loan, memory);
    do {
        code = is_limited(queue) ? within_limits(queue, in, &shape) : SB_OK;
        if (code == SB_OK)
            code = is_once(memory) ? once_publish_loan(queue, &in->port, loan->chunk, memory)
                                   : sb_port_publish_chunk(&in->port, loan->chunk);
        else if (code == SB_FULL)
            code = once_refused_loan(queue, &in->port, loan->chunk, memory);
    } while (code == SB_FULL && queue_make_room(queue, in, &shape));
    return code;
}

/* There is no room where it was lent. */
static int64_t loan_copy(sb_queue *queue, lane *in, sb_loan *loan, const char *chunk,
                         int64_t timeout_ns)
{
    int64_t mark = word_load(chunk, L_CHUNK_MARK_AT), expiry = sb_chunk_expiry(chunk);
    const sb_message lies = {.chunk = chunk, .mark = mark,
                             .shape = word_load(chunk, L_CHUNK_SHAPE_AT)};
    sb_outgoing copy = {.body = loan->body, .length = loan->length,
                        .priority = (mark >> L_MARK_PRIORITY_SHIFT) & L_MARK_PRIORITY_MASK};
    copy.key = sb_message_key(&lies, &copy.key_length);
    copy.properties = sb_message_properties(&lies, &copy.properties_length);
    if (expiry > 0)
        copy.ttl_ns = expiry > sb_system_clock() ? expiry - sb_system_clock() : 1;
    int64_t code = inbox_publish(queue, &copy, timeout_ns);
    if (code >= 0)
        sb_port_unreserve(&in->port, loan->chunk);
    atomic_store(&in->busy, code >= 0 ? IDLE : ON_LOAN);
    if (code >= 0)
        loan->lane = NULL;
    return code;
}

int64_t sb_loan_publish(sb_queue *queue, sb_loan *loan, int64_t timeout_ns)
{
    int64_t code;
    lane *in = loan_enter(queue, loan, &code);
    if (!in)
        return code;
    char *chunk = (char *)(intptr_t)*port_field(&in->port, L_PORT_DATA) + loan->chunk;
    int64_t expiry = sb_chunk_expiry(chunk);
    word_store(chunk, L_CHUNK_PUBLISHED_AT, realtime_ns());
    code = is_paging(queue) ? SB_FULL : loan_offer(queue, in, loan, chunk);
    if (code == SB_FULL && queue->pages)
        return loan_copy(queue, in, loan, chunk, timeout_ns);
    int64_t deadline = code == SB_FULL && timeout_ns ? monotonic_deadline(timeout_ns) : 0;
    while (code == SB_FULL && timeout_ns && queue->when_full != L_FAIL) {
        code = wait_in(queue, &in->port, wait_kernel(queue), deadline);
        if (code != SB_OK)
            break;
        code = loan_offer(queue, in, loan, chunk);
        if (sb_system_clock() >= deadline)
            break;
    }
    if (code >= 0 && expiry)
        expiry_note(queue, expiry);
    bool is_published = code >= 0 || code == SB_DUPLICATE;
    code = queue_published(queue, code);
    atomic_store(&in->busy, is_published ? IDLE : ON_LOAN);
    if (is_published)
        loan->lane = NULL;
    return code < 0 ? explained(queue, code) : code;
}

int64_t sb_loan_drop(sb_queue *queue, sb_loan *loan)
{
    int64_t code;
    lane *in = loan_enter(queue, loan, &code);
    if (!in)
        return code;
    sb_port_unreserve(&in->port, loan->chunk);
    loan->lane = NULL;
    lane_leave(in);
    return SB_OK;
}
