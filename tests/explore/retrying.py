"""A remote producer that goes on without a message and retries it later, and what must be true."""

from __future__ import annotations

from collections.abc import Sequence

from shmbroker.core import layout as at
from shmbroker.core.atomics import load_acquire, store
from shmbroker.core.batch import publish_once
from shmbroker.core.open_number import number_open, number_open_above, numbers_settle
from shmbroker.core.origin import origin_own
from shmbroker.core.port import producer_last
from tests.explore.ledger import Ledger
from tests.explore.operation import Violation, ask, tell
from tests.explore.pouring import ORIGIN, POURED, PouringRules
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

PLACE = ORIGIN + 1
SENT = (2, 1, 4)
"""The numbers of the messages, in order; 3 does not come."""


@program
def publish_number(number: int, place: int) -> int:
    """Publish the message with this number, which has this place among those that are sent."""
    while True:
        store(BODY, POURED << PRODUCER_SHIFT | place)
        store(PORT + at.PORT_SEQUENCE, number - 1)
        code = publish_once(PORT, BODY, BODY_BYTES)
        store(BODY, 0)
        store(PORT + at.PORT_SEQUENCE, 0)
        if code >= 0:
            return 1
        tell(REFUSED, code)
        answer = ask(IS_THERE_ROOM, code)
        if answer == END:
            return 0
        if answer == REPAIR:
            repair_all()


@program
def retrying(who: int, last: int, former: int) -> int:
    """What the former has not done of this: leave 1 out, publish 2, retry 1; leave 3 out,
    publish 4, if that is the last."""
    load_acquire(RING + at.RING_HEAD_AT)  # a process begins with a step
    if former >= 0:
        ask(IS_IT_MY_TURN, former)
        repair_all()
    if origin_own(PORT, ORIGIN, 0, who, 0) == 0:
        return 0
    store(PORT + at.PORT_PRODUCER, ORIGIN)
    number = producer_last(PORT, ORIGIN)
    numbers_settle(PORT, ORIGIN)
    if number < 2:
        number_open(PORT, PLACE, ORIGIN, 1)
        publish_number(2, 1)
    if number_open_above(PORT, ORIGIN, 0) == 1:
        publish_number(1, 2)
        numbers_settle(PORT, ORIGIN)
    if number < last == 4:
        number_open(PORT, PLACE, ORIGIN, 3)
        publish_number(4, 3)
    store(PORT + at.PORT_PRODUCER, 0)
    origin_own(PORT, ORIGIN, who, 0, 0)
    return 0


class RetryingRules(PouringRules):
    """A number counts as seen if it is there; if tail has passed it, it does."""

    def _check_numbers(self, memory: Sequence[int], ledger: Ledger, hint: int) -> None:
        count = ledger.last_of(POURED)
        beyond = ledger.published[hint - self._geometry.base :]
        passed = SENT[: count - sum(each >> PRODUCER_SHIFT == POURED for each in beyond)]
        mark = memory[self._memory.origins[0]] & at.SEQUENCE_MASK
        missed = self._missed(memory)
        seen = {each for each in range(1, mark + 1) if each != missed}
        if not seen <= set(SENT[:count]):
            raise Violation(f"{sorted(seen)} count as seen; published are {SENT[:count]}")
        if not set(passed) <= seen:
            raise Violation(f"tail has passed {passed}; {sorted(seen)} count as seen")

    def _missed(self, memory: Sequence[int]) -> int:
        """The open number, 0: none."""
        state, missed = (memory[each] for each in self._memory.open_numbers)
        number = memory[self._memory.origins[1]] & at.SEQUENCE_MASK
        return missed if state == at.ORIGIN_OPEN and number == 0 else 0

    def finished(self, view: View) -> None:
        super().finished(view)
        count = self._cast.expected
        ledger = view.ledger
        if isinstance(ledger, Ledger) and ledger.last_of(POURED) != count:
            raise Violation(f"{ledger.last_of(POURED)} messages are there, not {count}")
