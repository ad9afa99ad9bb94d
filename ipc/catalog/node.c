/* Of which node of a cluster the vhost is.
 *
 * The names of its temporary queues end with that, "@CLUSTER.NODEID": so a reply that is sent at
 * another node finds the queue towards this one, "$sf.CLUSTER.NODEID", without knowing what queues
 * there are.  The broker says it when it has joined the cluster; it stays when the broker is gone.
 * A temporary queue that was made before has no such end, and is known at this node only. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "vhost/vhost.h"

#define OWN "$" /* how the names of the broker's own queues begin; in Python base/names.py */
#define TEMPORARY "tmp."
#define TOWARDS "$sf." /* how the names of queues towards other nodes begin */
#define AGENT "$mta" /* and those towards other brokers, "$mta.EXCHANGE.HOST" */
#define FETCHED "$link."  /* how those begin of which another broker fetches: docs/networks.md */
#define SELECTED "$bridge." /* and those that a bridge with a filter ships: docs/links.md */
#define ROUTES "$groups" /* and with a dot behind it: ipc/queue/grouped.c */
#define HELD "$held." /* what is acknowledged in open transactions: docs/scale-down.md */

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

bool is_own(const char *name)
{
    return begins(name, OWN);
}

bool leads_to_node(const char *name)
{
    return begins(name, TOWARDS);
}

bool is_on_its_way(const char *name)
{
    return begins(name, FETCHED) || begins(name, SELECTED) || begins(name, AGENT ".");
}

bool goes_to_successor(const char *name)
{
    return begins(name, HELD);
}

bool leads_to_agent(const char *name)
{
    return begins(name, AGENT);
}

bool has_subscribed(const char *name)
{
    return begins(name, AGENT ":");
}

bool has_routes(const char *name)
{
    size_t length = sizeof ROUTES - 1;
    return strncmp(name, ROUTES, length) == 0 && (name[length] == 0 || name[length] == '.');
}

static char *node_at(sb_connection *connection)
{
    return (char *)connection->catalog.memory + L_CATALOG_NODE_AT;
}

int64_t sb_node_set(sb_connection *connection, const char *node)
{
    if (strlen(node) + 2 > L_CATALOG_NODE_BYTES)
        return fail(SB_INVALID, "'%s' is too long for the name of a node", node);
    int64_t code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    memset(node_at(connection), 0, L_CATALOG_NODE_BYTES);
    if (*node)
        node_at(connection)[0] = NODE_BEGINS;
    strcpy(node_at(connection) + (*node != 0), node);
    connection_unlock(connection);
    return SB_OK;
}

int64_t sb_node_end(sb_connection *connection, char *end)
{
    int64_t code = usable_code(connection); /* first: see enter in transaction.c */
    if (code == SB_OK)
        code = connection_lock(connection);
    if (code != SB_OK)
        return code;
    memcpy(end, node_at(connection), L_CATALOG_NODE_BYTES);
    connection_unlock(connection);
    end[L_CATALOG_NODE_BYTES - 1] = 0;
    return SB_OK;
}

/* Where the end of this name begins; NULL: it has none. */
static const char *end_of(const char *name, int64_t length)
{
    if (length < (int64_t)strlen(TEMPORARY) || memcmp(name, TEMPORARY, strlen(TEMPORARY)) != 0)
        return NULL;
    return memchr(name, NODE_BEGINS, (size_t)length);
}

int64_t sb_node_is_of(sb_connection *connection, const char *name)
{
    const char *end = end_of(name, (int64_t)strlen(name));
    return strncmp(end ? end : "", node_at(connection), L_CATALOG_NODE_BYTES) == 0;
}

int64_t node_way(sb_connection *connection, const char *name, int64_t length)
{
    char way[L_NAME_BYTES_MAX + sizeof TOWARDS];
    const char *end = length <= L_NAME_BYTES_MAX ? end_of(name, length) : NULL;
    if (!end)
        return SB_NOT_FOUND;
    int64_t rest = name + length - (end + 1);
    memcpy(way, TOWARDS, strlen(TOWARDS));
    memcpy(way + strlen(TOWARDS), end + 1, (size_t)rest);
    return sb_reference_find(connection->catalog.memory, L_QUEUES, way,
                             (int64_t)strlen(TOWARDS) + rest);
}
