/* A tally: of each queue the lowest and the highest position, and the bytes of its messages. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "journal/format.h"

static uint64_t scattered(int64_t queue)
{
    uint64_t mixed = (uint64_t)queue * UINT64_C(0x9e3779b97f4a7c15);
    return mixed ^ (mixed >> 32);
}

/* The place in the index where the queue is, or would be; at most half of it is in use. */
static uint32_t *place_of(const tally *all, int64_t queue)
{
    uint64_t mask = (uint64_t)all->room * 2 - 1;
    for (uint64_t at = scattered(queue) & mask;; at = (at + 1) & mask)
        if (!all->index[at] || all->entries[all->index[at] - 1].queue == queue)
            return &all->index[at];
}

static bool grow(tally *all)
{
    int64_t room = all->room ? 2 * all->room : 8;
    uint32_t *index = calloc((size_t)room * 2, sizeof *index);
    tally_entry *entries = realloc(all->entries, (size_t)room * sizeof *entries);
    if (entries)
        all->entries = entries;
    if (!entries || !index) {
        free(index);
        return false;
    }
    free(all->index);
    all->index = index;
    all->room = room;
    for (int64_t each = 0; each < all->count; each++)
        *place_of(all, all->entries[each].queue) = (uint32_t)each + 1;
    return true;
}

tally_entry *tally_of(tally *all, int64_t queue)
{
    if (all->last < all->count && all->entries[all->last].queue == queue)
        return &all->entries[all->last];
    if (all->room == 0 && !grow(all))
        return NULL;
    uint32_t *place = place_of(all, queue);
    if (!*place) {
        if (all->count == all->room) {
            if (!grow(all))
                return NULL;
            place = place_of(all, queue);
        }
        all->entries[all->count] = (tally_entry){.queue = queue, .low = INT64_MAX, .high = -1};
        *place = (uint32_t)++all->count;
    }
    all->last = *place - 1;
    return &all->entries[all->last];
}

const tally_entry *tally_find(const tally *all, int64_t queue)
{
    if (all->count == 0)
        return NULL;
    uint32_t place = *place_of(all, queue);
    return place ? &all->entries[place - 1] : NULL;
}

static int64_t widen(tally *all, int64_t queue, int64_t low, int64_t high, int64_t bytes)
{
    tally_entry *entry = tally_of(all, queue);
    if (!entry)
        return fail_system("memory for what a segment has of a queue");
    entry->low = low < entry->low ? low : entry->low;
    entry->high = high > entry->high ? high : entry->high;
    entry->bytes += bytes;
    return SB_OK;
}

int64_t tally_add(tally *all, int64_t queue, int64_t position, int64_t bytes)
{
    return widen(all, queue, position, position, bytes);
}

int64_t tally_merge(tally *all, const tally *more)
{
    int64_t code = SB_OK;
    for (int64_t each = 0; each < more->count && code == SB_OK; each++) {
        const tally_entry *entry = &more->entries[each];
        code = widen(all, entry->queue, entry->low, entry->high, entry->bytes);
    }
    return code;
}

int64_t tally_make_room(tally *all, const tally *more)
{
    for (int64_t each = 0; each < more->count; each++)
        if (!tally_of(all, more->entries[each].queue))
            return fail_system("memory for what a segment has of a queue");
    return SB_OK;
}

int64_t tally_copy(tally *made, const tally *from)
{
    *made = (tally){0};
    return tally_merge(made, from);
}

void tally_clear(tally *all)
{
    if (all->count > all->room / 4)
        memset(all->index, 0, (size_t)all->room * 2 * sizeof *all->index);
    else
        while (all->count > 0) /* the last one first: then a search for one before still finds it */
            *place_of(all, all->entries[--all->count].queue) = 0;
    all->count = all->last = 0;
}

void tally_free(tally *all)
{
    free(all->entries);
    free(all->index);
    *all = (tally){0};
}

/* As if its messages lay evenly between the lowest and the highest. */
int64_t tally_live(const tally *all, const tally *heads, bool *needed)
{
    double bytes = 0;
    *needed = false;
    for (int64_t each = 0; each < all->count; each++) {
        const tally_entry *entry = &all->entries[each], *head = tally_find(heads, entry->queue);
        int64_t low = head && head->high > entry->low ? head->high : entry->low;
        if (low > entry->high)
            continue;
        *needed = true;
        bytes += (double)entry->bytes * (double)(entry->high + 1 - low) /
                 (double)(entry->high + 1 - entry->low);
    }
    return (int64_t)bytes;
}
