/* Replies: to whoever has sent a request, in the queue that it names.
 *
 * Queues of requesters come and go, and a server lives long: so its handles to them are of its own,
 * and are closed when it finds them deleted, each time that a new requester shows up.
 *
 * A queue that is not here may be of another node of the cluster, as its name says: then the reply
 * goes into the queue towards that node. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "message/message.h"
#include "queue/queue.h"
#include "request/request.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define FEW_BYTES 1024 /* of properties, for which the stack has room */

typedef struct addressee {
    sb_queue *queue;
    int64_t users; /* threads that are replying; this and the lists: the connection's mutex */
    struct addressee *next;
} addressee;

static bool has_left(const addressee *one)
{
    return queue_is_gone(one->queue);
}

/* The name is that in a request, with any bytes. */
static bool has_name(const addressee *one, const char *name, int64_t length)
{
    const char *ours = one->queue->name;
    return (int64_t)strlen(ours) == length && memcmp(ours, name, (size_t)length) == 0;
}

static addressee **place_of(sb_connection *connection, const char *name, int64_t length)
{
    addressee **at = &connection->addressees[sb_name_hash(name, length) & (ADDRESSEES - 1)];
    while (*at && (has_left(*at) || !has_name(*at, name, length)))
        at = &(*at)->next;
    return at;
}

/* Those that have left and nobody is replying to, out of the lists. */
static addressee *take_out(sb_connection *connection, bool all)
{
    addressee *out = NULL;
    if (!all && atomic_load(&connection->closed))
        return NULL; /* they are shut by whoever closes */
    for (int each = 0; each < ADDRESSEES; each++)
        for (addressee **at = &connection->addressees[each], *one; (one = *at);) {
            if (!all && (one->users || !has_left(one))) {
                at = &one->next;
                continue;
            }
            *at = one->next;
            one->next = out;
            out = one;
        }
    return out;
}

static bool is_used_by(sb_queue *handle, int64_t reference)
{
    return handle && handle->reference == reference && !handle->forgotten &&
           (atomic_load(&handle->lanes_made) > 0 || handle->left_count);
}

/* Their queue may be in use elsewhere in this process as well: then that handle has the say. */
static bool used_elsewhere(sb_connection *connection, int64_t reference)
{
    if (is_used_by(connection->queues[reference & L_REFERENCE_INDEX_MASK], reference))
        return true;
    for (sb_queue *each = connection->gone; each; each = each->next)
        if (is_used_by(each, reference))
            return true;
    return false;
}

bool reply_goes_to(sb_connection *connection, int64_t reference)
{
    for (int each = 0; each < ADDRESSEES; each++)
        for (addressee *one = connection->addressees[each]; one; one = one->next)
            if (one->queue->reference == reference)
                return true;
    return false;
}

static void forget_those_who_left(sb_connection *connection)
{
    pthread_mutex_lock(&connection->mutex);
    addressee *gone = take_out(connection, false);
    pthread_mutex_unlock(&connection->mutex);
    while (gone) {
        addressee *next = gone->next;
        queue_shut(gone->queue);
        if (connection_lock(connection) == SB_OK) {
            if (!used_elsewhere(connection, gone->queue->reference))
                participant_forgets(connection, connection->id, gone->queue->reference);
            connection_unlock(connection);
        }
        pthread_mutex_lock(&connection->mutex);
        queue_free(gone->queue);
        pthread_mutex_unlock(&connection->mutex);
        free(gone);
        gone = next;
    }
}

void reply_shut(sb_connection *connection)
{
    for (int each = 0; each < ADDRESSEES; each++)
        for (addressee *one = connection->addressees[each]; one; one = one->next)
            queue_shut(one->queue);
}

void reply_free(sb_connection *connection)
{
    addressee *all = take_out(connection, true);
    while (all) {
        addressee *next = all->next;
        queue_free(all->queue);
        free(all);
        all = next;
    }
}

static int64_t left(const char *name, int64_t length)
{
    return fail(SB_REQUESTER_LEFT, "the requester has left: its queue '%.*s' is gone", (int)length,
                name);
}

/* The mutex is held. */
static int64_t addressee_make(sb_connection *connection, const char *name, int64_t length,
                              addressee **made)
{
    int64_t code = atomic_load(&connection->closed);
    if (code != SB_OK)
        return code;
    int64_t reference = sb_reference_find(connection->catalog.memory, L_QUEUES, name, length);
    if (reference < 0)
        return reference;
    if (!(*made = calloc(1, sizeof **made)))
        return fail_system("memory for a reply");
    code = queue_map(connection, reference, &(*made)->queue);
    if (code != SB_OK) {
        free(*made);
        return code;
    }
    return SB_OK;
}

