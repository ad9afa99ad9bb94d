/* Moving and copying messages from one queue to another, of this vhost or of another.
 *
 * To move within a vhost is a transaction: the message is in one of both queues, whoever dies when.
 * To another vhost, or into a queue that pages, it is to take, publish there, acknowledge here: a
 * death in between leaves the message in both queues, and the one here comes back.  None is lost.
 * Order, key, properties and priority stay, and a message lives as long there as it would have
 * lived here. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "commit/commit.h"
#include "paging/paging.h"
#include "queue/queue.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define BUFFER_BYTES 65536
#define NAP_NS INT64_C(1000000)

typedef struct passage {
    sb_passage *told;
    sb_queue *from, *to;
    lane *out, *in; /* in: NULL while there is none */
    bool is_whole;  /* a transaction */
    bool shares_journal;
} passage;

static int64_t enter(passage *made)
{
    int64_t code;
    if (made->from->reference == made->to->reference &&
        strcmp(made->from->connection->vhost, made->to->connection->vhost) == 0)
        return fail(SB_INVALID, "queue '%s' cannot be moved or copied to itself", made->from->name);
    made->out = lane_enter(made->from, &code);
    if (!made->out)
        return code;
    made->in = lane_beside(made->to, &code);
    if (!made->in)
        lane_leave(made->out);
    else
        queue_note_use(made->to, L_USE_PRODUCES);
    return made->in ? SB_OK : code;
}

static void leave(passage *done)
{
    if (done->in)
        lane_leave(done->in);
    lane_leave(done->out);
}

static bool is_chosen(const passage *over, const sb_message *message)
{
    return !over->told->chooses || over->told->chooses(message, over->told->context);
}

static int64_t ttl_left(const sb_message *message)
{
    if (!(message->mark & L_CHUNK_EXTENDED << L_MARK_FLAGS_SHIFT))
        return 0;
    int64_t expiry = word_load(message->chunk, L_CHUNK_EXPIRY_AT), now = sb_system_clock();
    return expiry <= 0 ? 0 : expiry > now ? expiry - now : 1;
}

static sb_outgoing copy_of(const passage *over, const sb_message *message)
{
    sb_outgoing copy = {.body = message->body, .length = message->length,
                        .ttl_ns = ttl_left(message), .target = over->told->target};
    if (over->told->flags)
        copy.deliveries = sb_message_deliveries(message) > 0;
    copy.key = sb_message_key(message, &copy.key_length);
    copy.properties = sb_message_properties(message, &copy.properties_length);
    copy.priority = (message->mark >> L_MARK_PRIORITY_SHIFT) & L_MARK_PRIORITY_MASK;
    return copy;
}

static int64_t publish_there(passage *over, const sb_message *message)
{
    const sb_outgoing copy = copy_of(over, message);
    if (over->to->pages) {
        int64_t left = over->told->waits ? over->told->deadline - sb_system_clock() : 0;
        return inbox_publish(over->to, &copy, left > 0 ? left : 0);
    }
    int64_t code = queue_offer(over->to, over->in, &copy);
    while (code == SB_FULL && over->told->waits &&
           (code = queue_wait_for_room(over->to, over->in, over->told->deadline)) == SB_OK)
        code = queue_offer(over->to, over->in, &copy);
    return code;
}

static int64_t reserve_there(passage *over, const sb_message *message)
{
    const sb_outgoing copy = copy_of(over, message);
    sb_port *port = &over->in->port;
    int64_t code;
    while ((code = queue_within(over->to, over->in, &copy)) == SB_FULL &&
           queue_make_room(over->to, over->in, &copy))
        ;
    if (code != SB_OK)
        return code;
    *port_field(port, L_PORT_PUBLISHED) = stamp_ns(&over->in->recorder.clock);
    int64_t chunk = queue_reserve(over->to, port, &copy);
    if (chunk >= 0 && copy.length > 0)
        memcpy(sb_port_loan_body(port, chunk), copy.body, (size_t)copy.length);
    return chunk;
}

/* What was taken is there, and acknowledged here, at once. */
static int64_t commit_there(passage *over, const sb_message *message, int64_t chunk)
{
    operation both[] = {
        {.queue = over->from, .where = message->position, .word = message->word},
        {.queue = over->to, .lane = over->in, .where = chunk},
    };
    int64_t code = commit_and_leave(over->from->connection, both, 2);
    if (code == SB_UNFINISHED) { /* it is decided, and others were faster */
        over->told->is_left = true;
        over->in = NULL;
        return SB_OK;
    }
    if (code != SB_OK)
        sb_port_unreserve(&over->in->port, chunk);
    return code;
}

static int64_t publish_and_ack(passage *over, sb_message *message)
{
    int64_t code = publish_there(over, message);
    if (code < 0)
        return code;
    if (over->shares_journal)
        commit_gate_copied(over->from->connection);
    sb_port_ack(&over->out->port, message);
    return SB_OK;
}

