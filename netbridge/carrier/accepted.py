"""The connections of a ROUTER: so many, each so long without a word, each closed after its end.

libzmq closes a connection when its peer does, or breaks off the handshake of CURVE.  A peer that
has ended, says nothing or is one too many would stay as long as it likes.  So its TCP connection
is shut down here: libzmq finds it closed and lets go of all that it has of it.  Its descriptor may
have been closed and used again meanwhile; the inode of the socket tells.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress

CONNECTIONS_MAX = 2000
"""Of a listener, strangers included."""
LAST_WORDS_SECONDS = 1.0
"""Until then what was said to a peer that has ended is on its way."""
FOREVER = float("inf")


class Accepted:
    def __init__(self, patience: float) -> None:
        """`patience`: for the first frame."""
        self._patience = patience
        self._inodes: dict[int, int] = {}
        self._until: dict[int, float] = {}
        """When it is shut, unless it says something."""
        self.due = FOREVER

    def __contains__(self, descriptor: object) -> bool:
        return descriptor in self._inodes

    def __len__(self) -> int:
        return len(self._inodes)

    def came(self, descriptor: int, now: float) -> bool:
        """False: it is one too many, and shut."""
        try:
            self._inodes[descriptor] = os.fstat(descriptor).st_ino
        except OSError:  # it has gone, and that will be told
            self._inodes[descriptor] = 0
        if len(self._inodes) > CONNECTIONS_MAX:
            self._shut(descriptor)
            return False
        self._wait(descriptor, now + self._patience)
        return True

    def spoke(self, descriptor: int) -> None:
        self._until.pop(descriptor, None)

    def ended(self, descriptor: int, now: float) -> None:
        """Nothing is heard of it any more."""
        if descriptor in self._inodes:
            self._wait(descriptor, now + LAST_WORDS_SECONDS)

    def gone(self, descriptor: int) -> None:
        self._inodes.pop(descriptor, None)
        self._until.pop(descriptor, None)

    def _wait(self, descriptor: int, until: float) -> None:
        self._until[descriptor] = until
        self.due = min(self.due, until)

    def shut_late(self, now: float) -> int:
        """How many had not said a word, or had ended."""
        late = [each for each, until in self._until.items() if until <= now]
        for each in late:
            del self._until[each]
            self._shut(each)
        self.due = min(self._until.values(), default=FOREVER)
        return len(late)

    def _shut(self, descriptor: int) -> None:
        with suppress(OSError):
            copy = os.dup(descriptor)
            try:
                is_it = os.fstat(copy).st_ino == self._inodes[descriptor]
                with socket.socket(fileno=copy) as found:
                    copy = -1
                    if is_it:
                        found.shutdown(socket.SHUT_RDWR)
            finally:
                if copy >= 0:
                    os.close(copy)
