/* Where messages of a group go, if several nodes of a cluster have their queue: a route says so.
 *
 * The broker keeps a queue of routes, GROUP_ROUTES: the last value of each key, which is the name
 * of the queue and the group, is the queue here that the messages go to: this one, or that towards
 * another node.  So a known route costs a look at memory, and is there without the broker and the
 * network.  An unknown one is asked for in GROUP_ASKS; whoever publishes waits until there is a
 * value, for as long as the broker has said, and then fails: order is never guessed.
 *
 * Without GROUP_ROUTES groups are of their queue alone. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "message/message.h"
#include "queue/queue.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define GROUP_ROUTES "$groups"
#define GROUP_ASKS "$groups.asked"
#define TIMEOUT_KEY "\001timeout" /* in ms; no queue has such a name */
#define TIMEOUT_MS 5000           /* if the broker has not said it */
#define USES_KEY "\001uses"       /* ms after which the broker is to know that a route is used */
#define VALUE_ROOM 2048           /* a chunk with a key and the name of a queue */
#define KEY_ROOM (L_NAME_BYTES_MAX + 1 + L_GROUP_BYTES_MAX)
#define SAME_WAIT_NS INT64_C(1000000000)

typedef struct group_key {
    const char *group;
    int64_t group_length, length;
    char bytes[KEY_ROOM];
} group_key;

/* A wait that a signal may have interrupted goes on when it is called again soon. */
typedef struct last_wait {
    uint64_t queue, group;
    int64_t begun, left;
} last_wait;
static _Thread_local last_wait last;

static sb_queue *own_queue(sb_connection *connection, const char *name)
{
    sb_queue *found = NULL;
    int64_t reference = sb_reference_find(connection->catalog.memory, L_QUEUES, name,
                                          (int64_t)strlen(name));
    if (reference < 0)
        return NULL;
    pthread_mutex_lock(&connection->mutex);
    if (queue_handle(connection, reference, &found) == SB_OK)
        sb_share_queue(found);
    else
        found = NULL;
    pthread_mutex_unlock(&connection->mutex);
    return found;
}

/* The group of a message; false: it has none. */
static bool key_of(const sb_queue *queue, const sb_outgoing *message, group_key *key)
{
    key->group_length = message->properties_length > 0
                            ? property_text(message->properties, message->properties_length, GROUP,
                                            &key->group)
                            : -1;
    if (key->group_length < 1 || key->group_length > L_GROUP_BYTES_MAX)
        return false;
    int64_t name = (int64_t)strlen(queue->name);
    memcpy(key->bytes, queue->name, (size_t)name);
    key->bytes[name] = 1; /* in no name */
    memcpy(key->bytes + name + 1, key->group, (size_t)key->group_length);
    key->length = name + 1 + key->group_length;
    return true;
}

/* The value of a key, as text, and since when it is there: its length; SB_EMPTY: there is none. */
static int64_t value_of(sb_queue *routes, const char *key, int64_t length,
                        char text[L_NAME_BYTES_MAX + 1], int64_t *since)
{
    sb_message message;
    int64_t buffer[VALUE_ROOM / 8];
    int64_t code = sb_value(routes, key, length, &message, buffer, sizeof buffer);
    if (code < 0)
        return code;
    if (message.length == 0)
        return SB_EMPTY;
    if (message.length < 0 || message.length > L_NAME_BYTES_MAX || message.length > code)
        return fail(SB_DAMAGED, "queue '%s' has something that is no route", GROUP_ROUTES);
    memcpy(text, (const char *)buffer + code - message.length, (size_t)message.length);
    text[message.length] = 0;
    *since = word_load(buffer, L_CHUNK_PUBLISHED_AT);
    return message.length;
}

/* What the broker has said, in ns; 0: nothing. */
static int64_t said_ns(sb_queue *routes, const char *key)
{
    char text[L_NAME_BYTES_MAX + 1];
    int64_t since, known = value_of(routes, key, (int64_t)strlen(key), text, &since);
    int64_t ms = known > 0 ? strtoll(text, NULL, 10) : 0;
    return ms > 0 && ms < INT64_MAX / 1000000 ? ms * 1000000 : 0;
}

/* When the wait for this group has begun. */
static int64_t wait_begun(const sb_queue *queue, const group_key *key)
{
    int64_t now = sb_system_clock(), hash = sb_group_hash(key->group, key->group_length);
    bool same = last.queue == (uint64_t)queue->reference && last.group == (uint64_t)hash &&
                now - last.left < SAME_WAIT_NS;
    if (!same)
        last = (last_wait){(uint64_t)queue->reference, (uint64_t)hash, now, now};
    return last.begun;
}

static int64_t ask(sb_queue *queue, const group_key *key, int64_t timeout_ns)
{
    const sb_outgoing message = {.body = key->group, .length = key->group_length,
                                 .key = queue->name, .key_length = (int64_t)strlen(queue->name)};
    sb_queue *asks = own_queue(queue->connection, GROUP_ASKS);
    int64_t code = asks ? ring_publish(asks, &message, timeout_ns) : SB_FULL;
    if (asks)
        sb_close_queue(asks);
    return code;
}

