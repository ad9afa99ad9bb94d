/* Settings of a queue: a page of its ring, written before the ring has its name.  They are part of
 * what the queue was declared as: who wants other ones makes another queue. */

#define _GNU_SOURCE
#include <string.h>

#include "shared.h"

static const sb_settings DEFAULTS;

static int64_t limit(const char *what, int64_t value, int64_t most)
{
    if (value >= 0 && value <= most)
        return SB_OK;
    return fail(SB_INVALID, "%s is a number from 0 to %lld, not %lld", what, (long long)most,
                (long long)value);
}

static int64_t name_write(char *ring, int64_t at, const char *what, const char *name)
{
    if (!name)
        return SB_OK;
    int64_t code = name_check(what, name);
    if (code != SB_OK)
        return code;
    word_store(ring, at, (int64_t)strlen(name));
    strcpy(ring + at + 8, name);
    return SB_OK;
}

int64_t settings_write(const sb_settings *settings, void *ring)
{
    const int64_t time_max = INT64_C(1) << 60;
    const sb_settings *s = settings ? settings : &DEFAULTS;
    int64_t code;
    int64_t deliveries = s->max_deliveries == 0 ? L_MAX_DELIVERIES
                         : s->max_deliveries == SB_UNLIMITED ? 0
                                                             : s->max_deliveries;
    if ((code = limit("max_deliveries", deliveries, L_MAX_DELIVERIES_MAX)) != SB_OK ||
        (code = limit("ttl", s->ttl_ns, time_max)) != SB_OK ||
        (code = limit("ttl_min", s->ttl_min_ns, time_max)) != SB_OK ||
        (code = limit("ttl_max", s->ttl_max_ns, time_max)) != SB_OK ||
        (code = limit("max_messages", s->max_messages, L_SLOTS_MAX)) != SB_OK ||
        (code = limit("max_bytes", s->max_bytes, L_ARENA_BYTES_MAX)) != SB_OK ||
        (code = limit("when_full", s->when_full, L_DROP_OLDEST)) != SB_OK ||
        (code = limit("priorities", s->priorities, 1)) != SB_OK ||
        (code = limit("given_length", s->given_length, L_SETTINGS_GIVEN_BYTES_MAX)) != SB_OK ||
        (code = name_write(ring, L_SETTING_DEAD_LETTER_AT, "queue", s->dead_letter)) != SB_OK ||
        (code = name_write(ring, L_SETTING_EXPIRY_QUEUE_AT, "queue", s->expiry_queue)) != SB_OK)
        return code;
    if (s->ttl_max_ns && s->ttl_min_ns > s->ttl_max_ns)
        return fail(SB_INVALID, "ttl_min is longer than ttl_max: no message could have both");
    word_store(ring, L_SETTING_MAX_DELIVERIES_AT, deliveries);
    word_store(ring, L_SETTING_TTL_AT, s->ttl_ns);
    word_store(ring, L_SETTING_TTL_MIN_AT, s->ttl_min_ns);
    word_store(ring, L_SETTING_TTL_MAX_AT, s->ttl_max_ns);
    word_store(ring, L_SETTING_MAX_MESSAGES_AT, s->max_messages);
    word_store(ring, L_SETTING_MAX_BYTES_AT, s->max_bytes);
    word_store(ring, L_SETTING_WHEN_FULL_AT, s->when_full);
    word_store(ring, L_SETTING_PRIORITIES_AT, s->priorities);
    word_store(ring, L_SETTINGS_GIVEN_LENGTH_AT, s->given_length);
    if (s->given_length)
        memcpy((char *)ring + L_SETTINGS_GIVEN_AT, s->given, (size_t)s->given_length);
    return SB_OK;
}

int64_t setting(const sb_queue *queue, int64_t at)
{
    return word_load(queue->ring.memory, at);
}

int64_t setting_name(const sb_queue *queue, int64_t at, char *name)
{
    int64_t length = setting(queue, at);
    if (length < 0 || length > L_NAME_BYTES_MAX)
        length = 0;
    memcpy(name, (const char *)queue->ring.memory + at + 8, (size_t)length);
    name[length] = 0;
    return length;
}

int64_t sb_settings_given(sb_queue *queue, void *buffer, int64_t capacity)
{
    int64_t length = setting(queue, L_SETTINGS_GIVEN_LENGTH_AT);
    if (length < 0 || length > L_SETTINGS_GIVEN_BYTES_MAX)
        return SB_DAMAGED;
    if (length > capacity)
        return SB_TOO_SMALL;
    memcpy(buffer, (const char *)queue->ring.memory + L_SETTINGS_GIVEN_AT, (size_t)length);
    return length;
}
