/* What the operations of a commit hold, lanes and handles, until it has happened.
 *
 * Whoever has committed may wait no longer: it is interrupted, or its time is over.  Then the
 * connection has them, until there is room and all has happened.  It is one commit at a time:
 * behind one that waits for room no other of the connection is decided. */

#define _GNU_SOURCE
#include <stdlib.h>

#include "base/base.h"
#include "commit/commit.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

void operations_return(const operation *operations, int64_t count, lane *in)
{
    for (int64_t index = count - 1; index >= 0; index--)
        if (operations[index].lane == in) {
            atomic_store(&in->busy, ON_LOAN);
            return;
        }
    lane_leave(in);
}

void operation_close(const operation *over)
{
    if (over->promised) {
        queue_promised_no_more(over->promised);
        sb_close_queue(over->promised);
    }
    sb_close_queue(over->queue);
}

void operations_end(const operation *operations, int64_t count)
{
    while (count > 0) {
        const operation *last = &operations[--count];
        if (last->lane) {
            atomic_store(&last->lane->busy, IN);
            sb_port_loan_placed(&last->lane->port, last->where);
            operations_return(operations, count, last->lane);
        } else if (queue_is_gone(last->queue)) {
            deleted_dealt_with(last->queue,
                               &(sb_message){.position = last->where, .word = last->word});
        }
        operation_close(last);
    }
}

static void end(sb_connection *connection, operation *operations, int64_t count)
{
    operations_end(operations, count);
    free(operations);
    participant_opens(connection, -1);
}

void operations_leave(sb_connection *connection, operation *operations, int64_t count,
                      int64_t serial)
{
    if (connection->finished >= serial) {
        end(connection, operations, count);
        return;
    }
    connection->left_count = count;
    atomic_store(&connection->left_operations, operations);
}

void left_operations_end(sb_connection *connection)
{
    operation *left = atomic_load(&connection->left_operations);
    if (!left || atomic_load(&connection->closed) != SB_OK)
        return;
    atomic_store(&connection->left_operations, NULL);
    end(connection, left, connection->left_count);
}
