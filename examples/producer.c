/* A producer in C: ring_producer NAME COUNT OWNER
 *
 * cc producer.c $(pkg-config --cflags --libs shmbroker) */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shmbroker.h"

static sb_port port;

static int64_t checked(int64_t code, const char *doing)
{
    if (code < 0) {
        fprintf(stderr, "%s: %s\n", doing, sb_strerror(code));
        exit(1);
    }
    return code;
}

int main(int arguments, char **argument)
{
    if (arguments != 4) {
        fprintf(stderr, "usage: %s NAME COUNT OWNER\n", argument[0]);
        return 2;
    }
    sb_ring *ring;
    checked(sb_ring_attach(argument[1], &ring), "attaching");
    checked(sb_ring_port(ring, atoll(argument[3]), &port), "opening a port");
    int64_t count = atoll(argument[2]), sum = 0;
    char body[64] = {0};
    for (int64_t number = 0; number < count; number++) {
        memcpy(body, &number, sizeof number);
        int64_t position;
        while ((position = sb_port_publish_wait(&port, body, sizeof body, 1000)) == SB_FULL)
            sb_system_yield();
        checked(position, "publishing");
        sum += number;
    }
    printf("%" PRId64 " %" PRId64 "\n", count, sum);
    sb_port_close(&port);
    sb_ring_detach(ring);
    return 0;
}
