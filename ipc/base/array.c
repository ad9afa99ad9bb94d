/* Arrays that grow, in private memory. */

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define ROOM_FIRST 16

bool array_room(void *array, int64_t *room, int64_t count, size_t size)
{
    void *all;
    if (count <= *room)
        return true;
    int64_t more = count < ROOM_FIRST ? ROOM_FIRST : 2 * count;
    memcpy(&all, array, sizeof all); /* a pointer of another type */
    all = realloc(all, (size_t)more * size);
    if (!all)
        return false;
    memcpy(array, &all, sizeof all);
    *room = more;
    return true;
}
