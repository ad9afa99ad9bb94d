/* The lines of a .hlog that are as they are nearly always:
 *
 *     Tag=orders;publish-take,1763740800.000,10.000,1.5,HISTFAAAA...\n
 *
 * The tag is ASCII or left out, times have up to ten digits and a fraction of up to nine, the
 * histogram is base64 of a V2 header and as many bytes as that says.  What is anything else is
 * left to Python, be it a comment, rare or wrong: whatever is taken here, Python would have
 * taken, with the same result.  A test compares both. */
#include "spool.h"

#include <string.h>

enum { HEADER = 8, V2_DEFLATED = 0x1C849314 };

static const int64_t WHOLE_MAX = INT64_MAX / 1000000000 - 1;

/* Each digit's value and 1; what is none has 0. */
static const uint8_t BASE64[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};

/* How many bytes, or -1. */
static int64_t from_base64(const uint8_t *in, int64_t size, uint8_t *out)
{
    if (!size || size % 4)
        return -1;
    uint8_t *const begin = out;
    uint8_t wrong = 0;
    for (; size > 4; size -= 4, in += 4, out += 3) {
        uint8_t a = BASE64[in[0]] - 1, b = BASE64[in[1]] - 1;
        uint8_t c = BASE64[in[2]] - 1, d = BASE64[in[3]] - 1;
        wrong |= a | b | c | d;
        out[0] = (uint8_t)(a << 2 | b >> 4);
        out[1] = (uint8_t)(b << 4 | c >> 2);
        out[2] = (uint8_t)(c << 6 | d);
    }
    int missing = in[3] != '=' ? 0 : in[2] != '=' ? 1 : 2;
    uint8_t a = BASE64[in[0]] - 1, b = BASE64[in[1]] - 1;
    uint8_t c = missing > 1 ? 0 : BASE64[in[2]] - 1, d = missing ? 0 : BASE64[in[3]] - 1;
    uint8_t left = missing == 1 ? c & 0x03 : missing == 2 ? b & 0x0F : 0;
    if ((wrong | a | b | c | d) >= 64 || left)
        return -1;
    *out++ = (uint8_t)(a << 2 | b >> 4);
    if (missing < 2)
        *out++ = (uint8_t)(b << 4 | c >> 2);
    if (missing < 1)
        *out++ = (uint8_t)(c << 6 | d);
    return out - begin;
}

static uint32_t big_endian(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int is_digit(uint8_t octet)
{
    return octet >= '0' && octet <= '9';
}

/* A field of seconds and its comma: what comes after it, or NULL. */
static const uint8_t *seconds(const uint8_t *at, const uint8_t *stop, int64_t *ns)
{
    const uint8_t *begin = at;
    int64_t whole = 0, part = 0;
    for (; at < stop && is_digit(*at); at++) {
        if (at - begin == 10)
            return NULL;
        whole = 10 * whole + (*at - '0');
    }
    if (at == begin || at == stop || whole > WHOLE_MAX)
        return NULL;
    if (*at == '.') {
        int left = 9;
        for (at++; at < stop && is_digit(*at) && left; at++, left--)
            part = 10 * part + (*at - '0');
        for (; left; left--)
            part *= 10;
    }
    if (at == stop || *at != ',')
        return NULL;
    *ns = whole * 1000000000 + part;
    return at + 1;
}

/* Adds a row, if the line is regular. */
static int take(struct sb_lines *lines, const uint8_t *text, const uint8_t *at,
                const uint8_t *stop, int64_t base)
{
    int64_t row = lines->count, start, length;
    lines->at[row] = at - text;
    while (stop > at && stop[-1] == '\r')
        stop--;
    uint8_t *tag = lines->tags + lines->tag_ends[row];
    if (stop - at > 4 && !memcmp(at, "Tag=", 4)) {
        for (at += 4; at < stop && *at != ','; at++) {
            if (*at >= 0x80)
                return 0;
            *tag++ = *at;
        }
        if (at++ == stop)
            return 0;
    }
    if (!(at = seconds(at, stop, &start)) || !(at = seconds(at, stop, &length)))
        return 0;
    if (start > INT64_MAX - base || length > INT64_MAX - base - start)
        return 0;
    const uint8_t *maximum = at;
    if (!(at = memchr(maximum, ',', (size_t)(stop - maximum))))
        return 0;
    int64_t raw_at = row ? lines->deflated_end[row - 1] : 0;
    uint8_t *raw = lines->raw + raw_at;
    int64_t size = from_base64(at + 1, stop - at - 1, raw);
    if (size <= HEADER || big_endian(raw) != V2_DEFLATED || big_endian(raw + 4) != size - HEADER)
        return 0;
    lines->start[row] = base + start;
    lines->end[row] = base + start + length;
    lines->deflated_at[row] = raw_at + HEADER;
    lines->deflated_end[row] = raw_at + size;
    lines->tag_ends[row + 1] = (int32_t)(tag - lines->tags);
    lines->count++;
    return 1;
}

/* From a line's begin on, as long as there is room and lines are regular: where it ended. */
int64_t sb_scan(const uint8_t *text, int64_t at, int64_t size, int64_t base,
                struct sb_lines *lines)
{
    while (at < size && lines->count < lines->room) {
        const uint8_t *newline = memchr(text + at, '\n', (size_t)(size - at));
        const uint8_t *stop = newline ? newline : text + size;
        if (!take(lines, text, text + at, stop, base))
            break;
        at = stop - text + (newline != NULL);
    }
    return at;
}
