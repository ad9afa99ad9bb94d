/* The entry of an exchange in the catalog: declaring and deleting it. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "vhost/vhost.h"

/* --- exchanges and bindings ------------------------------------------------------------------- */

int64_t exchange_reference(sb_connection *connection, const char *name)
{
    void *catalog = connection->catalog.memory;
    int64_t row = sb_row_find(catalog, L_EXCHANGES, name, (int64_t)strlen(name));
    int64_t reference = row < 0 ? row : sb_row_reference(catalog, L_EXCHANGES, row);
    if (reference < 0)
        return fail(SB_NOT_FOUND, "there is no exchange '%s' in vhost '%s': declare it first",
                    name, connection->vhost);
    return reference;
}

/* By way of alternates: then neither could be made before the other (broker/declared.py). */
static bool is_alternate_of(void *catalog, int64_t row, int64_t from)
{
    for (int64_t steps = 0; from && steps < L_EXCHANGE_ROWS; steps++) {
        int64_t at = sb_row_of(catalog, L_EXCHANGES, from);
        if (at < 0 || at == row)
            return at == row;
        from = word_load(catalog, sb_catalog_entry_at(L_EXCHANGES, at) + L_EXCHANGE_ALTERNATE_AT);
    }
    return false;
}

/* One whose alternate was deleted has none, and may get one again. */
static int64_t declare_exchange_again(sb_connection *connection, int64_t row, const char *name,
                                      int64_t kind, int64_t other, int64_t replicate)
{
    void *catalog = connection->catalog.memory;
    int64_t entry = sb_catalog_entry_at(L_EXCHANGES, row);
    int64_t has = word_load(catalog, entry + L_EXCHANGE_ALTERNATE_AT);
    bool has_lost_it = has != 0 && sb_row_of(catalog, L_EXCHANGES, has) < 0;
    bool is_same = word_load(catalog, entry + L_EXCHANGE_KIND_AT) == kind &&
                   (has == other || has_lost_it);
    if (!is_same || (replicate != L_REPLICATE_UNSAID &&
                     word_load(catalog, entry + L_EXCHANGE_REPLICATE_AT) != replicate))
        return fail(SB_DIFFERENT, "exchange '%s' exists with another %s: declare it so, or delete "
                    "it first", name, is_same ? "replicate" : "kind or alternate");
    if (has_lost_it && is_alternate_of(catalog, row, other))
        return fail(SB_INVALID, "exchange '%s' would be its own alternate, by way of others: "
                    "declare it with another one, or without", name);
    if (has_lost_it && other) {
        word_store(catalog, entry + L_EXCHANGE_ALTERNATE_AT, other);
        sb_catalog_changed(catalog);
    }
    return SB_OK;
}

static int64_t declare_exchange_locked(sb_connection *connection, const char *name, int64_t kind,
                                       const char *alternate, int64_t replicate)
{
    void *catalog = connection->catalog.memory;
    int64_t other = alternate ? exchange_reference(connection, alternate) : 0;
    if (other < 0)
        return other;
    int64_t row = sb_row_find(catalog, L_EXCHANGES, name, (int64_t)strlen(name));
    if (row >= 0)
        return declare_exchange_again(connection, row, name, kind, other, replicate);
    if (replicate == L_REPLICATE_UNSAID)
        replicate = replicate_default(connection);
    row = sb_row_free(catalog, L_EXCHANGES);
    if (row < 0)
        return fail(row, "vhost '%s' has %d exchanges, and can have no more: delete some",
                    connection->vhost, (int)L_EXCHANGE_ROWS);
    int64_t entry = sb_catalog_entry_at(L_EXCHANGES, row);
    int64_t code = sb_system_allocate(connection->catalog.file, entry, L_ENTRY_BYTES);
    if (code != SB_OK)
        return fail_system("memory for the catalog of vhost '%s'", connection->vhost);
    code = sb_exchange_put(catalog, row, name, (int64_t)strlen(name), kind, replicate,
                           other);
    return code < 0 ? code : SB_OK;
}

int64_t sb_declare_exchange(sb_connection *connection, const char *name, int64_t kind,
                            const char *alternate)
{
    return sb_declare_exchange_with(connection, name, kind, alternate, L_REPLICATE_UNSAID);
}

int64_t sb_declare_exchange_with(sb_connection *connection, const char *name, int64_t kind,
                                 const char *alternate, int64_t replicate)
{
    int64_t code = change_code(connection);
    if (code == SB_OK && (replicate < 0 || replicate > L_REPLICATE_UNSAID))
        code = fail(SB_INVALID, "replicate is SB_REPLICATE_ALL, ..., not %lld",
                    (long long)replicate);
    if (code == SB_OK)
        code = name_check("exchange", name);
    if (code == SB_OK && (kind < L_DIRECT || kind > L_HEADERS))
        code = fail(SB_INVALID, "an exchange is direct, topic, fanout or headers");
    if (code == SB_OK)
        code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    code = declare_exchange_locked(connection, name, kind, alternate, replicate);
    connection_unlock(connection);
    return code;
}

static bool is_alternate(sb_connection *connection, int64_t reference)
{
    void *catalog = connection->catalog.memory;
    int64_t row = 0;
    while ((row = sb_row_next(catalog, L_EXCHANGES, row)) >= 0) {
        int64_t entry = sb_catalog_entry_at(L_EXCHANGES, row++);
        if (word_load(catalog, entry + L_EXCHANGE_ALTERNATE_AT) == reference)
            return true;
    }
    return false;
}

static int64_t delete_exchange_locked(sb_connection *connection, const char *name, int64_t force)
{
    void *catalog = connection->catalog.memory;
    int64_t reference = exchange_reference(connection, name);
    if (reference < 0)
        return reference;
    int64_t bindings = sb_bindings_from(catalog, reference) +
                       sb_bindings_to(catalog, L_EXCHANGES, reference);
    if (!force && bindings > 0)
        return fail(SB_IN_USE, "exchange '%s' has %lld binding%s: unbind first, or force", name,
                    (long long)bindings, bindings == 1 ? "" : "s");
    if (!force && is_alternate(connection, reference))
        return fail(SB_IN_USE, "exchange '%s' is another's alternate: delete that one first, or "
                    "force", name);
    sb_row_remove(catalog, L_EXCHANGES, reference & L_REFERENCE_INDEX_MASK);
    sb_bindings_remove(catalog, L_EXCHANGES, reference);
    return SB_OK;
}

int64_t sb_delete_exchange(sb_connection *connection, const char *name, int64_t force)
{
    int64_t code = change_code(connection);
    if (code == SB_OK)
        code = name_check("exchange", name);
    if (code == SB_OK)
        code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    code = delete_exchange_locked(connection, name, force);
    connection_unlock(connection);
    return code;
}
