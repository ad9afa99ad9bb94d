/* The raw bandwidth limit: one process copies messages between rotating buffers.
 *
 * A messenger that copies does it twice for a message, in at one process and out at another,
 * at the same time; so its stream cannot be faster than one process's memcpy.
 */
#include <stdint.h>
#include <string.h>

/* Copies message i from source row i % period to target row i % targets and reads the stamp
 * there; returns the sum of the stamps. */
int64_t memcpy_stream(const char *source, char *target, int64_t size, int64_t period,
                      int64_t targets, int64_t count)
{
    int64_t total = 0, from = 0, to = 0;
    for (int64_t i = 0; i < count; i++) {
        const char *message = source + from * size;
        char *copy = target + to * size;
        memcpy(copy, message, (size_t)size);
        __asm__ volatile("" : : "r"(copy) : "memory");
        int64_t stamp;
        memcpy(&stamp, copy, sizeof stamp);
        total += stamp;
        from = from + 1 == period ? 0 : from + 1;
        to = to + 1 == targets ? 0 : to + 1;
    }
    return total;
}
