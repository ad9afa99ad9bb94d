"""Cursors: subscribers that see every message without taking it.

A gating cursor holds a gate at its place: the ring cannot lap it, and it reads messages where they
are, whoever has taken or acknowledged them meanwhile.  A lossy cursor holds none: it copies, then
looks whether head has passed the message while it did, and counts what it was too late for.

A lossy cursor may be any number of laps behind, and a word tells laps only modulo 2^17.  So what
looks as if it was not published yet is compared with head, which has all bits of its position.

In a ring with a barrier a cursor sees what the barrier has passed, as a consumer does, but for
cursors that the barrier waits for: the journal's, and those of replicas.  While its broker does not
serve it sees nothing; but for CURSOR_CONFIRMED, by which queue replicas are read: what is confirmed
is theirs, be it delivered now or not.
"""

from __future__ import annotations

from shmbroker.core.atomics import copy, fence_acquire, load, load_acquire, store
from shmbroker.core.closed import is_left_out
from shmbroker.core.codes import DAMAGED, DUPLICATE, EMPTY, GONE, OK, REVOKED, TOO_SMALL
from shmbroker.core.duplicate import is_duplicate
from shmbroker.core.gate import gate_join, gate_leave, gate_move, gate_position, is_in_barrier
from shmbroker.core.head import head_load
from shmbroker.core.kernel import cold, exported, exported_cold, kernel
from shmbroker.core.layout import (
    CURSOR_CONFIRMED,
    CURSOR_GATE,
    CURSOR_LOSSY,
    CURSOR_MISSED,
    CURSOR_PORT,
    CURSOR_POSITION,
    FREE,
    MESSAGE_BODY,
    MESSAGE_CHUNK,
    MESSAGE_LENGTH,
    PORT_BARRIER,
)
from shmbroker.core.tail import true_tail
from shmbroker.core.take import chunk_prefetch, message_read
from shmbroker.core.visible import is_deliverable, is_visible
from shmbroker.core.word import lap_of, laps_ahead, slot_at, word_state


@exported
def cursor_open(cursor: int, port: int, kind: int, from_now: int) -> int:
    """A gating cursor from the earliest message still there, or from the next one."""
    gate = gate_join(port, kind)
    if gate < 0:
        return gate
    position = gate_position(port, gate)
    if from_now:
        tail = true_tail(port)
        if tail < 0:
            gate_leave(port, gate)
            return tail
        position = gate_move(port, gate, tail)
        if position < 0:
            return position
    store(cursor + CURSOR_PORT, port)
    store(cursor + CURSOR_POSITION, position)
    store(cursor + CURSOR_GATE, gate)
    store(cursor + CURSOR_MISSED, 0)
    return OK


@exported
def cursor_open_lossy(cursor: int, port: int, from_now: int) -> int:
    """A cursor without a gate."""
    position = head_load(port)
    if from_now:
        position = true_tail(port)
        if position < 0:
            return position
    store(cursor + CURSOR_PORT, port)
    store(cursor + CURSOR_POSITION, position)
    store(cursor + CURSOR_GATE, CURSOR_LOSSY)
    store(cursor + CURSOR_MISSED, 0)
    return OK


@kernel
def is_seen(port: int, gate: int, position: int) -> int:
    """1 if a cursor with this CURSOR_GATE may see the message of this position."""
    if load(port + PORT_BARRIER) == 0 or is_in_barrier(port, gate):
        return 1
    if gate == CURSOR_CONFIRMED:
        return is_visible(port, position)
    return is_deliverable(port, position)


@kernel
def cursor_look(port: int, position: int, message: int) -> int:
    """Find the message of this position, in any state: OK, EMPTY, GONE, DUPLICATE or DAMAGED."""
    # SYNC POINT: publish (acquire): pairs with the CAS of place
    word = load_acquire(slot_at(port, position))
    ahead = laps_ahead(word, lap_of(port, position))
    if ahead > 0:
        return GONE
    if ahead < 0 or word_state(word) == FREE:
        # laps are modulo: half of their range behind looks as if it was still to come
        return GONE if head_load(port) > position else EMPTY
    if is_left_out(port, word):
        return DUPLICATE
    chunk_prefetch(port, word)
    code = message_read(port, message, position, word)
    if code == OK and is_duplicate(port, message):
        return DUPLICATE
    return code


@exported
def cursor_next(cursor: int, message: int) -> int:
    """The message at a gating cursor, which stays valid until cursor_move passes it."""
    if load(cursor + CURSOR_GATE) < 0:
        return REVOKED
    code = DUPLICATE
    while code == DUPLICATE:
        port = load(cursor + CURSOR_PORT)
        position = load(cursor + CURSOR_POSITION)
        if not is_seen(port, load(cursor + CURSOR_GATE), position):
            return EMPTY
        code = cursor_look(port, position, message)
        if code in (OK, DUPLICATE):
            store(cursor + CURSOR_POSITION, position + 1)
    if code == GONE:  # the ring has passed our gate: somebody dropped it, taking us for dead
        return REVOKED
    return code


