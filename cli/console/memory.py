"""The vhost of the instance, opened to be read: one connection, opened anew when the rings are."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from shmbroker.ipc.base.errors import NotFound
from shmbroker.ipc.connection.broker import SCHEME, Broker, connect
from shmbroker.ipc.instance import rings

NAME = "shmbroker console"


class Memory:
    """From any thread."""

    def __init__(self, vhost: str) -> None:
        self._vhost = vhost
        self._lock = threading.Lock()
        self._broker: Broker | None = None
        self._identity = 0

    @contextmanager
    def opened(self) -> Iterator[Broker]:
        """An Error says why it cannot be read."""
        yield self._current()

    def _current(self) -> Broker:
        with self._lock:
            identity = rings.found(self._vhost).identity
            if identity == 0:
                self._broker = None
                raise NotFound(f"there is no vhost {self._vhost!r} on this host")
            if self._broker is None or identity != self._identity:
                # whoever reads by the former one may go on: it is closed when nobody has it
                self._broker = connect(SCHEME + self._vhost, observe=True)
                self._identity = identity
            return self._broker


@contextmanager
def taking_part(vhost: str, user: str) -> Iterator[Broker]:
    """A connection for what an admin does, named after who it is."""
    name = f"{NAME} {user}".encode()[: rings.NAME_BYTES_MAX].decode(errors="ignore")
    with connect(SCHEME + vhost, name=name) as broker:
        yield broker
