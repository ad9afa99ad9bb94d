/* Dead letters: what cannot be delivered, is rejected or is expired goes to another queue, or is
 * dropped and counted if there is none.
 *
 * It is published there first and leaves its ring afterwards, so a death in between leaves it in
 * both: the one in the first ring comes back, and is dead-lettered again.  None is lost. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "commit/commit.h"
#include "paging/paging.h"
#include "queue/queue.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define PATIENCE_NS 10000000 /* of one who rejects, and is told if there is no room */
#define AGAIN_NS 100000000
#define NOTES 6
#define NOTE_ROOM (NOTES * 48 + L_NAME_BYTES_MAX)

static const char *const REASONS[] = {[EXPIRED] = "expired", [REJECTED] = "rejected",
                                      [SPENT] = "deliveries"};

static _Thread_local int is_dead_lettering;

bool dead_lettering(void)
{
    return is_dead_lettering > 0;
}

/* --- what is noted on it: MessagePack, appended to its properties ----------------------------- */

typedef struct notes {
    unsigned char *at;
    int64_t count, deaths, first; /* deaths: how often it had died before, and when first */
} notes;

static void put_text(notes *made, const char *text)
{
    size_t length = strlen(text);
    if (length < 32)
        *made->at++ = (unsigned char)(0xA0 | length);
    else {
        *made->at++ = 0xD9;
        *made->at++ = (unsigned char)length;
    }
    memcpy(made->at, text, length);
    made->at += length;
}

static void put_number(notes *made, int64_t number)
{
    *made->at++ = 0xD3;
    for (int shift = 56; shift >= 0; shift -= 8)
        *made->at++ = (unsigned char)((uint64_t)number >> shift);
}

static void note_text(notes *made, const char *name, const char *text)
{
    put_text(made, name);
    put_text(made, text);
    made->count++;
}

static void note_number(notes *made, const char *name, int64_t number)
{
    put_text(made, name);
    put_number(made, number);
    made->count++;
}

/* A number above 0, however it is encoded (whoever sends a dead letter again may do so in any way);
 * `otherwise` if it is none. */
static int64_t number_at(const unsigned char *at, int64_t otherwise)
{
    if (*at < 0x80)
        return *at;
    if (*at < 0xCC || *at > 0xD3)
        return otherwise;
    uint64_t value = 0;
    for (int each = 1; each <= 1 << (*at & 3); each++)
        value = value << 8 | at[each];
    return (int64_t)value > 0 ? (int64_t)value : otherwise;
}

/* Copy the pairs of a map but for our own notes of an earlier death; -1 if it is no map. */
static int64_t copy_pairs(notes *made, const unsigned char *map, int64_t length)
{
    if (length == 0)
        return SB_OK;
    int64_t end = (int64_t)(intptr_t)map + length;
    int64_t at = sb_map_start((int64_t)(intptr_t)map, end);
    if (at < 0 || !sb_map_check((int64_t)(intptr_t)map, end))
        return -1;
    while (at < end) {
        int64_t value = sb_object_end(at, end), after = sb_object_end(value, end);
        if (after < 0)
            return -1;
        const unsigned char *name = (const unsigned char *)(intptr_t)at;
        const unsigned char *number = (const unsigned char *)(intptr_t)value;
        if (value - at > 5 && memcmp(name + 1, "dead.", 5) == 0) {
            if (value - at == 11 && memcmp(name + 6, "count", 5) == 0)
                made->deaths = number_at(number, made->deaths);
            if (value - at == 11 && memcmp(name + 6, "first", 5) == 0)
                made->first = number_at(number, made->first);
        } else {
            memcpy(made->at, name, (size_t)(after - at));
            made->at += after - at;
            made->count++;
        }
        at = after;
    }
    return SB_OK;
}

/* The properties of the dead, in memory to be freed; NULL if there is none, or they are too
 * long. */
