/* Whether the journal has what the rings have.
 *
 * Whoever takes over rings goes on behind what is confirmed, and has not read the journal.  What a
 * damaged disk has lost of it is in the rings still: each message that is confirmed and not
 * retired.  So the positions that stood there at the takeover are noted, the journal is looked
 * through in the background (journal/audit.h), and what it has not is staged anew, from the rings.
 *
 * A message that is done with meanwhile is not needed.  It is copied, and counts if head had not
 * passed it when all of it was copied. */

#define _GNU_SOURCE
#include <stdlib.h>

#include "base/base.h"
#include "broker/broker.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

static int by_number(const void *one, const void *other)
{
    int64_t a = ((const audited *)one)->number, b = ((const audited *)other)->number;
    return (a > b) - (a < b);
}

static audited *queue_of(const audit *of, int64_t number)
{
    const audited wanted = {.number = number};
    return of->count == 0
               ? NULL
               : bsearch(&wanted, of->queues, (size_t)of->count, sizeof wanted, by_number);
}

int64_t audit_add(audit *to, int64_t number, int64_t low, int64_t high)
{
    if (low >= high)
        return SB_OK;
    bool fits = ROOM_FOR(to->queues, to->room, to->count + 1);
    unsigned char *found = fits ? calloc(1, (size_t)(high - low + 7) / 8) : NULL;
    if (!found)
        return fail_system("memory to look through the journal");
    to->queues[to->count++] = (audited){.number = number, .low = low, .high = high, .next = low,
                                        .found = found};
    return SB_OK;
}

void audit_begin(audit *of)
{
    if (of->count > 0)
        qsort(of->queues, (size_t)of->count, sizeof *of->queues, by_number);
    of->runs = true;
}

void audit_end(audit *of)
{
    for (int64_t each = 0; each < of->count; each++)
        free(of->queues[each].found);
    free(of->queues);
    free(of->copy);
    *of = (audit){.missed = of->missed, .lost = of->lost};
}

void audit_found(audit *of, int64_t number, int64_t first, int64_t last)
{
    audited *queue = queue_of(of, number);
    if (!queue)
        return;
    first = first > queue->low ? first : queue->low;
    last = last < queue->high ? last : queue->high - 1;
    for (int64_t bit = first - queue->low; bit <= last - queue->low; bit++)
        queue->found[bit / 8] |= (unsigned char)(1 << bit % 8);
}

/* Its length, or SB_GONE if it is not needed any more, or what is wrong. */
static int64_t copy_of(audit *of, sb_port *port, int64_t position, sb_message *message)
{
    int64_t length;
    while ((length = sb_port_peek_whole(port, position, message, of->copy, of->copy_room)) ==
           SB_TOO_SMALL) {
        int64_t room = message->length + (const char *)message->body - (const char *)message->chunk;
        void *moved = room > of->copy_room ? realloc(of->copy, (size_t)room) : of->copy;
        if (!moved)
            return fail_system("memory to write a message anew");
        of->copy = moved;
        of->copy_room = room > of->copy_room ? room : of->copy_room;
    }
    return length;
}

static int64_t stage(audit *of, sb_queue *queue, sb_port *port, int64_t number, int64_t position,
                     sb_journal *journal)
{
    sb_message message;
    int64_t length = copy_of(of, port, position, &message);
    if (length == SB_DAMAGED) {
        log_note(queue->connection, "queue '%s': message %lld is damaged, and the journal has lost "
                 "it", queue->name, (long long)position);
        of->lost++;
    }
    if (length == SB_DAMAGED || length == SB_GONE || length == SB_EMPTY)
        return SB_OK;
    if (length < 0)
        return length;
    of->missed++;
    return sb_journal_stage(journal, SB_RECORD_MESSAGE, number, position, of->copy, length);
}

int64_t audit_stage(audit *of, sb_queue *queue, sb_port *port, int64_t number, sb_journal *journal,
                    int64_t most)
{
    audited *one = queue_of(of, number);
    int64_t head = word_load(queue->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK, code = SB_OK;
    if (!one)
        return SB_OK;
    one->next = one->next > head ? one->next : head;
    while (one->next < one->high && code == SB_OK) {
        int64_t position = one->next, bit = position - one->low;
        int64_t state = slot_word(queue, position) >> L_STATE_SHIFT & L_STATE_MASK;
        if (!(one->found[bit / 8] >> bit % 8 & 1) && state != L_DONE) {
            if (sb_journal_staged(journal) >= most)
                return SB_EMPTY;
            code = stage(of, queue, port, number, position, journal);
        }
        if (code == SB_OK)
            one->next++;
    }
    return code;
}
