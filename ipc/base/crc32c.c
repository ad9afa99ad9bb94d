/* CRC-32C (Castagnoli), by the processor where it can, else by tables. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"

#if defined(__aarch64__)
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
#define TARGET __attribute__((target("sse4.2")))
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

static crc_of chosen = by_tables;

__attribute__((constructor)) static void choose(void)
{
    make_tables();
#ifdef TARGET
    if (PROCESSOR_CAN)
        chosen = by_processor;
#endif
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t count)
{
    return ~chosen(~crc, NULL, bytes, count);
}

uint32_t crc32c_copy(uint32_t crc, void *to, const void *from, size_t count)
{
    return ~chosen(~crc, to, from, count);
}
