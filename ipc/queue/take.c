/* Taking messages from a queue. */

#define _GNU_SOURCE

#include "base/base.h"
#include "paging/paging.h"
#include "queue/queue.h"
#include "ring/ring.h"
#include "schedule/schedule.h"

/* --- taking ----------------------------------------------------------------------------------- */

/* What is wanted of a take: one of these, and what it is called with. */
typedef struct wanted {
    sb_message *messages;
    int64_t count;
    sb_room *room;
    int64_t bytes; /* of several: their bodies, but for the first */
} wanted;

typedef int64_t (*take_kernel)(sb_port *port, const wanted *what, int64_t looks);

static int64_t take_one(sb_port *port, const wanted *what, int64_t looks)
{
    return sb_port_take_wait(port, what->messages, looks);
}

static int64_t take_several(sb_port *port, const wanted *what, int64_t looks)
{
    (void)looks; /* who wants several is in no hurry */
    return sb_port_take_fitting(port, what->messages, what->count, what->bytes);
}

static int64_t receive_one(sb_port *port, const wanted *what, int64_t looks)
{
    sb_room *room = what->room;
    return sb_port_receive_wait(port, room->messages, room->buffer, room->capacity, looks);
}

static int64_t receive_several(sb_port *port, const wanted *what, int64_t looks)
{
    sb_room *room = what->room;
    return sb_port_receive_many_wait(port, room->messages, what->count, room->buffer,
                                     room->capacity, room->ends, looks);
}

__attribute__((noinline, cold)) int64_t found_nothing(sb_queue *queue, sb_port *port)
{
    mover_look(queue);
    if (aside_is_due(queue))
        queue_expire(queue, port);
    if (queue->pages)
        inbox_look(queue);
    return nothing_taken(queue);
}

int64_t nothing_taken(const sb_queue *queue)
{
    if (!queue->non_destructive)
        return SB_EMPTY;
    return fail(SB_INVALID,
                "queue '%s' is non_destructive: nothing is taken from it, each consumer "
                "looks at all messages (consume, browse, sb_subscribe)",
                queue->name);
}

/* Look so many times, if spinning pays, then sleep until there is something to take or the time is
 * over.  Who does not wait has said how often to look, and is not asked whether that pays. */
static inline __attribute__((always_inline)) int64_t
take_by(take_kernel kernel, sb_queue *queue, wanted what, int64_t looks, int64_t timeout_ns)
{
    int64_t code;
    lane *in = lane_enter(queue, &code);
    if (!in)
        return code;
    queue_note_use(queue, L_USE_CONSUMES | L_USE_TAKES_ANY);
    code = kernel(&in->port, &what, timeout_ns ? 0 : looks);
    int64_t times = code == SB_EMPTY && timeout_ns && looks
                        ? spinning_times(queue->connection, &in->for_message) : 0;
    if (times > 0) {
        code = kernel(&in->port, &what, looks);
        bool soon = code != SB_EMPTY;
        if (!soon && times > 1)
            code = kernel(&in->port, &what, (times - 1) * looks);
        spinning_tell(queue->connection, &in->for_message, code != SB_EMPTY, soon);
    }
    if (code == SB_EMPTY)
        code = found_nothing(queue, &in->port);
    if (code == SB_EMPTY && timeout_ns != 0) {
        int64_t deadline = monotonic_deadline(timeout_ns);
        do {
            code = wait_in(queue, &in->port, sb_port_wait_for_message, deadline);
            if (code != SB_OK)
                break;
            code = kernel(&in->port, &what, 0);
            /* empty: others are quicker, and may be so for as long as we look */
        } while (code == SB_EMPTY && sb_system_clock() < deadline);
    }
    lane_leave(in);
    return code < 0 && code != SB_EMPTY ? explained(queue, code) : code;
}

int64_t sb_look(sb_queue *queue, sb_message *message, int64_t looks)
{
    return take_by(take_one, queue, (wanted){message, 1, NULL, 0}, looks, 0);
}

int64_t sb_look_and_receive(sb_queue *queue, sb_room *room, int64_t looks)
{
    return take_by(receive_one, queue, (wanted){room->messages, 1, room, 0}, looks, 0);
}

static int64_t looks_for(const sb_queue *queue, int64_t timeout_ns)
{
    return timeout_ns ? queue->connection->spins : 0;
}

int64_t sb_get(sb_queue *queue, sb_message *message, int64_t timeout_ns)
{
    return take_by(take_one, queue, (wanted){message, 1, NULL, 0}, looks_for(queue, timeout_ns),
                   timeout_ns);
}

int64_t sb_get_many(sb_queue *queue, sb_message *messages, int64_t count, int64_t timeout_ns)
{
    return sb_get_fitting(queue, messages, count, INT64_MAX, timeout_ns);
}

int64_t sb_get_fitting(sb_queue *queue, sb_message *messages, int64_t count, int64_t bytes,
                       int64_t timeout_ns)
{
    return take_by(take_several, queue, (wanted){messages, count, NULL, bytes}, 0, timeout_ns);
}

int64_t sb_receive(sb_queue *queue, sb_room *room, int64_t timeout_ns)
{
    return take_by(receive_one, queue, (wanted){room->messages, 1, room, 0},
                   looks_for(queue, timeout_ns), timeout_ns);
}

int64_t sb_receive_many(sb_queue *queue, sb_room *room, int64_t count, int64_t timeout_ns)
{
    return take_by(receive_several, queue, (wanted){room->messages, count, room, 0},
                   looks_for(queue, timeout_ns), timeout_ns);
}
