"""Small protocols with known answers, to test the explorer itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from shmbroker.core.atomics import (
    compare_exchange,
    copy,
    exchange,
    fetch_add,
    load,
    load_acquire,
    store,
    store_release,
)
from tests.explore.memory import BULK, PRIVATE_AT, Memory
from tests.explore.operation import Violation, ask, tell
from tests.explore.scenario import Role, Rules, Scenario, View
from tests.explore.translation import program

COUNTER: Final = 0x1000
FLAG: Final = 0x1008
OTHER_FLAG: Final = 0x1010
BODY: Final = 0x2000

ENTERED: Final = 1
LEFT: Final = 2
SLEPT: Final = 3
WOKEN: Final = 4

MAY_I: Final = 1


def toy_memory() -> Memory:
    memory = Memory()
    memory.word("counter", COUNTER)
    memory.word("flag", FLAG)
    memory.word("other flag", OTHER_FLAG)
    for i in range(2):
        memory.word(f"body[{i}]", BODY + 8 * i, BULK)
    return memory


@program
def nothing() -> int:
    return fetch_add(COUNTER, 0)


@program
def racy_increment(address: int) -> int:
    store_release(address, load_acquire(address) + 1)
    return 0


@program
def atomic_increment(address: int) -> int:
    while True:
        former = load_acquire(address)
        if compare_exchange(address, former, former + 1) == former:
            return former


@program
def racy() -> int:
    for _ in range(2):
        racy_increment(COUNTER)
    return 0


@program
def careful() -> int:
    for _ in range(2):
        atomic_increment(COUNTER)
    return 0


@program
def locking() -> int:
    while exchange(FLAG, 1) != 0:
        ask(MAY_I)
    tell(ENTERED)
    store_release(COUNTER, load_acquire(COUNTER) + 1)
    tell(LEFT)
    store_release(FLAG, 0)
    return 0


@program
def spinning() -> int:
    """Waits inside of its call: the others' death hangs it."""
    while compare_exchange(FLAG, 0, 1) != 0:
        pass
    store_release(FLAG, 0)
    return 0


@program
def dekker(mine: int, other: int) -> int:
    """Store, then load: what a store buffer breaks."""
    store_release(mine, 1)
    if load_acquire(other) == 0:
        tell(ENTERED)
    return 0


@program
def fenced(mine: int, other: int) -> int:
    exchange(mine, 1)
    if load_acquire(other) == 0:
        tell(ENTERED)
    return 0


@program
def writer() -> int:
    ask(MAY_I)
    store(BODY, 7)
    store(BODY + 8, 8)
    store_release(FLAG, 1)
    return 0


@program
def reader() -> int:
    while load_acquire(FLAG) == 0:
        ask(MAY_I)
    copy(PRIVATE_AT, BODY, 12)
    tell(WOKEN, load(PRIVATE_AT), load(PRIVATE_AT + 8))
    return 0


@program
def stray() -> int:
    return load_acquire(COUNTER + load_acquire(COUNTER) * 4096 - 4096)


@program
def far_shift() -> int:
    return load_acquire(COUNTER) << (load_acquire(COUNTER) + 64)


class CountIs(Rules):
    """Every increment is counted."""

    def __init__(self, expected: int) -> None:
        self._expected = expected

    def finished(self, view: View) -> None:
        if view.memory[0] != self._expected:
            raise Violation(f"counted {view.memory[0]}, not {self._expected}")


class OneAtATime(Rules):
    """At most one actor is inside."""

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
        return ledger | {actor} if event == ENTERED else ledger - {actor}

    def check(self, view: View) -> None:
        assert isinstance(view.ledger, frozenset)
        if len(view.ledger) > 1:
            raise Violation("two are inside")


class WholeBody(Rules):
    """What is read is what was written."""

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
        if (first, second) != (7, 8):
            raise Violation(f"read {first}, {second}")
        return ledger


def toy(
    rules: Rules,
    *programs: Callable[..., int],
    arguments: Sequence[tuple[int, ...]] = (),
    kills: int = 0,
    store_buffers: bool = False,
) -> Scenario:
    given = list(arguments) or [()] * len(programs)
    return Scenario(
        name="toy",
        memory=toy_memory(),
        setup=nothing,
        setup_arguments=(),
        roles=tuple(
            Role(f"actor{i}", each, given[i], mortal=True) for i, each in enumerate(programs)
        ),
        rules=rules,
        kills=kills,
        store_buffers=store_buffers,
    )
