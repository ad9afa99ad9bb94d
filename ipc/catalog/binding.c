/* Bindings in the catalog: those of users, and the broker's own, which say with a target where
 * another node takes what goes to it (core/route.py).  Those of message transfer agents are of
 * these, and may take whatever is published. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "vhost/vhost.h"

/* What a binding says, with its names looked up. */
typedef struct binding {
    int64_t source, kind, destination;
} binding;

static int64_t binding_find_ends(sb_connection *connection, const sb_binding *asked, binding *found)
{
    void *catalog = connection->catalog.memory;
    int64_t code = name_check("exchange", asked->exchange);
    if (code == SB_OK)
        code = name_check(asked->to_exchange ? "exchange" : "queue", asked->destination);
    if (code != SB_OK)
        return code;
    found->source = exchange_reference(connection, asked->exchange);
    found->kind = asked->to_exchange ? L_EXCHANGES : L_QUEUES;
    if (found->source < 0)
        return found->source;
    int64_t row = sb_row_find(catalog, found->kind, asked->destination,
                              (int64_t)strlen(asked->destination));
    found->destination = row < 0 ? row : sb_row_reference(catalog, found->kind, row);
    if (found->destination < 0)
        return fail(SB_NOT_FOUND, "there is no %s '%s' in vhost '%s': declare it first",
                    asked->to_exchange ? "exchange" : "queue", asked->destination,
                    connection->vhost);
    return SB_OK;
}

static bool binding_is_exclusive(sb_connection *connection, int64_t row)
{
    return word_load(connection->catalog.memory,
                     sb_catalog_entry_at(L_BINDINGS, row) + L_BINDING_EXCLUSIVE_AT) != 0;
}

/* Before the row is live: an exchange without exclusive bindings, and without those of agents, is
 * searched once. */
static void kind_note(sb_connection *connection, int64_t entry, const sb_binding *asked,
                           int64_t source)
{
    void *catalog = connection->catalog.memory;
    int64_t exchange = sb_catalog_entry_at(L_EXCHANGES, source & L_REFERENCE_INDEX_MASK);
    word_store(catalog, entry + L_BINDING_EXCLUSIVE_AT, asked->exclusive != 0);
    int64_t flags = (asked->exclusive ? L_EXCHANGE_DIVERTS : 0) |
                    (asked->match_any > L_MATCH_ANY ? L_EXCHANGE_FORWARDS : 0);
    if (flags)
        word_store(catalog, exchange + L_EXCHANGE_FLAGS_AT,
                   word_load(catalog, exchange + L_EXCHANGE_FLAGS_AT) | flags);
}

int64_t binding_add(sb_connection *connection, const sb_binding *asked, int64_t target)
{
    void *catalog = connection->catalog.memory;
    binding ends;
    int64_t code = binding_find_ends(connection, asked, &ends);
    if (code != SB_OK)
        return code;
    if (asked->match_any > L_MATCH_ANY && !target)
        return fail(SB_INVALID, "a binding matches all of its arguments (0) or any (1), not %lld",
                    (long long)asked->match_any);
    if (asked->key_length + asked->arguments_length > L_BINDING_PAYLOAD_BYTES)
        return fail(SB_INVALID, "the key and arguments of a binding have at most %d bytes "
                    "together, not %lld", (int)L_BINDING_PAYLOAD_BYTES,
                    (long long)(asked->key_length + asked->arguments_length));
    code = sb_binding_find(catalog, ends.source, ends.kind, ends.destination, asked->match_any,
                           asked->key, asked->key_length, asked->arguments,
                           asked->arguments_length, target);
    if (code >= 0 && binding_is_exclusive(connection, code) != (asked->exclusive != 0))
        return fail(SB_DIFFERENT, "exchange '%s' is bound to '%s' and %s: unbind first",
                    asked->exchange, asked->destination,
                    asked->exclusive ? "that is not exclusive" : "that is exclusive");
    if (code >= 0)
        return SB_OK; /* bound already */
    int64_t row = sb_row_free(catalog, L_BINDINGS);
    if (row < 0)
        return fail(row, "vhost '%s' has %d bindings, and can have no more: unbind some",
                    connection->vhost, (int)L_BINDING_ROWS);
    int64_t entry = sb_catalog_entry_at(L_BINDINGS, row);
    code = sb_system_allocate(connection->catalog.file, entry, L_ENTRY_BYTES);
    if (code != SB_OK)
        return fail_system("memory for the catalog of vhost '%s'", connection->vhost);
    kind_note(connection, entry, asked, ends.source);
    code = sb_binding_put(catalog, row, ends.source, ends.kind, ends.destination, asked->match_any,
                          asked->key, asked->key_length, asked->arguments,
                          asked->arguments_length, target);
    return code < 0 ? code : SB_OK;
}

static int64_t binding_remove(sb_connection *connection, const sb_binding *asked, int64_t target)
{
    void *catalog = connection->catalog.memory;
    binding ends;
    int64_t code = binding_find_ends(connection, asked, &ends);
    if (code != SB_OK)
        return code;
    int64_t row = sb_binding_find(catalog, ends.source, ends.kind, ends.destination,
                                  asked->match_any, asked->key, asked->key_length,
                                  asked->arguments, asked->arguments_length, target);
    if (row < 0)
        return fail(SB_NOT_FOUND, "'%s' is not bound to exchange '%s' with this key and arguments",
                    asked->destination, asked->exchange);
    sb_row_remove(catalog, L_BINDINGS, row);
    return SB_OK;
}

int64_t sb_bind(sb_connection *connection, const sb_binding *binding)
{
    return sb_bind_own(connection, binding, 0, 0);
}

int64_t sb_unbind(sb_connection *connection, const sb_binding *binding)
{
    return sb_bind_own(connection, binding, 0, 1);
}

int64_t sb_bind_own(sb_connection *connection, const sb_binding *binding, int64_t target,
                    int64_t removes)
{
    sb_own_change change = {*binding, target, removes, SB_OK};
    int64_t code = sb_bind_own_all(connection, &change, 1);
    return code == SB_OK ? change.code : code;
}

int64_t sb_bind_own_all(sb_connection *connection, sb_own_change *changes, int64_t count)
{
    int64_t code = change_begin(connection, NULL, NULL);
    if (code != SB_OK)
        return code;
    for (sb_own_change *each = changes; each < changes + count; each++)
        each->code = each->removes ? binding_remove(connection, &each->binding, each->target)
                                   : binding_add(connection, &each->binding, each->target);
    connection_unlock(connection);
    return SB_OK;
}
