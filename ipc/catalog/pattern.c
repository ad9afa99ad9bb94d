/* Settings by pattern: a table of the catalog, for queues that are declared later.
 *
 * An entry has the shape of a ring's page of settings, and lies as far behind `page_of` as that
 * lies behind its ring.  A pattern that is changed gets a new row first, with a higher serial; then
 * the old one goes.  A death before the new row is live leaves the old settings, one after it the
 * new. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "vhost/vhost.h"

#define RANK_EXACT (INT64_C(1) << 40)
#define RANK_WORD (INT64_C(1) << 28)
#define RANK_NO_HASH (INT64_C(1) << 14)

static char *page_of(sb_connection *connection, int64_t row)
{
    return (char *)connection->catalog.memory + sb_catalog_entry_at(L_SETTINGS, row) -
           L_RING_SETTINGS_AT;
}

static int64_t next_row(sb_connection *connection, int64_t row)
{
    return sb_row_next(connection->catalog.memory, L_SETTINGS, row);
}

/* How specific a pattern is: literal words first, then no #, then *. */
static int64_t rank_of(const char *pattern)
{
    int64_t words = 0, stars = 0, hashes = 0;
    for (const char *at = pattern; at; at = strchr(at, '.') ? strchr(at, '.') + 1 : NULL) {
        bool is_single = at[0] && (at[1] == 0 || at[1] == '.');
        if (is_single && *at == '*')
            stars++;
        else if (is_single && *at == '#')
            hashes++;
        else
            words++;
    }
    return (stars + hashes == 0 ? RANK_EXACT : 0) + words * RANK_WORD +
           (RANK_NO_HASH - hashes * 256) + stars;
}

/* The most specific pattern for this name that is less so than the last one: its row, or -1. */
static int64_t next_pattern(sb_connection *connection, const char *name, int64_t *rank, char *last)
{
    char pattern[L_NAME_BYTES_MAX + 1], best_pattern[L_NAME_BYTES_MAX + 1] = "";
    int64_t best = -1, best_rank = 0;
    for (int64_t row = 0; (row = next_row(connection, row)) >= 0; row++) {
        int64_t length = name_in(page_of(connection, row), L_SETTINGS_PATTERN_AT, pattern);
        int64_t its = rank_of(pattern);
        bool is_done = its > *rank || (its == *rank && strcmp(pattern, last) <= 0);
        bool is_better = best < 0 || its > best_rank ||
                         (its == best_rank && strcmp(pattern, best_pattern) < 0);
        /* the broker's own queues are as it declares them, but for what is said of them by name */
        bool is_for_others = is_own(name) && !is_own(pattern);
        if (is_done || !is_better || is_for_others ||
            !sb_topic_matches(pattern, length, name, (int64_t)strlen(name)))
            continue;
        best = row;
        best_rank = its;
        strcpy(best_pattern, pattern);
    }
    *rank = best_rank;
    strcpy(last, best_pattern);
    return best;
}

/* What of a pattern would make the dead of this queue come back to it, or keep a queue whose owner
 * is not there any more. */
static int64_t refused(sb_connection *connection, const char *name, const void *page,
                       int64_t flags)
{
    char dlq[L_NAME_BYTES_MAX + 1];
    int64_t bits = SB_SET_AUTO_CREATE | (flags & L_QUEUE_TEMPORARY ? SB_SET_DURABLE : 0);
    if (name_in(page, L_SETTING_DEAD_LETTER_AT, dlq) &&
        leads_back(connection, name, dlq, L_SETTING_DEAD_LETTER_AT))
        bits |= SB_SET_DEAD_LETTER;
    if (name_in(page, L_SETTING_EXPIRY_QUEUE_AT, dlq) &&
        leads_back(connection, name, dlq, L_SETTING_EXPIRY_QUEUE_AT))
        bits |= SB_SET_EXPIRY_QUEUE;
    return bits;
}

int64_t patterns_apply(sb_connection *connection, const char *name, void *page, int64_t flags)
{
    char last[L_NAME_BYTES_MAX + 1] = "";
    int64_t rank = INT64_MAX, have = word_load(page, L_SETTINGS_SET_AT), row, code = SB_OK;
    while (code == SB_OK && (row = next_pattern(connection, name, &rank, last)) >= 0) {
        const void *pattern = page_of(connection, row);
        code = settings_inherit(page, pattern, refused(connection, name, pattern, flags),
                                &have);
    }
    settings_default(page, have);
    return code == SB_OK ? settings_finished(page) : code;
}