@exported
def cursor_release(cursor: int) -> int:
    """All messages that the cursor has returned are dealt with: move the gate behind them."""
    gate = load(cursor + CURSOR_GATE)
    return gate_move(load(cursor + CURSOR_PORT), gate, load(cursor + CURSOR_POSITION))


@kernel
def wanted_from(message: int, whole: int) -> int:
    """Where a copy of a message starts: at its body, or of the whole chunk at its header."""
    return load(message + MESSAGE_CHUNK) if whole else load(message + MESSAGE_BODY)


@cold
def look_and_copy(
    port: int, position: int, message: int, buffer: int, capacity: int, whole: int
) -> int:
    """The message of a position, copied, whether the barrier has passed it or not."""
    if position < 0:
        return GONE
    code = cursor_look(port, position, message)
    length = 0
    if code == OK:
        start = wanted_from(message, whole)
        length = load(message + MESSAGE_BODY) + load(message + MESSAGE_LENGTH) - start
        if length <= capacity:
            copy(buffer, start, length)
    # what we read is only the message if head had not passed it when we had read it all
    fence_acquire()
    if code != EMPTY and head_load(port) > position:
        return GONE
    if code != OK:
        return code
    if length > capacity:
        return TOO_SMALL
    return length


@exported_cold
def peek(port: int, position: int, message: int, buffer: int, capacity: int) -> int:
    """Copy the body of the message at a position without taking it: its length, or a code.

    EMPTY: not yet published, or the barrier has not passed it.  GONE: recycled before, or while we
    looked.
    """
    if not is_visible(port, position):
        return EMPTY
    length = look_and_copy(port, position, message, buffer, capacity, 0)
    return GONE if length == DUPLICATE else length


@exported_cold
def peek_ahead(port: int, position: int, message: int, buffer: int, capacity: int) -> int:
    """peek_whole, of what the barrier has not passed as well."""
    length = look_and_copy(port, position, message, buffer, capacity, 1)
    return GONE if length == DUPLICATE else length


@exported_cold
def peek_whole(port: int, position: int, message: int, buffer: int, capacity: int) -> int:
    """peek for the whole chunk: header, key, properties and body."""
    if not is_visible(port, position):
        return EMPTY
    return peek_ahead(port, position, message, buffer, capacity)


@kernel
def look_if_seen(
    cursor: int, position: int, message: int, buffer: int, capacity: int, whole: int
) -> int:
    port = load(cursor + CURSOR_PORT)
    if not is_seen(port, load(cursor + CURSOR_GATE), position):
        return EMPTY
    return look_and_copy(port, position, message, buffer, capacity, whole)


@kernel
def copy_next(cursor: int, message: int, buffer: int, capacity: int, whole: int) -> int:
    port = load(cursor + CURSOR_PORT)
    position = load(cursor + CURSOR_POSITION)
    length = look_if_seen(cursor, position, message, buffer, capacity, whole)
    while length == DUPLICATE:
        position += 1
        store(cursor + CURSOR_POSITION, position)
        length = look_if_seen(cursor, position, message, buffer, capacity, whole)
    if length == GONE:
        head = head_load(port)
        if head <= position:  # its slot is of a later lap than head allows: go on behind it
            store(cursor + CURSOR_POSITION, position + 1)
            return DAMAGED
        store(cursor + CURSOR_MISSED, load(cursor + CURSOR_MISSED) + head - position)
        store(cursor + CURSOR_POSITION, head)
    elif length >= 0 or length == DAMAGED:
        store(cursor + CURSOR_POSITION, position + 1)
    return length


@exported
def cursor_copy(cursor: int, message: int, buffer: int, capacity: int) -> int:
    """The body of the next message of any cursor, copied: its length, EMPTY, TOO_SMALL or GONE.

    After GONE, which only a lossy cursor meets, it stands at the oldest message still there;
    CURSOR_MISSED has grown.
    """
    return copy_next(cursor, message, buffer, capacity, 0)


@exported_cold
def cursor_copy_whole(cursor: int, message: int, buffer: int, capacity: int) -> int:
    """cursor_copy for the whole chunk: header, key, properties and body."""
    return copy_next(cursor, message, buffer, capacity, 1)


@exported
def cursor_close(cursor: int) -> int:
    gate = load(cursor + CURSOR_GATE)
    if gate < 0:
        return OK
    return gate_leave(load(cursor + CURSOR_PORT), gate)
