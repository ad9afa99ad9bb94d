/* Ports that are lent to compiled loops. */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"

int64_t sb_queue_port(sb_queue *queue, sb_port **port)
{
    if (queue->pages)
        return fail(SB_INVALID,
                    "queue '%s' pages: a compiled loop would publish past its pages, so "
                    "there are no ports of it",
                    queue->name);
    int64_t code;
    sb_connection *connection = queue->connection;
    if (!queue_is_usable(queue, &code)) /* first: see enter in transaction.c */
        return code;
    pthread_mutex_lock(&connection->mutex);
    lane *lent = lane_open(queue, queue->ports < LANES, &code);
    if (lent) {
        atomic_store(&lent->busy, ON_LOAN);
        *port = &lent->port;
        queue->ports++;
        lent->next = connection->lent;
        connection->lent = lent;
    }
    pthread_mutex_unlock(&connection->mutex);
    if (!lent)
        return code;
    queue_note_first_use(queue, L_USE_CONSUMES | L_USE_TAKES_ANY | L_USE_PRODUCES);
    return SB_OK;
}

/* A lane that was lent as a port is none of the queue's: who goes on with its address after this
 * finds a port that is shut, and none that others use. */
int64_t sb_queue_port_return(sb_queue *queue, sb_port *port)
{
    sb_connection *connection = queue->connection;
    lane *in = (lane *)((char *)port - offsetof(lane, port));
    int64_t code = atomic_load(&connection->closed), lent = ON_LOAN;
    if (code == SB_FORKED || code == SB_CLOSED)
        return code; /* who has left has no memory to return */
    pthread_mutex_lock(&connection->mutex);
    bool was_lent = in->recorder.queue == queue &&
                    atomic_compare_exchange_strong(&in->busy, &lent, SHUT);
    if (was_lent) {
        lane **at = &connection->lent;
        while (*at != in)
            at = &(*at)->next;
        *at = in->next;
        lane_shut(in);
        lane_drop(connection, in);
        queue->ports--;
    }
    bool is_gone = queue_is_gone(queue);
    pthread_mutex_unlock(&connection->mutex);
    if (is_gone)
        deleted_some(connection);
    return was_lent ? SB_OK : fail(SB_INVALID, "this is no port that queue '%s' has lent",
                                   queue->name);
}
