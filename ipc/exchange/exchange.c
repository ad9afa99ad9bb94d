/* Publishing through an exchange: which queues a key leads to is searched once, and kept until the
 * catalog changes. */

#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "exchange/exchange.h"
#include "message/message.h"
#include "queue/queue.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define ROUTES 4096 /* kept at once; when there are more, all are dropped */
#define TABLE (2 * ROUTES)
#define SEARCHES 64 /* at most, until nobody changes the catalog: who does may be dead */

/* What an exchange routes. */
typedef enum routing {
    OF_PROGRAMS,
    OF_NODES,     /* what comes from other nodes of a cluster */
    FROM_AGENTS,  /* what agents of other brokers have brought */
    TO_AGENTS,    /* what nobody here takes now */
} routing;

struct sb_exchange {
    sb_connection *connection;
    int64_t reference; /* 0: the default exchange */
    int64_t kind;
    routing routes;
    int64_t generation;
    bool has_let_go; /* of handles of queues that were deleted before it */
    int64_t kept;
    int64_t *found; /* room for the longest route */
    kept_route **_Atomic table; /* TABLE of them; NULL: it was not used yet, or was deleted */
    pthread_mutex_t mutex;
    sb_exchange *next;
    char name[L_NAME_BYTES_MAX + 1];
};

void route_leave(kept_route *route)
{
    if (atomic_fetch_sub(&route->users, 1) > 1)
        return;
    for (int64_t each = 0; each < route->count; each++)
        sb_close_queue(route->queues[each]);
    free(route->queues);
    free(route->targets);
    free(route);
}

static void forget(sb_exchange *exchange)
{
    kept_route **table = exchange->table;
    for (int each = 0; table && each < TABLE; each++) {
        if (table[each])
            route_leave(table[each]);
        table[each] = NULL;
    }
    exchange->kept = 0;
}

/* And the room for them. */
static void forget_all(sb_exchange *exchange)
{
    forget(exchange);
    free(exchange->table);
    free(exchange->found);
    exchange->table = NULL;
    exchange->found = NULL;
}

int64_t exchange_close(sb_exchange *exchange)
{
    for (sb_exchange **at = &exchange->connection->exchanges; *at; at = &(*at)->next)
        if (*at == exchange) {
            *at = exchange->next;
            break;
        }
    forget_all(exchange);
    pthread_mutex_destroy(&exchange->mutex);
    free(exchange);
    return SB_OK;
}

/* Others come only before it, and none goes: no lock is needed to look through them. */
static void forget_deleted(const sb_exchange *added)
{
    void *catalog = added->connection->catalog.memory;
    for (sb_exchange *each = added->next; each; each = each->next) {
        if (!each->table || !each->reference ||
            sb_row_of(catalog, L_EXCHANGES, each->reference) >= 0)
            continue;
        pthread_mutex_lock(&each->mutex);
        forget_all(each);
        pthread_mutex_unlock(&each->mutex);
    }
}

/* One handle for each: they live as long as the connection, and keep nothing of what is deleted. */
static sb_exchange *handle_of(sb_connection *connection, const char *name, int64_t reference,
                              int64_t kind, routing routes)
{
    pthread_mutex_lock(&connection->mutex);
    sb_exchange *exchange = connection->exchanges;
    while (exchange && (exchange->reference != reference || exchange->routes != routes))
        exchange = exchange->next;
    if (exchange || !(exchange = calloc(1, sizeof *exchange))) {
        pthread_mutex_unlock(&connection->mutex);
        return exchange;
    }
    exchange->connection = connection;
    exchange->reference = reference;
    exchange->kind = kind;
    exchange->routes = routes;
    exchange->generation = -1;
    strcpy(exchange->name, name);
    pthread_mutex_init(&exchange->mutex, NULL);
    exchange->next = connection->exchanges;
    connection->exchanges = exchange;
    pthread_mutex_unlock(&connection->mutex);
    forget_deleted(exchange);
    return exchange;
}

