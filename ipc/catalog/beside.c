/* The rings that a queue has beside its own: its schedule, and its inbox.  Each is a queue whose
 * name tells whose it is, and is none for people: they have no control characters. */

#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "ring/ring.h"
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

/* Under the catalog's lock. */
static int64_t make(sb_queue *queue, const beside *kind)
{
    char name[L_NAME_BYTES_MAX + 1];
    int64_t made = beside_find(queue->connection, kind->flag, queue->reference);
    if (made < 0) { /* else who made it died before the queue knew of it */
        beside_name(name, kind->flag, queue->reference);
        made = kind->make(queue, name);
    }
    if (made >= 0)
        word_store(queue->ring.memory, kind->word_at, made);
    return made;
}

sb_queue *beside_handle(sb_queue *queue, sb_queue *_Atomic *known, const beside *kind,
                        int64_t *code)
{
    sb_queue *found = atomic_load(known);
    int64_t reference = word_load(queue->ring.memory, kind->word_at);
    *code = SB_OK;
    if (found || reference == 0)
        return found;
    *code = queue_handle(queue->connection, reference, &found);
    if (*code != SB_OK)
        return NULL;
    /* the word may have been damaged: it is to be of this kind, and of this queue */
    if (setting(found, kind->whose_at) != queue->reference) {
        *code = fail(SB_DAMAGED, "the %s of queue '%s' belongs to another", kind->noun,
                     queue->name);
        return NULL;
    }
    if (kind->inherit)
        kind->inherit(found, queue);
    strcpy(found->name, queue->name); /* for people, in errors */
    /* it stays where it is for as long as the queue's own ring, and its handle as long as that */
    atomic_fetch_add(&found->looks, 1);
    atomic_fetch_add(&found->opened, 1);
    atomic_store(known, found);
    return found;
}

sb_queue *beside_of(sb_queue *queue, sb_queue *_Atomic *known, const beside *kind, bool makes,
                    int64_t *code)
{
    sb_queue *found = atomic_load(known);
    sb_connection *connection = queue->connection;
    *code = SB_OK;
    if (found)
        return found;
    if (word_load(queue->ring.memory, kind->word_at) == 0) {
        if (!makes || (*code = connection_lock(connection)) != SB_OK)
            return NULL;
        int64_t made = queue_is_usable(queue, code) ? make(queue, kind) : *code;
        connection_unlock(connection);
        if (made < 0) {
            *code = made;
            return NULL;
        }
    }
    pthread_mutex_lock(&connection->mutex);
    found = beside_handle(queue, known, kind, code);
    pthread_mutex_unlock(&connection->mutex);
    return found;
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
