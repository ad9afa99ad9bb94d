"""What happens with each member, in its order, though a step may have to wait for a disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

Step = Callable[[Callable[[], None]], None]
"""It calls what it is given when it is done."""


class Turns:
    def __init__(self) -> None:
        self._of: dict[str, deque[Step]] = {}

    def take(self, member: str, step: Callable[[], None]) -> None:
        def at_once(go_on: Callable[[], None]) -> None:
            step()
            go_on()

        self.wait(member, at_once)

    def wait(self, member: str, step: Step) -> None:
        waiting = self._of.get(member)
        if waiting is not None:
            waiting.append(step)
            return
        self._of[member] = deque([step])
        self._next(member)

    def _next(self, member: str) -> None:
        waiting = self._of[member]
        if waiting:
            waiting.popleft()(lambda: self._next(member))
        else:
            del self._of[member]
