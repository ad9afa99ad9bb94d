"""When the replicas of a live begin and cease to hold confirms back.

The machine counts a replica once it has all, and confirms can wait for it; they do before the
record that lists it is written.  One that begins anew takes the place of its older end only when
its newer end holds confirms back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

Count = Callable[[], bool]
"""True: confirms wait for it from now on."""
Step = Callable[[], None]


class Admission:
    def __init__(self) -> None:
        self._streams: dict[str, int] = {}
        self._admits: dict[str, Count] = {}
        """Replicas that are to count as soon as the machine says so."""
        self._left: list[tuple[str, Step]] = []
        """Replicas that confirms wait for, until the machine lets go of them."""

    def ship(self, member: str, stream: int) -> None:
        self._streams[member] = stream
        self._admits.pop(member, None)

    def stop(self, member: str) -> None:
        self._admits.pop(member, None)

    def stream(self, member: str) -> int:
        """0 if nothing was shipped to it."""
        return self._streams.get(member, 0)

    def admit(self, member: str, then: Count) -> None:
        """Confirms can wait for it from `then` on."""
        self._admits[member] = then

    def count(self, members: Iterable[str]) -> None:
        """Those of them that were admitted hold confirms back from now on."""
        admitted = [each for each in members if each in self._admits]
        counting = {each for each in admitted if self._admits.pop(each)()}
        self._release(counting)  # the newer end counts in the place of the older one

    def release(self, member: str, then: Step) -> None:
        """It has failed; confirms go on without it when the machine counts it no more."""
        self._left.append((member, then))

    def let_go(self, counted: Collection[str]) -> None:
        self._release({member for member, _ in self._left if member not in counted})

    def _release(self, members: Collection[str]) -> None:
        over = [then for member, then in self._left if member in members]
        self._left = [each for each in self._left if each[0] not in members]
        for then in over:
            then()