static int64_t addressee_enter(sb_connection *connection, const char *name, int64_t length,
                               addressee **entered)
{
    int64_t code = SB_OK;
    pthread_mutex_lock(&connection->mutex);
    addressee **place = place_of(connection, name, length);
    bool is_new = !*place;
    if (is_new)
        code = addressee_make(connection, name, length, place);
    if (code != SB_OK)
        *place = NULL;
    else
        (*place)->users++;
    *entered = *place;
    pthread_mutex_unlock(&connection->mutex);
    if (is_new)
        forget_those_who_left(connection);
    return code;
}

static int64_t post_here(sb_connection *connection, const char *name, int64_t length,
                         const sb_outgoing *reply, int64_t timeout_ns)
{
    addressee *to;
    int64_t code = addressee_enter(connection, name, length, &to);
    if (code != SB_OK)
        return code;
    sb_receipt where;
    code = publish_receipt(to->queue, reply, timeout_ns, &where);
    pthread_mutex_lock(&connection->mutex);
    to->users--;
    pthread_mutex_unlock(&connection->mutex);
    return code;
}

static int64_t post_elsewhere(sb_connection *connection, const char *name, int64_t length,
                              const sb_outgoing *reply, int64_t timeout_ns)
{
    int64_t number, reference = node_way(connection, name, length);
    sb_queue *way = reference < 0 ? NULL : way_of(connection, reference, &number);
    if (!way)
        return SB_NOT_FOUND;
    sb_outgoing message = *reply;
    sb_receipt where;
    message.target = sb_target_of_reply(name, length);
    return publish_receipt(way, &message, timeout_ns, &where);
}

static int64_t post(sb_connection *connection, const char *name, int64_t length,
                    const sb_outgoing *reply, int64_t timeout_ns)
{
    int64_t code = post_here(connection, name, length, reply, timeout_ns);
    if (code == SB_NOT_FOUND)
        code = post_elsewhere(connection, name, length, reply, timeout_ns);
    return code == SB_NOT_FOUND ? left(name, length) : code < 0 ? code : SB_OK;
}

int64_t sb_reply_to(sb_connection *connection, const char *name, const sb_outgoing *reply,
                    int64_t timeout_ns)
{
    int64_t code = outgoing_check(reply);
    return code == SB_OK ? post(connection, name, (int64_t)strlen(name), reply, timeout_ns) : code;
}

int64_t sb_reply(sb_queue *queue, const sb_message *request, const sb_outgoing *reply,
                 int64_t timeout_ns)
{
    unsigned char few[FEW_BYTES], *made = few;
    const char *name, *correlation;
    int64_t length, code;
    if (!queue_is_usable(queue, &code) || (code = outgoing_check(reply)) != SB_OK)
        return code;
    const void *properties = sb_message_properties(request, &length);
    int64_t name_length = property_text(properties, length, REPLY_TO, &name);
    int64_t correlation_length = property_text(properties, length, CORRELATION, &correlation);
    if (name_length < 1)
        return fail(SB_INVALID, "this message asks for no reply: it has no property " REPLY_TO);
    if (correlation_length < 0)
        return post(queue->connection, name, name_length, reply, timeout_ns);
    const text_pair pair = {CORRELATION, correlation, correlation_length};
    size_t room = 3 + (size_t)reply->properties_length + PAIR_ROOM(CORRELATION, correlation_length);
    if (room > sizeof few && !(made = malloc(room)))
        return fail_system("memory for properties");
    code = properties_with(made, reply->properties, reply->properties_length, &pair, 1);
    if (code >= 0) {
        sb_outgoing message = *reply;
        message.properties = made;
        message.properties_length = code;
        code = post(queue->connection, name, name_length, &message, timeout_ns);
    }
    if (made != few)
        free(made);
    return code;
}

int64_t sb_reply_with(sb_queue *queue, const sb_message *request, const void *body, int64_t length,
                      const void *properties, int64_t properties_length, int64_t timeout_ns)
{
    const sb_outgoing reply = {.body = body, .length = length, .properties = properties,
                               .properties_length = properties_length};
    return sb_reply(queue, request, &reply, timeout_ns);
}
