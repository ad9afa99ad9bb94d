"""What may stand unread in a ROUTER that is not empty.

It takes of each connection in turn, and of each only so many messages wait in it.  So after so many
messages all that had come before is taken, however much comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator


class Unread:
    def __init__(self, now: float, most: int) -> None:
        """`most`: messages of a connection that wait in it."""
        self._most = most
        self.taken = 0
        """Messages of all connections."""
        self.is_behind = False
        """There was more to read when it was looked last."""
        self.heard = self._since = now
        """All that had come by then was taken; by the second, when `_enough` are taken."""
        self._enough = 0
        self._leaving: deque[tuple[bytes, int]] = deque()
        """Peers whose connection was closed, and how many are to be taken before they go."""

    @property
    def is_awaited(self) -> bool:
        """Somebody goes when enough is read."""
        return bool(self._leaving)

    def leaves(self, peer: bytes, connections: int) -> None:
        self._leaving.append((peer, self._all(connections)))

    def looked(self, now: float, connections: int, *, is_behind: bool) -> None:
        """As much was read as one turn has."""
        self.is_behind = is_behind
        if not is_behind or self.taken >= self._enough:
            self.heard, self._since = self._since if is_behind else now, now
            self._enough = self._all(connections)

    def gone(self) -> Iterator[bytes]:
        """Those of whom nothing is unread."""
        while self._leaving and (not self.is_behind or self.taken >= self._leaving[0][1]):
            yield self._leaving.popleft()[0]

    def _all(self, connections: int) -> int:
        return self.taken + self._most * (connections + len(self._leaving) + 1)