static int64_t exchange_open(sb_connection *connection, const char *name, routing routes,
                             sb_exchange **opened)
{
    void *catalog = connection->catalog.memory;
    int64_t reference = 0, kind = L_DIRECT, code = usable_code(connection);
    if (code == SB_OK && *name)
        code = name_check("exchange", name);
    if (code != SB_OK)
        return code;
    if (*name) {
        reference = sb_reference_find(catalog, L_EXCHANGES, name, (int64_t)strlen(name));
        if (reference < 0)
            return fail(SB_NOT_FOUND, "there is no exchange '%s' in vhost '%s': declare it first",
                        name, connection->vhost);
        int64_t row = reference & L_REFERENCE_INDEX_MASK;
        kind = word_load(catalog, sb_catalog_entry_at(L_EXCHANGES, row) + L_EXCHANGE_KIND_AT);
    }
    *opened = handle_of(connection, name, reference, kind, routes);
    return *opened ? SB_OK : fail_system("memory for an exchange");
}

int64_t sb_open_exchange(sb_connection *connection, const char *name, sb_exchange **opened)
{
    return exchange_open(connection, name, OF_PROGRAMS, opened);
}

int64_t exchange_open_here(sb_connection *connection, const char *name, sb_exchange **opened)
{
    return exchange_open(connection, name, OF_NODES, opened);
}

static sb_exchange *exchange_for(const sb_exchange *exchange, routing routes)
{
    return handle_of(exchange->connection, exchange->name, exchange->reference, exchange->kind,
                     routes);
}

sb_exchange *exchange_of_agent(sb_exchange *exchange)
{
    return exchange_for(exchange, FROM_AGENTS);
}

#define HASH_BEGINS UINT64_C(14695981039346656037)

static uint64_t hash_of(const char *bytes, int64_t length, uint64_t hash)
{
    for (int64_t each = 0; each < length; each++)
        hash = (hash ^ (unsigned char)bytes[each]) * UINT64_C(1099511628211);
    return hash;
}

/* Where the route of this message is kept, or would be. */
static kept_route **place_of(sb_exchange *exchange, const sb_outgoing *message, int64_t properties,
                             uint64_t hash)
{
    kept_route **table = exchange->table;
    for (uint64_t at = hash;; at++) {
        kept_route **place = &table[at % TABLE], *route = *place;
        if (!route)
            return place;
        if (route->hash == hash && route->key_length == message->key_length &&
            route->properties_length == properties &&
            memcmp(route->bytes, message->key, (size_t)message->key_length) == 0 &&
            memcmp(route->bytes + message->key_length, message->properties,
                   (size_t)properties) == 0)
            return place;
    }
}

/* A pattern may want a queue of this name to be made. */
static int64_t created(sb_connection *connection, const sb_outgoing *message)
{
    char name[L_NAME_BYTES_MAX + 1];
    if (message->key_length > L_NAME_BYTES_MAX)
        return SB_NOT_FOUND;
    memcpy(name, message->key, (size_t)message->key_length);
    name[message->key_length] = 0;
    if (memchr(message->key, 0, (size_t)message->key_length) || name_check("queue", name) != SB_OK)
        return SB_NOT_FOUND;
    return queue_create(connection, name);
}

static int64_t search_row(const sb_exchange *exchange, int64_t row, const sb_outgoing *message,
                          int64_t *found, int64_t capacity)
{
    void *catalog = exchange->connection->catalog.memory;
    uint64_t visited[SB_ROUTE_VISITED_BYTES / 8];
    if (exchange->routes == TO_AGENTS)
        return sb_route_forwarded(catalog, row, visited, found, capacity);
    return (exchange->routes == OF_NODES ? sb_route_here :
            exchange->routes == FROM_AGENTS ? sb_route_arrived : sb_route)(
        catalog, row, message->key, message->key_length, message->properties,
        message->properties_length, visited, found, capacity);
}

