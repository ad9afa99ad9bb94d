"""Purging a ring and counting its messages: for operators, not for the hot path."""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, fetch_add, load, load_acquire
from shmbroker.core.chunk import chunk_address, chunk_bytes, chunk_fits
from shmbroker.core.head import head_load
from shmbroker.core.kernel import exported_cold, kernel
from shmbroker.core.layout import (
    CHUNK_MARK_AT,
    CHUNK_SHAPE_AT,
    COUNTER_DROPPED_AT,
    DONE,
    LAP_MASK,
    PORT_HEADER,
    PORT_SLOT_MASK,
    POSITION_MASK,
    READY,
)
from shmbroker.core.reclaim import reclaim
from shmbroker.core.tail import tail_load, true_tail
from shmbroker.core.word import lap_of, slot_at, word_chunk, word_done, word_state


@exported_cold
def retire_below(port: int, end: int) -> int:
    """Messages below this position that nobody has are done with: how many, or DAMAGED.

    The edge is the one of an expired message, READY to DONE: a taker that comes too late fails.
    """
    tail = true_tail(port)
    if tail < 0:
        return tail
    retired = 0
    for position in range(head_load(port), min(tail, end)):
        slot = slot_at(port, position)
        word = load_acquire(slot)
        if (word & LAP_MASK) == lap_of(port, position) and word_state(word) == READY:
            retired += int(compare_exchange(slot, word, word_done(word)) == word)
    for _ in range(load(port + PORT_SLOT_MASK) + 1):
        if reclaim(port) == 0:
            break
    return retired


@exported_cold
def purge(port: int) -> int:
    """Drop all messages that nobody has: how many, or DAMAGED."""
    dropped = retire_below(port, POSITION_MASK)
    if dropped > 0:
        fetch_add(load(port + PORT_HEADER) + COUNTER_DROPPED_AT, dropped)
    return dropped


@exported_cold
def window(port: int) -> int:
    """How many positions are in use: what is not acknowledged, and what is done with behind it."""
    used = tail_load(port) - head_load(port)
    while used > 0 and reclaim(port) > 0:
        used = tail_load(port) - head_load(port)
    return used


@exported_cold
def slots_in(port: int, state: int) -> int:
    """How many messages are in this state, or DAMAGED."""
    tail = true_tail(port)
    if tail < 0:
        return tail
    count = 0
    for position in range(head_load(port), tail):
        word = load_acquire(slot_at(port, position))
        if (word & LAP_MASK) == lap_of(port, position):
            count += int(word_state(word) == state)
    return count


@kernel
def bytes_of(port: int, word: int) -> int:
    chunk = word_chunk(word)
    address = chunk_address(port, chunk)
    if address == 0:
        return 0
    shape = load(address + CHUNK_SHAPE_AT)
    mark = load(address + CHUNK_MARK_AT)
    if not chunk_fits(port, chunk, shape, mark):
        return 0
    return chunk_bytes(shape, mark)


@exported_cold
def bytes_held(port: int) -> int:
    """How much of the arena the messages take that are not done with, or DAMAGED."""
    tail = true_tail(port)
    if tail < 0:
        return tail
    held = 0
    for position in range(head_load(port), tail):
        word = load_acquire(slot_at(port, position))
        if (word & LAP_MASK) == lap_of(port, position) and word_state(word) != DONE:
            held += bytes_of(port, word)
    return held
