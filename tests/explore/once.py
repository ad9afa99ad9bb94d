"""Programs that publish messages of which one counts, and that take them."""

from __future__ import annotations

from shmbroker.core import layout as at
from shmbroker.core.atomics import load, load_acquire, store
from shmbroker.core.batch import PLAIN_MARK
from shmbroker.core.codes import DUPLICATE, FULL, OK
from shmbroker.core.cursor import cursor_next, cursor_open, cursor_release
from shmbroker.core.duplicate import is_duplicate
from shmbroker.core.publish import publish_chunk_checked_once
from shmbroker.core.run import reserve, unreserve
from shmbroker.core.tail import true_tail
from shmbroker.core.take import ack_once, give_back_once, take_once, withdraw
from shmbroker.core.transaction import (
    chunk_number,
    loan_placed,
    place_once,
    series_drop,
    series_last,
    series_take,
)
from tests.explore.operation import ask, tell
from tests.explore.processes import (
    ACKED,
    END,
    GAVE_BACK,
    IS_THERE_ROOM,
    IS_THERE_WORK,
    JOINED,
    PRODUCER_SHIFT,
    REFUSED,
    REPAIR,
    SAW,
    TAKEN,
    forget,
    repair_all,
)
from tests.explore.ring import BODY_BYTES, CURSOR, MESSAGE, PORT, RING
from tests.explore.translation import program

ANSWERED = 11
WITHDREW = 12
PASSED = 13
NUMBERED = 8
"""From here on it is no id, but a number of the named producer."""


@program
def chunk_of(body: int, what: int) -> int:
    mark = PLAIN_MARK | at.CHUNK_ONCE << at.MARK_FLAGS_SHIFT
    chunk = reserve(PORT, BODY_BYTES << at.SHAPE_BODY_SHIFT, mark)
    if chunk < 0:
        return chunk
    first = load(PORT + at.PORT_DATA) + chunk + at.CHUNK_HEADER_BYTES
    is_id = int(what < NUMBERED)
    store(first, is_id * (what << 40))
    store(first + 8, is_id * what)
    store(first + 16, body)
    return chunk


@program
def publish_this(body: int, what: int) -> int:
    """A position, DUPLICATE, or -100 if there is no hope."""
    origin = 0
    if what >= NUMBERED:
        origin = 1 << at.ORIGIN_PRODUCER_SHIFT | what - NUMBERED
    while True:
        chunk = chunk_of(body, what)
        code = chunk
        if chunk >= 0:
            code = publish_chunk_checked_once(PORT, chunk, origin)
            if code >= 0 or code == DUPLICATE:
                return code
            unreserve(PORT, chunk)
        tell(REFUSED, code)
        answer = ask(IS_THERE_ROOM, code)
        if answer == END:
            return -100
        if answer == REPAIR:
            repair_all()


@program
def repeating(who: int, last: int, packed: int) -> int:
    load_acquire(RING + at.RING_HEAD_AT)  # a process begins with a step
    number = 1
    while number <= last:
        code = publish_this(who << PRODUCER_SHIFT | number, (packed >> 4 * (number - 1)) & 15)
        if code == -100:
            return 0
        number += 1
    return 0


@program
def helping() -> int:
    true_tail(PORT)
    return 0


@program
def placing(who: int, what: int) -> int:
    """Place a message as a transaction does that is committed."""
    series = series_take(PORT, who)
    origin = series << at.ORIGIN_PRODUCER_SHIFT | series_last(PORT, series) + 1
    chunk = chunk_of(who << PRODUCER_SHIFT | 1, what)
    chunk_number(PORT, chunk, origin, 0)
    while place_once(PORT, chunk, origin, 1) != OK:
        ask(IS_THERE_ROOM, FULL)
    loan_placed(PORT, chunk)
    series_drop(PORT, series, who)
    return 0


@program
def deal_with(gives: int) -> int:
    """What was taken is withdrawn, given back or acknowledged."""
    position = load(MESSAGE + at.MESSAGE_POSITION)
    if is_duplicate(PORT, MESSAGE):
        tell(WITHDREW, position, withdraw(PORT, MESSAGE))
        return 0
    tell(TAKEN, position, load(load(MESSAGE + at.MESSAGE_BODY)))
    if gives > 0:
        tell(GAVE_BACK, position, give_back_once(PORT, MESSAGE))
    else:
        tell(ACKED, position, ack_once(PORT, MESSAGE))
    return 1


@program
def consuming(gives: int) -> int:
    """Take until all is done; the first `gives` messages that count are given back."""
    while True:
        code = take_once(PORT, MESSAGE)
        if code == OK:
            gives -= deal_with(gives)
            gives = max(0, gives)
            forget()
        else:
            forget()
            answer = ask(IS_THERE_WORK, code)
            if answer == END:
                return 0
            if answer == REPAIR:
                repair_all()


@program
def following() -> int:
    """A gating cursor: sees what counts."""
    cursor_open(CURSOR, PORT, at.GATE_FLEETING, 0)
    tell(JOINED, load(CURSOR + at.CURSOR_POSITION))
    while True:
        code = cursor_next(CURSOR, MESSAGE)
        if code == OK:
            position = load(CURSOR + at.CURSOR_POSITION) - 1
            tell(SAW, position, load(load(MESSAGE + at.MESSAGE_BODY)))
            forget()
            cursor_release(CURSOR)
        else:
            forget()
            tell(PASSED, load(CURSOR + at.CURSOR_POSITION))
            cursor_release(CURSOR)
            if ask(IS_THERE_WORK, code) == END:
                return 0


@program
def draining() -> int:
    while take_once(PORT, MESSAGE) == OK:
        deal_with(0)
    return 0


@program
def surviving(who: int, what: int) -> int:
    """Repair, drain; publish once more, twice; drain, repair."""
    repair_all()
    draining()
    first = publish_this(who << PRODUCER_SHIFT | 1, what)
    tell(ANSWERED, 0, first)
    draining()
    tell(ANSWERED, 1, publish_this(who << PRODUCER_SHIFT | 2, what))
    draining()
    repair_all()
    return 0
