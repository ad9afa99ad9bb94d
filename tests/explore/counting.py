"""Counting times in stripes: two who count and release, and two who free what the dead had.

Only one stripe is free, so that it passes from one to the next, and who finds none counts in the
first, which is everybody's.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from shmbroker.core import layout as at
from shmbroker.core.atomics import store
from shmbroker.core.histogram import (
    record,
    recording_open,
    stripe_claim,
    stripe_release,
    stripe_word,
    stripes_release,
)
from shmbroker.core.layout import HISTOGRAMS_STRIPES_AT, PAIR_BYTES, STRIPES
from tests.explore.memory import CONSTANT, PRIVATE_AT, Memory
from tests.explore.operation import Violation, ask, tell
from tests.explore.scenario import Role, Rules, Scenario, View
from tests.explore.translation import program

HISTOGRAMS: Final = 0x100000
COUNTS: Final = 0x200000
STRIPE_BYTES: Final = 0x1000
RECORDING: Final = PRIVATE_AT
LOWEST: Final = 1
HIGHEST: Final = 2
DIGITS: Final = 1
BUCKET: Final = 3  # of the value 3
STRANGER: Final = 99

MAY_START: Final = 1
IS_HE_DEAD: Final = 2
COUNTED: Final = 1


@program
def stripes_set_up() -> int:
    for stripe in range(2, STRIPES):
        store(stripe_word(HISTOGRAMS, stripe), STRANGER)
    return 0


@program
def counting(owner: int, times: int) -> int:
    ask(MAY_START)
    stripe = stripe_claim(HISTOGRAMS, owner)
    counts = COUNTS + stripe * STRIPE_BYTES
    recording_open(RECORDING, counts, int(stripe == 0), LOWEST, HIGHEST, DIGITS)
    for _ in range(times):
        record(RECORDING, 0, BUCKET)
        tell(COUNTED)
    if stripe != 0:
        stripe_release(HISTOGRAMS, stripe, owner)
    return 0


@program
def dead_lettering(dead: int) -> int:
    if ask(IS_HE_DEAD, dead):
        return stripes_release(HISTOGRAMS, dead)
    return 0


class CountingRules(Rules):
    """What is there is what was counted, whoever dies, and it never becomes less."""

    def __init__(self, memory: Memory, counts: Sequence[int]) -> None:
        self._memory = memory
        self._counts = counts

    def first(self, memory: Sequence[int]) -> Hashable:
        return 0

    def wrote(
        self,
        before: View,
        ledger: Hashable,
        actor: int,
        index: int,
        old: int,
        new: int,
        memory: Sequence[int],
    ) -> Hashable:
        if new < old:
            raise Violation(f"a count went back from {old} to {new}")
        return ledger

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
        assert isinstance(ledger, int)
        return ledger + 1

    def answers(self, view: View, actor: int, question: int, argument: int) -> Sequence[int]:
        """Who dies is known as soon as it happens, or not before all is over."""
        if question == MAY_START or view.killed(argument - 1):
            return (1,)
        return (0,) if view.ended(argument - 1) else ()

    def check(self, view: View) -> None:
        counted = sum(view.memory[index] for index in self._counts)
        if counted != view.ledger:
            raise Violation(f"{view.ledger} times were counted, and {counted} are there")


def stripes(times: int, kills: int) -> Scenario:
    memory = Memory()
    counts = [
        memory.word(f"counts[{stripe}]", COUNTS + stripe * STRIPE_BYTES + 8 * BUCKET)
        for stripe in range(2)
    ]
    for stripe in range(1, STRIPES):
        address = HISTOGRAMS + HISTOGRAMS_STRIPES_AT + stripe * PAIR_BYTES + at.STRIPE_OWNER_AT
        memory.word(f"owner[{stripe}]", address, *([] if stripe == 1 else [CONSTANT]))
    return Scenario(
        name="stripes",
        memory=memory,
        setup=stripes_set_up,
        setup_arguments=(),
        roles=(
            Role("counter1", counting, (1, times), mortal=True),
            Role("counter2", counting, (2, times), mortal=True),
            Role("counter3", counting, (3, times)),
            Role("undertaker1", dead_lettering, (1,)),
            Role("undertaker2", dead_lettering, (1,)),
        ),
        rules=CountingRules(memory, counts),
        watched=tuple(counts),
        kills=kills,
    )
