/* Slow consumers: who keeps a message for longer than the queue's slow_consumer_threshold allows,
 * while others wait.
 *
 * Nothing is counted for each message.  Who looks remembers, of each participant, the oldest
 * message in its hand; if it is the same one at the next look, and has been for as long as that
 * many messages may take, the participant is slow.  So it is seen late, never wrongly: one who
 * takes many at once is given the time for all of them.  Whoever waits on the queue looks every 100
 * ms, a repairer (sb_repair_for) every second.  The slot of the message says that it was told of,
 * so that several who look tell once.  To disconnect is what expelled.c does. */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "message/message.h"
#include "repair/repair.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define NOTIFICATIONS "shmbroker.notifications"
#define KEY "consumer.slow"

/* What is remembered of one participant. */
typedef struct held {
    int64_t position, word, since;
    int64_t look, count; /* in this look: which one, and how many it has in hand */
    int64_t first;       /* and the oldest of them */
} held;

struct slow_watch {
    int64_t look;
    held owners[L_PARTICIPANTS];
};

/* --- telling ---------------------------------------------------------------------------------- */

static text_pair pair(const char *name, const char *value)
{
    return (text_pair){name, value, (int64_t)strlen(value)};
}

/* To whoever is bound to the exchange for this, if there is one. */
static void notify(sb_queue *queue, const char *name, int64_t id, const char *text)
{
    char number[24];
    unsigned char properties[L_NAME_BYTES_MAX + 256];
    sb_exchange *exchange;
    int64_t done = 0, length = (int64_t)strlen(NOTIFICATIONS);
    if (sb_reference_find(queue->connection->catalog.memory, L_EXCHANGES, NOTIFICATIONS, length) <
            0 ||
        sb_open_exchange(queue->connection, NOTIFICATIONS, &exchange) != SB_OK)
        return;
    snprintf(number, sizeof number, "%lld", (long long)id);
    const text_pair pairs[] = {pair("queue", queue->name), pair("participant", number),
                               pair("name", name)};
    sb_outgoing message = {.body = text, .length = (int64_t)strlen(text), .key = KEY,
                           .key_length = (int64_t)strlen(KEY), .properties = properties};
    message.properties_length = properties_with(properties, NULL, 0, pairs, 3);
    if (message.properties_length >= 0)
        sb_exchange_publish(exchange, &message, 0, &done);
}

static void tell(sb_queue *queue, int64_t id)
{
    char name[L_PARTICIPANT_NAME_BYTES_MAX + 1], text[L_NAME_BYTES_MAX + 256];
    const char *entry = participant_entry(queue->connection, id);
    memcpy(name, entry + L_PARTICIPANT_NAME_AT, L_PARTICIPANT_NAME_BYTES_MAX);
    name[L_PARTICIPANT_NAME_BYTES_MAX] = 0;
    snprintf(text, sizeof text, "queue '%s': participant %lld (%s, pid %lld) is a slow consumer",
             queue->name, (long long)id, name, (long long)word_load(entry, L_PARTICIPANT_PID_AT));
    log_note(queue->connection, "%s", text);
    atomic_fetch_add((_Atomic int64_t *)((char *)queue->ring.memory + L_COUNTER_SLOW_AT), 1);
    notify(queue, name, id, text);
}

/* --- looking ---------------------------------------------------------------------------------- */

/* What each has in hand now; whether others wait. */
static bool look(struct slow_watch *watch, sb_port *port, int64_t head, int64_t tail)
{
    bool waits = false;
    watch->look++;
    for (int64_t position = head; position < tail; position++) {
        int64_t word = sb_port_word_of(port, position);
        int64_t state = (word >> L_STATE_SHIFT) & L_STATE_MASK;
        waits |= word && state == L_READY;
        if (!word || state != L_LEASED)
            continue;
        held *of = &watch->owners[(word >> L_OWNER_SHIFT) & L_OWNER_MASK];
        if (of->look != watch->look)
            of->count = 0, of->first = position;
        of->look = watch->look;
        of->count++;
    }
    return waits;
}

/* Whether the oldest message of this participant has been in its hand for too long. */
static bool is_late(const sb_queue *queue, held *of, sb_port *port, int64_t now)
{
    int64_t word = sb_port_word_of(port, of->first);
    if (of->position != of->first || of->word != word) {
        *of = (held){.position = of->first, .word = word, .since = now, .look = of->look,
                     .count = of->count, .first = of->first};
        return false;
    }
    return word && (now - of->since) / of->count > queue->slow_consumer_ns;
}

static void look_at(sb_queue *queue, sb_port *port, struct slow_watch *watch)
{
    int64_t tail = sb_port_true_tail(port), now = sb_system_clock();
    int64_t head = word_load(queue->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
    if (tail - head > queue->slots || tail < 0)
        return;
    if (!look(watch, port, head, tail)) {
        memset(watch->owners, 0, sizeof watch->owners); /* nobody has to wait for anybody */
        return;
    }
    for (int64_t id = 1; id < L_PARTICIPANTS; id++) {
        held *of = &watch->owners[id];
        if (of->look != watch->look)
            of->word = 0;
        else if (is_late(queue, of, port, now) && sb_port_told_of(port, of->first, of->word)) {
            tell(queue, id);
            if (setting(queue, L_SETTING_SLOW_CONSUMER_POLICY_AT) == L_DISCONNECT)
                expel_slow(queue, port, id, head, tail);
        }
    }
}

void slow_look(sb_queue *queue, sb_port *port)
{
    if (queue->slow_consumer_ns == 0 || queue->connection->id == 0 ||
        pthread_mutex_trylock(&queue->connection->slow) != 0)
        return;
    if (!queue->watch)
        queue->watch = calloc(1, sizeof *queue->watch);
    if (queue->watch)
        look_at(queue, port, queue->watch);
    pthread_mutex_unlock(&queue->connection->slow);
}
