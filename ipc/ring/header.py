"""Ports and rings in the C interface."""

from __future__ import annotations

from typing import Final

from shmbroker.core import layout
from shmbroker.ipc.base.structure import Field, Structure

CURSOR: Final = Structure(
    "sb_cursor",
    "A subscriber's place.  Of one thread at a time; programs read `missed`.",
    "CURSOR_BYTES",
    (
        Field("sb_port *port", "CURSOR_PORT"),
        Field("int64_t position", "CURSOR_POSITION"),
        Field("int64_t gate", "CURSOR_GATE"),
        Field("int64_t missed", "CURSOR_MISSED", "messages that a lossy cursor was too late for"),
    ),
)

_PORT_REST: Final = (layout.PORT_BYTES - layout.PORT_FOUND_TAKE) // 8

PORT: Final = Structure(
    "sb_port",
    "One thread's view of one ring.",
    "PORT_BYTES",
    (
        Field(f"int64_t opaque[{layout.PORT_FILE // 8}]", "PORT_HEADER"),
        Field("int64_t file", "PORT_FILE"),
        Field(f"int64_t more[{_PORT_REST}]", "PORT_FOUND_TAKE"),
    ),
)
"""Private: C programs hold its address."""

PUBLIC_KERNELS = (
    "port_publish",
    "port_publish_many",
    "port_loan",
    "port_loan_body",
    "port_publish_chunk",
    "port_take",
    "port_take_many",
    "port_receive",
    "port_receive_many",
    "port_ack",
    "port_ack_many",
    "port_give_back",
    "port_reject",
    "cursor_open",
    "cursor_next",
    "cursor_release",
    "cursor_close",
)
"""What compiled loops call, of C programs as of Numba (shmbroker.kernels)."""

PORTS = """\
/* --- ports: the calls of a queue for one thread's loop ---
 * They do not wait, and need not look for an idle port first.  A port belongs to one thread at a
 * time. */

/* A port of a queue, until the connection is closed.  SB_OK. */
int64_t sb_queue_port(sb_queue *queue, sb_port **port);
/* The port is not used any more: later calls answer SB_CLOSED. */
int64_t sb_queue_port_return(sb_queue *queue, sb_port *port);
"""

PRIVATE = f"""\
{PORT.text()}
/* A ring and its arena, attached to this process. */
typedef struct sb_ring sb_ring;
/* Make a ring of so many slots, a power of two, with an arena of so many bytes. */
int64_t sb_ring_create(const char *name, int64_t slots, int64_t arena_bytes, int64_t flags);
/* Map a ring and its arena, after checking both. */
int64_t sb_ring_attach(const char *name, sb_ring **ring);
/* Open the port of one thread; owner is from 1 to 4095. */
int64_t sb_ring_port(sb_ring *ring, int64_t owner, sb_port *port);
/* Unmap; all its ports must be closed. */
void sb_ring_detach(sb_ring *ring);
/* Remove the names; who has the ring attached keeps it. */
int64_t sb_ring_remove(const char *name);
/* Make a port of no queue, which answers SB_CLOSED; what a port in this memory held is not
 * returned. */
int64_t sb_port_end(sb_port *port);
/* A port for who looks at a ring, or repairs it, outside of all lanes: it owns no memory, unless
 * chunks are reserved with it.  Whoever uses it looks at the queue meanwhile. */
int64_t sb_port_to_look(sb_queue *queue, sb_port *port);
/* Its ring stays mapped until sb_queue_looked.  SB_NOT_FOUND: it was deleted; or why the connection
 * cannot be used. */
int64_t sb_queue_look(sb_queue *queue);
void sb_queue_looked(sb_queue *queue);

/* The system calls of kernels. */
int64_t sb_system_allocate(int64_t file, int64_t offset, int64_t length);
int64_t sb_system_yield(void);
int64_t sb_system_wait(int64_t address, int64_t value, int64_t timeout_ns);
int64_t sb_system_clock(void);
int64_t sb_system_decide(int64_t port, int64_t message);
int64_t sb_system_revoked(int64_t port);
int64_t sb_system_recorder(int64_t recording);
int64_t sb_system_checksum(int64_t crc, int64_t address, int64_t length);
"""


def enumerators() -> list[str]:
    """Kinds of gates, for sb_cursor_open."""
    return [
        f"    SB_GATE_FLEETING = {layout.GATE_FLEETING},",
        f"    SB_GATE_LASTING = {layout.GATE_LASTING},",
    ]


def private_enumerators() -> list[str]:
    return [
        f"    SB_BROADCAST = {layout.RING_BROADCAST},",
        f"    SB_PUBLISH_TAKE = {layout.PUBLISH_TAKE},",
        f"    SB_TAKE_ACK = {layout.TAKE_ACK},",
        f"    SB_ROUTE_VISITED_BYTES = {layout.ROUTE_VISITED_BYTES},",
    ]
