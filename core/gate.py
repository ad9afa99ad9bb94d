"""Gates: who must have seen a message before its slot and memory are used again.

Joining.  A reclaimer loads head, then the gates, then moves head by a CAS from the exact word.  A
newcomer first writes its gate at head's position, then puts the next epoch into head, by CAS from
the word it took the position from.  Whoever looked at the gates before that fails its CAS; whoever
looks later sees the gate.  So no position at or above the gate can slip by.

A gate is fleeting, and dropped with its owner's death, or lasting: it stays, and the death leaves
it in nobody's hand, owner 0.  The next owner looks for it by kind and name, which a gate has before
it is lasting.
"""

from __future__ import annotations

from shmbroker.core.atomics import (
    compare_exchange,
    copy,
    load,
    load_acquire,
    store,
    store_release,
)
from shmbroker.core.codes import INVALID, NO_GATE, REVOKED
from shmbroker.core.kernel import cold, exported, exported_cold, kernel
from shmbroker.core.layout import (
    EPOCH_STEP,
    GATE_ACTIVE,
    GATE_ACTIVE_SHIFT,
    GATE_BYTES,
    GATE_FLEETING,
    GATE_KIND_AT,
    GATE_KINDS,
    GATE_LIFE_MASK,
    GATE_LIFE_SHIFT,
    GATE_NAME_AT,
    GATE_NAME_BYTES_MAX,
    GATE_NAME_LENGTH_AT,
    GATE_OWNER_SHIFT,
    GATE_SINCE_AT,
    GATE_SUBSCRIPTION,
    GATES,
    OWNER_MASK,
    PORT_HEADER,
    PORT_OWNER,
    POSITION_MASK,
    RING_BARRIER_SET_AT,
    RING_GATES_AT,
    RING_GATES_HIGH_AT,
    RING_HEAD_AT,
)


@kernel
def gate_at(port: int, gate: int) -> int:
    return load(port + PORT_HEADER) + RING_GATES_AT + gate * GATE_BYTES


@kernel
def gate_is_active(word: int) -> int:
    return (word >> GATE_ACTIVE_SHIFT) & 1


@kernel
def gate_owner(word: int) -> int:
    return (word >> GATE_OWNER_SHIFT) & OWNER_MASK


@kernel
def gate_life(word: int) -> int:
    return (word >> GATE_LIFE_SHIFT) & GATE_LIFE_MASK


@kernel
def gate_without_owner(word: int) -> int:
    return word & ~(OWNER_MASK << GATE_OWNER_SHIFT)


@kernel
def gates_high(port: int) -> int:
    """Gates at this index and above were never joined."""
    # SYNC POINT: gate-join (acquire): pairs with the CAS of gate_join
    high = load_acquire(load(port + PORT_HEADER) + RING_GATES_HIGH_AT)
    if high < 0 or high > GATES:
        return GATES
    return high


@cold
def gates_floor(port: int, limit: int) -> int:
    """The lowest position that a gate still holds, or limit if none does."""
    floor = limit
    for gate in range(gates_high(port)):
        # SYNC POINT: gate-move (acquire): pairs with the store of gate_move
        word = load_acquire(gate_at(port, gate))
        if gate_is_active(word) and (word & POSITION_MASK) < floor:
            floor = word & POSITION_MASK
    return floor


@kernel
def gate_word(port: int, life: int, position: int) -> int:
    owner = load(port + PORT_OWNER) << GATE_OWNER_SHIFT
    return GATE_ACTIVE | (life << GATE_LIFE_SHIFT) | owner | position


@kernel
def gates_raise_high(port: int, high: int) -> int:
    address = load(port + PORT_HEADER) + RING_GATES_HIGH_AT
    seen = load_acquire(address)
    while seen < high:
        seen = compare_exchange(address, seen, high)
    return seen


@kernel
def gate_settle(port: int, gate: int, life: int, lowest: int) -> int:
    """Put our gate at head, or at lowest if that is above, so that every reclaimer knows of it."""
    head_address = load(port + PORT_HEADER) + RING_HEAD_AT
    head = load_acquire(head_address)
    while True:
        position = max(head & POSITION_MASK, lowest)
        store_release(gate_at(port, gate), gate_word(port, life, position))
        # SYNC POINT: gate-join (release): a reclaimer that has not seen the gate fails its CAS
        seen = compare_exchange(head_address, head, head + EPOCH_STEP)
        if seen == head:
            return position
        head = seen


@kernel
def gate_describe(gate: int, kind: int, since: int, name: int, length: int) -> int:
    """What is beside the word of our gate, at this address."""
    store(gate + GATE_KIND_AT, kind)
    store(gate + GATE_SINCE_AT, since)
    store(gate + GATE_NAME_LENGTH_AT, length)
    copy(gate + GATE_NAME_AT, name, length)
    return gate


