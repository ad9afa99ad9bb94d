/* Copies of what is in no cache that is near.
 *
 * A processor with "enhanced rep movsb" moves whole lines by one instruction, and takes no line of
 * the target from memory that it is about to overwrite.  Through a stream of messages of 1 KiB that
 * is worth a fifth; what is short is done sooner by memcpy. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"

#if defined(__x86_64__)
#include <cpuid.h>

#define AT_ONCE_BYTES 512
#define ENHANCED (1u << 9) /* of the leaf 7, in EBX */

static bool is_enhanced;

__attribute__((constructor)) static void look(void)
{
    unsigned int a, b, c, d;
    is_enhanced = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & ENHANCED);
}

void copy_far(void *to, const void *from, size_t count)
{
    if (is_enhanced && count >= AT_ONCE_BYTES)
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    else
        memcpy(to, from, count);
}
#else
void copy_far(void *to, const void *from, size_t count)
{
    memcpy(to, from, count);
}
#endif
