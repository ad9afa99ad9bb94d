/* LIKE: whether a text is like a pattern, in time that grows with the text's length alone.
 *
 *     'ab%c_d%e%fg'     parts:  ab      at the start of the text
 *                               c_d, e  wherever each is first, in this order
 *                               fg      at the end
 *
 * Where a part is first, the most is left for those behind it: so nothing is tried twice.  A part
 * of bytes alone is searched by memmem.  One with _ is at most OP_PART_BYTES_MAX long, a bit for
 * each byte: the bits of all its beginnings that fit so far move on together, a byte of the text at
 * a time.
 *
 * The text may change while it is looked at (names.c): nothing beyond its end is read. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "selector/selector.h"

static bool is_continuation(uint8_t byte)
{
    return (byte & 0xC0) == 0x80; /* in UTF-8: of a character that has begun */
}

/* Where the part ends if it is at the start of the text, else NULL. */
static const uint8_t *fits_at_start(const uint8_t *at, const uint8_t *end, const uint8_t *part,
                                    const uint8_t *part_end)
{
    for (; part < part_end; part++) {
        if (at == end || (*part != OP_ANY_CHARACTER && *part != *at))
            return NULL;
        at++;
        if (*part == OP_ANY_CHARACTER)
            while (at < end && is_continuation(*at))
                at++;
    }
    return at;
}

/* Where the part starts if it is at the end of the text, else NULL. */
static const uint8_t *fits_at_end(const uint8_t *start, const uint8_t *at, const uint8_t *part,
                                  const uint8_t *part_end)
{
    while (part < part_end) {
        uint8_t wanted = *--part_end;
        if (at == start)
            return NULL;
        at--;
        if (wanted == OP_ANY_CHARACTER) {
            while (at > start && is_continuation(*at))
                at--;
        } else if (wanted != *at) {
            return NULL;
        }
    }
    return at;
}

/* The end of the first place that fits, or NULL.  Bit n of `fit`: the part up to its byte n is just
 * before here.  A _ fits a byte that begins a character, and the rest of that character. */
static const uint8_t *find_by_bits(const uint8_t *at, const uint8_t *end, const uint8_t *part,
                                   int64_t length)
{
    uint64_t bits[256] = {0}, any = 0, fit = 0, whole = UINT64_C(1) << (length - 1);
    for (int64_t each = 0; each < length; each++) {
        uint64_t *wanted = part[each] == OP_ANY_CHARACTER ? &any : &bits[part[each]];
        *wanted |= UINT64_C(1) << each;
    }
    for (; at < end; at++) {
        uint8_t byte = *(const volatile uint8_t *)at;
        uint64_t moved = fit << 1 | 1;
        fit = is_continuation(byte) ? (moved & bits[byte]) | (fit & any)
                                    : moved & (bits[byte] | any);
        if (fit & whole)
            return at + 1;
    }
    return NULL;
}

static const uint8_t *find(const uint8_t *at, const uint8_t *end, const uint8_t *part,
                           const uint8_t *part_end)
{
    size_t length = (size_t)(part_end - part), left = (size_t)(end - at);
    if (memchr(part, OP_ANY_CHARACTER, length))
        return find_by_bits(at, end, part, (int64_t)length);
    const uint8_t *found = memmem(at, left, part, length);
    return found ? found + length : NULL;
}

/* The part that starts here ends there: at the next %, or at the end of the pattern. */
static const uint8_t *part_end_of(const uint8_t *part, const uint8_t *pattern_end)
{
    const uint8_t *found = memchr(part, OP_ANY_TEXT, (size_t)(pattern_end - part));
    return found ? found : pattern_end;
}

bool pattern_is_good(const uint8_t *pattern, int64_t length)
{
    const uint8_t *end = pattern + length, *part_end = part_end_of(pattern, end);
    while (part_end < end) {
        const uint8_t *part = part_end + 1;
        part_end = part_end_of(part, end);
        size_t bytes = (size_t)(part_end - part);
        if (part_end < end && bytes > OP_PART_BYTES_MAX && memchr(part, OP_ANY_CHARACTER, bytes))
            return false;
    }
    return true;
}

bool is_like(const uint8_t *text, int64_t length, const uint8_t *pattern, int64_t pattern_length)
{
    const uint8_t *end = text + length, *pattern_end = pattern + pattern_length;
    const uint8_t *part_end = part_end_of(pattern, pattern_end);
    const uint8_t *at = fits_at_start(text, end, pattern, part_end);
    if (!at || part_end == pattern_end)
        return at && at == end;
    const uint8_t *last = memrchr(pattern, OP_ANY_TEXT, (size_t)pattern_length) + 1;
    end = fits_at_end(at, end, last, pattern_end);
    for (const uint8_t *part = part_end + 1; end && at && part < last; part = part_end + 1) {
        part_end = part_end_of(part, pattern_end);
        if (part_end > part)
            at = find(at, end, part, part_end);
    }
    return end && at;
}
