"""Queues that follow others: moments and the journaler; and their ring, which others reclaim.

Of the moments there are two words, without a ring: all of a moment is in both.  Of the ring there
is who puts messages where the original has them, and somebody who reclaims what is done with.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from shmbroker.core import layout as at
from shmbroker.core.atomics import load_acquire, store, store_release
from shmbroker.core.commit import commit_begun, commit_is_showing, commit_show, commit_shown
from shmbroker.core.port import port_set
from shmbroker.core.reclaim import reclaim
from shmbroker.core.replica import replica_begin, replica_done, replica_place, replica_retire
from tests.explore.memory import Memory
from tests.explore.operation import Violation, ask, tell
from tests.explore.ring import ARENA, CHUNK_BYTES, PORT, RING, Geometry, RingMemory, position_of
from tests.explore.scenario import Role, Rules, Scenario, View
from tests.explore.translation import program

TRANSACTIONS: Final = 0x1000
SHOWN: Final = 0x4000
IS_THERE_MORE: Final = 1
CONFIRMED: Final = 1
MOMENT: Final = 2
PLACED: Final = 3
APPLIER: Final = 3
RECLAIMER: Final = 4

# --- moments --------------------------------------------------------------------------------------


@program
def nothing_is_shown() -> int:
    store(SHOWN, 0)
    return 0


@program
def showing(moments: int) -> int:
    """As core/moment.py does."""
    for moment in range(1, moments + 1):
        stamp = commit_show(TRANSACTIONS)
        store_release(SHOWN, moment)
        store_release(SHOWN + 8, moment)
        commit_shown(TRANSACTIONS)
        tell(CONFIRMED, moment, stamp)
    return 0


@program
def journaling_moments() -> int:
    """What ipc/broker/moment.c does, and commit_gate_clear."""
    whole = 0
    while ask(IS_THERE_MORE, whole) == 1:
        begun = commit_begun(TRANSACTIONS)
        if begun != whole and commit_is_showing(TRANSACTIONS) != 0:
            continue
        first = load_acquire(SHOWN)
        second = load_acquire(SHOWN + 8)
        if commit_begun(TRANSACTIONS) == begun:
            tell(MOMENT, first << 8 | second, begun)
            whole = begun
    return 0


@dataclass(frozen=True, slots=True)
class Journaled:
    """The last moment in the journal, with the count; and with which count others are confirmed."""

    begun: int = 0
    moment: int = 0
    stamps: frozenset[tuple[int, int]] = frozenset()


class MomentsAreWhole(Rules):
    def __init__(self, begun: int) -> None:
        self._begun = begun

    def first(self, memory: Sequence[int]) -> Hashable:
        return Journaled()

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
        assert isinstance(ledger, Journaled)
        if event == CONFIRMED:
            known = replace(ledger, stamps=ledger.stamps | {(first, second)})
        else:
            if first >> 8 != first & 255:
                raise Violation(f"moment {max(first >> 8, first & 255)} is half in the journal")
            known = replace(ledger, begun=second, moment=first & 255)
        for moment, stamp in known.stamps:
            if stamp <= known.begun and moment > known.moment:
                raise Violation(f"moment {moment} is confirmed, and not in the journal")
        return known

    def answers(self, view: View, actor: int, question: int, argument: int) -> Sequence[int]:
        if view.memory[self._begun] != argument:
            return (1,)
        return (0,) if view.ended(0) else (1,)


def moments_scenario() -> Scenario:
    memory = Memory()
    begun = memory.word("begun", TRANSACTIONS + at.TRANSACTIONS_BEGUN_AT)
    memory.word("showing", TRANSACTIONS + at.TRANSACTIONS_SHOWING_AT)
    memory.word("shown[0]", SHOWN)
    memory.word("shown[1]", SHOWN + 8)
    return Scenario(
        name="replica-moments",
        memory=memory,
        setup=nothing_is_shown,
        setup_arguments=(),
        roles=(Role("shower", showing, (3,)), Role("journaler", journaling_moments)),
        rules=MomentsAreWhole(begun),
        answers_max=2,
    )


# --- its ring -------------------------------------------------------------------------------------


@program
def opens(slots: int, owner: int) -> int:
    port_set(PORT, RING, ARENA, slots, 1, 2 * CHUNK_BYTES, owner)
    return 0


@program
def replica_formatted(slots: int) -> int:
    store(RING + at.RING_FLAGS_AT, at.RING_REPLICA)
    port_set(PORT, RING, ARENA, slots, 1, 2 * CHUNK_BYTES, APPLIER)
    return replica_begin(PORT, 0)


@program
def applying(begins_at: int, last: int) -> int:
    """Each message takes the place of the one before it; once the original is far ahead."""
    position = 0
    while position < last:
        if position == 2:
            position = begins_at
            replica_retire(PORT, position)
        tell(PLACED, position, replica_place(PORT, (position & 1) * CHUNK_BYTES, position))
        replica_done(PORT, position - 1)
        position += 1
    return replica_retire(PORT, position - 1)


@program
def reclaiming(times: int) -> int:
    for _ in range(times):
        reclaim(PORT)
    return 0


class LastIsThere(Rules):
    """What is placed finds room, and the last is there: nobody is done with it."""

    def __init__(self, memory: RingMemory, last: int) -> None:
        self._memory, self._last = memory, last

    def first(self, memory: Sequence[int]) -> Hashable:
        return 0

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
        if second != 0:
            raise Violation(f"there is no room for message {first}: {second}")
        return first

    def finished(self, view: View) -> None:
        geometry = self._memory.geometry
        tail = position_of(view.memory[self._memory.tail])
        word = self._memory.slot_word(view.memory, self._last)
        if tail != self._last + 1 or position_of(view.memory[self._memory.head]) != self._last:
            raise Violation(f"tail is at {tail}, and the last message at {self._last}")
        if word.state != at.READY or word.lap != geometry.lap(self._last):
            raise Violation(f"message {self._last} is not there: {word}")
        free = self._memory.slot_word(view.memory, self._last + 1)
        closed = (geometry.lap(self._last + 1) - at.CLOSED_LAPS) & at.LAP_MASK
        if (free.state, free.lap) != (at.FREE, closed):
            raise Violation(f"the free slot is not closed: {free}")


def replica_reclaimed_scenario() -> Scenario:
    last = 7
    memory = RingMemory(Geometry(slots=2, blocks=1, gates=0, flags=at.RING_REPLICA))
    memory.word("closed", RING + at.RING_CLOSED_AT)
    for each in range(at.LEVELS):
        memory.word(f"level[{each}]", RING + at.RING_LEVELS_AT + each * at.PAIR_BYTES)
    return Scenario(
        name="replica-reclaimed",
        memory=memory,
        setup=replica_formatted,
        setup_arguments=(2,),
        roles=(
            Role("applier", applying, (5, last + 1), opening=opens, opening_arguments=(2, APPLIER)),
            Role("journaler", reclaiming, (3,), opening=opens, opening_arguments=(2, RECLAIMER)),
        ),
        rules=LastIsThere(memory, last),
    )
