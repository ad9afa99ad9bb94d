/* A commit between two stops, for a tracer that steps through it.
 *
 * committer VHOST: a message of queue a becomes two in b and one in c. */

#include <signal.h>
#include <stdlib.h>

#include "shmbroker.h"

static sb_queue *a, *b, *c;

static int64_t between_stops(sb_transaction *transaction)
{
    raise(SIGSTOP);
    int64_t code = sb_transaction_commit(transaction, 0);
    raise(SIGSTOP);
    while (code == SB_UNFINISHED)
        code = sb_transaction_commit(transaction, 0);
    return code;
}

static int64_t move(sb_connection *connection)
{
    sb_message message;
    sb_transaction *transaction;
    int64_t code = sb_get(a, &message, 0);
    if (code == SB_OK)
        code = sb_transaction_begin(connection, &transaction);
    if (code != SB_OK)
        return code;
    const sb_outgoing first = {.body = "1", .length = 1}, second = {.body = "2", .length = 1};
    code = sb_transaction_publish(transaction, b, &first);
    if (code == SB_OK)
        code = sb_transaction_publish(transaction, b, &second);
    if (code == SB_OK)
        code = sb_transaction_publish(transaction, c, &second);
    if (code == SB_OK)
        code = sb_transaction_ack(transaction, a, &message);
    if (code == SB_OK)
        code = between_stops(transaction);
    sb_transaction_free(transaction);
    return code;
}

int main(int count, char **argument)
{
    sb_connection *connection;
    if (count != 2 || sb_connect(argument[1], "committer", &connection) != SB_OK)
        return 100;
    if (sb_open_queue(connection, "a", &a) != SB_OK ||
        sb_open_queue(connection, "b", &b) != SB_OK || sb_open_queue(connection, "c", &c) != SB_OK)
        return 101;
    int64_t code = move(connection);
    sb_connection_free(connection);
    return code < 0 ? (int)-code : 0;
}
