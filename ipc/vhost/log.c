/* The log of distinct errors in shared memory: each text once, how often, and when.
 *
 * Readers need no lock and no living writer.  Writers of one process are kept apart by its own
 * mutex; two processes that write at once may count one occurrence too few: it is a log. */

#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "vhost/vhost.h"

static char *entry_at(sb_connection *connection, int64_t index)
{
    return (char *)connection->participants.memory + L_PARTICIPANTS_LOG_AT + index * L_LOG_BYTES;
}

/* The entry with this text; else the unused one, or the one that was seen last longest ago. */
static char *entry_for(sb_connection *connection, const char *text, int64_t length)
{
    char *oldest = entry_at(connection, 0);
    for (int64_t index = 0; index < L_LOG_ENTRIES; index++) {
        char *entry = entry_at(connection, index);
        if (word_load(entry, L_LOG_COUNT_AT) > 0 && word_load(entry, L_LOG_LENGTH_AT) == length &&
            memcmp(entry + L_LOG_TEXT_AT, text, (size_t)length) == 0)
            return entry;
        if (word_load(entry, L_LOG_LAST_AT) < word_load(oldest, L_LOG_LAST_AT))
            oldest = entry;
    }
    word_store(oldest, L_LOG_COUNT_AT, 0);
    word_store(oldest, L_LOG_FIRST_AT, realtime_ns());
    word_store(oldest, L_LOG_LENGTH_AT, length);
    memcpy(oldest + L_LOG_TEXT_AT, text, (size_t)length);
    return oldest;
}

void log_note(sb_connection *connection, const char *format, ...)
{
    char text[L_LOG_BYTES - L_LOG_TEXT_AT];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof text)
        length = (int)sizeof text - 1;
    char *entry = entry_for(connection, text, length);
    word_store(entry, L_LOG_LAST_AT, realtime_ns());
    word_store(entry, L_LOG_COUNT_AT, word_load(entry, L_LOG_COUNT_AT) + 1);
    int64_t index = (entry - entry_at(connection, 0)) / L_LOG_BYTES;
    atomic_fetch_or(&connection->noted, (uint64_t)1 << index);
}

void sb_note(sb_connection *connection, const char *text)
{
    log_note(connection, "%s", text);
}

_Static_assert(L_LOG_ENTRIES <= 64, "a bit for each entry");

int64_t sb_noted(sb_connection *connection)
{
    if (atomic_load_explicit(&connection->noted, memory_order_relaxed) == 0)
        return 0;
    return (int64_t)atomic_exchange(&connection->noted, 0);
}
