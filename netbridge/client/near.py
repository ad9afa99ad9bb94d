"""A list whose member is on this host: its verbs go through shared memory as long as it serves.

The session stays, idle: it says who serves, and where.  When another member does, the verbs go over
its link, and through shared memory again when a member of this host does.  What is bound to a place
(messages, transactions, subscriptions) ends with it, as after a failover; queues and exchanges are
opened anew by their names.
"""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from functools import wraps
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from shmbroker.core.codes import CLOSED
from shmbroker.ipc.aio import broker as aio
from shmbroker.ipc.aio.exchange import Exchange
from shmbroker.ipc.aio.getting import Getting
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import ConnectionClosed, Error, Moved, Unconfirmed
from shmbroker.ipc.base.timeout import seconds
from shmbroker.ipc.connection.broker import SCHEME
from shmbroker.ipc.connection.broker import connect as connect_local
from shmbroker.ipc.queue.batch import several
from shmbroker.ipc.queue.durable import DurableQueue
from shmbroker.netbridge.client.closing import Closing
from shmbroker.netbridge.remote.topology import Node

if TYPE_CHECKING:
    from shmbroker.netbridge.client.session import Session

OF_THE_SESSION: Final = frozenset({"on_event", "order", "retry", "reconnect", "topology", "uri"})
QUEUES: Final = frozenset({"declare_queue", "queue", "_queue_there", "temporary_queue"})
EXCHANGES: Final = frozenset({"declare_exchange", "exchange"})
GETS: Final = frozenset({"get", "select"})
PUBLISHES: Final = frozenset({"publish", "publish_many", "publish_nowait", "request", "confirm"})
"""Of a queue: when the broker goes, nobody knows what became of them."""
OF_LATER: Final = frozenset({"subscribe", "transaction"})
"""Their time-out is that of each message, or of the commit, and begins with that."""
AGAIN_SECONDS: Final = 1.0
"""Until shared memory that could not be opened is tried again: it was full, or not there yet."""


class Place:
    """Who serves us at the moment."""

    def __init__(self, remote: Any, opens: Callable[[str], Any]) -> None:
        self.remote, self._opens = remote, opens
        self._session: Session = remote._session
        self._local: Any = None
        self._refused: Node | None = None
        """It could not be opened there."""
        self._again_at = 0.0
        self._lock = threading.Lock()
        self.is_leaving = False
        """The program closes it: what ends goes on nowhere."""

    def now(self) -> Any:
        with self._lock:
            if self._session.is_up and not self.is_leaving:
                self._look(self._session.near)
            if self._local is not None and self._session.is_closed:  # it was given up
                self._leave()
            local = self._local
            return self.remote if local is None or local.is_closed else local

    def leave_former(self, lost: Any = None) -> None:
        """Who waits there hears it, and goes on elsewhere, or ends if everything was given up.  Of
        a broker that was killed nobody else tells them.  `lost`: given up with the connection,
        which may be made anew by now."""
        with self._lock:
            if self._local is None:
                return
            if self._session.is_up:
                self._stays(self._session.near)
            elif self._session.is_closed or self._local is lost:
                self._leave()

    def has_gone(self, handle: Any, error: ConnectionClosed) -> bool:
        """Its memory was left because another one serves, or is about to be.  A link says itself
        what was not done, and what is unknown."""
        is_of_link = getattr(handle, "_session", None) is self._session
        was_closed = error.code == CLOSED and not is_of_link
        return isinstance(error, Moved) or (was_closed and not self.is_leaving)

    @property
    def is_local(self) -> bool:
        return self._local is not None

    def _look(self, near: Node | None) -> None:
        if self._local is not None and self._stays(near):
            return
        if near is not None and (near != self._refused or time.monotonic() >= self._again_at):
            try:
                self._local = self._opens(near.vhost)
            except Error:
                self._refused, self._again_at = near, time.monotonic() + AGAIN_SECONDS

    def _stays(self, near: Node | None) -> bool:
        """Where it is; else that is left."""
        local = self._local
        stays = near is not None and local.vhost == near.vhost and not local.is_closed
        if not stays:
            self._leave()
        return stays

    def _leave(self) -> None:
        local, self._local = self._local, None
        with suppress(Error):
            getattr(local, "_sync", local).close()

    def leave(self) -> None:
        with self._lock:
            self.is_leaving = True
            if self._local is not None:
                self._leave()


