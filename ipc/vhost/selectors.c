/* The selectors of participants: what they take from which queue, for other nodes of a cluster.
 *
 * Each participant has a page, which has memory once it selects.  Only it writes there, under the
 * mutex of its connection.  A word in its entry is odd meanwhile and another one afterwards, so who
 * reads sees whether what it read is whole; it is odd for good if the participant dies so. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "vhost/vhost.h"

#define HEAD 16 /* of each: the reference to its queue, and the length of its text */

static int64_t page_at(int64_t id)
{
    return L_PARTICIPANTS_SELECTORS_AT + id * L_SELECTORS_BYTES;
}

static int64_t bytes_of(const char *selector)
{
    return HEAD + ((word_load(selector, 8) + 7) & ~INT64_C(7));
}

static void change(char *entry)
{
    word_store(entry, L_PARTICIPANT_SELECTORS_AT,
               word_load(entry, L_PARTICIPANT_SELECTORS_AT) + 1);
    atomic_thread_fence(memory_order_seq_cst);
}

static char *page_of(sb_connection *connection)
{
    char *entry = participant_entry(connection, connection->id);
    int64_t at = page_at(connection->id);
    char *page = (char *)connection->participants.memory + at;
    if (word_load(entry, L_PARTICIPANT_SELECTORS_AT))
        return page;
    if (sb_system_allocate(connection->participants.file, at, L_SELECTORS_BYTES) != SB_OK)
        return NULL;
    change(entry);
    memset(page, 0, L_SELECTORS_BYTES); /* of a former participant with this id */
    change(entry);
    return page;
}

bool participant_selects(sb_connection *connection, int64_t reference, const void *text,
                         int64_t length)
{
    char *page = text && length > 0 && length <= L_SELECTOR_BYTES_MAX ? page_of(connection) : NULL;
    if (!page)
        return false;
    int64_t at = 0, of_queue = 0;
    for (; word_load(page, at); at += bytes_of(page + at)) {
        if (word_load(page, at) != reference)
            continue;
        of_queue++;
        if (word_load(page, at + 8) == length && memcmp(page + at + HEAD, text, length) == 0)
            return true;
    }
    /* the last word stays 0 */
    if (of_queue == L_SELECTORS_OF_QUEUE || at + HEAD + length + 16 > L_SELECTORS_BYTES)
        return false;
    char *entry = participant_entry(connection, connection->id);
    change(entry);
    word_store(page, at + 8, length);
    memcpy(page + at + HEAD, text, (size_t)length);
    word_store(page, at, reference);
    change(entry);
    return true;
}

void participant_selects_no_more(sb_connection *connection, int64_t reference)
{
    char *entry = participant_entry(connection, connection->id);
    if (!word_load(entry, L_PARTICIPANT_SELECTORS_AT))
        return;
    char *page = (char *)connection->participants.memory + page_at(connection->id);
    int64_t at = 0, kept = 0;
    change(entry);
    while (word_load(page, at)) {
        int64_t bytes = bytes_of(page + at);
        if (word_load(page, at) != reference) {
            memmove(page + kept, page + at, (size_t)bytes);
            kept += bytes;
        }
        at += bytes;
    }
    memset(page + kept, 0, (size_t)(at - kept));
    change(entry);
}
