/* One action on a ring between two stops, for a tracer that steps through it.
 *
 * stepped NAME OWNER publish|consume|cold-publish: the exit status is 0 if the action succeeded. */

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "shmbroker_private.h"

static sb_port port;

int main(int count, char **argument)
{
    sb_ring *ring;
    sb_message message;
    if (count != 4 || sb_ring_attach(argument[1], &ring) != SB_OK)
        return 10;
    if (sb_ring_port(ring, atoi(argument[2]), &port) != SB_OK)
        return 11;
    if (strcmp(argument[3], "publish") == 0) { /* with blocks at hand */
        int64_t chunk = sb_port_loan(&port, 8);
        if (chunk < 0 || sb_port_unreserve(&port, chunk) != SB_OK)
            return 12;
    }
    raise(SIGSTOP);
    int64_t code;
    if (strcmp(argument[3], "consume") == 0) {
        code = sb_port_take(&port, &message);
        if (code == SB_OK)
            code = sb_port_ack(&port, &message);
    } else {
        code = sb_port_publish(&port, "stepped!", 8);
    }
    raise(SIGSTOP);
    sb_port_close(&port);
    return code < 0 ? (int)-code : 0;
}
