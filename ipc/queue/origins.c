/* The streams from elsewhere that a queue knows (core/origin.py), for people. */

#define _GNU_SOURCE

#include "base/base.h"
#include "paging/paging.h"
#include "queue/queue.h"
#include "ring/ring.h"

typedef struct listing {
    sb_origin *at;
    int64_t count, room;
} listing;

/* A queue that pages has two tables, and a stream has passed what either of them says. */
static sb_origin *known_before(const listing *of, const sb_origin *told, int64_t before)
{
    for (int64_t each = 0; each < before; each++)
        if (of->at[each].high == told->high && of->at[each].low == told->low)
            return &of->at[each];
    return NULL;
}

static void add(listing *of, const sb_origin *told, int64_t before)
{
    sb_origin *same = known_before(of, told, before);
    if (!same) {
        if (of->count < of->room)
            of->at[of->count++] = *told;
        return;
    }
    same->position = same->position > told->position ? same->position : told->position;
    same->used = same->used > told->used ? same->used : told->used;
    same->owner = same->owner ? same->owner : told->owner;
}

static int64_t add_all(listing *of, sb_queue *queue)
{
    sb_origin told;
    sb_port port;
    int64_t before = of->count, found, code = sb_port_to_look(queue, &port);
    int64_t tail = code == SB_OK ? sb_port_true_tail(&port) : code;
    for (int64_t each = L_PRODUCERS; tail >= 0; each++) {
        found = sb_port_origin_tell(&port, each, (int64_t *)&told);
        if (found < 0)
            break;
        told.counted = sb_port_origin_is_counted(&port, each);
        if (found)
            add(of, &told, before);
    }
    return tail < 0 ? tail : SB_OK;
}

int64_t sb_origins(sb_queue *queue, sb_origin *origins, int64_t room)
{
    listing found = {.at = origins, .room = room};
    int64_t code;
    if (!queue_look(queue, &code))
        return code;
    code = add_all(&found, queue);
    sb_queue *inbox = code == SB_OK && queue->pages ? inbox_of(queue, false, &code) : NULL;
    if (inbox && queue_look(inbox, &code)) {
        code = add_all(&found, inbox);
        queue_looked(inbox);
    }
    queue_looked(queue);
    return code == SB_OK ? found.count : code;
}