static bool has_room(passage *over, const sb_outgoing *copy)
{
    sb_queue *to = over->to;
    sb_port *port = &over->in->port;
    if (to->pages)
        return true;
    if (to->last_value)
        return last_value_room(to, port, copy->key, copy->key_length) == SB_OK;
    int64_t used = sb_port_window(port);
    return used < to->slots && (to->max_messages == 0 || used < to->max_messages);
}

/* Until it is worth trying again. */
static int64_t await_more(passage *over)
{
    return wait_in(over->to, &over->in->port, wait_kernel(over->to), over->told->deadline);
}

/* No message is taken that has no room there, unless another producer is faster: who looks
 * meanwhile gets what is behind it.  What is to be in a transaction is copied before it is taken:
 * that it could be taken says that it was whole. */
static int64_t await_room(passage *over, const sb_message *message)
{
    const sb_outgoing copy = copy_of(over, message);
    while (!has_room(over, &copy)) {
        if (queue_make_room(over->to, over->in, &copy))
            continue;
        if (!over->told->waits)
            return SB_FULL;
        int64_t code = await_more(over);
        if (code != SB_OK)
            return code;
    }
    return SB_OK;
}

/* For a moment, with no message in hand: SB_OK to try again, SB_FULL if its time is over. */
static int64_t nap(const passage *over)
{
    const struct timespec length = {0, NAP_NS};
    sb_connection *connection = over->to->connection;
    int64_t closed = atomic_load(&connection->closed);
    if (closed != SB_OK)
        return closed;
    if (!over->told->waits || sb_system_clock() >= over->told->deadline)
        return SB_FULL;
    bool is_interrupted = nanosleep(&length, NULL) != 0 || connection->waits_in_slices;
    connection->duties->repair(connection); /* and what is decided happens, if there is room */
    return is_interrupted ? SB_INTERRUPTED : SB_OK;
}

/* What was decided waits for room, and so does all that would be decided after it. */
static bool any_left(const passage *over)
{
    return over->is_whole && atomic_load(&over->to->connection->left_operations);
}

/* Until what was decided here has happened, or its time is over. */
static int64_t await_left(const passage *over)
{
    int64_t code = SB_OK;
    while (code == SB_OK && any_left(over))
        code = over->told->is_left ? nap(over) : SB_FULL;
    return code;
}

static int64_t try_to_move(passage *over, int64_t position)
{
    sb_message message;
    sb_port *port = &over->out->port;
    int64_t code, chunk;
    if (!over->in && !(over->in = lane_beside(over->to, &code)))
        return code;
    do { /* anew after each wait: nobody holds the message meanwhile */
        code = sb_port_look(port, position, &message);
        if (code == SB_EMPTY)
            return SB_EMPTY;
        if (code != SB_OK || is_expired(&message) || !is_chosen(over, &message))
            return SB_GONE;
        code = await_room(over, &message);
        if (code != SB_OK)
            return code;
        chunk = over->is_whole ? reserve_there(over, &message) : 0;
    } while (chunk == SB_FULL && over->told->waits && (code = await_more(over)) == SB_OK);
    if (chunk < 0)
        return code < 0 ? code : chunk;
    if (sb_port_take_seen(port, &message) != SB_OK) {
        if (over->is_whole)
            sb_port_unreserve(&over->in->port, chunk);
        return SB_GONE;
    }
    code = over->is_whole ? commit_there(over, &message, chunk) : publish_and_ack(over, &message);
    if (code != SB_OK && code != SB_CLOSED)
        message_put_back(port, &message, sb_port_untake);
    return code;
}

/* SB_OK, SB_GONE if there is none to move at this position, or why it cannot go on: SB_EMPTY, from
 * here on none may be taken yet. */
static int64_t move_one(passage *over, int64_t position)
{
    int64_t code;
    do /* another may have been faster, or what was decided before waits for room */
        code = try_to_move(over, position);
    while (code == SB_FULL && (code = nap(over)) == SB_OK);
    return code;
}

/* Who waits for room here, or for the queue's memory, is told as by an acknowledgement. */
static void tell_of_room(passage *over)
{
    while (over->is_whole && sb_port_reclaim(&over->out->port) > 0)
        ;
    sb_port_tell_producers(&over->out->port);
}

/* The message at a position, copied if nobody has it; the buffer grows as needed. */
static int64_t peek(sb_port *port, int64_t position, sb_message *message, void **buffer,
                    int64_t *capacity)
{
    int64_t code;
    while ((code = sb_port_peek_whole(port, position, message, *buffer, *capacity)) ==
           SB_TOO_SMALL) {
        int64_t wanted = (const char *)message->body - (const char *)message->chunk +
                         message->length;
        void *larger = realloc(*buffer, (size_t)wanted);
        if (!larger)
            return fail_system("memory for a message");
        *buffer = larger;
        *capacity = wanted;
    }
    if (code < 0)
        return code == SB_NO_MEMORY || code == SB_SYSTEM ? code : SB_GONE;
    bool is_ready = ((message->word >> L_STATE_SHIFT) & L_STATE_MASK) == L_READY;
    /* the copy is what is read from here on */
    message->body = (char *)*buffer +
                    ((const char *)message->body - (const char *)message->chunk);
    message->chunk = *buffer;
    return is_ready ? SB_OK : SB_GONE;
}

