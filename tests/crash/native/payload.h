/* What every message carries, and the journal of what we did: payload.py and journal.py, in C. */

#ifndef PAYLOAD_H
#define PAYLOAD_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shmbroker.h"

enum { CONFIRMED = 1, GOT, ACKING, ACKED, DAMAGED, GAVE };
enum { WORK, ONE, LEFT, RIGHT, WIDE };

#define HEADER_BYTES 24
#define BEFORE_BYTES 20
#define LARGE_BYTES (100 << 10)
#define USUAL_BYTES (20 << 10)

typedef struct record {
    uint8_t kind, deliveries;
    uint16_t queue;
    uint32_t length;
    uint64_t identity, number;
    int64_t position;
} record;

static volatile sig_atomic_t is_over;
static int journal;
static uint64_t seed;
static uint32_t table[256];

static void end(int number)
{
    (void)number;
    is_over = 1;
}

static inline void crc_prepare(void)
{
    for (uint32_t each = 0; each < 256; each++) {
        uint32_t value = each;
        for (int bit = 0; bit < 8; bit++)
            value = value & 1 ? (value >> 1) ^ 0xEDB88320u : value >> 1;
        table[each] = value;
    }
}

static inline uint32_t crc(uint32_t start, const unsigned char *bytes, size_t length)
{
    uint32_t value = ~start;
    for (size_t at = 0; at < length; at++)
        value = table[(value ^ bytes[at]) & 0xFF] ^ (value >> 8);
    return ~value;
}

static inline double chance(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(seed >> 11) / (double)(UINT64_C(1) << 53);
}

static inline int64_t random_length(void)
{
    double drawn = chance();
    return chance() < 0.01 ? LARGE_BYTES : (int64_t)(USUAL_BYTES * drawn * drawn * drawn);
}

static inline int64_t body_fill(unsigned char *body, uint64_t identity, uint64_t number,
                                uint32_t length)
{
    memcpy(body, &identity, 8);
    memcpy(body + 8, &number, 8);
    memcpy(body + 16, &length, 4);
    memset(body + HEADER_BYTES, (int)(number * 7 + identity), length);
    uint32_t checksum = crc(crc(0, body, BEFORE_BYTES), body + HEADER_BYTES, length);
    memcpy(body + BEFORE_BYTES, &checksum, 4);
    return HEADER_BYTES + (int64_t)length;
}

/* 1 if the message is what it says. */
static inline int body_read(const unsigned char *body, int64_t bytes, uint64_t *identity,
                            uint64_t *number)
{
    uint32_t length, checksum;
    *identity = *number = 0;
    if (bytes < HEADER_BYTES)
        return 0;
    memcpy(identity, body, 8);
    memcpy(number, body + 8, 8);
    memcpy(&length, body + 16, 4);
    memcpy(&checksum, body + BEFORE_BYTES, 4);
    return length == bytes - HEADER_BYTES &&
           checksum == crc(crc(0, body, BEFORE_BYTES), body + HEADER_BYTES, length);
}

static inline void note(record noted)
{
    if (write(journal, &noted, sizeof noted) != sizeof noted)
        abort();
}

static inline void must(int64_t code, const char *what)
{
    if (code < 0) {
        fprintf(stderr, "%s: %s %s\n", what, sb_strerror(code), sb_detail(code));
        exit(71);
    }
}

/* VHOST IDENTITY JOURNAL SEED */
static inline sb_connection *begin(int count, char **arguments)
{
    sb_connection *connection;
    if (count != 5)
        exit(2);
    struct sigaction action = {.sa_handler = end};
    sigaction(SIGTERM, &action, NULL);
    crc_prepare();
    seed = strtoull(arguments[4], NULL, 10);
    journal = open(arguments[3], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (journal < 0)
        exit(3);
    must(sb_connect(arguments[1], NULL, &connection), "connecting");
    return connection;
}

#endif
