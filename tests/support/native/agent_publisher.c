/* agent_publisher VHOST EXCHANGE RETURNS (KEY WISH BODY)...
 *
 * Publishes each message, and then takes so many that come back.  WISH: -, mandatory, immediate. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shmbroker.h"

#define PATIENCE INT64_C(60000000000)

static int64_t checked(int64_t code, const char *doing)
{
    if (code < 0) {
        fprintf(stderr, "%s: %s %s\n", doing, sb_strerror(code), sb_detail(code));
        exit(1);
    }
    return code;
}

static int64_t wish_of(const char *word)
{
    return strcmp(word, "mandatory") == 0 ? SB_MANDATORY
           : strcmp(word, "immediate") == 0 ? SB_IMMEDIATE : 0;
}

static void publish(sb_exchange *exchange, char **of)
{
    const sb_outgoing message = {.body = of[2], .length = (int64_t)strlen(of[2]), .key = of[0],
                                 .key_length = (int64_t)strlen(of[0]), .target = wish_of(of[1])};
    int64_t done = 0;
    int64_t count = checked(sb_exchange_publish(exchange, &message, SB_FOREVER, &done), of[0]);
    printf("%s to %d\n", of[2], (int)count);
}

int main(int count, char **word)
{
    sb_connection *connection;
    sb_exchange *exchange;
    sb_queue *returned;
    char body[64];
    sb_message taken;
    sb_room room = {.messages = &taken, .buffer = body, .capacity = sizeof body};
    const sb_settings settings = {0};
    checked(sb_connect(word[1], NULL, &connection), "connecting");
    checked(sb_open_exchange(connection, word[2], &exchange), "opening the exchange");
    checked(sb_temporary_queue(connection, 16, &settings, &returned), "a queue for returns");
    checked(sb_returns_to(connection, returned), "returns");
    for (int at = 4; at + 2 < count; at += 3)
        publish(exchange, word + at);
    for (int left = atoi(word[3]); left > 0; left--) {
        int64_t length = checked(sb_receive(returned, &room, PATIENCE), "what comes back");
        printf("%.*s came back\n", (int)length, body);
    }
    sb_connection_free(connection);
    return 0;
}
