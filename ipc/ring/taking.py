"""What programs call on a port to take messages and to deal with them.

Each tells those who sleep on the ring what has become possible (waiting.py).
"""

from __future__ import annotations

from shmbroker.core.atomics import copy, load, store
from shmbroker.core.batch import (
    ack_many_once,
    receive_taken,
    take_within,
)
from shmbroker.core.codes import (
    CLOSED,
    EMPTY,
    GONE,
    INVALID,
    OK,
    REVOKED,
    TOO_SMALL,
    UNDECIDED,
)
from shmbroker.core.kernel import cold, exported, exported_cold, kernel
from shmbroker.core.layout import (
    MESSAGE_BODY,
    MESSAGE_BYTES,
    MESSAGE_LENGTH,
    MESSAGE_SHIFT,
    MESSAGE_WORD,
    PORT_SPECIAL,
    PORT_STOP,
    POSITION_MASK,
    STOPPED_FOR_GOOD,
)
from shmbroker.core.take import (
    ack_once,
    finish,
    give_back_once,
    is_special,
    receive_once,
    take_admitted,
    take_once,
    untake_once,
)
from shmbroker.ipc.base.system import system_decide, system_revoked
from shmbroker.ipc.ring.recording import is_recorded, note_acked, note_taken
from shmbroker.ipc.ring.waiting import tell_consumers, tell_producers


@exported
def ack(port: int, message: int) -> int:
    """The message is dealt with: OK, or REVOKED if it was no longer ours."""
    note_acked(port, message, 1)
    code = ack_once(port, message)
    if code == REVOKED:
        return system_revoked(port)
    tell_producers(port)
    return code


@exported
def ack_many(port: int, messages: int, count: int) -> int:
    """Acknowledge these messages; how many were still ours."""
    if count > 0:
        note_acked(port, messages, count)
    acked = ack_many_once(port, messages, count)
    if acked < count:
        system_revoked(port)
    tell_producers(port)
    return acked


@exported
def give_back(port: int, message: int) -> int:
    """Let somebody else have the message: OK, or REVOKED if it was no longer ours."""
    code = give_back_once(port, message)
    if code == REVOKED:
        return system_revoked(port)
    tell_consumers(port)
    return code


@exported_cold
def untake(port: int, message: int) -> int:
    """give_back of what nobody was to have: it is no delivery."""
    code = untake_once(port, message)
    if code == REVOKED:
        return system_revoked(port)
    tell_consumers(port)
    return code


@exported_cold
def take_selected(port: int, message: int) -> int:
    """Take just the message that look has found, for a consumer: see take_admitted."""
    code = take_admitted(port, message)
    if code == OK and is_recorded(port):
        note_taken(port, message, 1)
    return code


@exported_cold
def transaction_finish(port: int, position: int, leased: int) -> int:
    """Acknowledge this message of a transaction that is committed: 1, or 0 if it was before."""
    done = finish(port, position, leased)
    tell_producers(port)
    return done


@kernel
def found_none(port: int, code: int) -> int:
    """The code of a take; CLOSED if there will never be anything, because the port is closed."""
    if code == EMPTY and load(port + PORT_STOP) == STOPPED_FOR_GOOD:
        return CLOSED
    return code


@exported
def take(port: int, message: int) -> int:
    """Take the oldest message that nobody has: OK, EMPTY, or DAMAGED (that message is dropped)."""
    while True:
        code = take_once(port, message)
        if code != OK:
            return found_none(port, code)
        if is_special(message):
            code = system_decide(port, message)
        if code == OK and is_recorded(port):
            note_taken(port, message, 1)
        if code != GONE:
            return code


@cold
def decide_all(port: int, messages: int, taken: int) -> int:
    """Of messages that were taken, keep what may be delivered: how many, or GONE or EMPTY."""
    kept = 0
    code = GONE
    for index in range(taken):
        message = messages + (index << MESSAGE_SHIFT)
        told = OK
        if is_special(message):
            told = system_decide(port, message)
        if told != OK:
            code = told
            continue
        if kept < index:
            copy(messages + (kept << MESSAGE_SHIFT), message, MESSAGE_BYTES)
            store(message + MESSAGE_WORD, 0)  # nobody is to give it back twice
        kept += 1
    return kept if kept > 0 else code


@exported
def take_fitting(port: int, messages: int, count: int, capacity: int) -> int:
    """take_many as far as the bodies fit, but for the first."""
    if count <= 0:
        return INVALID
    while True:
        taken = take_within(port, messages, count, capacity)
        if taken > 0 and load(port + PORT_SPECIAL):
            taken = decide_all(port, messages, taken)
        if taken > 0 and is_recorded(port):
            note_taken(port, messages, taken)
        if taken != GONE:
            return found_none(port, taken)


@exported
def take_many(port: int, messages: int, count: int) -> int:
    """Take up to count messages that follow each other; how many, or EMPTY or DAMAGED."""
    return take_fitting(port, messages, count, POSITION_MASK)


@cold
def receive_special(port: int, message: int, buffer: int, capacity: int) -> int:
    """What is UNDECIDED: its length if it may be received, GONE if not, or a code."""
    code = system_decide(port, message)
    if code != OK:
        return code
    length = load(message + MESSAGE_LENGTH)
    if length > capacity:
        return TOO_SMALL
    copy(buffer, load(message + MESSAGE_BODY), length)
    if ack_once(port, message) != OK:
        return GONE  # revoked meanwhile: somebody else has it
    return length


@kernel
def receive_one(port: int, message: int, buffer: int, capacity: int) -> int:
    """receive, and GONE if there is another message to try."""
    length = receive_once(port, message, buffer, capacity)
    if length == UNDECIDED:
        length = receive_special(port, message, buffer, capacity)
    return length


@cold
def receive_recorded(port: int, message: int, buffer: int, capacity: int) -> int:
    """The same, with times noted in between."""
    code = take(port, message)
    if code != OK:
        return code
    length = load(message + MESSAGE_LENGTH)
    if length > capacity:
        return TOO_SMALL
    copy(buffer, load(message + MESSAGE_BODY), length)
    note_acked(port, message, 1)
    if ack_once(port, message) != OK:
        return GONE  # revoked meanwhile: somebody else has it
    return length


@exported
def receive(port: int, message: int, buffer: int, capacity: int) -> int:
    """Take, copy the body, acknowledge: its length, or a code.

    With TOO_SMALL the message is taken and not acknowledged: its length is in `message`.
    """
    length = GONE
    while length == GONE:
        if is_recorded(port):
            length = receive_recorded(port, message, buffer, capacity)
        else:
            length = receive_one(port, message, buffer, capacity)
    if length >= 0:
        tell_producers(port)
        return length
    return found_none(port, length)


@exported
def receive_many(
    port: int, messages: int, count: int, buffer: int, capacity: int, ends: int
) -> int:
    """Take up to count messages, copy their bodies end to end, acknowledge; how many, or a code.

    ends[i] is where body i ends, and ends[count] the length that all bodies have, or -1.  A message
    that no longer fits is not taken, unless it is the first: with TOO_SMALL it is in `messages`,
    taken and not acknowledged.
    """
    received = GONE
    while received == GONE:
        taken = take_fitting(port, messages, count, capacity)
        if taken <= 0:
            return taken
        if load(messages + MESSAGE_LENGTH) <= capacity:
            note_acked(port, messages, taken)
        received = receive_taken(port, messages, taken, count, buffer, capacity, ends)
        if received != TOO_SMALL and received < taken:
            system_revoked(port)
    if received > 0:
        tell_producers(port)
    return received