class Thing:
    """A broker, a queue or an exchange: of whichever place serves."""

    _place: Place

    def _handle(self) -> Any:
        raise NotImplementedError

    def _is_in_doubt(self, name: str, handle: Any) -> bool:
        """What the broker was asked may have happened before it went."""
        return False

    def _made(self, name: str, handle: Any, answer: Any, named: dict[str, Any]) -> Any:
        return answer

    def __getattr__(self, name: str) -> Any:
        if name in ("_place", "_of"):  # it is just being made
            raise AttributeError(name)
        told = getattr(self._handle(), name)
        if not (callable(told) and _is_verb(name)):
            return told
        if name == "consume":
            return self._consumes(told)

        @wraps(told)
        def verb(*args: Any, **named: Any) -> Any:
            begun = time.monotonic()
            handle, answer = self._calls(name, self._handle(), args, named, begun)
            if not isawaitable(answer):
                return self._made(name, handle, answer, named)
            awaited = self._awaits(name, handle, answer, args, named)
            return Getting(awaited) if name in GETS else awaited

        return verb

    def _calls(
        self, name: str, handle: Any, args: Any, named: dict[str, Any], begun: float
    ) -> tuple[Any, Any]:
        """Wherever it ends: the handle there, and its answer."""
        given = named
        while True:
            try:
                return handle, getattr(handle, name)(*handles(args), **_plainly(given))
            except ConnectionClosed as error:
                handle = self._elsewhere(name, handle, error)
                given = _left(name, named, begun)

    async def _awaits(
        self, name: str, handle: Any, answer: Any, args: Any, named: dict[str, Any]
    ) -> Any:
        begun = time.monotonic()
        while True:
            try:
                return self._made(name, handle, await answer, named)
            except ConnectionClosed as error:
                handle = self._elsewhere(name, handle, error)
                given = _left(name, named, begun)
                handle, answer = self._calls(name, handle, args, given, time.monotonic())

    def _elsewhere(self, name: str, handle: Any, error: ConnectionClosed) -> Any:
        """Where the verb is done, if it has certainly not happened; and if there is an
        elsewhere."""
        if not self._place.has_gone(handle, error):
            raise error
        if self._is_in_doubt(name, handle):
            raise Unconfirmed(f"{name}: {error}") from error
        if error.published:  # the rest is for the program: elsewhere it would be all of it
            raise error
        other = self._handle()
        if other is handle:
            raise error
        return other

    def _consumes(self, told: Any) -> Any:
        """A loop that goes on elsewhere."""

        @wraps(told)
        def consume(*args: Any, **named: Any) -> Any:
            handle = self._handle()
            messages = handle.consume(*args, **named)
            loop = self._loops if hasattr(messages, "__next__") else self._loops_of_asyncio
            return loop(handle, messages, args, named)

        return consume

    def _loops(
        self, handle: Any, messages: Any, args: Any, named: dict[str, Any]
    ) -> Iterator[Any]:
        while True:
            try:
                yield from messages
            except ConnectionClosed as error:
                handle = self._elsewhere("consume", handle, error)
                messages = handle.consume(*args, **named)
            else:
                return

    async def _loops_of_asyncio(
        self, handle: Any, messages: Any, args: Any, named: dict[str, Any]
    ) -> AsyncIterator[Any]:
        while True:
            try:
                async for each in messages:
                    yield each
            except ConnectionClosed as error:
                handle = self._elsewhere("consume", handle, error)
                messages = handle.consume(*args, **named)
            else:
                return

    def __len__(self) -> int:
        return len(self._handle())

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return repr(self._handle())


class NearBroker(Thing, Closable, Closing):
    """What `connect` answers for a list: leaving it closes the connection."""

    def __init__(self, remote: Any, opens: Callable[[str], Any]) -> None:
        self._place = Place(remote, opens)

    def _handle(self) -> Any:
        return self._place.now()

    def _made(self, name: str, handle: Any, answer: Any, named: dict[str, Any]) -> Any:
        if name in QUEUES:
            looks = name == "_queue_there"
            return NearQueue(self, handle, answer, named.get("serializer"), looks=looks)
        if name == "transaction":
            return NearTransaction(answer)
        return NearExchange(self, handle, answer) if name in EXCHANGES else answer

    def __getattr__(self, name: str) -> Any:
        if name in OF_THE_SESSION or (not _is_verb(name) and name != "_place"):
            return getattr(self._place.remote, name)
        return super().__getattr__(name)

    @property
    def is_closed(self) -> bool:
        closed: bool = self._place.remote.is_closed
        return closed

    def close(self) -> Any:
        self._place.leave()
        return self._place.remote.close()

    def drain(self, **named: Any) -> Any:
        """The place that serves; the session is closed with it."""
        self._place.is_leaving = True
        if not self._place.remote._session.way.is_blocking:
            return self._drains(named)
        try:
            return self._place.now().drain(**named)
        finally:
            self.close()

    async def _drains(self, named: dict[str, Any]) -> int:
        try:
            left: int = await self._place.now().drain(**named)
            return left
        finally:
            await self.close()

    async def _leave(self) -> None:
        await self.close()


