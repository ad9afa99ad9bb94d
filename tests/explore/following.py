"""The bell of a follower, without rings: two workers, the words that they work on, who is told.

The follower has one bell for both; a subscriber sleeps on the bell of the first as well.  What is
to hold: all work is seen.  Nobody is left asleep when the workers have ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from shmbroker.core.atomics import compare_exchange, load_acquire, store
from shmbroker.core.bell import (
    ASLEEP,
    bell_arm,
    bell_follow,
    bell_ring,
    follower_rung,
    follower_tell,
    followers_in,
)
from shmbroker.core.layout import FOLLOWER_BELL_AT, FOLLOWER_RUNG_AT
from tests.explore.memory import Memory
from tests.explore.operation import ask
from tests.explore.scenario import Role, Rules, Scenario, View
from tests.explore.translation import program

PLACE: Final = 0x1000
WORK: Final = 0x2000
BELLS: Final = 0x3000
FOLLOWER: Final = 3
"""The number of its bell."""

MAY_FOLLOWER_SLEEP: Final = 1
MAY_SUBSCRIBER_SLEEP: Final = 2


@program
def opening() -> int:
    store(PLACE + FOLLOWER_BELL_AT, 0)
    return 0


@program
def working(row: int, times: int) -> int:
    for each in range(times):
        compare_exchange(WORK + 8 * row, each, each + 1)
        rung = bell_ring(BELLS + 8 * row)
        if followers_in(rung) == 1 << FOLLOWER:
            follower_tell(PLACE, row)
    return 0


@program
def following_both(count: int) -> int:
    bell_follow(BELLS, FOLLOWER)
    first = load_acquire(WORK)
    bell_follow(BELLS + 8, FOLLOWER)
    second = load_acquire(WORK + 8)
    while first + second < count:
        bell_arm(PLACE + FOLLOWER_BELL_AT)
        rung = follower_rung(PLACE, 0)
        if rung & 1:
            bell_follow(BELLS, FOLLOWER)
            first = load_acquire(WORK)
        if rung & 2:
            bell_follow(BELLS + 8, FOLLOWER)
            second = load_acquire(WORK + 8)
        if rung == 0:
            ask(MAY_FOLLOWER_SLEEP)
    return 0


@program
def subscribing(count: int) -> int:
    while True:
        bell_arm(BELLS)
        if load_acquire(WORK) >= count:
            return 0
        ask(MAY_SUBSCRIBER_SLEEP)


class AllIsSeen(Rules):
    def __init__(self, memory: Memory) -> None:
        self._bell = memory.index[PLACE + FOLLOWER_BELL_AT]
        self._ring = memory.index[BELLS]

    def answers(self, view: View, actor: int, question: int, argument: int) -> Sequence[int]:
        word = self._bell if question == MAY_FOLLOWER_SLEEP else self._ring
        return () if view.memory[word] & ASLEEP else (0,)


def follower_scenario(name: str, times: int, *, store_buffers: bool = False) -> Scenario:
    memory = Memory()
    memory.word("follower's bell", PLACE + FOLLOWER_BELL_AT)
    memory.word("rung", PLACE + FOLLOWER_RUNG_AT)
    for row in range(2):
        memory.word(f"work[{row}]", WORK + 8 * row)
        memory.word(f"bell[{row}]", BELLS + 8 * row)
    return Scenario(
        name=name,
        memory=memory,
        setup=opening,
        setup_arguments=(),
        roles=(
            Role("worker1", working, (0, times)),
            Role("worker2", working, (1, 1)),
            Role("follower", following_both, (times + 1,)),
            Role("subscriber", subscribing, (times,)),
        ),
        rules=AllIsSeen(memory),
        store_buffers=store_buffers,
    )
