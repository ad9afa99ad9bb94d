"""What consumers may take, and all who follow a queue may see: what the barrier has passed.

Where members of a replicated node may take over from each other, what is durable is also delivered
only while its broker serves: that is a word of the arena, a moment on the counter of cycles.  Who
was stopped, and has a successor, need not be running for its consumers to stop.
"""

from __future__ import annotations

from shmbroker.core.atomics import (
    compare_exchange,
    cycles,
    load,
    load_acquire,
    store,
    store_release,
)
from shmbroker.core.codes import OK
from shmbroker.core.kernel import exported_cold, kernel
from shmbroker.core.layout import (
    AHEAD_ALLOWED,
    AHEAD_ASKED,
    AHEAD_REFUSED,
    ARENA_AHEAD_AT,
    ARENA_SERVES_UNTIL_AT,
    PORT_ARENA,
    PORT_BARRIER,
    PORT_VISIBLE,
    POSITION_MASK,
    SERVES_COPIES,
    SERVES_NOT,
)


@kernel
def is_still(until: int) -> int:
    """1 before this count of cycles; 0 is for ever."""
    return int(until == 0 or (until != SERVES_NOT and cycles() < until))


@kernel
def served_until(port: int) -> int:
    return load_acquire(load(port + PORT_ARENA) + ARENA_SERVES_UNTIL_AT)


@kernel
def is_served(port: int) -> int:
    """1 while nobody else can serve what is durable here."""
    until = served_until(port)
    return is_still(max(until, -until))


@kernel
def is_disk_enough(port: int) -> int:
    """1 while no replica has to have what is confirmed for who asks for the disk alone."""
    until = served_until(port)
    return is_still(until) if until >= 0 else 0


@kernel
def is_doubtful(port: int) -> int:
    """1 while somebody else may deliver what is durable here: it goes on with the flag only.

    Look after the claim.  Who claimed while its broker held the lease, and was stopped before it
    had the message, is in doubt as well.
    """
    if load(port + PORT_BARRIER) == 0:
        return 0
    until = served_until(port)
    if until == 0 or until == SERVES_COPIES:
        return 0
    return int(is_disk_enough(port) == 0)


@exported_cold
def serves_until(arena: int, until: int) -> int:
    """Of its broker: a count of cycles, 0 for ever, SERVES_NOT; below 0 the disk is not enough.

    Those who found nothing to take before are to be woken if it was over.
    """
    store_release(arena + ARENA_SERVES_UNTIL_AT, until)
    return OK


@kernel
def may_run_ahead(port: int) -> int:
    """1 if replicas may confirm what the disk here lacks; if not, the broker is asked for it.

    A live may lack such a message after a restart of its host.  So the list of those that may
    serve has to say first that it counts until then only.  Look after the gates.
    """
    address = load(port + PORT_ARENA) + ARENA_AHEAD_AT
    seen = load_acquire(address)
    if seen == AHEAD_REFUSED:
        compare_exchange(address, AHEAD_REFUSED, AHEAD_ASKED)
    return int(seen == AHEAD_ALLOWED)


@kernel
def is_visible(port: int, position: int) -> int:
    """1 unless the barrier (barrier.py) has not yet passed this position."""
    barrier = load(port + PORT_BARRIER)
    if barrier == 0 or position < load(port + PORT_VISIBLE):
        return 1
    visible = load_acquire(barrier) & POSITION_MASK
    store(port + PORT_VISIBLE, visible)
    return int(position < visible)


@kernel
def is_deliverable(port: int, position: int) -> int:
    """1 if the barrier has passed this position, and its broker serves."""
    if load(port + PORT_BARRIER) == 0:
        return 1
    return int(is_served(port) != 0 and is_visible(port, position) != 0)
