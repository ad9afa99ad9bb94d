/* Expiry: a message that has one is never delivered after it.
 *
 * Whoever takes a message looks (dead_letter.c); so what follows only has to happen some time:
 * expired messages leave the ring, also those behind others.  When there is something to look for
 * is in core/expiry.py; what could not go where it belongs was set aside (dead_letter.c), and is
 * found by the same search. */

#define _GNU_SOURCE

#include "base/base.h"
#include "catalog/catalog.h"
#include "queue/queue.h"
#include "ring/ring.h"

#define AGAIN_NS 100000000

#define FAILURES_MAX 8

/* One look through a ring for what is to leave it. */
typedef struct search {
    int64_t now, next;      /* when the next one expires, or is to be tried again */
    int64_t failed, dead_lettered; /* how many found no room, and how many did */
} search;

static void note_next(search *of, int64_t expiry)
{
    if (of->next == 0 || expiry < of->next)
        of->next = expiry;
}

/* After some that found no room the others are not tried, and the next search begins behind those:
 * one may be too large for where it belongs, and there may be thousands. */
static void retire(sb_queue *queue, sb_port *port, sb_message *message, death reason,
                   int64_t deliveries, search *of)
{
    if (of->failed >= FAILURES_MAX) {
        sb_aside_note(queue->ring.memory);
        note_next(of, of->now + AGAIN_NS);
        return;
    }
    /* to consumers a queue towards a node is paused, and that is no reason to keep it full */
    bool is_left = leads_to_node(queue->name) ? sb_port_take_to_set_aside(port, message) != SB_OK
                                              : sb_port_take_seen(port, message) != SB_OK;
    if (is_left) {
        if (sb_is_aside(message->word))
            sb_aside_note(queue->ring.memory);
        note_next(of, of->now); /* the queue is paused, or somebody has it, and may give it back */
        return;
    }
    if (reason == ALIVE)
        message_put_back(port, message, sb_port_untake); /* it was taken for one set aside */
    else if (dead_letter(queue, port, message, reason, deliveries) != SB_FULL)
        of->dead_lettered++;
    else {
        of->failed++;
        atomic_store(&queue->asides_from, message->position + 1);
        dead_aside(queue, port, message, false);
    }
}

/* False: it may not be taken yet, nor may what comes behind it, which all is confirmed later. */
static bool expire_at(sb_queue *queue, sb_port *port, int64_t position, search *of)
{
    sb_message message;
    int64_t deliveries, code = sb_port_look(port, position, &message);
    if (code == SB_EMPTY)
        note_next(of, of->now + AGAIN_NS);
    if (code != SB_OK)
        return code != SB_EMPTY; /* in somebody's hand: if it is given back, that is noted */
    int64_t expiry = message_expiry(&message);
    bool is_aside = sb_is_aside(message.word);
    if (expiry <= 0 && !is_aside)
        return true;
    death reason = death_of(queue, &message, &deliveries);
    if (is_aside || reason == EXPIRED)
        retire(queue, port, &message, reason, deliveries, of);
    else
        note_next(of, expiry);
    return true;
}

int64_t queue_expire(sb_queue *queue, sb_port *port)
{
    search of = {.now = sb_system_clock()};
    if (dead_lettering() ||
        /* it expires where it is to be delivered */
        setting(queue, L_SETTING_SCHEDULE_OF_AT) || setting(queue, L_SETTING_INBOX_OF_AT) ||
        word_load(queue->ring.memory, L_RING_CLOSED_AT) || /* or at its original */
        !sb_expiry_begin(queue->ring.memory, of.now))
        return 0;
    int64_t tail = sb_port_true_tail(port);
    int64_t head = word_load(queue->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
    if (tail - head > queue->slots) /* head has moved on since, or the memory is damaged */
        head = tail - queue->slots;
    int64_t from = atomic_load(&queue->asides_from);
    if (from < head || from > tail)
        from = head;
    for (int64_t position = from; position < tail && expire_at(queue, port, position, &of);)
        position++;
    for (int64_t position = head; position < from && expire_at(queue, port, position, &of);)
        position++;
    if (of.next)
        expiry_note(queue, of.next);
    return of.dead_lettered;
}
