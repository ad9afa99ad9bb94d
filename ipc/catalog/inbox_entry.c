/* The inbox of a queue in the catalog. */

#define _GNU_SOURCE

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "vhost/vhost.h"

#define NAME "\001inbox-%llx" /* no name for people: they have no control characters */

/* --- whose it is, and where it is --------------------------------------------------------------- */

int64_t inbox_find(sb_connection *connection, int64_t reference)
{
    char name[L_NAME_BYTES_MAX + 1];
    sprintf(name, NAME, (unsigned long long)reference);
    return sb_reference_find(connection->catalog.memory, L_QUEUES, name, (int64_t)strlen(name));
}

int64_t inbox_identity(sb_connection *connection, const void *settings)
{
    char entry[L_ENTRY_BYTES] = "";
    int64_t reference = word_load(settings, L_SETTING_INBOX_OF_AT);
    sb_row_copy(connection->catalog.memory, L_QUEUES, reference & L_REFERENCE_INDEX_MASK, entry);
    return word_load(entry, L_QUEUE_IDENTITY_LOW_AT);
}

void inbox_restored(void *inbox, int64_t reference, char *name, void *ring, int64_t of)
{
    sprintf(name, NAME, (unsigned long long)of);
    word_store(inbox, L_SETTING_INBOX_OF_AT, of);
    word_store(inbox, L_RING_PAGING_AT, 1); /* until the pager has looked */
    word_store(ring, L_RING_INBOX_AT, reference);
    /* while it was restored, all below the journal's gate was retired: now also this one's is */
    ring_add_gate(inbox, word_load(inbox, L_RING_HEAD_AT) & L_POSITION_MASK);
}

void inboxes_tidy(sb_connection *connection)
{
    void *catalog = connection->catalog.memory;
    int64_t row = 0;
    for (; (row = sb_row_next(catalog, L_QUEUES, row)) >= 0; row++) {
        int64_t entry = sb_catalog_entry_at(L_QUEUES, row);
        unsigned long long reference;
        if (word_load(catalog, entry + L_QUEUE_FLAGS_AT) & L_QUEUE_INBOX &&
            sscanf((const char *)catalog + entry + L_ENTRY_NAME_AT, NAME, &reference) == 1 &&
            sb_row_of(catalog, L_QUEUES, (int64_t)reference) < 0)
            queue_remove(connection, sb_row_reference(catalog, L_QUEUES, row));
    }
}
