/* CRC-32C (Castagnoli), by the processor where it can, else by tables. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"

#define TOGETHER 144 /* bytes: fewer are done sooner one by one */

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#endif

#define POLYNOMIAL 0x82f63b78u

typedef uint32_t (*crc_of)(uint32_t crc, unsigned char *to, const unsigned char *from,
                           size_t count);

static uint32_t tables[8][256];

static void make_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? POLYNOMIAL : 0);
        tables[0][byte] = crc;
    }
    for (int table = 1; table < 8; table++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t crc = tables[table - 1][byte];
            tables[table][byte] = (crc >> 8) ^ tables[0][crc & 255];
        }
}

static uint32_t by_tables(uint32_t crc, unsigned char *to, const unsigned char *from, size_t count)
{
    for (; count >= 8; count -= 8, from += 8) {
        uint64_t word;
        memcpy(&word, from, 8);
        if (to) {
            memcpy(to, &word, 8);
            to += 8;
        }
        word ^= crc;
        crc = 0;
        for (int byte = 0; byte < 8; byte++)
            crc ^= tables[7 - byte][(word >> (8 * byte)) & 255];
    }
    for (; count > 0; count--, from++) {
        if (to)
            *to++ = *from;
        crc = (crc >> 8) ^ tables[0][(crc ^ *from) & 255];
    }
    return crc;
}

#if defined(__x86_64__)
#define TARGET __attribute__((target("sse4.2,crc32")))
#define STEP_8(crc, word) ((uint32_t)__builtin_ia32_crc32di((crc), (word)))
#define STEP_1(crc, byte) __builtin_ia32_crc32qi((crc), (byte))
#define PROCESSOR_CAN __builtin_cpu_supports("sse4.2")
#elif defined(__aarch64__)
#define TARGET __attribute__((target("+crc")))
#define STEP_8(crc, word) __crc32cd((crc), (word))
#define STEP_1(crc, byte) __crc32cb((crc), (byte))
#define PROCESSOR_CAN (getauxval(AT_HWCAP) & HWCAP_CRC32)
#endif

#ifdef TARGET
TARGET static uint32_t by_processor(uint32_t crc, unsigned char *to, const unsigned char *from,
                                    size_t count)
{
    if (to)
        for (; count >= 8; count -= 8, from += 8, to += 8) {
            uint64_t word;
            memcpy(&word, from, 8);
            memcpy(to, &word, 8);
            crc = STEP_8(crc, word);
        }
    for (; count >= 8; count -= 8, from += 8) {
        uint64_t word;
        memcpy(&word, from, 8);
        crc = STEP_8(crc, word);
    }
    for (; count > 0; count--, from++) {
        if (to)
            *to++ = *from;
        crc = STEP_1(crc, *from);
    }
    return crc;
}
#endif

/* --- three at once ---------------------------------------------------------------------------- */

#if defined(__x86_64__)
/* A step takes three cycles, and one can begin in each: so three parts of the bytes are dealt with
 * side by side.  Behind `n` more bytes a CRC counts as its product with x^(8 n), by a carry-less
 * multiplication; what is left of the division by the polynomial is done by the last step. */
#define PART_WORDS_MAX 256
#define MANY __attribute__((target("sse4.2,crc32,pclmul")))

static uint32_t powers[2 * PART_WORDS_MAX + 2]; /* [w]: x^(64 w - 33), from 1 on */

MANY static void make_powers(void)
{
    powers[1] = 1; /* x^31: the highest is the first bit */
    for (int words = 1; words <= 2 * PART_WORDS_MAX; words++)
        powers[words + 1] = STEP_8(powers[words], 0);
}

/* What a CRC counts as, so many words before the end. */
MANY static uint64_t moved_on(uint32_t crc, size_t words)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)crc),
                                           _mm_cvtsi32_si128((int)powers[words]), 0);
    return (uint64_t)_mm_cvtsi128_si64(product);
}

MANY static uint64_t taken(unsigned char *to, const unsigned char *from)
{
    uint64_t word;
    memcpy(&word, from, 8);
    if (to)
        memcpy(to, &word, 8);
    return word;
}

/* Three parts of so many words. */
MANY static inline __attribute__((always_inline)) uint32_t
three_parts(uint32_t crc, unsigned char *to, const unsigned char *from, size_t words)
{
    const size_t part = 8 * words;
    uint32_t second = 0, third = 0;
    size_t at = 0;
    for (; at < part - 8; at += 8) {
        crc = STEP_8(crc, taken(to ? to + at : NULL, from + at));
        second = STEP_8(second, taken(to ? to + part + at : NULL, from + part + at));
        third = STEP_8(third, taken(to ? to + 2 * part + at : NULL, from + 2 * part + at));
    }
    crc = STEP_8(crc, taken(to ? to + at : NULL, from + at));
    second = STEP_8(second, taken(to ? to + part + at : NULL, from + part + at));
    uint64_t last = taken(to ? to + 2 * part + at : NULL, from + 2 * part + at);
    return STEP_8(third, last ^ moved_on(crc, 2 * words) ^ moved_on(second, words));
}

MANY static uint32_t by_threes(uint32_t crc, unsigned char *to, const unsigned char *from,
                               size_t count)
{
    while (count >= TOGETHER) {
        size_t words = count / 24 < PART_WORDS_MAX ? count / 24 : PART_WORDS_MAX;
        crc = to ? three_parts(crc, to, from, words) : three_parts(crc, NULL, from, words);
        from += 24 * words;
        to = to ? to + 24 * words : NULL;
        count -= 24 * words;
    }
    return by_processor(crc, to, from, count);
}

static bool can_do_threes(void)
{
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}
#endif

static crc_of few = by_tables, many = by_tables;

__attribute__((constructor)) static void choose(void)
{
    make_tables();
#ifdef TARGET
    if (PROCESSOR_CAN)
        few = many = by_processor;
#endif
#if defined(__x86_64__)
    if (can_do_threes()) {
        make_powers();
        many = by_threes;
    }
#endif
}

/* A record's head and a small body are few bytes each, and of a stream there are millions. */
static inline crc_of chosen(size_t count)
{
    return count < TOGETHER ? few : many;
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t count)
{
    return ~chosen(count)(~crc, NULL, bytes, count);
}

uint32_t crc32c_copy(uint32_t crc, void *to, const void *from, size_t count)
{
    return ~chosen(count)(~crc, to, from, count);
}