static int64_t search(sb_exchange *exchange, const sb_outgoing *message, int64_t *found,
                      int64_t capacity)
{
    sb_connection *connection = exchange->connection;
    void *catalog = connection->catalog.memory;
    if (exchange->reference == 0) {
        found[0] = sb_reference_find(catalog, L_QUEUES, message->key, message->key_length);
        if (found[0] < 0)
            found[0] = created(connection, message);
        if (found[0] < 0 && found[0] != SB_NOT_FOUND)
            return found[0];
        found[1] = 0;
        return found[0] >= 0;
    }
    int64_t count = sb_row_of(catalog, L_EXCHANGES, exchange->reference);
    if (count >= 0)
        count = search_row(exchange, count, message, found, capacity);
    if (count == SB_NOT_FOUND)
        return fail(count, "exchange '%s' was deleted", exchange->name);
    return count;
}

static bool is_changing(void *catalog)
{
    return word_load(catalog, L_CATALOG_CHANGING_AT) != 0;
}

/* As the catalog was at one moment: bindings that are changed together (sb_bind_own_all) are all
 * seen, or none, so a message that is to go another way goes one of them. */
static int64_t search_whole(sb_exchange *exchange, const sb_outgoing *message, int64_t *found,
                            int64_t capacity)
{
    void *catalog = exchange->connection->catalog.memory;
    for (int tries = 1; tries < SEARCHES && exchange->reference; tries++) {
        int64_t generation = sb_catalog_generation(catalog);
        if (is_changing(catalog)) {
            sched_yield();
            continue;
        }
        int64_t count = search(exchange, message, found, capacity);
        atomic_thread_fence(memory_order_acquire);
        if (!is_changing(catalog) && sb_catalog_generation(catalog) == generation)
            return count;
    }
    return search(exchange, message, found, capacity);
}

/* The queues of a route, with the connection's mutex: one that was deleted since takes nothing,
 * and one that cannot be opened has to be known, else it would miss a message without a word.
 * Only what leads to other nodes has targets. */
static int64_t fill(sb_exchange *exchange, kept_route *route, const int64_t *found, int64_t count)
{
    int64_t code = SB_OK;
    pthread_mutex_lock(&exchange->connection->mutex);
    for (int64_t each = 0; each < count && code == SB_OK; each++) {
        const int64_t *at = found + L_ROUTE_WORDS * each;
        sb_queue **queue = &route->queues[route->count];
        code = queue_handle(exchange->connection, at[0], queue);
        if (code == SB_OK) {
            route->targets[route->count++] = at[1];
            route->known_by = hash_of((const char *)at, sizeof *at, route->known_by);
            sb_share_queue(*queue);
        } else if (code == SB_NOT_FOUND) {
            route->lacks = true;
            code = SB_OK;
        }
    }
    pthread_mutex_unlock(&exchange->connection->mutex);
    return code;
}

static int64_t keep(sb_exchange *exchange, const sb_outgoing *message, int64_t properties,
                    uint64_t hash, kept_route **place)
{
    int64_t *found = exchange->found;
    if (!found)
        found = exchange->found = malloc(sizeof *found * L_ROUTE_WORDS * L_BINDING_ROWS);
    int64_t code = found ? search_whole(exchange, message, found, L_BINDING_ROWS)
                         : fail_system("memory for a route");
    size_t bytes = (size_t)(message->key_length + properties);
    kept_route *route = code < 0 ? NULL : calloc(1, sizeof *route + bytes);
    sb_queue **queues = code < 0 ? NULL : calloc((size_t)code + 1, sizeof *queues);
    int64_t *targets = code < 0 ? NULL : calloc((size_t)code + 1, sizeof *targets);
    if (code >= 0 && (!route || !queues || !targets))
        code = fail_system("memory for a route");
    if (code >= 0) {
        *route = (kept_route){.hash = hash, .key_length = message->key_length, .users = 1,
                              .known_by = HASH_BEGINS,
                              .properties_length = properties, .queues = queues,
                              .targets = targets};
        memcpy(route->bytes, message->key, (size_t)message->key_length);
        memcpy(route->bytes + message->key_length, message->properties, (size_t)properties);
        code = fill(exchange, route, found, code);
        if (code == SB_OK) /* rows that have moved meanwhile are not in it */
            code = usable_code(exchange->connection);
        if (code < 0) {
            route_leave(route);
            return code;
        }
        *place = route;
        exchange->kept++;
    } else {
        free(route);
        free(queues);
        free(targets);
    }
    return code < 0 ? code : SB_OK;
}

