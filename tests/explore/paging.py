"""A queue that pages, without a ring: who publishes, the pager, and the paging word between them.

Ring and inbox are rows of words, and whether the ring has room is asked each time, so that it may
be full whenever a publisher looks.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from shmbroker.core.atomics import compare_exchange, load_acquire, store
from shmbroker.core.layout import RING_PAGING_AT
from shmbroker.core.paging import paging_end, paging_note, paging_seen
from tests.explore.memory import Memory
from tests.explore.operation import Violation, ask, tell
from tests.explore.scenario import Role, Rules, Scenario, View
from tests.explore.translation import program

INBOX: Final = 0x1000
RING_MESSAGES: Final = 0x10000
INBOX_MESSAGES: Final = 0x20000
PASSED: Final = 0x30000
"""How many messages of the inbox the pager has moved."""
MESSAGES: Final = 3
OWNER_SHIFT: Final = 8

IS_THERE_ROOM: Final = 1
IS_THERE_WORK: Final = 2
PUBLISHED: Final = 1


@program
def nothing_is_paged() -> int:
    store(PASSED, 0)
    return 0


@program
def append(messages: int, message: int) -> int:
    for each in range(MESSAGES):
        if compare_exchange(messages + 8 * each, 0, message) == 0:
            return 1
    return 0


@program
def publishing(owner: int, last: int) -> int:
    """Publish the numbers from 1 to last, as ipc/paging/inbox.c does."""
    for number in range(1, last + 1):
        message = owner << OWNER_SHIFT | number
        if paging_seen(INBOX) == 0 and ask(IS_THERE_ROOM) == 1:
            append(RING_MESSAGES, message)
        else:
            paging_note(INBOX)
            append(INBOX_MESSAGES, message)
            paging_note(INBOX)
        tell(PUBLISHED, message)
    return 0


@program
def paging_out() -> int:
    """Move what is in the inbox to the ring until nobody publishes any more."""
    while ask(IS_THERE_WORK) == 1:
        since = paging_seen(INBOX)
        moved = 0
        passed = load_acquire(PASSED)
        while passed < MESSAGES and load_acquire(INBOX_MESSAGES + 8 * passed) != 0:
            append(RING_MESSAGES, load_acquire(INBOX_MESSAGES + 8 * passed))
            passed += 1
            moved += 1
            compare_exchange(PASSED, passed - 1, passed)
        if moved > 0 and since == 0:
            paging_note(INBOX)  # its publisher has died before it could
        if moved == 0 and since != 0:
            paging_end(INBOX, since)
    return 0


class OrderIsKept(Rules):
    """The messages of each publisher are in the ring in their order, and all that was published."""

    def __init__(self, ring: range, inbox: range, publishers: int) -> None:
        self._ring = ring
        self._inbox = inbox
        self._publishers = range(publishers)

    def first(self, memory: Sequence[int]) -> Hashable:
        return frozenset[int]()

    def told(
        self,
        before: View,
        ledger: Hashable,
        actor: int,
        event: int,
        first: int,
        second: int,
        memory: Sequence[int],
    ) -> Hashable:
        assert isinstance(ledger, frozenset)
        return ledger | {first}

    def answers(self, view: View, actor: int, question: int, argument: int) -> Sequence[int]:
        if question == IS_THERE_ROOM:
            return (0, 1)
        word, passed = view.memory[0], view.memory[1]
        waiting = sum(view.memory[index] != 0 for index in self._inbox) > passed
        if word != 0 or waiting:
            return (1,)
        return (0,) if all(view.ended(each) for each in self._publishers) else ()

    def check(self, view: View) -> None:
        ring = [view.memory[index] for index in self._ring if view.memory[index]]
        for owner in {each >> OWNER_SHIFT for each in ring}:
            numbers = [each for each in ring if each >> OWNER_SHIFT == owner]
            if numbers != sorted(set(numbers)):
                raise Violation(f"the messages of {owner} came as {numbers}")

    def finished(self, view: View) -> None:
        assert isinstance(view.ledger, frozenset)
        lost = view.ledger - {view.memory[index] for index in self._ring}
        if lost:
            raise Violation(f"{sorted(lost)} were published, and are not in the ring")


def paging_scenario() -> Scenario:
    memory = Memory()
    memory.word("paging", INBOX + RING_PAGING_AT)
    memory.word("passed", PASSED)
    for each in range(MESSAGES):
        memory.word(f"ring[{each}]", RING_MESSAGES + 8 * each)
    for each in range(MESSAGES):
        memory.word(f"inbox[{each}]", INBOX_MESSAGES + 8 * each)
    ring, inbox = range(2, 2 + MESSAGES), range(2 + MESSAGES, 2 + 2 * MESSAGES)
    return Scenario(
        name="paging",
        memory=memory,
        setup=nothing_is_paged,
        setup_arguments=(),
        roles=(
            Role("publisher1", publishing, (1, 2), mortal=True),
            Role("publisher2", publishing, (2, 1), mortal=True),
            Role("pager", paging_out),
        ),
        rules=OrderIsKept(ring, inbox, 2),
        kills=1,
        answers_max=2,
    )
