"""Head: the oldest position whose slot and memory are still in use.  A truth, not a hint."""

from __future__ import annotations

from shmbroker.core.atomics import load, load_acquire, store
from shmbroker.core.kernel import kernel
from shmbroker.core.layout import PORT_HEAD_SEEN, PORT_HEADER, POSITION_MASK, RING_HEAD_AT


@kernel
def head_load(port: int) -> int:
    """Where head is, cached: publishers need not look again while it is far enough."""
    # SYNC POINT: head (acquire): what readers of the recycled messages did came before
    head = load_acquire(load(port + PORT_HEADER) + RING_HEAD_AT) & POSITION_MASK
    store(port + PORT_HEAD_SEEN, head)
    return head
