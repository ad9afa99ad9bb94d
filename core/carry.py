"""Carrying: in a ring that keeps the newest of each key, the oldest message goes to the end.

A message whose key has no news would hold head back for ever, while others are replaced behind
it.  So when the ring is full of what is done with, whoever wants room takes the oldest message,
publishes a copy of it, and drops it: head moves on to the next that is still there.

The copy is as old as the message was, or it would replace a newer one that came meanwhile.  Its age
is in its header, as far as a position that cannot be a whole ring behind needs it.  That the age is
the last position, and not the first, is enough: head has passed what was between, so all of that
was compared with the copy before.  The copy has its place in the chain before the original is done
with; if both are left by a death, they are of one age, and the later one stays.
"""

from __future__ import annotations

from shmbroker.core.atomics import copy, fetch_add, load, load_acquire, store
from shmbroker.core.chunk import body_offset, shape_key
from shmbroker.core.codes import DAMAGED, EMPTY, FULL, OK
from shmbroker.core.head import head_load
from shmbroker.core.kernel import exported_cold, kernel
from shmbroker.core.latest import latest_note
from shmbroker.core.layout import (
    CHUNK_CARRIED,
    CHUNK_HEADER_BYTES,
    CHUNK_PUBLISHED_AT,
    COUNTER_CARRIED_AT,
    MARK_AGE_MASK,
    MARK_AGE_SHIFT,
    MARK_FLAGS_SHIFT,
    MESSAGE_CHUNK,
    MESSAGE_LENGTH,
    MESSAGE_MARK,
    MESSAGE_POSITION,
    MESSAGE_SHAPE,
    MESSAGE_WORD,
    PORT_DATA,
    PORT_HEADER,
    PORT_SLOT_MASK,
    READY,
    RING_REPLACING_AT,
)
from shmbroker.core.publish import chunk_placed, place
from shmbroker.core.reclaim import reclaim
from shmbroker.core.run import unreserve
from shmbroker.core.tail import tail_load, true_tail
from shmbroker.core.take import claim, count, discard, finish, message_read, untake_once
from shmbroker.core.word import lap_of, laps_ahead, slot_at, word_ready, word_state


@exported_cold
def carry_take(port: int, message: int) -> int:
    """Take the oldest message, if it can be carried: OK, EMPTY if it cannot, FULL or DAMAGED."""
    position = head_load(port)
    tail = true_tail(port)
    if tail < 0:
        return tail
    if tail - position > load(port + PORT_SLOT_MASK):
        return FULL  # no room for the copy
    word = load_acquire(slot_at(port, position))
    if laps_ahead(word, lap_of(port, position)) != 0 or word_state(word) != READY:
        return EMPTY
    if message_read(port, message, position, word) == OK:
        if shape_key(load(message + MESSAGE_SHAPE)) == 0:
            return EMPTY  # a plain one stays where it is
    leased = claim(port, position, word)
    if leased == 0:
        return EMPTY
    if message_read(port, message, position, leased) != OK:
        discard(port, position, leased)
        return DAMAGED
    return OK


@kernel
def carried_mark(message: int) -> int:
    """The mark of a copy of this message: it says how old it is."""
    kept = load(message + MESSAGE_MARK) & ~(MARK_AGE_MASK << MARK_AGE_SHIFT)
    age = load(message + MESSAGE_POSITION) & MARK_AGE_MASK
    return kept | CHUNK_CARRIED << MARK_FLAGS_SHIFT | age << MARK_AGE_SHIFT


@exported_cold
def carry_on(port: int, message: int, chunk: int) -> int:
    """Publish a message of ours in this chunk, reserved for it, and drop it where it was."""
    address = load(message + MESSAGE_CHUNK)
    target = load(port + PORT_DATA) + chunk
    shape = load(message + MESSAGE_SHAPE)
    length = body_offset(shape, load(message + MESSAGE_MARK)) + load(message + MESSAGE_LENGTH)
    copy(target + CHUNK_HEADER_BYTES, address + CHUNK_HEADER_BYTES, length - CHUNK_HEADER_BYTES)
    store(target + CHUNK_PUBLISHED_AT, load(address + CHUNK_PUBLISHED_AT))
    position = chunk_placed(port, chunk, 0, place(port, chunk, tail_load(port)))
    if position < 0:
        unreserve(port, chunk)
        untake_once(port, message)
        return position
    latest_note(port, position, word_ready(chunk, 0), 1)
    fetch_add(load(port + PORT_HEADER) + RING_REPLACING_AT, 1)  # as in latest.replaced
    if finish(port, load(message + MESSAGE_POSITION), load(message + MESSAGE_WORD)):
        count(port, COUNTER_CARRIED_AT)
    reclaim(port)
    return OK