/* The route of a message; the exchange's mutex is held. */
static int64_t route_of(sb_exchange *exchange, const sb_outgoing *message, kept_route **route)
{
    int64_t generation = sb_catalog_generation(exchange->connection->catalog.memory);
    if (!exchange->table && !(exchange->table = calloc(TABLE, sizeof *exchange->table)))
        return fail_system("memory for the routes of an exchange");
    if (generation != exchange->generation || exchange->kept >= ROUTES) {
        forget(exchange);
        exchange->generation = generation;
        exchange->has_let_go = false;
    }
    if (!exchange->has_let_go) /* nobody's message waits for who has the catalog's lock */
        exchange->has_let_go = deleted_forget(exchange->connection, false);
    /* a topic or direct exchange may lead to one that looks at properties */
    int64_t properties = exchange->reference ? message->properties_length : 0;
    uint64_t hash = hash_of(message->key, message->key_length, HASH_BEGINS);
    hash = hash_of(message->properties, properties, hash ^ 0xFF);
    kept_route **place = place_of(exchange, message, properties, hash);
    int64_t code = *place ? SB_OK : keep(exchange, message, properties, hash, place);
    *route = *place;
    return code;
}

int64_t exchange_route(sb_exchange *exchange, const sb_outgoing *message, kept_route **route)
{
    pthread_mutex_lock(&exchange->mutex);
    int64_t code = route_of(exchange, message, route);
    /* another thread may drop the route while we wait for room in a queue */
    if (code == SB_OK)
        atomic_fetch_add(&(*route)->users, 1);
    pthread_mutex_unlock(&exchange->mutex);
    return code == SB_OK ? (*route)->count : code;
}

bool exchange_is_default(const sb_exchange *exchange)
{
    return exchange->reference == 0;
}

/* --- what is wished of a message -------------------------------------------------------------- */

bool route_takes(const kept_route *route, int64_t each, int64_t wishes)
{
    sb_queue *queue = route->queues[each];
    return !(wishes & IS_IMMEDIATE) || route->targets[each] != 0 ||
           participant_users(queue->connection, queue->reference, L_USE_CONSUMES) > 0;
}

int64_t exchange_route_wished(sb_exchange *exchange, const sb_outgoing *message, int64_t wishes,
                              kept_route **route)
{
    int64_t others = 0, count = exchange_route(exchange, message, route);
    if (count < 0 || !(wishes & IS_IMMEDIATE) || exchange_is_default(exchange))
        return count;
    for (int64_t each = 0; each < count; each++) {
        const char *name = (*route)->queues[each]->name;
        bool is_other = !leads_to_agent(name) || has_subscribed(name);
        if (is_other && route_takes(*route, each, wishes))
            return count;
        others += is_other;
    }
    if (others == 0) /* agents have it already */
        return count;
    sb_exchange *agents = exchange_for(exchange, TO_AGENTS);
    route_leave(*route);
    return agents ? exchange_route(agents, message, route) : fail_system("memory for an exchange");
}

