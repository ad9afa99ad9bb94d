"""Whether this host reaches anybody outside of its group (`network-check`).

Each peer is connected to by TCP again and again.  A host that refuses the connection is there, too:
it is the network that is looked at, and not a service.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence

from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.plan.uri import Single


def is_reached(peer: Single, seconds: float) -> bool:
    try:
        socket.create_connection((peer.host, peer.port), seconds).close()
    except ConnectionRefusedError:
        return True
    except (OSError, UnicodeError):  # a name that no host can have
        return False
    return True


class Reaching:
    """A thread for each peer: a name that is not resolved may take its time."""

    def __init__(
        self, peers: Sequence[Single], times: LinkTimes, tell: Callable[[str], None]
    ) -> None:
        """`tell`: why this host is isolated, empty if it is not; from any thread."""
        self._peers, self._times, self._tell = peers, times, tell
        self._lock = threading.Lock()
        self._reached: set[int] = set()
        self._looked: set[int] = set()
        self._is_over = threading.Event()
        for number in range(len(peers)):
            threading.Thread(target=self._look, args=(number,), daemon=True).start()

    def close(self) -> None:
        """Nothing is told any more."""
        with self._lock:
            self._is_over.set()

    def _look(self, number: int) -> None:
        pause, missed = self._times.heartbeat_interval, 0
        while not self._is_over.is_set():
            due = time.monotonic() + pause
            missed = 0 if is_reached(self._peers[number], pause) else missed + 1
            if missed == 0 or missed >= self._times.heartbeat_misses:
                self._found(number, missed == 0)
            self._is_over.wait(max(0.0, due - time.monotonic()))

    def _found(self, number: int, is_there: bool) -> None:
        with self._lock:
            known = bool(self._reached), len(self._looked)
            self._looked.add(number)
            (self._reached.add if is_there else self._reached.discard)(number)
            if known == (bool(self._reached), len(self._looked)) or self._is_over.is_set():
                return
            if self._reached:
                self._tell("")
            elif len(self._looked) == len(self._peers):
                self._tell(f"it reaches none of {', '.join(each.peer for each in self._peers)}")