class NearQueue(Thing):
    def __init__(
        self, broker: NearBroker, of: Any, queue: Any, serializer: Any, *, looks: bool = False
    ) -> None:
        """`of`: the connection that has opened it.  `looks`: no pattern makes it elsewhere."""
        self._broker, self._place = broker, broker._place
        self._queue, self._of = queue, of
        self._serializer, self._looks = serializer, looks
        self.name: str = queue.name

    def _handle(self) -> Any:
        broker = self._place.now()
        if broker is not self._of:
            self._queue, self._of = self._opened(broker), broker
        return self._queue

    def _opened(self, broker: Any) -> Any:
        """Without waiting, also with asyncio: then one over a link is opened when it is used."""
        if isinstance(broker, aio.Broker):
            return broker._queue(self._open(broker._sync))
        if broker is not self._place.remote or broker._session.way.is_blocking:
            return self._open(broker)
        told = {"durable": _is_durable(self._queue), "slots": self._queue.slots}
        return broker._queue_of(self.name, told, self._queue.serializer)

    def _open(self, broker: Any) -> Any:
        if self._looks:
            return broker._queue_there(self.name)
        return broker.queue(self.name, serializer=self._serializer)

    def publish_many(self, bodies: Iterable[Any], **named: Any) -> Any:
        """An iterator is read once, wherever they go."""
        return self.__getattr__("publish_many")(several(bodies), **named)

    def _is_in_doubt(self, name: str, handle: Any) -> bool:
        return name == "request" or (name in PUBLISHES and _is_durable(handle))


class NearTransaction:
    """Of one place: it takes queues and exchanges of the program."""

    def __init__(self, transaction: Any) -> None:
        self._of = transaction

    def __getattr__(self, name: str) -> Any:
        told = getattr(self._of, name)

        @wraps(told)
        def verb(*args: Any, **named: Any) -> Any:
            return told(*handles(args), **_plainly(named))

        return verb

    def __len__(self) -> int:
        return len(self._of)

    def __enter__(self) -> NearTransaction:
        self._of.__enter__()
        return self

    def __exit__(self, *how: Any) -> Any:
        return self._of.__exit__(*how)

    async def __aenter__(self) -> NearTransaction:
        await self._of.__aenter__()
        return self

    async def __aexit__(self, *how: Any) -> Any:
        return await self._of.__aexit__(*how)


class NearExchange(Thing):
    def __init__(self, broker: NearBroker, of: Any, exchange: Any) -> None:
        self._broker, self._place = broker, broker._place
        self._exchange, self._of = exchange, of
        self.name: str = exchange.name

    def _handle(self) -> Any:
        broker = self._place.now()
        if broker is not self._of:
            former = self._exchange
            if broker is self._place.remote:
                self._exchange = broker._exchange_of(self.name, former.kind)
            elif isinstance(broker, aio.Broker):
                self._exchange = Exchange(broker, broker._sync.exchange(self.name))
            else:
                self._exchange = broker.exchange(self.name)
            self._of = broker
        return self._exchange

    def _is_in_doubt(self, name: str, handle: Any) -> bool:
        """Some of its queues may have the message."""
        return name == "publish"


def _is_verb(name: str) -> bool:
    return not name.startswith("_") or name in QUEUES


def handles(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The verbs of a place take what is of that place."""
    return tuple(each._handle() if isinstance(each, Thing) else each for each in args)


def _left(name: str, named: dict[str, Any], begun: float) -> dict[str, Any]:
    """What a verb is given elsewhere: it has one time-out, wherever it is done."""
    given = named.get("timeout")
    if given is None or name in OF_LATER:
        return named
    return {**named, "timeout": max(0.0, begun + seconds(given) - time.monotonic())}


def _plainly(named: dict[str, Any]) -> dict[str, Any]:
    return {name: each._handle() if isinstance(each, Thing) else each
            for name, each in named.items()}  # fmt: skip


def _is_durable(queue: Any) -> bool:
    told = getattr(queue, "is_durable", None)
    return isinstance(getattr(queue, "_sync", queue), DurableQueue) if told is None else bool(told)


def near(remote: Any, name: str | None) -> NearBroker:
    """`name`: of the participant."""

    def opens(vhost: str) -> Any:
        local = connect_local(SCHEME + vhost, name=name)
        return local if remote._session.way.is_blocking else aio.Broker(local)

    session: Session = remote._session
    session.prefers_memory = True
    made = NearBroker(remote, opens)
    place, learns = ref(made._place), session.learns

    def looks(*_: object) -> None:
        """In a thread of its own: to leave waits for what is under way there."""
        at = place()
        if at is None or not at.is_local:
            return
        lost = at._local if session.is_closed else None
        with suppress(RuntimeError):  # no more threads: the next verb looks
            threading.Thread(
                target=at.leave_former, args=(lost,), name="shmbroker-near", daemon=True
            ).start()

    def learned(nodes: tuple[Node, ...]) -> None:
        learns(nodes)
        looks()

    session.listeners.append(looks)
    session.learns = learned
    return made