static unsigned char *properties_of(const sb_queue *queue, const sb_message *message, death reason,
                                    int64_t deliveries, int64_t *length)
{
    int64_t had, now = realtime_ns();
    const unsigned char *properties = sb_message_properties(message, &had);
    unsigned char *map = malloc((size_t)had + NOTE_ROOM + 3);
    if (!map)
        return NULL;
    notes made = {.at = map + 3, .first = now};
    if (copy_pairs(&made, properties, had) != SB_OK)
        made = (notes){.at = map + 3, .first = now};
    note_text(&made, "dead.origin", queue->name);
    note_text(&made, "dead.reason", REASONS[reason]);
    note_number(&made, "dead.count", made.deaths + 1);
    note_number(&made, "dead.deliveries", deliveries);
    note_number(&made, "dead.first", made.first);
    note_number(&made, "dead.last", now);
    map[0] = 0xDE;
    map[1] = (unsigned char)(made.count >> 8);
    map[2] = (unsigned char)made.count;
    *length = made.at - map;
    if (*length <= L_PROPERTIES_BYTES_MAX)
        return map;
    free(map);
    return NULL;
}

/* --- where it goes ---------------------------------------------------------------------------- */

/* The queue for the dead of this one, to be left with queue_looked; NULL if there is none, or it
 * was deleted.  A code: it is there, and cannot be opened now. */
static int64_t dlq_of(sb_queue *queue, death reason, sb_queue **dlq)
{
    char name[L_NAME_BYTES_MAX + 1];
    sb_connection *connection = queue->connection;
    int64_t at = reason == EXPIRED ? L_SETTING_EXPIRY_QUEUE_AT : L_SETTING_DEAD_LETTER_AT;
    int64_t length = setting_name(queue, at, name);
    *dlq = NULL;
    if (length == 0)
        return SB_OK;
    int64_t code = sb_reference_find(connection->catalog.memory, L_QUEUES, name, length);
    if (code >= 0)
        code = queue_find(connection, code, dlq);
    if (code == SB_NOT_FOUND)
        log_note(connection, "queue '%s': its dead go to '%s', which is no queue: they are dropped",
                 queue->name, name);
    else if (code != SB_OK)
        log_note(connection, "queue '%s': its dead do not get to '%s': %s", queue->name, name,
                 sb_strerror(code));
    if (code != SB_OK)
        *dlq = NULL;
    if (*dlq == queue) {
        queue_looked(queue);
        *dlq = NULL;
    }
    return code == SB_NOT_FOUND ? SB_OK : code;
}

static int64_t publish_dead(sb_queue *queue, sb_queue *dlq, const sb_message *message,
                            death reason, int64_t deliveries)
{
    int64_t code = SB_OK, key_length, length;
    /* the others are tried again later */
    int64_t patience_ns = reason == REJECTED ? PATIENCE_NS : 0;
    lane *in = dlq->pages ? NULL : lane_beside(dlq, &code);
    if (code != SB_OK)
        return code;
    unsigned char *noted = properties_of(queue, message, reason, deliveries, &length);
    sb_outgoing copy = {
        .body = message->body,
        .length = message->length,
        .key = sb_message_key(message, &key_length),
        .priority = (message->mark >> L_MARK_PRIORITY_SHIFT) & L_MARK_PRIORITY_MASK,
    };
    copy.key_length = key_length;
    copy.properties = noted ? noted : sb_message_properties(message, &length);
    copy.properties_length = length;
    queue_used(dlq);
    code = in ? queue_offer(dlq, in, &copy) : inbox_publish(dlq, &copy, patience_ns);
    if (code == SB_FULL && in && patience_ns) {
        int64_t deadline = monotonic_deadline(patience_ns);
        if (sb_port_wait_for_room(&in->port, deadline) == SB_OK)
            code = queue_offer(dlq, in, &copy);
    }
    code = queue_published(dlq, code);
    if (in)
        lane_leave(in);
    free(noted);
    return code;
}

