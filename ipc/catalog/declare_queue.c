/* Declaring and opening queues. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define DEAD_LETTER_STEPS 64 /* of a chain of dead-letter queues that is looked at for a loop */

/* --- queues ----------------------------------------------------------------------------------- */

int64_t queue_handle(sb_connection *connection, int64_t reference, sb_queue **queue)
{
    int64_t row = sb_row_of(connection->catalog.memory, L_QUEUES, reference);
    if (row < 0)
        return fail(SB_NOT_FOUND, "the queue was deleted");
    sb_queue **known = &connection->queues[row];
    if (*known && (*known)->reference != reference) {
        deleted_add(*known);
        *known = NULL;
    }
    if (!*known) {
        int64_t code = queue_map(connection, reference, known);
        if (code != SB_OK)
            return code;
    }
    *queue = *known;
    return SB_OK;
}

int64_t queue_find(sb_connection *connection, int64_t reference, sb_queue **queue)
{
    pthread_mutex_lock(&connection->mutex);
    int64_t code = queue_handle(connection, reference, queue);
    if (code == SB_OK)
        atomic_fetch_add(&(*queue)->looks, 1);
    pthread_mutex_unlock(&connection->mutex);
    return code;
}

bool leads_back(sb_connection *connection, const char *name, const char *first, int64_t setting_at)
{
    char next[L_NAME_BYTES_MAX + 1];
    strcpy(next, first);
    for (int step = 0; step < DEAD_LETTER_STEPS; step++) {
        sb_queue *queue;
        if (strcmp(next, name) == 0)
            return true;
        int64_t reference = reference_of(connection, next);
        if (reference < 0 || queue_handle(connection, reference, &queue) != SB_OK ||
            setting_name(queue, setting_at, next) == 0)
            return false;
    }
    return false;
}

static int64_t check_loop(sb_connection *connection, const char *name, const void *page, int64_t at,
                          const char *what)
{
    char first[L_NAME_BYTES_MAX + 1];
    if (name_in(page, at, first) && leads_back(connection, name, first, at))
        return fail(SB_INVALID, "%s '%s' of queue '%s' leads back to it: name another", what, first,
                    name);
    return SB_OK;
}

/* Where the dead go is made with the queue that they come from.  They die no more there. */
static int64_t make_dlq(sb_connection *connection, const void *page, int64_t at, int64_t slots)
{
    static const char given[] = "\x81\xAEmax_deliveries\xC0";
    char name[L_NAME_BYTES_MAX + 1], of_dlq[L_RING_GATES_AT] = "";
    const sb_settings settings = {.max_deliveries = SB_UNLIMITED, .given = given,
                                  .given_length = sizeof given - 1,
                                  .durable = word_load(page, L_SETTING_DURABLE_AT)};
    if (name_in(page, at, name) == 0 || reference_of(connection, name) >= 0)
        return SB_OK;
    settings_write(&settings, of_dlq);
    settings_default(of_dlq, SB_SET_MAX_DELIVERIES);
    word_store(of_dlq, L_SETTING_REPLICATE_AT, word_load(page, L_SETTING_REPLICATE_AT));
    word_store(of_dlq, L_SETTINGS_SET_AT, 0); /* whoever declares it later need not know */
    int64_t reference = queue_add(connection, name, slots, of_dlq, 0);
    return reference < 0 ? reference : SB_OK;
}

/* A queue that is there is the same if it was declared so; what is left out, and what patterns say
 * by now, is not asked. */
static int64_t declare_again(sb_connection *connection, int64_t row, const char *name,
                             int64_t slots, void *asked)
{
    void *catalog = connection->catalog.memory;
    int64_t has = word_load(catalog, sb_catalog_entry_at(L_QUEUES, row) + L_QUEUE_SLOTS_AT);
    int64_t reference = sb_row_reference(catalog, L_QUEUES, row);
    char differs[256];
    sb_queue *queue;
    if (slots != 0 && has != slots)
        return fail(SB_DIFFERENT, "queue '%s' exists with %lld slots, not %lld: declare it so or "
                    "without, or delete it first", name, (long long)has, (long long)slots);
    int64_t code = queue_handle(connection, reference, &queue);
    settings_default(asked, word_load(asked, L_SETTINGS_SET_AT)); /* as when it was made */
    if (code == SB_OK && settings_differ(asked, queue->ring.memory, differs, sizeof differs))
        return fail(SB_DIFFERENT, "queue '%s' exists with other settings: %s; declare it so or "
                    "without, or delete it first", name, differs);
    return code < 0 ? code : reference;
}

