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
from shmbroker.netbridge.replicated.attempts import Attempts


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
        self._peers, self._pause, self._tell = peers, times.heartbeat_interval, tell
        self._lock = threading.Lock()
        self._attempts = Attempts([each.peer for each in peers], times)
        self._is_over = threading.Event()
        for number in range(len(peers)):
            threading.Thread(target=self._look, args=(number,), daemon=True).start()

    def again(self) -> None:
        """Tell once more, as attempts from now on say."""
        with self._lock:
            self._attempts.again(time.monotonic())

    def close(self) -> None:
        """Nothing is told any more."""
        with self._lock:
            self._is_over.set()

    def _look(self, number: int) -> None:
        while not self._is_over.is_set():
            began = time.monotonic()
            is_there = is_reached(self._peers[number], self._pause)
            with self._lock:
                told = self._attempts.ended(number, began, is_there=is_there)
                if told is not None and not self._is_over.is_set():
                    self._tell(told)
            self._is_over.wait(max(0.0, began + self._pause - time.monotonic()))
