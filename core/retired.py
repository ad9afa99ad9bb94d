"""What is done with of a queue: all below a head, and a bit for each position from there on.

The bits are in words of 64, as many as it takes up to the last one that is set: `length` bytes.
"""

from __future__ import annotations

from shmbroker.core.atomics import load, load_acquire, store
from shmbroker.core.kernel import exported_cold, kernel
from shmbroker.core.layout import DONE
from shmbroker.core.word import slot_at, word_state

WORD_BITS = 64


@kernel
def is_retired(position: int, head: int, bits: int, length: int) -> int:
    """1 if this position is done with."""
    bit = position - head
    if bit < 0:
        return 1
    if bit >= 8 * length:
        return 0
    return (load(bits + (bit >> 6 << 3)) >> (bit & 63)) & 1


@exported_cold
def retired_look(port: int, head: int, end: int, bits: int) -> int:
    """See what is done with from this head to this end: how many bytes of bits there are."""
    length = 0
    for first in range(head, end, WORD_BITS):
        seen = 0
        for position in range(first, min(first + WORD_BITS, end)):
            if word_state(load_acquire(slot_at(port, position))) == DONE:
                seen |= 1 << (position - first)
        address = (first - head) >> 3
        store(bits + address, seen)
        if seen != 0:
            length = address + 8
    return length


@kernel
def retired_are_same(bits: int, others: int, length: int) -> int:
    for word in range(0, length, 8):
        if load(bits + word) != load(others + word):
            return 0
    return 1
