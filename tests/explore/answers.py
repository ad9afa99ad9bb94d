"""What the outside world answers to the programs of a ring: who is dead, is it worth trying again.

Who waits for room or for work may try again as soon as that can change anything, and is told to
repair as soon as something is left over that only this puts right.  Nobody is told to try again
for ever: a state in which all wait though something is left to do is then found as one that cannot
finish.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from shmbroker.core import layout as at
from shmbroker.core.codes import ARENA_FULL, EMPTY
from tests.explore import processes
from tests.explore.cast import COMMITTER, Cast
from tests.explore.ledger import Ledger
from tests.explore.operation import Violation
from tests.explore.processes import END, GO_ON, REPAIR
from tests.explore.ring import BlockWord, Geometry, RingMemory, bucket_owner_of, position_of
from tests.explore.scenario import View


class Answers:
    """The outside of one ring."""

    def __init__(self, geometry: Geometry, memory: RingMemory, cast: Cast) -> None:
        self._geometry = geometry
        self._memory = memory
        self._cast = cast

    def to(self, view: View, actor: int, question: int, argument: int) -> Sequence[int]:
        if question == processes.WHO_IS_ALIVE:
            return (self._alive(view, actor),)
        if question == processes.IS_THERE_ROOM:
            return self._room(view, argument)
        if question == processes.IS_THERE_WORK:
            return self._work(view, actor, argument)
        if question == processes.WHAT_TIME:
            return 1, argument
        if question == processes.MAY_I_SLEEP:
            return () if view.memory[self._memory.consumer_bell] else (0,)
        if question == processes.IS_IT_MY_TURN:
            return (0,) if view.ended(argument) else ()
        if question == processes.IS_IT_COMMITTED:
            committed = view.memory[self._memory.transaction] == at.TRANSACTION_COMMITTED
            return (0,) if committed or view.ended(argument) else ()
        raise ValueError(f"nobody knows the answer to question {question}")

    def _alive(self, view: View, actor: int) -> int:
        bits = 1 << self._cast.owner(actor)
        if actor < len(self._cast.owners):
            for each, owner in enumerate(self._cast.owners):
                if not view.killed(each) or self._is_to_settle(view, owner):
                    bits |= 1 << owner
        return bits

    def _is_to_settle(self, view: View, owner: int) -> bool:
        """Nobody repairs for the committer before its transaction is settled."""
        return owner == COMMITTER and view.memory[self._memory.transaction] != 0

    def _room(self, view: View, code: int) -> Sequence[int]:
        """Try again if that may help; give up if nobody is left who could make room."""
        memory, ledger = view.memory, cast(Ledger, view.ledger)
        head = position_of(memory[self._memory.head])
        tail = self._geometry.base + len(ledger.published)
        if self._geometry.flags & at.RING_BROADCAST:
            return self._broadcast_room(view)
        waiting = any(not view.ended(each) for each in self._cast.consumers)
        if code == ARENA_FULL:
            return self._memory_room(view, waiting)
        if any(self._cast.is_dead(view, owner) for owner in self._gate_owners(memory)):
            return (REPAIR,)
        if (
            tail - head < self._geometry.slots
            or self._memory.slot_word(memory, head).state == at.DONE
        ):
            return (GO_ON,)
        return () if waiting else (END,)

    def _broadcast_room(self, view: View) -> Sequence[int]:
        memory = view.memory
        gates = [memory[each] for each in self._memory.gates if memory[each] & at.GATE_ACTIVE]
        if any(self._cast.is_dead(view, owner) for owner in self._gate_owners(memory)):
            return (REPAIR,)
        head = position_of(memory[self._memory.head])
        return (GO_ON,) if all(position_of(each) > head for each in gates) else ()

    def _gate_owners(self, memory: Sequence[int]) -> Iterator[int]:
        for index in self._memory.gates:
            if memory[index] & at.GATE_ACTIVE:
                yield (memory[index] >> at.GATE_OWNER_SHIFT) & at.OWNER_MASK

    def _memory_room(self, view: View, waiting: bool) -> Sequence[int]:
        blocks = [BlockWord.of(view.memory[each]) for each in self._memory.blocks]
        if any(
            each.state == at.BLOCK_OWNED and self._cast.is_dead(view, each.owner) for each in blocks
        ):
            return (REPAIR,)
        return (GO_ON,) if waiting else (END,)

    def _work(self, view: View, actor: int, code: int) -> Sequence[int]:
        memory, ledger = view.memory, cast(Ledger, view.ledger)
        if code != EMPTY:
            raise Violation(f"a kernel answered {code}")
        producing = any(not view.ended(each) for each in self._cast.producers)
        tail = self._geometry.base + len(ledger.published)
        if actor in self._cast.cursors:
            if ledger.following(actor) < tail:
                return (GO_ON,)
            return () if producing else (END,)
        if ledger.all_done:
            return () if producing else (END,)
        return self._left(view, range(position_of(memory[self._memory.head]), tail))

    def _left(self, view: View, positions: range) -> Sequence[int]:
        """What a consumer that found nothing may do about the messages that are not done."""
        hints = (self._memory.take, *self._memory.levels)
        passed = max(position_of(view.memory[hint]) for hint in hints)
        harmed = self._cast.is_harmed(view)
        retry = repair = held = False
        repair |= any(
            self._cast.is_dead(view, bucket_owner_of(view.memory[bucket]))
            for bucket in self._memory.buckets
        )
        for position in positions:
            word = self._memory.slot_word(view.memory, position)
            if word.state == at.READY:
                retry = True
                repair |= position < passed and harmed
            elif word.state == at.LEASED:
                repair |= self._cast.is_dead(view, word.owner)
                held |= not self._cast.is_stopped(view, word.owner)
        if not (retry or repair or held):
            return (END,)
        return (GO_ON,) * retry + (REPAIR,) * repair
