/* The schedule of a queue in the catalog. */

#define _GNU_SOURCE

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "vhost/vhost.h"

#define NAME "\001schedule-%llx" /* no name for people: they have no control characters */

void schedule_name(char *name, int64_t reference)
{
    sprintf(name, NAME, (unsigned long long)reference);
}

int64_t schedule_find(sb_connection *connection, int64_t reference)
{
    char name[L_NAME_BYTES_MAX + 1];
    schedule_name(name, reference);
    return sb_reference_find(connection->catalog.memory, L_QUEUES, name, (int64_t)strlen(name));
}

void schedules_tidy(sb_connection *connection)
{
    void *catalog = connection->catalog.memory;
    int64_t row = 0;
    for (; (row = sb_row_next(catalog, L_QUEUES, row)) >= 0; row++) {
        int64_t entry = sb_catalog_entry_at(L_QUEUES, row);
        unsigned long long reference;
        if (word_load(catalog, entry + L_QUEUE_FLAGS_AT) & L_QUEUE_SCHEDULE &&
            sscanf((const char *)catalog + entry + L_ENTRY_NAME_AT, NAME, &reference) == 1 &&
            sb_row_of(catalog, L_QUEUES, (int64_t)reference) < 0)
            queue_remove(connection, sb_row_reference(catalog, L_QUEUES, row));
    }
}
