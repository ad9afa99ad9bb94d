"""Priorities: the oldest message of the highest level is taken first.

A ring with levels has one hint more for each: the lowest position that may be READY with a message
of that level.  It obeys the rules of `take` (take.py): whoever looks moves it past what is not of
its level, or not READY, by CAS; whoever gives a message back lowers it to there, in the next epoch.
So each hint passes each message once, and taking costs as many looks as there are levels, however
many messages wait.  `take` itself is only moved by reclaiming.

A message of a low level waits for as long as there are others: that is what strict priority means.
"""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, load, load_acquire, store
from shmbroker.core.chunk import chunk_address
from shmbroker.core.codes import DAMAGED, EMPTY, READ_ONLY
from shmbroker.core.head import head_load
from shmbroker.core.kernel import kernel
from shmbroker.core.layout import (
    CHUNK_MARK_AT,
    FREE,
    LEVEL_DEFAULT,
    LEVELS,
    MARK_PRIORITY_MASK,
    MARK_PRIORITY_SHIFT,
    MODE_KEPT,
    MODE_LEVELS_MASK,
    MODE_LEVELS_SHIFT,
    MODE_PAUSED,
    MODE_REPLICA,
    PAIR_BYTES,
    PORT_FOUND_WORD,
    PORT_HEADER,
    PORT_SLOT_MASK,
    POSITION_MASK,
    READY,
    RING_LEVELS_AT,
    RING_MODE_AT,
)
from shmbroker.core.visible import is_deliverable
from shmbroker.core.word import lap_of, laps_ahead, slot_at, word_chunk, word_state

LOOKS = 4096
"""How often a hint may move while we look: others move it too, never without end."""


@kernel
def ring_mode(port: int) -> int:
    """0 for a plain ring that may be taken from; else what take_find has to see to."""
    return load(load(port + PORT_HEADER) + RING_MODE_AT)


@kernel
def mode_levels(mode: int) -> int:
    return min(mode >> MODE_LEVELS_SHIFT & MODE_LEVELS_MASK, LEVELS)


@kernel
def level_hint(port: int, level: int) -> int:
    """The address of the hint of a level."""
    return load(port + PORT_HEADER) + RING_LEVELS_AT + level * PAIR_BYTES


@kernel
def level_of(port: int, word: int, levels: int) -> int:
    """The level of the message that a word names; only certain if the word is still the same."""
    address = chunk_address(port, word_chunk(word))
    if address == 0:
        return 0  # a damaged word has some level, so that somebody finds it
    code = (load(address + CHUNK_MARK_AT) >> MARK_PRIORITY_SHIFT) & MARK_PRIORITY_MASK
    level = code - 1 if code > 0 else LEVEL_DEFAULT
    return min(level, levels - 1)


@kernel
def level_search(port: int, level: int, levels: int) -> int:
    """The lowest READY position of a level, its word left in the port; EMPTY or DAMAGED."""
    address = level_hint(port, level)
    for _ in range(LOOKS + 4 * load(port + PORT_SLOT_MASK)):
        hint = load_acquire(address)
        position = hint & POSITION_MASK
        head = head_load(port)
        if position < head:
            compare_exchange(address, hint, hint + (head - position))
            continue
        # SYNC POINT: publish (acquire): pairs with the CAS of place
        word = load_acquire(slot_at(port, position))
        ahead = laps_ahead(word, lap_of(port, position))
        state = word_state(word)
        if ahead < 0 or (ahead == 0 and state == FREE):
            return EMPTY
        if ahead == 0 and state == READY and level_of(port, word, levels) == level:
            if not is_deliverable(port, position):
                return EMPTY
            store(port + PORT_FOUND_WORD, word)
            return position
        compare_exchange(address, hint, hint + 1)
    return DAMAGED


@kernel
def level_find(port: int, mode: int) -> int:
    """The oldest READY position of the highest level that has one."""
    if mode & (MODE_PAUSED | MODE_KEPT | MODE_REPLICA):
        return READ_ONLY if mode & MODE_REPLICA else EMPTY
    levels = mode_levels(mode)
    for below in range(levels):
        level = levels - 1 - below
        position = level_search(port, level, levels)
        if position != EMPTY:
            return position
    return EMPTY
