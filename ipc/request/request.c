/* Requests: a message that asks for a reply, and the reply.
 *
 * The request's properties say where the reply goes (JMSReplyTo) and to which request it belongs
 * (JMSCorrelationID), by the names that JMS has for them.  Whoever asks takes an idle requester of
 * the connection by one CAS, or makes one: so there are as many queues for replies as there are
 * threads that ask at once.  They are temporary, and are used again.
 *
 * A reply that comes too late stays in the queue, until the next request through it finds that it
 * answers another one.  Such a queue never makes the replier wait: the oldest reply makes place. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "message/message.h"
#include "queue/queue.h"
#include "request/request.h"
#include "ring/ring.h"

#define REPLY_SLOTS 64
#define FEW_BYTES 1024 /* of properties, for which the stack has room */

typedef struct requester {
    _Atomic int64_t busy;
    sb_queue *queue;
    int64_t last; /* the number of its last request */
    struct requester *next;
} requester;

/* Somebody has deleted it, or its name says another node than this is now. */
static void queue_leave(sb_connection *connection, sb_queue *queue)
{
    sb_delete_queue(connection, queue->name, 1);
    sb_close_queue(queue);
}

static requester *requester_take(sb_connection *connection, int64_t *code)
{
    const sb_settings settings = {.max_deliveries = SB_UNLIMITED, .when_full = SB_DROP_OLDEST};
    requester *each = atomic_load(&connection->requesters);
    for (; each; each = each->next) {
        int64_t idle = 0;
        if (atomic_compare_exchange_strong(&each->busy, &idle, 1))
            break;
    }
    if (each && each->queue && queue_is_usable(each->queue, code) &&
        sb_node_is_of(connection, each->queue->name))
        return each;
    if (each && each->queue)
        queue_leave(connection, each->queue);
    if (each)
        each->queue = NULL;
    requester *made = each ? each : calloc(1, sizeof *made);
    *code = made ? sb_temporary_queue(connection, REPLY_SLOTS, &settings, &made->queue)
                 : fail_system("memory for a request");
    if (*code != SB_OK) {
        if (each)
            atomic_store(&each->busy, 0);
        else
            free(made);
        return NULL;
    }
    if (made == each)
        return made;
    atomic_store(&made->busy, 1);
    made->next = atomic_load(&connection->requesters);
    while (!atomic_compare_exchange_weak(&connection->requesters, &made->next, made))
        ;
    return made;
}

void request_free(sb_connection *connection)
{
    requester *each = atomic_exchange(&connection->requesters, NULL);
    while (each) {
        requester *next = each->next;
        free(each);
        each = next;
    }
}

static void write_number(char *text, int64_t number)
{
    for (int digit = CORRELATION_BYTES - 1; digit >= 0; digit--, number >>= 4)
        text[digit] = "0123456789abcdef"[number & 15];
}

int64_t sb_ask(sb_queue *queue, const sb_outgoing *request, sb_asked *asked, int64_t timeout_ns)
{
    char correlation[CORRELATION_BYTES];
    unsigned char few[FEW_BYTES], *properties = few;
    int64_t code;
    *asked = (sb_asked){0};
    if ((code = outgoing_check(request)) != SB_OK)
        return code;
    requester *ours = requester_take(queue->connection, &code);
    if (!ours)
        return code;
    write_number(correlation, ++ours->last);
    const text_pair pairs[] = {
        {REPLY_TO, ours->queue->name, (int64_t)strlen(ours->queue->name)},
        {CORRELATION, correlation, CORRELATION_BYTES},
    };
    size_t room = 3 + (size_t)request->properties_length +
                  PAIR_ROOM(REPLY_TO, L_NAME_BYTES_MAX) + PAIR_ROOM(CORRELATION, CORRELATION_BYTES);
    if (room > sizeof few && !(properties = malloc(room)))
        code = fail_system("memory for properties");
    else
        code =
            properties_with(properties, request->properties, request->properties_length, pairs, 2);
    if (code >= 0) {
        sb_outgoing message = *request;
        message.properties = properties;
        message.properties_length = code;
        sb_receipt where;
        code = publish_in_turn(queue, &message, timeout_ns, &where);
    }
    if (properties != few)
        free(properties);
    if (code < 0) {
        atomic_store(&ours->busy, 0);
        return code;
    }
    *asked = (sb_asked){.requester = ours, .replies = ours->queue, .number = ours->last};
    return SB_OK;
}

/* 0 if there is none: the time-out stays what it is. */
static int64_t deadline_of(int64_t timeout_ns)
{
    return timeout_ns > 0 && timeout_ns < SB_FOREVER ? monotonic_deadline(timeout_ns) : 0;
}

static int64_t left_until(int64_t deadline, int64_t timeout_ns)
{
    if (!deadline)
        return timeout_ns;
    int64_t left = deadline - sb_system_clock();
    return left > 0 ? left : 0;
}

static bool answers(sb_asked *asked)
{
    char wanted[CORRELATION_BYTES];
    const char *text;
    asked->properties = sb_message_properties(&asked->reply, &asked->properties_length);
    write_number(wanted, asked->number);
    return property_text(asked->properties, asked->properties_length, CORRELATION, &text) ==
               CORRELATION_BYTES &&
           memcmp(text, wanted, CORRELATION_BYTES) == 0;
}

int64_t sb_await_reply(sb_asked *asked, int64_t timeout_ns)
{
    if (!asked->requester)
        return fail(SB_INVALID, "nothing was asked: sb_ask first");
    int64_t deadline = deadline_of(timeout_ns);
    for (;;) {
        int64_t code = sb_get(asked->replies, &asked->reply, timeout_ns);
        if (code == SB_EMPTY)
            return SB_NO_REPLY;
        if (code != SB_OK || answers(asked))
            return code;
        sb_ack(asked->replies, &asked->reply); /* to one that is not waited for any more */
        timeout_ns = left_until(deadline, timeout_ns);
    }
}

int64_t sb_request(sb_queue *queue, const sb_outgoing *request, sb_asked *asked, int64_t timeout_ns)
{
    int64_t deadline = deadline_of(timeout_ns);
    int64_t code = sb_ask(queue, request, asked, timeout_ns);
    return code == SB_OK ? sb_await_reply(asked, left_until(deadline, timeout_ns)) : code;
}

int64_t sb_request_with(sb_queue *queue, const void *body, int64_t length, const void *key,
                        int64_t key_length, const void *properties, int64_t properties_length,
                        int64_t ttl_ns, int64_t priority, sb_asked *asked, int64_t timeout_ns)
{
    const sb_outgoing request = {body, length, key, key_length, properties, properties_length,
                                 ttl_ns, priority, NULL, 0, 0, 0};
    return sb_request(queue, &request, asked, timeout_ns);
}

int64_t sb_asked_end(sb_asked *asked)
{
    int64_t code = SB_OK;
    requester *ours = asked->requester;
    if (!ours)
        return SB_OK;
    if (asked->reply.word)
        code = sb_ack(asked->replies, &asked->reply);
    asked->requester = NULL;
    atomic_store(&ours->busy, 0);
    return code;
}
