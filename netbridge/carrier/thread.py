"""The network thread: one loop over the sockets of all links of a broker, and one eventfd.

Whoever has news for it calls `call`, which writes the eventfd: the sleeper that waits for rings,
and programs.  Each turn takes events, steps the machines and carries out what they say; what one
member does in a turn is bounded.

The loop waits with epoll for the descriptors of the sockets.  libzmq signals one only for what is
new to its socket, and whatever is done with the socket takes the signal.  So a socket that was used
is asked before the loop sleeps.
"""

from __future__ import annotations

import math
import os
import select
import threading
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, Protocol, TypeVar, runtime_checkable

import zmq

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import ConnectionClosed, InvalidArgument
from shmbroker.ipc.connection.broker import Broker
from shmbroker.netbridge.carrier.authenticator import Authenticator
from shmbroker.netbridge.carrier.sleeper import Sleeper
from shmbroker.netbridge.carrier.socket import is_readable
from shmbroker.netbridge.carrier.synced import Synced
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.security.credential import Credentials
from shmbroker.netbridge.wire.words import Role

OPENERS = 4
"""Threads that open targets: one that waits for a repair does not hold up the others."""
SOCKETS_MAX = 8192
"""Of the context; libzmq's default is 1,023, and each connection has a socket and a monitor."""
T = TypeVar("T")


class Member(Protocol):
    """A link or a listener."""

    @property
    def due(self) -> float:
        """When `woken` wants to be called; it is asked in each turn."""

    def woken(self, now: float) -> None: ...

    def end(self) -> None:
        """The thread ends, and not by an error: close all."""


@runtime_checkable
class Learns(Protocol):
    """A member with connections that go by credentials."""

    def learns(self, credentials: Credentials) -> None: ...


