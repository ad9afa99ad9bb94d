/* The rings that a queue has beside its own: its schedule, and its inbox.  Each is a queue whose
 * name tells whose it is, and is none for people: they have no control characters. */

#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "vhost/vhost.h"

#define SCHEDULE_NAME "\001schedule-%llx"
#define INBOX_NAME "\001inbox-%llx"

void beside_name(char *name, int64_t flag, int64_t reference)
{
    unsigned long long of = (unsigned long long)reference;
    if (flag == L_QUEUE_SCHEDULE)
        sprintf(name, SCHEDULE_NAME, of);
    else
        sprintf(name, INBOX_NAME, of);
}

int64_t beside_find(sb_connection *connection, int64_t flag, int64_t reference)
{
    char name[L_NAME_BYTES_MAX + 1];
    beside_name(name, flag, reference);
    return sb_reference_find(connection->catalog.memory, L_QUEUES, name, (int64_t)strlen(name));
}

int64_t inbox_identity(sb_connection *connection, const void *settings)
{
    char entry[L_ENTRY_BYTES] = "";
    int64_t reference = word_load(settings, L_SETTING_INBOX_OF_AT);
    sb_row_copy(connection->catalog.memory, L_QUEUES, reference & L_REFERENCE_INDEX_MASK, entry);
    return word_load(entry, L_QUEUE_IDENTITY_LOW_AT);
}

/* Whether it is beside a queue that is not there any more. */
static bool is_left(const char *catalog, int64_t entry)
{
    const char *name = catalog + entry + L_ENTRY_NAME_AT;
    int64_t flags = word_load(catalog, entry + L_QUEUE_FLAGS_AT);
    unsigned long long of;
    bool is_beside = (flags & L_QUEUE_SCHEDULE && sscanf(name, SCHEDULE_NAME, &of) == 1) ||
                     (flags & L_QUEUE_INBOX && sscanf(name, INBOX_NAME, &of) == 1);
    return is_beside && sb_row_of((void *)catalog, L_QUEUES, (int64_t)of) < 0;
}

void beside_repair(sb_connection *connection)
{
    void *catalog = connection->catalog.memory;
    int64_t row = 0;
    for (; (row = sb_row_next(catalog, L_QUEUES, row)) >= 0; row++)
        if (is_left(catalog, sb_catalog_entry_at(L_QUEUES, row)))
            queue_remove(connection, sb_row_reference(catalog, L_QUEUES, row));
}
