"""The network thread: one loop over the sockets of all links of a broker, and one eventfd.

Whoever has news for it calls `call`, which writes the eventfd: the sleeper that waits for rings,
and programs.  Each turn takes events, steps the machines and carries out what they say; what one
member does in a turn is bounded.
"""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from time import monotonic
from typing import Any, Protocol, TypeVar

import zmq

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import ConnectionClosed
from shmbroker.ipc.connection.broker import Broker
from shmbroker.netbridge.carrier.authenticator import Authenticator
from shmbroker.netbridge.carrier.sleeper import Sleeper

SOCKETS_MAX = 8192
"""Of the context; libzmq's default is 1,023, and each connection has a socket and a monitor."""
T = TypeVar("T")


class Member(Protocol):
    """A link or a listener."""

    @property
    def due(self) -> float:
        """When `woken` wants to be called."""

    def woken(self, now: float) -> None: ...

    def end(self) -> None:
        """The thread ends: close all."""


class NetworkThread(Closable):
    def __init__(self, broker: Broker) -> None:
        """Of this broker's vhost.  Close it before the broker."""
        self.broker = broker
        self.context: zmq.Context[Any] = zmq.Context()
        self.context.set(zmq.MAX_SOCKETS, SOCKETS_MAX)
        self.members: list[Member] = []
        self.failure: BaseException | None = None
        self._poller = zmq.Poller()
        self._readable: dict[Any, Callable[[], None]] = {}
        self._calls: deque[Callable[[], None]] = deque()
        self._eventfd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._is_stopped = False
        self.sleeper = Sleeper(self.call)
        self._thread = threading.Thread(target=self._run, name="shmbroker-net", daemon=True)
        self._thread.start()

    # --- from any thread ----------------------------------------------------------------------

    def call(self, step: Callable[[], None]) -> None:
        """In the thread, soon."""
        self._calls.append(step)
        with suppress(OSError):  # it has ended
            os.eventfd_write(self._eventfd, 1)

    def ask(self, step: Callable[[], T]) -> T:
        """In the thread, and wait for the answer."""
        answer: Future[T] = Future()

        def answered() -> None:
            try:
                answer.set_result(step())
            except Exception as error:  # noqa: BLE001  # the caller's to deal with
                answer.set_exception(error)

        if not self._thread.is_alive():
            raise ConnectionClosed("the network thread has ended") from self.failure
        self.call(answered)
        return answer.result()

    def close(self) -> None:
        if self._thread.is_alive():
            self._is_stopped = True
            self.call(lambda: None)
            self._thread.join()
        if self._eventfd >= 0:
            os.close(self._eventfd)
            self._eventfd = -1

    # --- in the thread ------------------------------------------------------------------------

    def add(self, socket: Any, readable: Callable[[], None]) -> None:
        self._readable[socket] = readable
        self._poller.register(socket, zmq.POLLIN)

    def remove(self, socket: Any) -> None:
        if self._readable.pop(socket, None) is not None:
            self._poller.unregister(socket)

    def _run(self) -> None:
        authenticator = Authenticator(self.context)
        self.add(authenticator.socket, authenticator.readable)
        self.add(self._eventfd, self._nudged)
        try:
            while not self._is_stopped:
                self._turn()
            for member in self.members:
                member.end()
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self._is_stopped = True
            self.sleeper.close()
            authenticator.close()
            self.context.destroy(linger=1000)
            self._nudged()

    def _turn(self) -> None:
        due = min((each.due for each in self.members), default=math.inf)
        wait = None if due == math.inf else max(0, math.ceil((due - monotonic()) * 1000))
        for socket, _ in self._poller.poll(wait):
            readable = self._readable.get(socket)
            if readable is not None:  # another of them may have closed it
                readable()
        now = monotonic()
        for member in list(self.members):
            if member.due <= now:
                member.woken(now)

    def _nudged(self) -> None:
        with suppress(BlockingIOError):
            os.eventfd_read(self._eventfd)
        for _ in range(len(self._calls)):
            self._calls.popleft()()