bool patterns_create(sb_connection *connection, const char *name)
{
    char last[L_NAME_BYTES_MAX + 1] = "";
    int64_t rank = INT64_MAX, row;
    while ((row = next_pattern(connection, name, &rank, last)) >= 0) {
        const void *page = page_of(connection, row);
        if (word_load(page, L_SETTINGS_SET_AT) & SB_SET_AUTO_CREATE)
            return word_load(page, L_SETTING_AUTO_CREATE_AT) != 0;
    }
    return false;
}

/* --- changing them; under the catalog's lock -------------------------------------------------- */

static int64_t row_of(sb_connection *connection, const char *pattern, int64_t from)
{
    char each[L_NAME_BYTES_MAX + 1];
    for (int64_t row = from; (row = next_row(connection, row)) >= 0; row++) {
        name_in(page_of(connection, row), L_SETTINGS_PATTERN_AT, each);
        if (strcmp(each, pattern) == 0)
            return row;
    }
    return -1;
}

static int64_t serial_of(sb_connection *connection, int64_t row)
{
    return word_load(page_of(connection, row), L_SETTINGS_SERIAL_AT);
}

void patterns_repair(sb_connection *connection)
{
    char pattern[L_NAME_BYTES_MAX + 1];
    for (int64_t row = 0; (row = next_row(connection, row)) >= 0; row++) {
        name_in(page_of(connection, row), L_SETTINGS_PATTERN_AT, pattern);
        int64_t other = row_of(connection, pattern, row + 1);
        if (other >= 0)
            sb_row_remove(connection->catalog.memory, L_SETTINGS,
                          serial_of(connection, row) < serial_of(connection, other) ? row : other);
    }
}

/* A row for a pattern.  The last one is for changes of those that are there. */
static int64_t row_free(sb_connection *connection, bool is_new)
{
    int64_t count = 0;
    for (int64_t row = 0; (row = next_row(connection, row)) >= 0; row++)
        count++;
    return is_new && count >= L_SETTINGS_ROWS - 1
               ? SB_TABLE_FULL
               : sb_row_free(connection->catalog.memory, L_SETTINGS);
}

static int64_t put_locked(sb_connection *connection, const char *pattern, const void *page)
{
    void *catalog = connection->catalog.memory;
    int64_t former = row_of(connection, pattern, 0), row = row_free(connection, former < 0);
    if (row < 0)
        return fail(row,
                    "vhost '%s' has %d patterns with settings, and can have no more: remove some",
                    connection->vhost, (int)L_SETTINGS_ROWS - 1);
    int64_t code = sb_system_allocate(connection->catalog.file,
                                      sb_catalog_entry_at(L_SETTINGS, row), L_SETTINGS_ENTRY_BYTES);
    if (code != SB_OK)
        return fail_system("memory for the catalog of vhost '%s'", connection->vhost);
    char *entry = page_of(connection, row);
    memcpy(entry + L_RING_SETTINGS_AT, (const char *)page + L_RING_SETTINGS_AT,
           (size_t)L_SETTINGS_ENTRY_BYTES);
    word_store(entry, L_SETTINGS_SERIAL_AT, former < 0 ? 1 : serial_of(connection, former) + 1);
    code = sb_settings_put_row(catalog, row, pattern, (int64_t)strlen(pattern));
    if (code >= 0 && former >= 0)
        sb_row_remove(catalog, L_SETTINGS, former);
    return code < 0 ? code : SB_OK;
}

int64_t sb_settings_put(sb_connection *connection, const char *pattern, const sb_settings *settings)
{
    char page[L_RING_GATES_AT] = "";
    int64_t code = change_code(connection);
    if (code == SB_OK)
        code = name_check("pattern", pattern);
    if (code == SB_OK)
        code = settings_write(settings, page);
    if (code == SB_OK)
        code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    word_store(page, L_SETTINGS_PATTERN_AT, (int64_t)strlen(pattern));
    strcpy(page + L_SETTINGS_PATTERN_AT + 8, pattern);
    code = put_locked(connection, pattern, page);
    connection_unlock(connection);
    return code;
}

int64_t sb_settings_remove(sb_connection *connection, const char *pattern)
{
    int64_t code = change_begin(connection, "pattern", pattern);
    if (code != SB_OK)
        return code;
    int64_t row = row_of(connection, pattern, 0);
    if (row < 0)
        code = fail(SB_NOT_FOUND, "there are no settings for the pattern '%s' in vhost '%s'",
                    pattern, connection->vhost);
    else
        sb_row_remove(connection->catalog.memory, L_SETTINGS, row);
    connection_unlock(connection);
    return code;
}