int64_t route_copy(const kept_route *route, int64_t each, const sb_outgoing *message,
                   int64_t wishes, sb_outgoing *copy, unsigned char **kept)
{
    const int64_t *told = route->queues[each]->connection->returns;
    const text_pair publisher = {JOURNEY, (const char *)told, NODE_BYTES, true};
    *copy = *message;
    *kept = NULL;
    copy->target = route->targets[each];
    if (!wishes || copy->target >> 16 != OF_AGENT)
        return SB_OK;
    copy->target |= wishes;
    if (!(told[0] | told[1]))
        return SB_OK;
    *kept = malloc((size_t)message->properties_length + PAIR_ROOM(JOURNEY, NODE_BYTES));
    int64_t length = *kept ? properties_with(*kept, message->properties,
                                             message->properties_length, &publisher, 1)
                           : fail_system("memory for a message");
    if (length < 0)
        return length == SB_TOO_LARGE ? SB_OK : length; /* then nobody is told */
    copy->properties = *kept;
    copy->properties_length = length;
    copy->target |= HAS_PUBLISHER;
    return SB_OK;
}

int64_t sb_returns_to(sb_connection *connection, sb_queue *queue)
{
    sb_queue_identity(queue, connection->returns);
    return SB_OK;
}

/* To one of them: to another node it goes with the target that says where to. */
static int64_t publish_to(const sb_exchange *exchange, const kept_route *route, int64_t each,
                          const sb_outgoing *message, int64_t wishes, int64_t timeout_ns,
                          sb_receipt *where)
{
    unsigned char *kept;
    sb_outgoing copy;
    /* behind an exchange a queue with groups gets its copy at each node that has it */
    if (route->queues[each]->grouped && !exchange_is_default(exchange) && !route->targets[each])
        return publish_receipt(route->queues[each], message, timeout_ns, where);
    if (route->targets[each] == 0)
        return publish_in_turn(route->queues[each], message, timeout_ns, where);
    int64_t code = route_copy(route, each, message, wishes, &copy, &kept);
    if (code == SB_OK)
        code = publish_receipt(route->queues[each], &copy, timeout_ns, where);
    free(kept);
    return code;
}

static int64_t routed_check(const sb_exchange *exchange, const sb_outgoing *message, int64_t done)
{
    int64_t code = usable_code(exchange->connection);
    if (code == SB_OK)
        code = outgoing_check(message);
    if (code == SB_OK && message->producer)
        code = fail(SB_INVALID, "a named producer is one queue's: publish to it, or with an id");
    if (code == SB_OK && done < 0)
        code = fail(SB_INVALID, "%lld queues cannot have it: *done is 0 at first", (long long)done);
    return code;
}

/* `progress`: by which route *done counts, or NULL if nobody minds. */
static int64_t publish_routed(sb_exchange *exchange, const sb_outgoing *message, int64_t timeout_ns,
                              int64_t *done, sb_receipts *receipts, sb_progress *progress)
{
    int64_t code = routed_check(exchange, message, *done);
    if (code != SB_OK)
        return code;
    int64_t deadline =
        timeout_ns > 0 && timeout_ns < SB_FOREVER ? monotonic_deadline(timeout_ns) : 0;
    kept_route *route;
    bool was_deleted;
    int tries = 0;
    int64_t wishes = message->target & WISHES, none = 0;
    int64_t *passed = progress ? &progress->passed : &none;
    sb_outgoing plain;
    if (wishes) {
        plain = *message;
        plain.target = 0;
        message = &plain;
    }
    int64_t count;
again:
    count = exchange_route_wished(exchange, message, wishes, &route);
    if (count >= 0 && progress) {
        if (*done > 0 && progress->route != 0 && progress->route != route->known_by) {
            route_leave(route);
            return fail(SB_DIFFERENT, "the bindings of exchange '%s' have changed since: count "
                        "anew which queues have the message", exchange->name);
        }
        progress->route = route->known_by;
    }
    was_deleted = count >= 0 && route->lacks;
    code = count < 0 ? count : receipts ? receipts_room(receipts, count) : SB_OK;
    for (; code >= 0 && *done < count; *done += code >= 0) {
        if (!route_takes(route, *done, wishes)) {
            ++*passed;
            continue;
        }
        int64_t left = timeout_ns;
        if (deadline) {
            left = deadline - sb_system_clock();
            left = left > 0 ? left : 0;
        }
        sb_receipt where;
        code = publish_to(exchange, route, *done, message, wishes, left, &where);
        if (receipts)
            receipts_note(receipts, where, code);
        was_deleted = code == SB_NOT_FOUND;
        if (was_deleted || code == SB_DUPLICATE) /* since; or this queue has it */
            code = SB_OK;
    }
    if (count >= 0)
        route_leave(route);
    if (was_deleted && exchange->reference == 0) {
        *done = count = *passed = 0; /* nobody has it: perhaps there is one again, or can be */
        if (code >= 0 && tries++ < DELETED_TRIES)
            goto again;
    }
    return code < 0 ? code : count - *passed;
}

