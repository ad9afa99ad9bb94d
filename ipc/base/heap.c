/* A heap: of things that have a time, the one whose time comes first.  In private memory. */

#include "base/base.h"

static bool before(const due *left, const due *right)
{
    return left->at != right->at ? left->at < right->at : left->position < right->position;
}

bool heap_put(heap *in, due added)
{
    if (!ROOM_FOR(in->all, in->room, in->count + 1))
        return false;
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
