/* The target of a message that goes to another node of a cluster: a number made of the name of the
 * queue or the exchange there (sink/target.c). */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"

static uint64_t number_of(int64_t high, const char *name, int64_t length)
{
    const int64_t key[2] = {high, 0};
    uint64_t hash[2];
    siphash_128(key, name, length, hash);
    return hash[0] >> 1;
}

int64_t sb_target_of(const char *name, int64_t length)
{
    return (int64_t)(number_of(0, name, length) | 1); /* 0 is none */
}

int64_t sb_target_of_exchange(const char *name, int64_t length)
{
    return -(int64_t)((number_of(1, name, length) | 3) - 1);
}

int64_t sb_target_of_reply(const char *name, int64_t length)
{
    return -(int64_t)(number_of(2, name, length) | 3); /* -1 is L_BINDING_HERE */
}