int64_t sb_exchange_publish(sb_exchange *exchange, const sb_outgoing *message, int64_t timeout_ns,
                            int64_t *done)
{
    return publish_routed(exchange, message, timeout_ns, done, NULL, NULL);
}

int64_t sb_exchange_publish_receipts(sb_exchange *exchange, const sb_outgoing *message,
                                     int64_t timeout_ns, int64_t *done, sb_receipts *receipts)
{
    return publish_routed(exchange, message, timeout_ns, done, receipts, NULL);
}

int64_t sb_exchange_go_on(sb_exchange *exchange, const sb_outgoing *message, int64_t timeout_ns,
                          sb_progress *progress, sb_receipts *receipts)
{
    return publish_routed(exchange, message, timeout_ns, &progress->done, receipts, progress);
}

int64_t sb_exchange_publish_with(sb_exchange *exchange, const void *body, int64_t length,
                                 const void *key, int64_t key_length, const void *properties,
                                 int64_t properties_length, int64_t ttl_ns, int64_t priority,
                                 const void *id, int64_t id_length, int64_t timeout_ns,
                                 sb_progress *progress)
{
    const sb_outgoing message = {body, length, key, key_length, properties, properties_length,
                                 ttl_ns, priority, id, id_length, 0, 0, 0, 0, 0, 0};
    return sb_exchange_go_on(exchange, &message, timeout_ns, progress, NULL);
}

int64_t sb_exchange_route(sb_exchange *exchange, const void *key, int64_t key_length,
                          const void *properties, int64_t properties_length, uint64_t *route)
{
    const sb_outgoing message = {.key = key, .key_length = key_length, .properties = properties,
                                 .properties_length = properties_length};
    kept_route *found;
    int64_t code = routed_check(exchange, &message, 0);
    if (code == SB_OK)
        code = exchange_route(exchange, &message, &found);
    if (code < 0)
        return code;
    *route = found->known_by;
    route_leave(found);
    return SB_OK;
}

int64_t sb_exchange_full(sb_exchange *exchange, const void *key, int64_t key_length,
                         const void *properties, int64_t properties_length, int64_t done,
                         sb_queue **queue)
{
    const sb_outgoing message = {.key = key, .key_length = key_length, .properties = properties,
                                 .properties_length = properties_length};
    kept_route *route;
    int64_t code = routed_check(exchange, &message, done);
    *queue = NULL;
    if (code == SB_OK)
        code = exchange_route(exchange, &message, &route);
    if (code < 0)
        return code;
    if (done < route->count)
        sb_share_queue(*queue = route->queues[done]); /* the program closes it */
    route_leave(route);
    return SB_OK;
}

const char *sb_exchange_name(sb_exchange *exchange)
{
    return exchange->name;
}

int64_t sb_exchange_kind(sb_exchange *exchange)
{
    return exchange->kind;
}
