/* Message groups and the single active consumer: who belongs to which group, who joins, who leaves.
 * core/group.py has the protocol.
 *
 * The group of a message is a property of it, as JMS has it; so whatever passes properties on (dead
 * letters, moving, exporting) passes on the group.  A queue with groups notes its hash in the
 * chunk.
 *
 * A consumer, here, is a connection: its threads share its groups. */

#include <string.h>

#include "base/base.h"
#include "message/message.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

int64_t group_of(const void *properties, int64_t length)
{
    const char *text;
    int64_t bytes = length ? property_text(properties, length, GROUP, &text) : -1;
    int64_t hash = bytes > 0 ? sb_group_hash(text, bytes) : 0;
    return hash < 0 ? 0 : hash;
}

int64_t sb_group_properties(const char *group, const void *properties, int64_t length,
                            void *buffer, int64_t capacity)
{
    int64_t bytes = group ? (int64_t)strlen(group) : 0;
    if (bytes < 1 || bytes > L_GROUP_BYTES_MAX)
        return fail(SB_INVALID, "a group is a text of 1 to %d bytes", (int)L_GROUP_BYTES_MAX);
    if (capacity < length + (int64_t)PAIR_ROOM(GROUP, bytes))
        return SB_TOO_SMALL;
    const text_pair pair = {GROUP, group, bytes};
    return properties_with(buffer, properties, length, &pair, 1);
}

/* --- joining and leaving ---------------------------------------------------------------------- */

static int64_t let_go(sb_queue *queue, int64_t bucket, int64_t owner)
{
    sb_port port;
    int64_t code;
    if (!queue_look(queue, &code))
        return code;
    code = sb_port_to_look(queue, &port);
    if (code == SB_OK)
        code = sb_port_groups_free(&port, bucket, owner);
    if (code > 0)
        sb_port_wake_all(&port);
    queue_looked(queue);
    return code;
}

void group_join(sb_queue *queue)
{
    if (queue->grouped && setting(queue, L_SETTING_REBALANCE_AT))
        let_go(queue, -1, 0);
}

/* The priority of all threads of ours that take from it. */
static void rank_set(sb_queue *queue, int64_t rank)
{
    pthread_mutex_lock(&queue->connection->mutex); /* nobody makes a lane */
    atomic_store(&queue->rank, rank);
    for (int64_t each = 0; each < atomic_load(&queue->lanes_made); each++)
        word_store(&atomic_load(&queue->lanes[each])->port, L_PORT_RANK, rank);
    pthread_mutex_unlock(&queue->connection->mutex);
}

static int64_t become_exclusive(sb_queue *queue)
{
    sb_port port;
    int64_t code = sb_port_to_look(queue, &port);
    if (code != SB_OK)
        return code;
    word_store(&port, L_PORT_RANK, L_RANK_EXCLUSIVE);
    code = sb_port_group_enter(&port);
    if (code == SB_IN_USE) { /* whoever is active may be dead */
        queue->connection->duties->repair(queue->connection);
        code = sb_port_group_enter(&port);
    }
    sb_port_wake_all(&port);
    return code == SB_IN_USE ? fail(code, "queue '%s' has another active consumer", queue->name)
                             : code;
}

static int64_t consume_begin(sb_queue *queue, int64_t priority, int64_t exclusive)
{
    int64_t code;
    if (priority < 0 || priority > L_RANK_MAX)
        return fail(SB_INVALID, "the priority of a consumer is a number from 0 to %d",
                    (int)L_RANK_MAX);
    if ((priority || exclusive) && (!queue->buckets || queue->grouped))
        return fail(SB_INVALID, "consumers have priorities, or are exclusive, in a queue that is "
                    "declared with single_active; '%s' is not", queue->name);
    queue_note_use(queue, L_USE_CONSUMES);
    if (!queue->buckets)
        return SB_OK;
    if (exclusive && (code = become_exclusive(queue)) != SB_OK)
        return code;
    atomic_fetch_add(&queue->consuming, 1);
    int64_t rank = exclusive ? L_RANK_EXCLUSIVE : priority;
    if (rank > atomic_load(&queue->rank)) {
        sb_port port;
        rank_set(queue, rank);
        if ((code = sb_port_to_look(queue, &port)) == SB_OK)
            sb_port_groups_touch(&port); /* our lanes look again at what they have passed over */
    }
    return SB_OK;
}

int64_t sb_consume_begin(sb_queue *queue, int64_t priority, int64_t exclusive)
{
    int64_t code = change_code(queue->connection);
    if (code != SB_OK || !queue_look(queue, &code))
        return code;
    code = consume_begin(queue, priority, exclusive);
    queue_looked(queue);
    return code;
}

int64_t sb_consume_end(sb_queue *queue)
{
    int64_t code;
    if (!queue->buckets)
        return SB_OK;
    int64_t left = atomic_fetch_sub(&queue->consuming, 1) - 1;
    if (left > 0 || !queue_is_usable(queue, &code))
        return SB_OK;
    rank_set(queue, 0);
    code = let_go(queue, -1, queue->connection->id);
    return code < 0 ? code : SB_OK;
}

static int64_t bucket_of(const sb_queue *queue, const char *group, int64_t length)
{
    int64_t hash = sb_group_hash(group, length);
    if (hash < 0)
        return fail(SB_INVALID, "a group is a text of 1 to %d bytes", (int)L_GROUP_BYTES_MAX);
    return queue->grouped ? (hash & L_ROW_HASH_MASK) % queue->buckets : 0;
}

int64_t sb_let_go(sb_queue *queue, const char *group, int64_t length)
{
    int64_t bucket = -1, code = change_code(queue->connection);
    if (code != SB_OK || !queue_is_usable(queue, &code))
        return code;
    if (!queue->buckets)
        return fail(SB_INVALID, "queue '%s' has no groups", queue->name);
    if (group && (bucket = bucket_of(queue, group, length)) < 0)
        return bucket;
    return let_go(queue, bucket, queue->connection->id);
}

/* --- looking ---------------------------------------------------------------------------------- */

int64_t sb_group_bucket(sb_queue *queue, const char *group, int64_t length)
{
    return queue->grouped ? bucket_of(queue, group, length) : SB_NOT_FOUND;
}

int64_t sb_group_owners(sb_queue *queue, int64_t *owners, int64_t capacity)
{
    int64_t code;
    if (!queue_look(queue, &code))
        return code;
    int64_t count = queue->buckets < L_BUCKETS ? queue->buckets : L_BUCKETS;
    for (int64_t each = 0; each < count && each < capacity; each++)
        owners[each] = setting(queue, L_RING_BUCKETS_AT + (each << L_BUCKET_SHIFT)) >>
                           L_BUCKET_OWNER_SHIFT & L_OWNER_MASK;
    queue_looked(queue);
    return count;
}