/* For nobody else's message it is for us to say that it is dead: so is_ours comes first. */
int64_t dead_letter(sb_queue *queue, sb_port *port, sb_message *message, death reason,
                    int64_t deliveries)
{
    int64_t counter = reason == EXPIRED ? L_COUNTER_EXPIRED_AT : L_COUNTER_REJECTED_AT;
    sb_queue *dlq;
    int64_t found = dlq_of(queue, reason, &dlq);
    if (!sb_port_is_ours(port, message)) {
        if (dlq)
            queue_looked(dlq);
        return SB_REVOKED;
    }
    if (found != SB_OK)
        return SB_FULL; /* none is dropped that it is there for */
    if (dlq) {
        is_dead_lettering++;
        int64_t code = publish_dead(queue, dlq, message, reason, deliveries);
        is_dead_lettering--;
        bool fails = code < 0 && code != SB_NOT_FOUND;
        if (fails)
            log_note(queue->connection, "queue '%s': its dead do not get to '%s': %s", queue->name,
                     dlq->name, sb_strerror(code));
        if (code >= 0 && sb_is_durable(queue) && sb_is_durable(dlq))
            commit_gate_copied(queue->connection);
        queue_looked(dlq);
        if (fails)
            return SB_FULL;
    }
    int64_t code = sb_port_drop_taken(port, message, counter);
    message->word = 0; /* it is nobody's any more: who asks later is not to deal with it again */
    sb_port_tell_producers(port);
    return code;
}

/* Whoever looks for what is expired (expiry.c) tries again, after AGAIN_NS. */
int64_t dead_aside(sb_queue *queue, sb_port *port, sb_message *message, bool was_delivered)
{
    int64_t code = sb_port_put_aside(port, message, was_delivered);
    message->word = 0;
    sb_aside_note(queue->ring.memory);
    expiry_note(queue, sb_system_clock() + AGAIN_NS);
    sb_port_tell_producers(port); /* who waits for its group waits for this bell */
    return code;
}

death death_of(const sb_queue *queue, const sb_message *message, int64_t *deliveries)
{
    int64_t most = setting(queue, L_SETTING_MAX_DELIVERIES_AT);
    *deliveries = sb_message_deliveries(message);
    if (is_expired(message))
        return EXPIRED;
    bool came_back = (message->word >> L_DELIVERIES_SHIFT) & L_DELIVERIES_MASK;
    if (most <= 0 || *deliveries < most || !came_back) /* else it may be: elsewhere, before */
        return ALIVE;
    *deliveries = most; /* what went on while its dead-letter queue was full is no delivery */
    return SPENT;
}

/* --- the decision, when a message was taken that is special ----------------------------------- */

int64_t sb_system_decide(int64_t port_address, int64_t message_address)
{
    sb_port *port = (sb_port *)(intptr_t)port_address;
    sb_message *message = (sb_message *)(intptr_t)message_address;
    sb_queue *queue = (sb_queue *)(intptr_t)word_load(port, L_PORT_QUEUE_HANDLE);
    if (!queue)
        return SB_OK; /* a bare ring has no settings */
    if (once_withdraw(port, message))
        return SB_GONE;
    int64_t deliveries;
    death reason = death_of(queue, message, &deliveries);
    if (reason != ALIVE) {
        if (dead_letter(queue, port, message, reason, deliveries) == SB_FULL)
            dead_aside(queue, port, message, false);
        message->word = 0; /* whoever wanted it has nothing to give back */
        return SB_GONE;
    }
    if (queue->redelivery_ns && (message->word >> L_DELIVERIES_SHIFT) & L_DELIVERIES_MASK) {
        int64_t code = delay_redelivery(queue, port, message, deliveries);
        if (code != SB_OK && code != SB_REVOKED)
            return SB_OK;
        message->word = 0;
        return SB_GONE;
    }
    return SB_OK;
}
