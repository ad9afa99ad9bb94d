/* Lanes that no queue uses.
 *
 * A thread may have read which lane is a queue's first, and look at it only after the queue was
 * deleted: so a lane's memory stays a lane until the connection is freed, and is used again for
 * another queue.  Such a thread finds it busy, or finds out by the row of its own queue that it is
 * in the wrong place, and leaves.
 *
 * The port of an idle lane leads into a ring of no queue, in which nothing is and nothing fits: a
 * compiled loop that goes on after its port was closed is answered SB_CLOSED.  Lanes wait for some
 * others before they are used again, so that it is told for a while. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "ring/ring.h"

#define LANES_KEPT 64 /* idle at least, before one is used again */

static _Alignas(4096) char nowhere[L_RING_SLOTS_START + L_SLOTS_MIN * L_SLOT_BYTES];

int64_t sb_port_end(sb_port *port)
{
    memset(port, 0, sizeof *port);
    return sb_port_shut(port, nowhere, nowhere);
}

lane *lane_new(sb_connection *connection, int64_t *code)
{
    lane *made = NULL;
    *code = SB_OK;
    if (connection->idle_count > LANES_KEPT) {
        made = connection->idle;
        connection->idle = made->next;
        connection->idle_count--;
    } else if (posix_memalign((void **)&made, 128, sizeof *made) != 0) {
        *code = fail_system("memory for a port");
        return NULL;
    } else {
        atomic_init(&made->busy, SHUT);
    }
    /* all but `busy`, which a thread may look at that is in the wrong place */
    memset((char *)made + offsetof(lane, bytes_left), 0, sizeof *made - offsetof(lane, bytes_left));
    return made;
}

void lane_drop(sb_connection *connection, lane *dropped)
{
    sb_port_shut(&dropped->port, nowhere, connection->arena.memory);
    dropped->next = NULL;
    if (connection->idle_count++ == 0)
        connection->idle = dropped;
    else
        connection->idle_last->next = dropped;
    connection->idle_last = dropped;
}

void lanes_free(sb_connection *connection)
{
    while (connection->idle) {
        lane *next = connection->idle->next;
        free(connection->idle);
        connection->idle = next;
    }
}
