"""Further members that are kept connected while another one is in use.

`backup` keeps a pool of them, so that a loss costs no connection; `priority-backup` keeps trying
the preferred members while the link is on another one.
"""

from __future__ import annotations

from collections.abc import Iterable

from shmbroker.netbridge.plan.action import Actions, Hold, Release
from shmbroker.netbridge.plan.pacing import Chance, Pacing
from shmbroker.netbridge.plan.terms import Terms
from shmbroker.netbridge.plan.uri import Single


class Standby:
    def __init__(self, terms: Terms, chance: Chance) -> None:
        self._terms = terms
        self._chance = chance
        self.held: set[Single] = set()
        self._asked: set[Single] = set()
        self._due: dict[Single, float] = {}
        self._pacing: dict[Single, Pacing] = {}

    @property
    def due(self) -> float | None:
        return min(self._due.values(), default=None)

    def is_preferred(self, member: Single, members: tuple[Single, ...]) -> bool:
        """By `priority-uris`, or the first member."""
        if not self._terms.priority:
            return members[:1] == (member,)
        return bool({member.peer, member.host} & set(self._terms.priority))

    def _wanted(self, present: Single | None, members: tuple[Single, ...]) -> list[Single]:
        others = [each for each in members if each != present]
        if present is None:
            return []
        preferred = []
        if self._terms.is_priority and not self.is_preferred(present, members):
            preferred = [each for each in others if self.is_preferred(each, members)]
        rest = [each for each in others if each not in preferred]
        # members that are held already are kept before others are asked
        rest.sort(key=lambda each: (each not in self.held, each not in self._asked))
        return preferred + rest[: self._terms.pool]

    def update(self, now: float, present: Single | None, members: tuple[Single, ...]) -> Actions:
        """Hold what is wanted; let go of the rest."""
        wanted = self._wanted(present, members)
        for member in sorted(self._asked - set(wanted), key=str):
            self.forget(member)
            yield Release(member)
        self._due = {each: at for each, at in self._due.items() if each in wanted}
        for member in wanted:
            if member not in self._asked and self._due.get(member, now) <= now:
                self._due.pop(member, None)
                self._asked.add(member)
                yield Hold(member)

    def arrived(self, member: Single) -> bool:
        """It is connected and authenticated; False if nobody wants it any more."""
        if member in self._asked:
            self.held.add(member)
            self._pacing.pop(member, None)
        return member in self._asked

    def failed(self, member: Single, now: float) -> None:
        if member in self._asked:
            pacing = self._pacing.setdefault(member, Pacing(self._terms.pace, self._chance))
            self.forget(member)
            self._due[member] = now + pacing.pause()

    def forget(self, member: Single) -> None:
        self.held.discard(member)
        self._asked.discard(member)

    def held_first(self, members: Iterable[Single]) -> list[Single]:
        return sorted(members, key=lambda each: each not in self.held)
