"""Programs that pour records for an origin, and what must be true of its number."""

from __future__ import annotations

from collections.abc import Sequence

from shmbroker.core import layout as at
from shmbroker.core.atomics import load, load_acquire, store
from shmbroker.core.batch import PLAIN_MARK
from shmbroker.core.codes import OK
from shmbroker.core.open_number import origin_forget
from shmbroker.core.origin import origin_begin, origin_own
from shmbroker.core.port import producer_last
from shmbroker.core.pour import pour_once
from shmbroker.core.tail import true_tail
from tests.explore.invariants import RingRules
from tests.explore.ledger import Ledger
from tests.explore.operation import Violation, ask, tell
from tests.explore.processes import (
    END,
    IS_IT_MY_TURN,
    IS_THERE_ROOM,
    PRODUCER_SHIFT,
    REFUSED,
    REPAIR,
    repair_all,
)
from tests.explore.ring import BODY, BODY_BYTES, PORT, RING
from tests.explore.scenario import View
from tests.explore.translation import program

ORIGIN = at.PRODUCERS
POURED = 1
"""Who is told to have published what is poured, whoever pours it."""
CHUNK = at.CHUNK_HEADER_BYTES + BODY_BYTES
RECORD = at.RECORD_HEAD_BYTES + CHUNK
RECORDS = BODY + 0x100
ANSWERS = BODY + 0x80


@program
def records_of(last: int, begins: int) -> int:
    """Write the records from 1 to last, or clear them."""
    for each in range(last):
        record = RECORDS + each * RECORD
        chunk = record + at.RECORD_HEAD_BYTES
        where = begins * (at.RECORD_IS_MESSAGE << at.RECORD_KIND_SHIFT | each)
        store(record + at.RECORD_LENGTH_AT, begins * CHUNK)
        store(record + at.RECORD_WHERE_AT, where)
        store(chunk + at.CHUNK_SHAPE_AT, begins * (BODY_BYTES << at.SHAPE_BODY_SHIFT))
        store(chunk + at.CHUNK_ORIGIN_AT, 0)
        store(chunk + at.CHUNK_PUBLISHED_AT, 0)
        store(chunk + at.CHUNK_MARK_AT, begins * PLAIN_MARK)
        store(chunk + at.CHUNK_HEADER_BYTES, begins * (POURED << PRODUCER_SHIFT | each + 1))
        store(ANSWERS + 8 * each, 0)
    return 0


@program
def pouring_begins(last: int) -> int:
    """All records, whichever of them are known."""
    store(PORT + at.PORT_PRODUCER, ORIGIN)
    records_of(last, 1)
    store(BODY + at.POURING_AT, RECORDS)
    store(BODY + at.POURING_END, RECORDS + last * RECORD)
    store(BODY + at.POURING_ANSWERS, ANSWERS)
    store(BODY + at.POURING_LAST, producer_last(PORT, ORIGIN))
    return 0


@program
def pouring(who: int, last: int, former: int) -> int:
    """Become the origin's owner, if it has none, and pour the records from 1 to last."""
    load_acquire(RING + at.RING_HEAD_AT)  # a process begins with a step
    if former >= 0:
        ask(IS_IT_MY_TURN, former)
        repair_all()
    if origin_own(PORT, ORIGIN, 0, who, 0) == 0:
        return 0
    pouring_begins(last)
    while load(BODY + at.POURING_AT) < load(BODY + at.POURING_END):
        code = pour_once(PORT, BODY)
        if code != OK:
            tell(REFUSED, code)
            answer = ask(IS_THERE_ROOM, code)
            if answer == END:
                break
            if answer == REPAIR:
                repair_all()
    records_of(last, 0)
    for each in range(0, at.POURING_BYTES, 8):
        store(BODY + each, 0)
    store(PORT + at.PORT_PRODUCER, 0)
    origin_own(PORT, ORIGIN, who, 0, 0)
    return 0


@program
def forgetting(former: int) -> int:
    """When the former has ended: forget its origin, and give the entry to another one."""
    ask(IS_IT_MY_TURN, former)
    tail = true_tail(PORT)
    if origin_forget(PORT, ORIGIN):
        origin_begin(PORT, ORIGIN, 1, 1, tail, 0, 0)
    return 0


class PouringRules(RingRules):
    """The number is that of the last message that tail has passed, or of one that is there."""

    def _check_numbers(self, memory: Sequence[int], ledger: Ledger, hint: int) -> None:
        word = memory[self._memory.origins[0]]
        generation, sequence = divmod(word, at.ORIGIN_GENERATION)
        if generation:
            if sequence:
                raise Violation(f"the number {sequence} of a former origin is another's")
            return
        beyond = ledger.published[hint - self._geometry.base :]
        last = ledger.last_of(POURED)
        passed = last - sum(each >> PRODUCER_SHIFT == POURED for each in beyond)
        if not passed <= sequence <= last:
            raise Violation(f"number {passed} to {last} is wanted; noted is {sequence}")

    def finished(self, view: View) -> None:
        super().finished(view)
        for owner in self._memory.origin_owners:
            if view.memory[owner]:
                raise Violation(f"an origin is in the hand of {view.memory[owner]}")
