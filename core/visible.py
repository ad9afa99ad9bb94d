"""What is visible: messages that the barrier has not passed cannot be taken."""

from __future__ import annotations

from shmbroker.core.atomics import load, load_acquire, store
from shmbroker.core.kernel import kernel
from shmbroker.core.layout import PORT_BARRIER, PORT_VISIBLE, POSITION_MASK


@kernel
def is_visible(port: int, position: int) -> int:
    """1 unless the barrier (barrier.py) has not yet passed this position."""
    barrier = load(port + PORT_BARRIER)
    if barrier == 0 or position < load(port + PORT_VISIBLE):
        return 1
    visible = load_acquire(barrier) & POSITION_MASK
    store(port + PORT_VISIBLE, visible)
    return int(position < visible)
