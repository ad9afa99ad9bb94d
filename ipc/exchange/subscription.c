/* Subscriptions by name: a queue that is bound to an exchange, for whoever names it again.
 *
 * The queue is called sub.NAME.  A durable one stays while nobody consumes it; another one is
 * temporary.  One that is shared has any number of consumers; another one belongs to its consumer
 * (ownership.c), and is refused to others as long as that one lives. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define PREFIX "sub."

#define OF_DEFINITION (L_QUEUE_SUBSCRIPTION | L_QUEUE_TEMPORARY | L_QUEUE_SHARED)

static int64_t queue_name(const char *name, char *full)
{
    int64_t code = name_check("subscription", name);
    if (code != SB_OK)
        return code;
    if (strlen(name) > L_NAME_BYTES_MAX - strlen(PREFIX))
        return fail(SB_BAD_NAME, "the name of a subscription is 1 to %d bytes, this one has %zu",
                    (int)(L_NAME_BYTES_MAX - strlen(PREFIX)), strlen(name));
    strcpy(full, PREFIX);
    strcat(full, name);
    return SB_OK;
}

static int64_t flags_of(const sb_subscription *asked)
{
    return L_QUEUE_SUBSCRIPTION | (asked->durable ? 0 : L_QUEUE_TEMPORARY) |
           (asked->shared ? L_QUEUE_SHARED : 0);
}

static int64_t entry_word(sb_connection *connection, int64_t row, int64_t at)
{
    return word_load(connection->catalog.memory, sb_catalog_entry_at(L_QUEUES, row) + at);
}

/* The row of a subscription of this name, SB_NOT_FOUND if there is none. */
static int64_t row_of(sb_connection *connection, const char *name, const char *full)
{
    void *catalog = connection->catalog.memory;
    int64_t row = sb_row_find(catalog, L_QUEUES, full, (int64_t)strlen(full));
    if (row < 0)
        return fail(SB_NOT_FOUND, "there is no subscription '%s' in vhost '%s'", name,
                    connection->vhost);
    if (!(entry_word(connection, row, L_QUEUE_FLAGS_AT) & L_QUEUE_SUBSCRIPTION))
        return fail(SB_DIFFERENT, "queue '%s' exists and is no subscription: choose another name",
                    full);
    return row;
}

/* Its owner was killed, and nobody has repaired that yet. */
static void dead_letter_owner(sb_connection *connection, int64_t row)
{
    int64_t owner = row < 0 ? 0 : entry_word(connection, row, L_QUEUE_OWNER_AT);
    if (owner && !participant_runs(connection, owner))
        ownership_give_up(connection, row, owner);
}

static int64_t same_definition(const sb_subscription *asked, int64_t flags)
{
    if ((flags & OF_DEFINITION) == flags_of(asked)) /* the others come from settings */
        return SB_OK;
    return fail(SB_DIFFERENT, "subscription '%s' exists and is %sdurable and %sshared: use it so, "
                "or unsubscribe first", asked->name, flags & L_QUEUE_TEMPORARY ? "not " : "",
                flags & L_QUEUE_SHARED ? "" : "not ");
}

/* The binding that makes it a subscription: one that is missing was never made, or went with its
 * exchange. */
static int64_t bind_once(sb_connection *connection, const sb_subscription *asked, const char *full,
                         int64_t reference)
{
    void *catalog = connection->catalog.memory;
    const sb_binding binding = {.exchange = asked->exchange, .destination = full,
                                .key = asked->key, .key_length = asked->key_length};
    int64_t source = exchange_reference(connection, asked->exchange);
    if (source < 0)
        return source;
    if (sb_binding_find(catalog, source, L_QUEUES, reference, 0, asked->key, asked->key_length,
                        NULL, 0, 0) < 0 &&
        sb_bindings_to(catalog, L_QUEUES, reference) > 0)
        return fail(SB_DIFFERENT, "subscription '%s' exists with another exchange or key: use it "
                    "so, or unsubscribe first", asked->name);
    return binding_add(connection, &binding, 0);
}

