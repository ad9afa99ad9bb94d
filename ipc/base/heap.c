/* A heap: of things that have a time, the one whose time comes first.  In private memory. */

#include <stdlib.h>

#include "base/base.h"

static bool before(const due *left, const due *right)
{
    return left->at != right->at ? left->at < right->at : left->position < right->position;
}

bool heap_put(heap *in, due added)
{
    if (in->count == in->room) {
        int64_t room = in->room ? 2 * in->room : 64;
        due *all = realloc(in->all, (size_t)room * sizeof *all);
        if (!all)
            return false;
        in->all = all;
        in->room = room;
    }
    int64_t at = in->count++;
    for (; at > 0 && before(&added, &in->all[(at - 1) / 2]); at = (at - 1) / 2)
        in->all[at] = in->all[(at - 1) / 2];
    in->all[at] = added;
    return true;
}

due heap_pop(heap *from)
{
    due first = from->all[0], last = from->all[--from->count];
    int64_t at = 0, child;
    while ((child = 2 * at + 1) < from->count) {
        child += child + 1 < from->count && before(&from->all[child + 1], &from->all[child]);
        if (!before(&from->all[child], &last))
            break;
        from->all[at] = from->all[child];
        at = child;
    }
    from->all[at] = last;
    return first;
}
