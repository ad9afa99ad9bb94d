/* A producer of durable messages in C: durable_producer VHOST QUEUE NUMBER LOG
 *
 * cc durable_producer.c $(pkg-config --cflags --libs shmbroker)
 *
 * One message after the other, each published when the one before is on disk, until its stdin
 * ends.  LOG gets a record for each confirm: the message's number, when, and how long it took. */

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "shmbroker.h"

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
    FILE *log = arguments == 5 ? fopen(argument[4], "wb") : NULL;
    if (!log) {
        fprintf(stderr, "usage: %s VHOST QUEUE NUMBER LOG\n", argument[0]);
        return 2;
    }
    sb_connection *connection;
    sb_queue *queue;
    checked(sb_connect(argument[1], NULL, &connection), "connecting");
    checked(sb_open_queue(connection, argument[2], &queue), "opening the queue");
    int64_t body[2] = {atoll(argument[3]), 0};
    puts("ready");
    fflush(stdout);
    for (struct pollfd told = {.fd = 0, .events = POLLIN}; poll(&told, 1, 0) == 0; body[1]++) {
        int64_t begin = now_ns();
        int64_t position =
            checked(sb_publish(queue, body, sizeof body, SB_FOREVER), "publishing");
        checked(sb_confirm(queue, position, SB_CONFIRM_EFFECTIVE, SB_FOREVER), "confirming");
        int64_t end = now_ns();
        fwrite((int64_t[]){body[1], end, end - begin}, sizeof(int64_t), 3, log);
    }
    fclose(log);
    sb_connection_free(connection);
    return 0;
}
