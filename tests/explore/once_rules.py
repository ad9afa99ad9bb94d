"""What must hold of messages of which one counts.

The verdict on each is what a list of those that counted says: a duplicate is one whose id is among
the last N, or whose number is not above the last.  It is made once, in the order of positions, and
before tail passes the message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from shmbroker.core import layout as at
from shmbroker.core.codes import DUPLICATE
from tests.explore import once, processes
from tests.explore.invariants import RingRules
from tests.explore.ledger import Ledger
from tests.explore.operation import Violation
from tests.explore.ring import SlotWord, position_of
from tests.explore.scenario import View


class OnceRules(RingRules):
    """The invariants of a ring, and these."""

    def wrote(
        self,
        before: View,
        ledger: object,
        actor: int,
        index: int,
        old: int,
        new: int,
        memory: Sequence[int],
    ) -> Ledger:
        known = cast(Ledger, ledger)
        words = self._memory
        if index in words.verdicts:
            return self._judged(known, words.verdicts.index(index), new, memory)
        if index in words.slots:
            was, now = SlotWord.of(old), SlotWord.of(new)
            if (was.state, now.state) == (at.READY, at.DONE):
                slot = words.slots.index(index)
                position = words.position_in(memory, slot, was.lap)
                if not self._is_duplicate(memory, position):
                    raise Violation(f"position {position} was withdrawn, and is no duplicate")
                return known.finishing(position - self._geometry.base)
        return super().wrote(before, ledger, actor, index, old, new, memory)

    def _judged(self, known: Ledger, slot: int, verdict: int, memory: Sequence[int]) -> Ledger:
        position = (verdict >> 1) - 1
        if position != position_of(
            memory[self._memory.tail]
        ) or position % self._geometry.slots != (slot):
            raise Violation(f"a verdict on {position} in slot {slot}, and tail is elsewhere")
        chunk = self._memory.slot_word(memory, position).chunk
        same = self._memory.identity(memory, chunk)
        if same[2]:
            last = max((each[2] for each in known.counted if each[2]), default=self._geometry.noted)
            expected = same[2] <= last
        else:
            ids = [each for each in known.counted if not each[2]]
            expected = same in ids[-self._geometry.ids :]
        if bool(verdict & 1) != expected:
            raise Violation(f"the verdict on {position} should be {expected}, of {known.counted}")
        return known if expected else known._replace(counted=(*known.counted, same))

    def _is_duplicate(self, memory: Sequence[int], position: int) -> bool:
        verdict = memory[self._memory.verdicts[position % self._geometry.slots]]
        return verdict == (position + 1) << 1 | 1

    def told(
        self,
        before: View,
        ledger: object,
        actor: int,
        event: int,
        first: int,
        second: int,
        memory: Sequence[int],
    ) -> Ledger:
        known = cast(Ledger, ledger)
        if event == once.ANSWERED:
            if first and second != DUPLICATE:
                raise Violation(f"what was published just now counts once more: {second}")
            return known
        if event in (processes.TAKEN, processes.SAW):
            verdict = memory[self._memory.verdicts[first % self._geometry.slots]]
            if verdict != (first + 1) << 1:
                raise Violation(f"position {first} was delivered, and does not count")
        if event == once.WITHDREW:
            return known
        if event == once.PASSED:
            return self._passed(known, actor, first, memory)
        return super().told(before, ledger, actor, event, first, second, memory)

    def _saw(self, ledger: Ledger, actor: int, position: int, body: int) -> Ledger:
        """Where it was may have been duplicates."""
        self._check_content(ledger, position, body)
        if position < ledger.following(actor):
            raise Violation(f"a cursor saw {position}, and was at {ledger.following(actor)}")
        return ledger.moving(actor, position + 1)

    def _passed(self, ledger: Ledger, actor: int, position: int, memory: Sequence[int]) -> Ledger:
        for each in range(ledger.following(actor), position):
            if not self._is_duplicate(memory, each):
                raise Violation(f"a cursor passed {each}, which is no duplicate")
        return ledger.moving(actor, position)

    def check(self, view: View) -> None:
        super().check(view)
        memory, words = view.memory, self._memory
        head, tail = position_of(memory[words.head]), position_of(memory[words.tail])
        for position in range(head, tail):
            verdict = memory[words.verdicts[position % self._geometry.slots]]
            chunk = words.slot_word(memory, position).chunk
            if words.is_once(memory, chunk) and verdict >> 1 != position + 1:
                raise Violation(f"tail has passed {position} without a verdict")

    def finished(self, view: View) -> None:
        super().finished(view)
        known = cast(Ledger, view.ledger)
        ids = sum(not each[2] for each in known.counted)
        if self._geometry.ids and view.memory[self._memory.ids_count] != ids:
            noted = view.memory[self._memory.ids_count]
            raise Violation(f"{ids} ids counted, and {noted} are noted")