/* Ask, and wait for the value of this key. */
static int64_t decided(sb_queue *queue, sb_queue *routes, const group_key *key, int64_t timeout_ns,
                       char text[L_NAME_BYTES_MAX + 1])
{
    sb_cursor cursor;
    sb_message message;
    int64_t buffer[VALUE_ROOM / 8], since, left, limit = said_ns(routes, TIMEOUT_KEY);
    limit = limit ? limit : INT64_C(1000000) * TIMEOUT_MS;
    int64_t begun = wait_begun(queue, key);
    if (timeout_ns < 0 || timeout_ns > limit)
        timeout_ns = limit;
    int64_t until = timeout_ns == limit ? begun + limit : sb_system_clock() + timeout_ns;
    int64_t code = sb_subscribe(routes, &cursor, 1, 1);
    if (code != SB_OK)
        return code;
    int64_t known = value_of(routes, key->bytes, key->length, text, &since);
    if (known == SB_EMPTY)
        ask(queue, key, timeout_ns); /* without room it was asked for often enough */
    while (known == SB_EMPTY) {
        left = until - sb_system_clock();
        code = sb_next(routes, &cursor, &message, buffer, sizeof buffer, left > 0 ? left : 0);
        known = value_of(routes, key->bytes, key->length, text, &since);
        if (known == SB_EMPTY && code < 0 && code != SB_GONE)
            break;
    }
    sb_unsubscribe(routes, &cursor);
    last.left = sb_system_clock();
    if (known != SB_EMPTY)
        return known;
    if (code != SB_EMPTY)
        return code;
    last.left = 0;
    if (timeout_ns == 0) /* nobody waited, or asyncio did */
        return fail(SB_GROUPING_TIMEOUT,
                    "to which node group '%.*s' of queue '%s' goes is not decided yet, and was "
                    "asked for now: is there a broker with a local [grouping.NAME]?",
                    (int)key->group_length, key->group, queue->name);
    return fail(SB_GROUPING_TIMEOUT,
                "to which node group '%.*s' of queue '%s' goes was not decided "
                "within %lld ms: is there a broker with a local [grouping.NAME]?",
                (int)key->group_length, key->group, queue->name, (long long)(timeout_ns / 1000000));
}

int64_t grouped_way(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns,
                    sb_queue **way, int64_t *number)
{
    group_key key;
    char text[L_NAME_BYTES_MAX + 1];
    if (!queue->grouped || message->target || !key_of(queue, message, &key))
        return SB_UNDECIDED;
    sb_queue *routes = own_queue(queue->connection, GROUP_ROUTES);
    if (!routes)
        return SB_UNDECIDED;
    int64_t since, uses, code = value_of(routes, key.bytes, key.length, text, &since);
    if (code == SB_EMPTY)
        code = decided(queue, routes, &key, timeout_ns, text);
    else if (code > 0 && (uses = said_ns(routes, USES_KEY)) > 0 && realtime_ns() - since > uses)
        ask(queue, &key, 0); /* the broker says the route again, and knows that it is used */
    sb_close_queue(routes);
    if (code < 0)
        return code;
    if (strcmp(text, queue->name) == 0)
        return SB_UNDECIDED;
    int64_t reference = sb_reference_find(queue->connection->catalog.memory, L_QUEUES, text, code);
    *way = reference < 0 ? NULL : way_of(queue->connection, reference, number);
    if (!*way)
        return fail(SB_NOT_FOUND, "messages of group '%.*s' of queue '%s' go to '%s', which is not "
                    "there", (int)key.group_length, key.group, queue->name, text);
    return SB_OK;
}

int64_t sb_group_decided(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns)
{
    sb_queue *way;
    int64_t number, code = grouped_way(queue, message, timeout_ns, &way, &number);
    return code == SB_UNDECIDED ? SB_OK : code;
}

int64_t grouped_stays(sb_queue *queue, const sb_outgoing *message)
{
    group_key key;
    if (!key_of(queue, message, &key) ||
        sb_reference_find(queue->connection->catalog.memory, L_QUEUES, GROUP_ROUTES,
                          (int64_t)strlen(GROUP_ROUTES)) < 0)
        return SB_OK;
    return fail(SB_INVALID, "a message of a group of queue '%s' cannot come from another host yet, "
                "as the broker has a [grouping.NAME]: publish it there", queue->name);
}

int64_t grouped_publish(sb_queue *queue, const sb_outgoing *message, int64_t timeout_ns,
                        sb_receipt *where)
{
    sb_queue *way;
    int64_t number, code = grouped_way(queue, message, timeout_ns, &way, &number);
    if (code != SB_OK)
        return code;
    if (message->producer)
        return fail(SB_INVALID, "group goes to another node, and the numbers of a named producer "
                    "are those of one queue: publish without it, or with an id");
    sb_outgoing copy = *message;
    copy.target = sb_target_of(queue->name, (int64_t)strlen(queue->name));
    code = publish_receipt(way, &copy, timeout_ns, where);
    return code < 0 || where->queue != way ? code : code | number << L_WAY_SHIFT;
}
