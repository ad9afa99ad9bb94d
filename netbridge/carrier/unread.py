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
        self.leaving: deque[tuple[bytes, int]] = deque()
        """Peers whose connection was closed, and how many are to be taken before they go."""

    def leaves(self, peer: bytes, connections: int) -> None:
        self.leaving.append((peer, self._all(connections)))

    def looked(self, now: float, connections: int, *, is_behind: bool) -> None:
        """As much was read as one turn has.  `connections`: if it is behind."""
        self.is_behind = is_behind
        if not is_behind:
            self.heard = self._since = now
            self._enough = 0
        elif self.taken >= self._enough:
            self.heard, self._since = self._since, now
            self._enough = self._all(connections)

    def gone(self) -> Iterator[bytes]:
        """Those of whom nothing is unread."""
        while self.leaving and (not self.is_behind or self.taken >= self.leaving[0][1]):
            yield self.leaving.popleft()[0]

    def _all(self, connections: int) -> int:
        return self.taken + self._most * (connections + len(self.leaving) + 1)
