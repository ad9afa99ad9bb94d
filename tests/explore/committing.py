"""Programs that commit, and that settle for the dead, as ipc/commit/record.c does."""

from __future__ import annotations

from typing import Final

from shmbroker.core import layout as at
from shmbroker.core.atomics import load, load_acquire, store, store_release
from shmbroker.core.batch import PLAIN_MARK
from shmbroker.core.codes import FULL, OK
from shmbroker.core.run import reserve, unreserve
from shmbroker.core.take import finish, give_back_once, take_once
from shmbroker.core.transaction import (
    chunk_number,
    lease_pledge,
    loan_placed,
    place_once,
    room_with,
    series_drop,
    series_last,
    series_take,
)
from tests.explore.operation import ask, tell
from tests.explore.processes import (
    ACKED,
    END,
    GAVE_BACK,
    IS_IT_MY_TURN,
    IS_THERE_ROOM,
    PRODUCER_SHIFT,
    REFUSED,
    TAKEN,
    forget,
    repair_all,
)
from tests.explore.ring import BODY, BODY_BYTES, MESSAGE, PORT, RECORD, TRANSACTION
from tests.explore.translation import program

# words of the record
ACKS: Final = 0  # 1: it acknowledges a message
POSITION: Final = 8
LEASED: Final = 16
CHUNK: Final = 24  # and 32
ORIGIN: Final = 40  # and 48


@program
def fill_in(index: int, body: int) -> int:
    chunk = reserve(PORT, BODY_BYTES << at.SHAPE_BODY_SHIFT, PLAIN_MARK)
    store(load(PORT + at.PORT_DATA) + chunk + at.CHUNK_HEADER_BYTES, body)
    store(RECORD + CHUNK + 8 * index, chunk)
    store(RECORD + ORIGIN + 8 * index, 0)
    return chunk


@program
def prepare(who: int, messages: int) -> int:
    """Take a series, number the chunks, pledge the message: the series."""
    series = series_take(PORT, who)
    last = series_last(PORT, series)
    for index in range(messages):
        origin = (series << at.ORIGIN_PRODUCER_SHIFT) | (last + 1 + index)
        store(RECORD + ORIGIN + 8 * index, origin)
        chunk_number(PORT, load(RECORD + CHUNK + 8 * index), origin, 0)
    if load(RECORD + ACKS):
        position = load(RECORD + POSITION)
        if lease_pledge(PORT, position, load(RECORD + LEASED)) < 0:
            series_drop(PORT, series, who)
            return -1
    return series


@program
def committing(who: int, messages: int) -> int:
    """Take a message if there is one, and turn it into some others."""
    if take_once(PORT, MESSAGE) == OK:
        position = load(MESSAGE + at.MESSAGE_POSITION)
        tell(TAKEN, position, load(load(MESSAGE + at.MESSAGE_BODY)))
        store(RECORD + ACKS, 1)
        store(RECORD + POSITION, position)
        store(RECORD + LEASED, load(MESSAGE + at.MESSAGE_WORD))
    for index in range(messages):
        fill_in(index, (who << PRODUCER_SHIFT) | (index + 1))
    store_release(TRANSACTION, at.TRANSACTION_PREPARED)
    series = prepare(who, messages)
    store(BODY, load(RECORD + POSITION))
    while series >= 0 and room_with(PORT, BODY, load(RECORD + ACKS)) < messages:
        if ask(IS_THERE_ROOM, FULL) == END:
            series_drop(PORT, series, who)
            series = -1
    store(BODY, 0)
    if series < 0:
        store_release(TRANSACTION, at.TRANSACTION_NONE)
        for index in range(messages):
            unreserve(PORT, load(RECORD + CHUNK + 8 * (messages - 1 - index)))
        if load(RECORD + ACKS):
            tell(GAVE_BACK, load(RECORD + POSITION), give_back_once(PORT, MESSAGE))
        forget()
        return 0
    store_release(TRANSACTION, at.TRANSACTION_COMMITTED)
    forget()
    settling(who, messages)
    for index in range(messages):
        loan_placed(PORT, load(RECORD + CHUNK + 8 * index))
    return 0


@program
def committing_late(who: int, messages: int, deadline_ms: int) -> int:
    """The message is taken with a deadline, which may be over when it is pledged."""
    store(PORT + at.PORT_LEASE_DEADLINE, deadline_ms)
    return committing(who, messages)


@program
def settling(holder: int, messages: int) -> int:
    """Let all of what this participant has committed happen."""
    state = load_acquire(TRANSACTION)
    if state == at.TRANSACTION_NONE:
        return 0
    if state == at.TRANSACTION_COMMITTED:
        if load(RECORD + ACKS):
            position = load(RECORD + POSITION)
            finish(PORT, position, load(RECORD + LEASED))
            tell(ACKED, position, OK)
        for index in range(messages):
            while True:
                chunk = load(RECORD + CHUNK + 8 * index)
                code = place_once(PORT, chunk, load(RECORD + ORIGIN + 8 * index))
                if code == OK:
                    break
                tell(REFUSED, code)
                ask(IS_THERE_ROOM, code)
    for series in range(1, 2):
        series_drop(PORT, series, holder)
    store_release(TRANSACTION, at.TRANSACTION_NONE)
    return 0


@program
def undertaking(holder: int, messages: int, first: int, last: int) -> int:
    """When these have ended: settle what the one before has committed, then repair."""
    for each in range(first, last + 1):
        ask(IS_IT_MY_TURN, each)
    settling(holder, messages)
    repair_all()
    return 0
