"""A schedule without a ring: two who schedule, two who serve, and the due word between them.

What is to hold: whatever was noted and not moved, somebody will look at in time.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from shmbroker.core.atomics import compare_exchange, load_acquire, store
from shmbroker.core.due import due_claim, due_note, due_settle
from shmbroker.core.layout import DUE_CLAIMED
from tests.explore.memory import Memory
from tests.explore.operation import Violation, tell
from tests.explore.scenario import Role, Rules, Scenario, View
from tests.explore.translation import program

DUE: Final = 0x1000
MESSAGES: Final = 0x2000
PUBLISHED: Final = 1
MOVED: Final = 2
EARLY: Final = 2
LATE: Final = 10_000
CLAIMS_END: Final = 5_000
"""After every claim, and before what is late."""

NOTED: Final = 1


@program
def opening() -> int:
    store(DUE, 0)
    return 0


@program
def scheduling(which: int, due: int) -> int:
    compare_exchange(MESSAGES + 8 * which, 0, PUBLISHED)
    due_note(DUE, due)
    tell(NOTED, which)
    return 0


@program
def serving(until: int, rounds: int) -> int:
    """Look some times, if there is anything; what is early is due, and what is late is not."""
    for each in range(rounds):
        seen = load_acquire(DUE)
        claim = 0
        if seen != 0:
            claim = due_claim(DUE, seen, until + 2 * each)
        if claim != 0:
            following = 0
            if load_acquire(MESSAGES) == PUBLISHED:
                compare_exchange(MESSAGES, PUBLISHED, MOVED)
            if load_acquire(MESSAGES + 8) == PUBLISHED:
                following = LATE
            if due_settle(DUE, claim, following) == 0 and following != 0:
                due_note(DUE, following)
    return 0


class NothingIsForgotten(Rules):
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

    def check(self, view: View) -> None:
        word, *messages = view.memory
        assert isinstance(view.ledger, frozenset)
        for which in view.ledger:
            if messages[which] == MOVED:
                continue
            latest = LATE if which else CLAIMS_END
            if word == 0 or word & ~DUE_CLAIMED > latest:
                raise Violation(f"message {which} is noted, and nobody looks before {word}")


def schedule_memory() -> Memory:
    memory = Memory()
    memory.word("due", DUE)
    memory.word("early", MESSAGES)
    memory.word("late", MESSAGES + 8)
    return memory


def schedule_scenario(name: str, rounds: int, kills: int) -> Scenario:
    return Scenario(
        name=name,
        memory=schedule_memory(),
        setup=opening,
        setup_arguments=(),
        roles=(
            Role("early", scheduling, (0, EARLY), mortal=True),
            Role("late", scheduling, (1, LATE), mortal=True),
            Role("mover1", serving, (1000, rounds), mortal=True),
            Role("mover2", serving, (3000, rounds), mortal=True),
        ),
        rules=NothingIsForgotten(),
        kills=kills,
    )
