/* Whether bytes are text. */

#define _GNU_SOURCE

#include "base/base.h"

/* How many bytes the UTF-8 character here has, 0 if it is none. */
static int character_bytes(const unsigned char *at, int64_t left)
{
    int bytes = at[0] < 0x80 ? 1 : (at[0] >> 5) == 6 ? 2 : (at[0] >> 4) == 14 ? 3
              : (at[0] >> 3) == 30 ? 4 : 0;
    if (bytes > left)
        return 0;
    for (int each = 1; each < bytes; each++)
        if ((at[each] & 0xC0) != 0x80)
            return 0;
    if ((bytes == 2 && at[0] < 0xC2) || (bytes == 3 && at[0] == 0xE0 && at[1] < 0xA0) ||
        (bytes == 3 && at[0] == 0xED && at[1] > 0x9F) ||
        (bytes == 4 && at[0] == 0xF0 && at[1] < 0x90) ||
        (bytes == 4 && (at[0] > 0xF4 || (at[0] == 0xF4 && at[1] > 0x8F))))
        return 0;
    return bytes;
}

bool is_utf8(const char *text, int64_t length)
{
    const unsigned char *at = (const unsigned char *)text;
    int bytes;
    for (int64_t done = 0; done < length; done += bytes)
        if ((bytes = character_bytes(at + done, length - done)) == 0)
            return false;
    return true;
}