int64_t queue_declare(sb_connection *connection, const char *name, int64_t slots,
                      const sb_settings *settings, int64_t flags)
{
    char page[L_RING_GATES_AT] = "";
    int64_t row = sb_row_find(connection->catalog.memory, L_QUEUES, name, (int64_t)strlen(name));
    int64_t code = settings_write(settings, page);
    if (code == SB_OK)
        code = check_loop(connection, name, page, L_SETTING_DEAD_LETTER_AT, "dead_letter");
    if (code == SB_OK)
        code = check_loop(connection, name, page, L_SETTING_EXPIRY_QUEUE_AT, "expiry_queue");
    if (code == SB_OK && row >= 0)
        return declare_again(connection, row, name, slots, page);
    if (code == SB_OK)
        code = patterns_apply(connection, name, page, flags);
    if (slots == 0)
        slots = L_QUEUE_SLOTS;
    if (code == SB_OK && word_load(page, L_SETTING_LAST_VALUE_AT) && slots > L_CARRIED_SLOTS_MAX)
        code = fail(SB_INVALID, "a queue with last_value has at most %lld slots, not %lld",
                    (long long)L_CARRIED_SLOTS_MAX, (long long)slots);
    if (code == SB_OK && word_load(page, L_SETTING_WHEN_FULL_AT) == L_PAGE &&
        !word_load(connection->participants.memory, L_PARTICIPANTS_PAGES_AT))
        code = fail(SB_INVALID,
                    "queue '%s' is to page, and nobody writes pages in vhost '%s': run a "
                    "broker with a store (shmbroker create, shmbroker run)",
                    name, connection->vhost);
    if (code == SB_OK)
        code = make_dlq(connection, page, L_SETTING_DEAD_LETTER_AT, slots);
    if (code == SB_OK)
        code = make_dlq(connection, page, L_SETTING_EXPIRY_QUEUE_AT, slots);
    return code == SB_OK ? queue_add(connection, name, slots, page, flags) : code;
}

int64_t sb_declare_queue(sb_connection *connection, const char *name, int64_t slots)
{
    return sb_declare_queue_with(connection, name, slots, NULL);
}

int64_t queue_check(sb_connection *connection, const char *name, int64_t slots)
{
    int64_t code = change_code(connection);
    if (code == SB_OK)
        code = name_check("queue", name);
    if (code == SB_OK && slots != 0 && sb_ring_bytes(slots) < 0)
        return fail(SB_INVALID, "a queue has a power of two of slots, from %lld to %lld, not %lld",
                    (long long)L_SLOTS_MIN, (long long)L_SLOTS_MAX, (long long)slots);
    return code;
}

int64_t sb_declare_queue_with(sb_connection *connection, const char *name, int64_t slots,
                              const sb_settings *settings)
{
    int64_t code = queue_check(connection, name, slots);
    if (code == SB_OK)
        code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    int64_t reference = queue_declare(connection, name, slots, settings, 0);
    connection_unlock(connection);
    return reference < 0 ? reference : SB_OK;
}

static int64_t not_there(sb_connection *connection, const char *name)
{
    return fail(SB_NOT_FOUND, "there is no queue '%s' in vhost '%s': declare it first", name,
                connection->vhost);
}

int64_t queue_create(sb_connection *connection, const char *name)
{
    int64_t reference = SB_NOT_FOUND, code = SB_OK;
    if (connection->id && sb_row_next(connection->catalog.memory, L_SETTINGS, 0) >= 0) {
        code = connection_lock(connection);
        if (code != SB_OK)
            return code;
        reference = reference_of(connection, name); /* somebody else may have been faster */
        if (reference < 0 && patterns_create(connection, name))
            reference = code = queue_declare(connection, name, L_QUEUE_SLOTS, NULL, 0);
        connection_unlock(connection);
    }
    return reference >= 0 || code < 0 ? reference : not_there(connection, name);
}

/* `missing`: called if there is none; its reference, or an error. */
static int64_t queue_open(sb_connection *connection, const char *name, sb_queue **queue,
                          int64_t (*missing)(sb_connection *, const char *))
{
    void *catalog = connection->catalog.memory;
    int64_t code = usable_code(connection);
    if (code == SB_OK)
        code = name_check("queue", name);
    if (code != SB_OK)
        return code;
    deleted_some(connection);
    int64_t reference = sb_reference_find(catalog, L_QUEUES, name, (int64_t)strlen(name));
    if (reference < 0)
        reference = missing(connection, name);
    if (reference < 0)
        return reference;
    pthread_mutex_lock(&connection->mutex);
    code = queue_handle(connection, reference, queue);
    if (code == SB_OK)
        atomic_fetch_add(&(*queue)->opened, 1);
    pthread_mutex_unlock(&connection->mutex);
    return code;
}

int64_t sb_open_queue(sb_connection *connection, const char *name, sb_queue **queue)
{
    return queue_open(connection, name, queue, queue_create);
}

int64_t sb_find_queue(sb_connection *connection, const char *name, sb_queue **queue)
{
    return queue_open(connection, name, queue, not_there);
}
