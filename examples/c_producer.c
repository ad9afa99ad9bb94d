/* A producer in C: c_producer VHOST EXCHANGE COUNT
 *
 * cc c_producer.c $(pkg-config --cflags --libs shmbroker)
 *
 * Publishes COUNT messages of 64 bytes with the key "demo.c": a number, and when it was sent. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "shmbroker.h"

#define BURST 20 /* messages, then a pause: some 60,000 a second */
#define PAUSE_NS 250000

static int64_t now_ns(void) /* as time.monotonic_ns() of Python */
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int64_t checked(int64_t code, const char *doing)
{
    if (code < 0) {
        const char *detail = sb_detail(code);
        fprintf(stderr, "%s: %s\n", doing, *detail ? detail : sb_strerror(code));
        exit(1);
    }
    return code;
}

int main(int arguments, char **argument)
{
    if (arguments != 4) {
        fprintf(stderr, "usage: %s VHOST EXCHANGE COUNT\n", argument[0]);
        return 2;
    }
    sb_connection *connection;
    sb_exchange *exchange;
    checked(sb_connect(argument[1], NULL, &connection), "connecting");
    checked(sb_open_exchange(connection, argument[2], &exchange), "opening the exchange");
    int64_t body[8] = {0}, count = atoll(argument[3]), queues = 0;
    const sb_outgoing message = {.body = body, .length = sizeof body, .key = "demo.c",
                                 .key_length = 6};
    for (int64_t number = 0; number < count; number++) {
        int64_t done = 0, code;
        body[0] = number;
        body[1] = now_ns();
        do /* a signal ends the wait for room: go on where we were */
            code = sb_exchange_publish(exchange, &message, SB_FOREVER, &done);
        while (code == SB_INTERRUPTED);
        queues += checked(code, "publishing");
        if (number % BURST == 0)
            nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
    }
    printf("%" PRId64 " messages sent, %" PRId64 " delivered to queues\n", count, queues);
    sb_connection_free(connection);
    return 0;
}
