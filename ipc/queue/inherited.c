/* What producers have published at a node that has left, and gave its queues to this one: message
 * ids, and the numbers of named producers.
 *
 * That node has hashed them with keys of its own queues, so they cannot be put among those of a
 * queue here.  The broker keeps them in a queue, INHERITED, the last value of each key:
 *
 *     QUEUE 1               the queue's identity here | for each node: its identity there, bits
 *     QUEUE 1 THERE 1 n     hashes of ids, by their lower bits
 *     QUEUE 1 THERE 1 p     hashes of names of producers, and their last numbers
 *
 * THERE is the identity of the queue at the node that has left: the key of its hashes.  What is
 * published here with an id that is found there has a hash that no id has, ID_ELSEWHERE, and is a
 * duplicate wherever it is looked at (core/once.py). */

#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "queue/queue.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define INHERITED "$ids"
#define KEY_ROOM (L_NAME_BYTES_MAX + 64)
#define CHUNK_ROOM 1024 /* what a message has beside its body */

typedef struct pair {
    int64_t one, other;
} pair;

typedef struct node_left {
    pair identity; /* of the queue there */
    int64_t bits;
} node_left;

typedef struct nodes_left {
    pair here;
    node_left each[L_INHERITED_NODES];
} nodes_left;

static sb_queue *inherited_of(sb_connection *connection)
{
    sb_queue *found = NULL;
    int64_t reference = sb_reference_find(connection->catalog.memory, L_QUEUES, INHERITED,
                                          (int64_t)strlen(INHERITED));
    if (reference < 0 || queue_find(connection, reference, &found) != SB_OK)
        return NULL;
    return found;
}

/* A value, of so many bytes at most: how many it has, 0 if there is none. */
static int64_t value_of(sb_queue *inherited, const char *key, void *value, int64_t most)
{
    sb_message message;
    int64_t buffer[(L_INHERITED_BYTES + CHUNK_ROOM) / 8];
    int64_t code = sb_value(inherited, key, (int64_t)strlen(key), &message, buffer, sizeof buffer);
    if (code < 0 || message.length < 0 || message.length > most || message.length > code)
        return 0;
    memcpy(value, (const char *)buffer + code - message.length, (size_t)message.length);
    return message.length;
}

/* Of how many nodes this queue has something. */
static int64_t nodes_of(sb_queue *inherited, const sb_queue *queue, nodes_left *found)
{
    char key[KEY_ROOM];
    snprintf(key, sizeof key, "%s\001", queue->name);
    int64_t bytes = value_of(inherited, key, found, sizeof *found);
    if (bytes < (int64_t)sizeof found->here || found->here.one != queue->key[0] ||
        found->here.other != queue->key[1]) /* that was a queue of the same name, now deleted */
        return 0;
    return (bytes - (int64_t)sizeof found->here) / (int64_t)sizeof found->each[0];
}

static int64_t row_of(sb_queue *inherited, const sb_queue *queue, const node_left *node,
                      const char *part, pair row[L_INHERITED_BYTES / sizeof(pair)])
{
    char key[KEY_ROOM];
    unsigned long long one = (unsigned long long)node->identity.one;
    unsigned long long other = (unsigned long long)node->identity.other;
    snprintf(key, sizeof key, "%s\001%016llx%016llx\001%s", queue->name, one, other, part);
    return value_of(inherited, key, row, L_INHERITED_BYTES) / (int64_t)sizeof(pair);
}

static bool has_id(sb_queue *inherited, const sb_queue *queue, const node_left *node,
                   const void *id, int64_t length)
{
    pair row[L_INHERITED_BYTES / sizeof(pair)];
    int64_t hash[2];
    char part[24];
    id_hash(&node->identity.one, id, length, hash);
    snprintf(part, sizeof part, "%llx",
             (unsigned long long)(hash[1] & ((INT64_C(1) << (node->bits & 31)) - 1)));
    int64_t count = row_of(inherited, queue, node, part, row);
    for (int64_t each = 0; each < count; each++)
        if (row[each].one == hash[0] && row[each].other == hash[1])
            return true;
    return false;
}

bool inherited_has(sb_queue *queue, const void *id, int64_t length)
{
    nodes_left nodes;
    bool found = false;
    sb_queue *inherited = inherited_of(queue->connection);
    if (!inherited)
        return false;
    int64_t count = nodes_of(inherited, queue, &nodes);
    for (int64_t each = 0; each < count && !found; each++)
        found = has_id(inherited, queue, &nodes.each[each], id, length);
    queue_looked(inherited);
    return found;
}

int64_t inherited_number(sb_queue *queue, const void *name, int64_t length)
{
    nodes_left nodes;
    pair row[L_INHERITED_BYTES / sizeof(pair)];
    int64_t last = 0;
    sb_queue *inherited = inherited_of(queue->connection);
    int64_t count = inherited ? nodes_of(inherited, queue, &nodes) : 0;
    for (int64_t node = 0; node < count; node++) {
        int64_t rows = row_of(inherited, queue, &nodes.each[node], "p", row);
        int64_t identity = producer_hash(&nodes.each[node].identity.one, name, length);
        for (int64_t each = 0; each < rows; each++)
            if (row[each].one == identity && row[each].other > last)
                last = row[each].other;
    }
    if (inherited)
        queue_looked(inherited);
    return last;
}

void sb_queue_identity(sb_queue *queue, int64_t identity[2])
{
    identity[0] = queue->key[0];
    identity[1] = queue->key[1];
}