class NetworkThread(Closable):
    def __init__(self, broker: Broker | None = None) -> None:
        """Of this broker's vhost, or of a program, which has none.  Close it before the broker."""
        self._broker = broker
        self.node = b""
        """Of the vhost, if messages for its queues come from other nodes."""
        self._sleeper: Sleeper | None = None
        self._synced: Synced | None = None
        self.held: dict[str, Callable[[], None]] = {}
        """By queues that are not durable: called when a link has poured into one."""
        self.worker = Worker(self.call, OPENERS)
        """For links that are to pour into a queue."""
        self.context: zmq.Context[Any] = zmq.Context()
        self.context.set(zmq.MAX_SOCKETS, SOCKETS_MAX)
        self.members: list[Member] = []
        self.failure: BaseException | None = None
        self.at_failure: list[Callable[[], None]] = []
        """Of those for whom others wait, who would wait for ever.  Members of a broker are not
        among them: what a replica lacks is not confirmed because a thread has failed."""
        self._epoll = select.epoll()
        self._readable: dict[int, tuple[Any, Callable[[], None]]] = {}
        """By descriptor."""
        self._watched: dict[int, Callable[[], None]] = {}
        self._descriptors: dict[Any, int] = {}
        self._authenticator: Authenticator | None = None
        self._used: dict[int, None] = {}
        """Descriptors of sockets that may have something to read without a signal: they were used
        since it was last found that there is nothing."""
        self._due = math.inf
        self.known_keys: Mapping[bytes, frozenset[Role]] | None = None
        self.credentials: Credentials | None = None
        """As they are by now; None: each has those that it was given."""
        self._calls: deque[Callable[[], object]] = deque()
        self._awaited: set[Future[Any]] = set()
        """Nobody answers when it has ended."""
        self._calling = threading.RLock()
        """An RLock, since a handler of a signal may call in the middle of a call."""
        self._is_over = False
        """Nothing is carried out any more but what was called before."""
        self._eventfd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="shmbroker-net", daemon=True)
        self._thread.start()

    def serve(self, broker: Broker | None, node: bytes = b"") -> None:
        """A broker that was passive has a vhost from now on; None: it has none any more."""
        former, self._synced = self._synced, None
        if former is not None:
            self.call(partial(self._ends, former))
        self._broker, self.node = broker, node

    @property
    def broker(self) -> Broker:
        if self._broker is None:
            raise InvalidArgument("a program on another host has no vhost")
        return self._broker

    @property
    def sleeper(self) -> Sleeper:
        """Made when something waits for a ring; an outbox asks for it in a thread of its own."""
        with self._calling:
            if self._sleeper is None:
                self._sleeper = Sleeper(self._eventfd)
            return self._sleeper

    def after_sync(self, told: Callable[[], None]) -> None:
        """Call it once all that stands in the vhost now is synced, marks of streams too."""
        if self._synced is None:
            self._synced = Synced(self.broker, self.sleeper, self.worker)
            self.members.append(self._synced)
        self._synced.after(told)

    def _ends(self, synced: Synced) -> None:
        synced.end()
        self.members.remove(synced)

    # --- from any thread ----------------------------------------------------------------------

    def call(self, step: Callable[[], object]) -> None:
        """In the thread, soon; never, if that has ended."""
        self.takes(step)

    def takes(self, step: Callable[[], object]) -> bool:
        """As `call`.  False: it has ended, and nobody will do that."""
        with self._calling:
            if self._is_over:
                return False
            self._calls.append(step)
            with suppress(BlockingIOError):  # it was told often enough
                os.eventfd_write(self._eventfd, 1)
        return True

    @property
    def is_current(self) -> bool:
        """The caller is in it: who waited for it would wait for ever."""
        return threading.current_thread() is self._thread

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def wait(self) -> str:
        """Until it has ended: why, if nobody has closed it."""
        self._thread.join()
        trace = traceback.format_exception(self.failure) if self.failure is not None else []
        return f"the network thread has ended: {''.join(trace[-2:])}" if trace else ""

    def tell_failure(self, told: Callable[[str], None]) -> None:
        """When it has ended, and nobody has closed it: why.  In a thread of its own, since without
        this one nothing is heard or decided."""

        def wait() -> None:
            if why := self.wait():
                told(why)

        threading.Thread(target=wait, name="watches the network", daemon=True).start()

    def ask(self, step: Callable[[], T]) -> T:
        """In the thread, and wait for the answer."""
        answer: Future[T] = Future()

        def answered() -> None:
            try:
                answer.set_result(step())
            except Exception as error:  # noqa: BLE001  # the caller's to deal with
                answer.set_exception(error)

        if not self.takes(answered):
            raise ConnectionClosed("the network thread has ended") from self.failure
        return answer.result()

    def answered(self, answer: Future[T]) -> T:
        """Waits for what is set in the thread, later than a call returns.  ConnectionClosed: it has
        ended, and nobody will set it."""
        with self._calling:
            if self._is_over and not answer.done():
                raise ConnectionClosed("the network thread has ended") from self.failure
            self._awaited.add(answer)
        try:
            return answer.result()
        finally:
            self._awaited.discard(answer)

    def admit(self, keys: Mapping[bytes, frozenset[Role]] | None) -> None:
        """Peers with these keys and for these roles only; None: with any."""
        self.known_keys = keys

    def learns(self, credentials: Credentials) -> None:
        """Links and listeners go by these from their next connection on, those too that are made
        of what was read before; and with these keys peers come."""

        def step() -> None:
            self.credentials, self.known_keys = credentials, credentials.known_keys
            for each in tuple(self.members):
                if isinstance(each, Learns):
                    each.learns(credentials)

        self.call(step)

    def stop(self) -> None:
        """From inside: this turn is its last."""
        self._is_stopped = True

    def close(self) -> None:
        if self._thread.is_alive():
            self._is_stopped = True
            self.call(lambda: None)
            self._thread.join()
        self._close_eventfd()  # in a child of a fork no thread has done so

    def _close_eventfd(self) -> None:
        with self._calling:  # two tasks of a program may close it
            descriptor, self._eventfd = self._eventfd, -1
        if descriptor >= 0:
            os.close(descriptor)

    # --- in the thread ------------------------------------------------------------------------

    def add(self, socket: Any, readable: Callable[[], None]) -> None:
        descriptor = self._descriptors[socket] = socket.getsockopt(zmq.FD)
        self._readable[descriptor] = socket, readable
        self._epoll.register(descriptor, select.EPOLLIN)
        self._used[descriptor] = None

    def remove(self, socket: Any) -> None:
        descriptor = self._descriptors.pop(socket, None)
        if descriptor is not None:
            self._epoll.unregister(descriptor)
            self._used.pop(descriptor, None)
            del self._readable[descriptor]

    def watch(self, descriptor: int, readable: Callable[[], None]) -> None:
        """Of something else than a socket, as long as there is something to read."""
        self._watched[descriptor] = readable
        self._epoll.register(descriptor, select.EPOLLIN)

    def unwatch(self, descriptor: int) -> None:
        if self._watched.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def used(self, socket: Any) -> None:
        """It was written to, or read by somebody else than its `readable`."""
        descriptor = self._descriptors.get(socket)
        if descriptor is not None:
            self._used[descriptor] = None

    def is_empty(self, socket: Any) -> None:
        """It was asked just now, and there is nothing to read."""
        self._used.pop(self._descriptors.get(socket, -1), None)

    def _run(self) -> None:
        try:
            authenticator = self._authenticator = Authenticator(self.context, self._is_known)
            self.add(authenticator.socket, authenticator.readable)
            self._epoll.register(self._eventfd, select.EPOLLIN)
            while not self._is_stopped:
                self._turn()
        except BaseException as error:  # noqa: BLE001  # raised below, when all are told
            self.failure = error
        self._is_stopped = True
        self._end()
        if self.failure is not None:
            raise self.failure

    def _end(self) -> None:
        ends = self.at_failure
        if self.failure is None:
            ends = [member.end for member in self.members]  # they leave the list
        for end in ends:
            self._last(end)
        self._last(self.worker.close)
        if self._sleeper is not None:
            self._last(self._sleeper.close)
        if self._authenticator is not None:
            self._last(self._authenticator.close)
        self._last(self._epoll.close)
        self._last(partial(self.context.destroy, linger=1000))
        with self._calling:
            self._is_over = True
        while self._calls:
            self._last(self._calls.popleft())
        for answer in list(self._awaited):
            error = ConnectionClosed("the network thread has ended")
            error.__cause__ = self.failure
            with suppress(InvalidStateError):  # it was answered
                answer.set_exception(error)
        if self._broker is None:  # a program that has forgotten it does not close it
            self._last(self._close_eventfd)

    def _last(self, step: Callable[[], object]) -> None:
        """The steps behind it are done whatever it raises; the first error is the failure."""
        try:
            step()
        except BaseException as error:  # noqa: BLE001  # the others wait for their turn
            self.failure = self.failure or error

    def _is_known(self, key: bytes) -> bool:
        return self.known_keys is None or key in self.known_keys

    def _turn(self) -> None:
        ready = self._unsignalled() if self._used else []
        wait = 0.0 if ready else self._due - monotonic()
        for descriptor, _ in self._epoll.poll(None if wait == math.inf else max(wait, 0.0)):
            ready.append(descriptor)
        for descriptor in ready:
            if descriptor == self._eventfd:
                self._nudged()
            elif descriptor in self._readable:  # another of them may have closed it
                self._used[descriptor] = None
                self._readable[descriptor][1]()
            elif descriptor in self._watched:
                self._watched[descriptor]()
        now, first = monotonic(), math.inf
        for member in tuple(self.members):
            due = member.due
            if due <= now:
                member.woken(now)
                due = member.due
            if due < first:
                first = due
        self._due = first

    def _unsignalled(self) -> list[int]:
        """Descriptors of sockets that have something to read, and were used."""
        used, self._used = self._used, {}
        ready = []
        for descriptor in used:
            if is_readable(self._readable[descriptor][0]):
                ready.append(descriptor)
        return ready

    def _nudged(self) -> None:
        with suppress(BlockingIOError):
            os.eventfd_read(self._eventfd)
        if self._sleeper is not None:
            self._sleeper.ring()
        for _ in range(len(self._calls)):
            self._calls.popleft()()
