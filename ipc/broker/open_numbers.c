/* Numbers of an origin that are open (core/open_number.py): ranges that do not touch, in order. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "broker/broker.h"

/* The first range that ends at this number or above. */
static int64_t place_of(const open_numbers *of, int64_t number)
{
    int64_t low = 0, high = of->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (of->ranges[middle].last < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int64_t make_room(open_numbers *of)
{
    if (!ROOM_FOR(of->ranges, of->room, of->count + 1))
        return fail_system("memory for open numbers");
    return SB_OK;
}

int64_t open_begin_of(const open_numbers *of, int64_t number)
{
    int64_t place = place_of(of, number);
    bool is_open = place < of->count && of->ranges[place].first <= number;
    return is_open ? of->ranges[place].first : 0;
}

/* This many ranges from there on become one, or, if there are none, one is put there. */
static void replace(open_numbers *of, int64_t place, int64_t many, number_range by)
{
    number_range *at = of->ranges + place;
    memmove(at + 1, at + many, (size_t)(of->count - place - many) * sizeof *at);
    *at = by;
    of->count += 1 - many;
}

int64_t open_add(open_numbers *of, int64_t first, int64_t last)
{
    int64_t place = place_of(of, first - 1), end = place, code = make_room(of);
    for (; code == SB_OK && end < of->count && of->ranges[end].first <= last + 1; end++) {
        first = of->ranges[end].first < first ? of->ranges[end].first : first;
        last = of->ranges[end].last > last ? of->ranges[end].last : last;
    }
    if (code == SB_OK && first <= last)
        replace(of, place, end - place, (number_range){first, last});
    return code;
}

static int64_t take_out(open_numbers *of, int64_t number)
{
    int64_t place = place_of(of, number), code = make_room(of);
    if (code != SB_OK || open_begin_of(of, number) == 0)
        return code;
    number_range all = of->ranges[place];
    if (all.first < number) { /* what is left of it is one range, or two */
        of->ranges[place++].last = number - 1;
        if (number < all.last)
            replace(of, place, 0, (number_range){number + 1, all.last});
    } else if (number < all.last) {
        of->ranges[place].first = number + 1;
    } else {
        number_range *at = of->ranges + place;
        memmove(at, at + 1, (size_t)(--of->count - place) * sizeof *at);
    }
    return SB_OK;
}

int64_t open_note(open_numbers *of, int64_t *number, int64_t sequence)
{
    if (sequence <= *number)
        return take_out(of, sequence);
    int64_t code = open_add(of, *number + 1, sequence - 1);
    *number = sequence;
    return code;
}

void open_cut(open_numbers *of, int64_t last)
{
    while (of->count > 0 && of->ranges[of->count - 1].first > last)
        of->count--;
    if (of->count > 0 && of->ranges[of->count - 1].last > last)
        of->ranges[of->count - 1].last = last;
}

/* What of a range is in the other set. */
static int64_t add_common(open_numbers *to, number_range part, const open_numbers *other)
{
    int64_t code = SB_OK;
    for (int64_t place = place_of(other, part.first); code == SB_OK && place < other->count &&
         other->ranges[place].first <= part.last; place++) {
        number_range also = other->ranges[place];
        code = open_add(to, also.first > part.first ? also.first : part.first,
                        also.last < part.last ? also.last : part.last);
    }
    return code;
}

int64_t open_merge(open_numbers *of, int64_t *number, const open_numbers *other, int64_t known)
{
    open_numbers made = {0};
    int64_t code = known > *number ? open_note(of, number, known) : SB_OK;
    for (int64_t each = 0; each < of->count && code == SB_OK; each++) {
        number_range all = of->ranges[each], below = all;
        below.last = all.last > known ? known : all.last;
        code = add_common(&made, below, other);
        if (code == SB_OK && all.last > known)
            code = open_add(&made, all.first > known ? all.first : known + 1, all.last);
    }
    if (code != SB_OK) {
        open_end(&made);
        return code;
    }
    open_end(of);
    *of = made;
    return SB_OK;
}

void open_end(open_numbers *of)
{
    free(of->ranges);
    *of = (open_numbers){0};
}
