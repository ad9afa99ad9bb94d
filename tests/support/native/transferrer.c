/* Money goes from account to account, one coin at a time, until somebody kills us.
 *
 * transferrer VHOST ACCOUNTS SEED: accounts are queues; a message is a purse, its body how much is
 * in it.  Each transfer takes a purse of two accounts, and puts them back with a coin less and one
 * more. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shmbroker.h"

static sb_connection *connection;
static sb_queue *accounts[16];

static int64_t put(sb_transaction *transaction, sb_queue *account, int64_t coins)
{
    const sb_outgoing purse = {.body = &coins, .length = sizeof coins};
    return sb_transaction_publish(transaction, account, &purse);
}

static int64_t transfer(sb_queue *from, sb_queue *to)
{
    sb_message less, more;
    sb_transaction *transaction;
    int64_t coins[2], code = sb_get(from, &less, 1000000);
    if (code != SB_OK)
        return code;
    code = sb_get(to, &more, 1000000);
    if (code != SB_OK) {
        sb_give_back(from, &less);
        return code;
    }
    memcpy(&coins[0], less.body, sizeof coins[0]);
    memcpy(&coins[1], more.body, sizeof coins[1]);
    code = sb_transaction_begin(connection, &transaction);
    if (code == SB_OK)
        code = sb_transaction_ack(transaction, from, &less);
    if (code == SB_OK)
        code = sb_transaction_ack(transaction, to, &more);
    if (code == SB_OK)
        code = put(transaction, from, coins[0] - 1);
    if (code == SB_OK)
        code = put(transaction, to, coins[1] + 1);
    if (code == SB_OK)
        code = sb_transaction_commit(transaction, 1000000);
    while (code == SB_UNFINISHED)
        code = sb_transaction_commit(transaction, 0);
    sb_transaction_free(transaction);
    return code;
}

int main(int count, char **argument)
{
    if (count != 4 || sb_connect(argument[1], "transferrer", &connection) != SB_OK)
        return 100;
    int known = atoi(argument[2]);
    for (int each = 0; each < known && each < 16; each++) {
        char name[16];
        snprintf(name, sizeof name, "account%d", each);
        if (sb_open_queue(connection, name, &accounts[each]) != SB_OK)
            return 101;
    }
    srand((unsigned)atoi(argument[3]));
    for (int64_t turn = 0;; turn++) {
        int from = rand() % known, to = (from + 1 + rand() % (known - 1)) % known;
        int64_t code = transfer(accounts[from], accounts[to]);
        if (code != SB_OK && code != SB_EMPTY && code != SB_FULL)
            return (int)-code;
        if (turn % 16 == 0)
            sb_repair(connection);
    }
}