static int64_t consume_as_ours(sb_connection *connection, const sb_subscription *asked, int64_t row)
{
    int64_t entry = sb_catalog_entry_at(L_QUEUES, row);
    int64_t owner = entry_word(connection, row, L_QUEUE_OWNER_AT);
    if (!asked->shared && owner && owner != connection->id)
        return fail(SB_TAKEN, "subscription '%s' has a consumer, participant %lld: share it, or "
                    "wait until that one leaves", asked->name, (long long)owner);
    if (!asked->shared)
        ownership_give(connection, entry, connection->id);
    return SB_OK;
}

static int64_t subscribe_locked(sb_connection *connection, const sb_subscription *asked,
                                const char *full)
{
    int64_t code = exchange_reference(connection, asked->exchange);
    if (code < 0)
        return code;
    dead_letter_owner(connection, row_of(connection, asked->name, full));
    int64_t row = row_of(connection, asked->name, full);
    bool is_new = row == SB_NOT_FOUND;
    if (row < 0 && !is_new)
        return row;
    if (!is_new)
        code = same_definition(asked, entry_word(connection, row, L_QUEUE_FLAGS_AT));
    if (code < 0)
        return code;
    int64_t reference = queue_declare(connection, full, asked->slots, asked->settings,
                                      flags_of(asked));
    if (reference < 0)
        return reference;
    code = bind_once(connection, asked, full, reference);
    if (code == SB_OK)
        code = consume_as_ours(connection, asked, reference & L_REFERENCE_INDEX_MASK);
    if (code == SB_OK)
        participant_uses(connection, reference, L_USE_CONSUMES);
    else if (is_new)
        queue_remove(connection, reference);
    return code;
}

int64_t sb_subscription_open(sb_connection *connection, const sb_subscription *asked,
                             sb_queue **queue)
{
    char full[L_NAME_BYTES_MAX + 1];
    int64_t code = queue_name(asked->name, full);
    if (code == SB_OK)
        code = queue_check(connection, full, asked->slots);
    if (code == SB_OK)
        code = name_check("exchange", asked->exchange);
    if (code == SB_OK)
        code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    code = subscribe_locked(connection, asked, full);
    connection_unlock(connection);
    return code == SB_OK ? sb_open_queue(connection, full, queue) : code;
}

/* Whoever looks for an heir, or counts consumers, finds us no more. */
static void consume_no_more(sb_connection *connection, int64_t row)
{
    const int64_t use = L_USE_CONSUMES | L_USE_TAKES_ANY;
    sb_queue *queue = connection->queues[row];
    int64_t reference = sb_row_reference(connection->catalog.memory, L_QUEUES, row);
    participant_uses_no_more(connection, reference, use);
    if (queue && queue->reference == reference)
        atomic_fetch_and(&queue->uses, ~use);
}

int64_t sb_subscription_close(sb_connection *connection, const char *name)
{
    char full[L_NAME_BYTES_MAX + 1];
    sb_queue *queue = NULL;
    int64_t code = change_code(connection);
    if (code == SB_OK)
        code = queue_name(name, full);
    if (code == SB_OK)
        code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    int64_t row = row_of(connection, name, full);
    bool deleted = false;
    if (row >= 0)
        consume_no_more(connection, row);
    if (row >= 0 && entry_word(connection, row, L_QUEUE_OWNER_AT) == connection->id) {
        queue = connection->queues[row];
        deleted =
            ownership_give_up(connection, row, connection->id) && queue && queue_is_gone(queue);
    }
    if (deleted)
        atomic_fetch_add(&queue->looks, 1);
    connection_unlock(connection);
    if (deleted)
        deleted_shut(queue);
    return row == SB_NOT_FOUND || row >= 0 ? SB_OK : row;
}

int64_t sb_subscription_delete(sb_connection *connection, const char *name, int64_t force)
{
    char full[L_NAME_BYTES_MAX + 1];
    int64_t code = change_code(connection);
    if (code == SB_OK)
        code = queue_name(name, full);
    if (code == SB_OK)
        code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    int64_t row = row_of(connection, name, full);
    dead_letter_owner(connection, row);
    bool is_gone = row >= 0 && row_of(connection, name, full) == SB_NOT_FOUND; /* with its owner */
    connection_unlock(connection);
    if (row < 0 || is_gone)
        return row < 0 ? row : SB_OK;
    return sb_delete_queue(connection, full, force);
}
