"""The slot word: making it, and reading its fields (bit diagram in layout.py)."""

from __future__ import annotations

from shmbroker.core.atomics import load
from shmbroker.core.kernel import exported, kernel
from shmbroker.core.layout import (
    CHUNK_FIELD,
    CHUNK_MASK,
    CHUNK_SHIFT,
    CHUNK_UNIT_SHIFT,
    DELIVERIES_FIELD,
    DELIVERIES_MASK,
    DELIVERIES_SHIFT,
    DONE,
    LAP_HALF,
    LAP_MASK,
    LEASE_DELIVERIES_SHIFT,
    LEASE_LAP_MASK,
    LEASE_LAP_SHIFT,
    LEASED,
    OWNER_MASK,
    OWNER_SHIFT,
    PORT_LAP_SHIFT,
    PORT_SLOT_MASK,
    PORT_SLOTS,
    READY,
    SLOT_SHIFT,
    STATE_MASK,
    STATE_SHIFT,
)


@kernel
def slot_at(port: int, position: int) -> int:
    """The address of the slot of a position; inside of the ring whatever the position is."""
    return load(port + PORT_SLOTS) + ((position & load(port + PORT_SLOT_MASK)) << SLOT_SHIFT)


@kernel
def lap_of(port: int, position: int) -> int:
    return (position >> load(port + PORT_LAP_SHIFT)) & LAP_MASK


@kernel
def laps_ahead(word: int, lap: int) -> int:
    """How many laps the word is ahead of this one: 0 the same, negative behind; modulo."""
    return (((word & LAP_MASK) - lap + LAP_HALF) & LAP_MASK) - LAP_HALF


@kernel
def word_state(word: int) -> int:
    return (word >> STATE_SHIFT) & STATE_MASK


@kernel
def word_owner(word: int) -> int:
    return (word >> OWNER_SHIFT) & OWNER_MASK


@kernel
def word_chunk(word: int) -> int:
    """The offset of the chunk in the arena's data, in bytes."""
    return ((word >> CHUNK_SHIFT) & CHUNK_MASK) << CHUNK_UNIT_SHIFT


@kernel
def word_ready(chunk: int, lap: int) -> int:
    return (READY << STATE_SHIFT) | ((chunk >> CHUNK_UNIT_SHIFT) << CHUNK_SHIFT) | lap


@kernel
def word_leased(word: int, owner: int) -> int:
    kept = word & (DELIVERIES_FIELD | CHUNK_FIELD | LAP_MASK)
    return (LEASED << STATE_SHIFT) | (owner << OWNER_SHIFT) | kept


@kernel
def word_done(word: int) -> int:
    return (DONE << STATE_SHIFT) | (word & (DELIVERIES_FIELD | CHUNK_FIELD | LAP_MASK))


@kernel
def word_given_back(word: int) -> int:
    """READY again with one more delivery; the count stays at its maximum once there."""
    deliveries = (word >> DELIVERIES_SHIFT) & DELIVERIES_MASK
    if deliveries < DELIVERIES_MASK:
        deliveries += 1
    kept = word & (CHUNK_FIELD | LAP_MASK)
    return (READY << STATE_SHIFT) | (deliveries << DELIVERIES_SHIFT) | kept


@kernel
def word_unclaimed(leased: int) -> int:
    """READY as before it was taken: it was not delivered."""
    return (READY << STATE_SHIFT) | (leased & (DELIVERIES_FIELD | CHUNK_FIELD | LAP_MASK))


@kernel
def word_aside(ready: int) -> int:
    """READY, and set aside (put_aside.py): the owner of no other READY word is anything but 0."""
    return ready | OWNER_MASK << OWNER_SHIFT


@exported
def is_aside(word: int) -> int:
    """1 if the message of this READY word is set aside."""
    return int(word_owner(word) != 0)


@kernel
def word_lease_tag(word: int) -> int:
    """Which LEASED word a lease belongs to: enough of it that a late writer is recognised."""
    deliveries = (word >> DELIVERIES_SHIFT) & DELIVERIES_MASK
    lap = (word & LEASE_LAP_MASK) << LEASE_LAP_SHIFT
    return (deliveries << LEASE_DELIVERIES_SHIFT) | lap | word_owner(word)