static int64_t copy_one(passage *over, int64_t position, void **buffer, int64_t *capacity)
{
    sb_message message;
    int64_t code = peek(&over->out->port, position, &message, buffer, capacity);
    if (code == SB_OK && (is_expired(&message) || !is_chosen(over, &message)))
        code = SB_GONE;
    if (code == SB_OK)
        code = await_room(over, &message);
    if (code == SB_OK)
        code = publish_there(over, &message);
    return code < 0 ? code : SB_OK;
}

/* Where it begins and ends: what is there now, from where the caller says. */
static void bound(passage *over)
{
    int64_t tail = sb_port_true_tail(&over->out->port);
    int64_t head = word_load(over->from->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
    if (tail - head > over->from->slots) /* head has moved on since, or the memory is damaged */
        head = tail - over->from->slots;
    if (over->told->position < head)
        over->told->position = head;
    over->told->tail = tail;
}

/* It stops where there is no room, or at what may not be taken yet. */
static int64_t pass(passage *over)
{
    sb_passage *told = over->told;
    int64_t code = SB_OK, capacity = BUFFER_BYTES;
    void *buffer = told->copies ? malloc(BUFFER_BYTES) : NULL;
    if (told->copies && !buffer)
        return fail_system("memory for a message");
    if (!told->copies && any_left(over)) /* it was another's, or there is room by now */
        over->to->connection->duties->repair(over->to->connection);
    if (told->tail == 0)
        bound(over);
    for (; told->position < told->tail && (told->most <= 0 || told->done < told->most);
         told->position++) {
        code = told->copies ? copy_one(over, told->position, &buffer, &capacity)
                            : move_one(over, told->position);
        if (code != SB_OK && code != SB_GONE)
            break;
        told->done += code == SB_OK;
    }
    if (!told->copies)
        tell_of_room(over);
    free(buffer);
    bool is_over = code == SB_OK || code == SB_GONE || code == SB_EMPTY;
    return is_over ? told->copies ? SB_OK : await_left(over) : code;
}

int64_t sb_pass(sb_queue *from, sb_queue *to, sb_passage *told)
{
    passage over = {.told = told, .from = from, .to = to};
    over.shares_journal = sb_is_durable(from) && sb_is_durable(to) &&
                          strcmp(from->connection->vhost, to->connection->vhost) == 0;
    over.is_whole = from->connection == to->connection && !to->pages;
    int64_t code = enter(&over);
    if (code != SB_OK)
        return code;
    code = told->copies ? SB_OK : read_only_code(from);
    code = code == SB_OK ? read_only_code(to) : code;
    code = code == SB_OK ? pass(&over) : code;
    leave(&over);
    return code;
}

void sb_pass_begin(sb_passage *made, int64_t most, int64_t timeout_ns, sb_chooser chooses,
                   void *context, int64_t copies)
{
    *made = (sb_passage){.most = most, .waits = timeout_ns != 0, .chooses = chooses,
                         .context = context, .copies = copies};
    made->deadline = made->waits ? monotonic_deadline(timeout_ns) : 0;
}

/* How many, or why there are none. */
static int64_t pass_over(sb_queue *from, sb_queue *to, int64_t most, int64_t timeout_ns,
                         sb_chooser chooses, void *context, bool copies)
{
    sb_passage over;
    sb_pass_begin(&over, most, timeout_ns, chooses, context, copies);
    int64_t code = sb_pass(from, to, &over);
    return over.done > 0 || code == SB_OK || code == SB_FULL ? over.done : code;
}

int64_t sb_is_selected(const sb_message *message, void *selection)
{
    const sb_selection *wanted = selection;
    sb_subject subject;
    return sb_subject_of(message, &subject) == SB_OK &&
           sb_selector_matches(wanted->program, wanted->bytes, &subject);
}

static bool is_any(const sb_selection *of, int64_t count, const sb_subject *subject)
{
    for (int64_t each = 0; each < count; each++)
        if (sb_selector_matches(of[each].program, of[each].bytes, subject))
            return true;
    return false;
}

int64_t sb_is_chosen(const sb_message *message, void *choice)
{
    const sb_choice *given = choice;
    sb_subject subject;
    return sb_subject_of(message, &subject) == SB_OK &&
           (!given->wanted_count || is_any(given->wanted, given->wanted_count, &subject)) &&
           !is_any(given->others, given->others_count, &subject);
}

int64_t sb_move(sb_queue *from, sb_queue *to, int64_t most, int64_t timeout_ns, sb_chooser chooses,
                void *context)
{
    return pass_over(from, to, most, timeout_ns, chooses, context, false);
}

int64_t sb_copy(sb_queue *from, sb_queue *to, int64_t most, int64_t timeout_ns, sb_chooser chooses,
                void *context)
{
    return pass_over(from, to, most, timeout_ns, chooses, context, true);
}
