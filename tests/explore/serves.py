"""A broker that serves no more, and then serves again, while somebody waits for a message.

What is to hold: who begins to look while it does not serve finds nothing before it serves again,
and whoever sleeps by then is woken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, cast

from shmbroker.core import layout as at
from shmbroker.core.atomics import store
from shmbroker.core.bell import ASLEEP, bell_arm, bell_ring
from shmbroker.core.visible import is_deliverable, serves_until
from tests.explore.memory import CONSTANT, PRIVATE_AT, Memory
from tests.explore.operation import Violation, ask, tell
from tests.explore.scenario import Role, Rules, Scenario, View
from tests.explore.translation import program

RING: Final = 0x1000
ARENA: Final = 0x8000
PORT: Final = PRIVATE_AT
BASE: Final = 7

MAY_SLEEP: Final = 1
WOKEN: Final = 0

LOOKS: Final = 1
TAKES: Final = 2


@program
def confirmed_message() -> int:
    store(RING + at.RING_CONFIRMED_AT, BASE + 1)
    return 0


@program
def port_of() -> int:
    store(PORT + at.PORT_HEADER, RING)
    store(PORT + at.PORT_ARENA, ARENA)
    store(PORT + at.PORT_BARRIER, RING + at.RING_CONFIRMED_AT)
    return 0


@program
def pausing(times: int) -> int:
    """As sb_vhost_serves_until, and then wake_takers of ipc/ring/waiting.py."""
    for _ in range(times):
        serves_until(ARENA, at.SERVES_NOT)
        serves_until(ARENA, 0)
        bell_ring(RING + at.RING_CONSUMER_BELL_AT)
    return 0


@program
def taking() -> int:
    """As wait_for_message, of a message that is confirmed."""
    while True:
        bell_arm(RING + at.RING_CONSUMER_BELL_AT)
        tell(LOOKS)
        if is_deliverable(PORT, BASE):
            tell(TAKES)
            return 0
        ask(MAY_SLEEP)


class Known(NamedTuple):
    serves: bool = True
    is_late: bool = False
    """The consumer has begun to look since it does not serve."""


class NobodyTakesMeanwhile(Rules):
    def __init__(self, memory: Memory) -> None:
        self._bell = memory.index[RING + at.RING_CONSUMER_BELL_AT]

    def first(self, memory: Sequence[int]) -> Known:
        return Known()

    def wrote(
        self,
        before: View,
        ledger: object,
        actor: int,
        index: int,
        old: int,
        new: int,
        memory: Sequence[int],
    ) -> Known:
        return Known(serves=new != at.SERVES_NOT)

    def told(
        self,
        before: View,
        ledger: object,
        actor: int,
        event: int,
        first: int,
        second: int,
        memory: Sequence[int],
    ) -> Known:
        known = cast(Known, ledger)
        if event == LOOKS:
            return known._replace(is_late=not known.serves)
        if known.is_late:
            raise Violation("it took a message while its broker did not serve")
        return known

    def answers(self, view: View, actor: int, question: int, argument: int) -> Sequence[int]:
        return () if view.memory[self._bell] & ASLEEP else (WOKEN,)


def broker_paused() -> Scenario:
    memory = Memory()
    memory.word("barrier", RING + at.RING_CONFIRMED_AT, CONSTANT)
    memory.word("consumer bell", RING + at.RING_CONSUMER_BELL_AT)
    memory.word("serves until", ARENA + at.ARENA_SERVES_UNTIL_AT)
    return Scenario(
        name="serves-again",
        memory=memory,
        setup=confirmed_message,
        setup_arguments=(),
        roles=(
            Role("broker", pausing, (2,), port_of, ()),
            Role("consumer", taking, (), port_of, ()),
        ),
        epilogue=Role("survivor", taking, (), port_of, ()),
        rules=NobodyTakesMeanwhile(memory),
        watched=(memory.index[ARENA + at.ARENA_SERVES_UNTIL_AT],),
        kills=0,
        stops=0,
    )