@cold
def gate_take(port: int, life: int, kind: int, since: int, name: int, length: int) -> int:
    """Take a free gate at head; its index, or NO_GATE."""
    for gate in range(GATES):
        word = load_acquire(gate_at(port, gate))
        if gate_is_active(word):
            continue
        gates_raise_high(port, gate + 1)
        # from here on the gate holds everything above a position that is too low: safe, not exact;
        # it is fleeting until it has its name, for nobody would look for a lasting one without it
        claimed = gate_word(port, GATE_FLEETING, 0)
        if compare_exchange(gate_at(port, gate), word, claimed) == word:
            gate_describe(gate_at(port, gate), kind, since, name, length)
            gate_settle(port, gate, life, 0)
            return gate
    return NO_GATE


@kernel
def barrier_set(port: int) -> int:
    """A bit for each gate that the barrier waits for (barrier.py)."""
    members = load_acquire(load(port + PORT_HEADER) + RING_BARRIER_SET_AT)
    return members if members > 0 else 0


@kernel
def is_in_barrier(port: int, gate: int) -> int:
    return (barrier_set(port) >> gate) & 1 if gate >= 0 else 0


@exported_cold
def gate_join(port: int, life: int) -> int:
    """A gate of a subscriber, at head: its index, or NO_GATE.  gate_position has its position."""
    if life < 0 or life > GATE_LIFE_MASK:
        return INVALID
    return gate_take(port, life, GATE_SUBSCRIPTION, 0, 0, 0)


@exported_cold
def gate_join_named(port: int, life: int, kind: int, since: int, name: int, length: int) -> int:
    """gate_join, of this kind and name, since this time.

    One at a time joins or looks for a lasting gate: whoever has the lock of the catalog.
    """
    if life < 0 or life > GATE_LIFE_MASK or kind < 0 or kind >= GATE_KINDS:
        return INVALID
    if length < 0 or length > GATE_NAME_BYTES_MAX:
        return INVALID
    return gate_take(port, life, kind, since, name, length)


@exported
def gate_position(port: int, gate: int) -> int:
    if gate < 0 or gate >= GATES:
        return INVALID
    return load_acquire(gate_at(port, gate)) & POSITION_MASK


@kernel
def gate_is_ours(port: int, word: int) -> int:
    if gate_is_active(word) and gate_owner(word) == load(port + PORT_OWNER):
        return 1
    return 0


@exported
def gate_move(port: int, gate: int, position: int) -> int:
    """All below position has been seen.  A gate moves forward only; REVOKED if it is not ours."""
    if gate < 0 or gate >= GATES or position < 0 or position > POSITION_MASK:
        return INVALID
    address = gate_at(port, gate)
    word = load_acquire(address)
    if not gate_is_ours(port, word):
        return REVOKED
    if position < (word & POSITION_MASK):
        return INVALID
    # a CAS, not a store: a gate that was dropped, or adopted by another owner, stays so
    # SYNC POINT: gate-move (release): what we read of the messages was read before this
    moved = gate_word(port, gate_life(word), position)
    if compare_exchange(address, word, moved) != word:
        return REVOKED
    return position


@exported_cold
def gate_adopt(port: int, gate: int, former: int) -> int:
    """Take over the lasting gate of a former owner that is dead, or of nobody; where it stands.

    The former owner may have died in the middle of joining, before reclaimers had to know of the
    gate: so it is settled once more, which leaves a gate that was settled where it is.
    """
    if gate < 0 or gate >= GATES:
        return INVALID
    address = gate_at(port, gate)
    while True:
        word = load_acquire(address)
        owner = gate_owner(word)
        if not gate_is_active(word) or (owner != former and owner != 0):
            return REVOKED
        position = word & POSITION_MASK
        # it fails if a repairer finds just now that the owner is dead
        if compare_exchange(address, word, gate_word(port, gate_life(word), position)) == word:
            return gate_settle(port, gate, gate_life(word), position)


@exported_cold
def gate_put_down(port: int, gate: int) -> int:
    """Our lasting gate stays where it is, in nobody's hand."""
    if gate < 0 or gate >= GATES:
        return INVALID
    address = gate_at(port, gate)
    word = load_acquire(address)
    if not gate_is_ours(port, word):
        return REVOKED
    if compare_exchange(address, word, gate_without_owner(word)) != word:
        return REVOKED
    return 0


@exported
def gate_leave(port: int, gate: int) -> int:
    if gate < 0 or gate >= GATES or is_in_barrier(port, gate):
        return INVALID  # the next owner of its index is no part of the barrier
    address = gate_at(port, gate)
    word = load_acquire(address)
    if not gate_is_ours(port, word):
        return REVOKED
    if compare_exchange(address, word, 0) != word:
        return REVOKED
    return 0
