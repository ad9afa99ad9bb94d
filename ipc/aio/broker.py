"""A connection to a vhost for asyncio: ipc/connection/broker.py, awaitable."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Literal, Unpack
from weakref import WeakValueDictionary, finalize

from shmbroker.ipc.aio.exchange import Exchange
from shmbroker.ipc.aio.named_subscription import NamedSubscription
from shmbroker.ipc.aio.patience import Patience
from shmbroker.ipc.aio.queue import Queue
from shmbroker.ipc.aio.requests import Requests
from shmbroker.ipc.aio.sleeper import Sleeper
from shmbroker.ipc.aio.subscription import Subscription
from shmbroker.ipc.aio.transaction import Transaction
from shmbroker.ipc.aio.verb import awaitable
from shmbroker.ipc.connection import broker as sync
from shmbroker.ipc.queue import queue as sync_queue
from shmbroker.ipc.settings.settings import CommonSettings, Settings
from shmbroker.ipc.vhost import vhost as vhosts

if TYPE_CHECKING:
    from types import TracebackType


class connect:
    """Take part in the vhost shm://NAME: `async with connect(...) as broker`, or await it."""

    def __init__(
        self,
        url: str,
        *,
        create: bool = False,
        name: str | None = None,
        arena_bytes: int = vhosts.ARENA_BYTES,
    ) -> None:
        self._url = url
        self._create = create
        self._name = name
        self._arena_bytes = arena_bytes
        self._broker: Broker | None = None

    async def _connect(self) -> Broker:
        return Broker(
            sync.connect(
                self._url, create=self._create, name=self._name, arena_bytes=self._arena_bytes
            )
        )

    def __await__(self) -> Generator[Any, None, Broker]:
        return self._connect().__await__()

    async def __aenter__(self) -> Broker:
        self._broker = await self
        return self._broker

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._broker is not None:
            await self._broker.close()


class Broker:
    """Made by connect."""

    def __init__(self, broker: sync.Broker) -> None:
        self._sync = broker
        self._patience = Patience()
        self._sleeper = Sleeper(broker._owner)
        self._queues: WeakValueDictionary[str, Queue] = WeakValueDictionary()
        self._requests = Requests()
        finalize(self, self._sleeper.stop)  # who forgets to close leaves no thread behind

    @property
    def vhost(self) -> str:
        return self._sync.vhost

    @property
    def participant(self) -> int:
        """Our number among the participants."""
        return self._sync.participant

    @property
    def is_closed(self) -> bool:
        return self._sync.is_closed

    # --- declaring ----------------------------------------------------------------------------

    async def declare_queue(
        self, name: str, *, slots: int = sync.SLOTS, **settings: Unpack[Settings]
    ) -> Queue:
        """Make a queue of so many slots, a power of two; nothing if it exists just so."""
        return self._queue(self._sync.declare_queue(name, slots=slots, **settings))

    async def temporary_queue(
        self, *, slots: int = sync.SLOTS, **settings: Unpack[Settings]
    ) -> Queue:
        """Make a queue with a name of its own, which vanishes when we close, or die."""
        return self._queue(self._sync.temporary_queue(slots=slots, **settings))

    async def declare_exchange(
        self,
        name: str,
        kind: Literal["direct", "topic", "fanout", "headers"] | str,
        *,
        alternate: str | None = None,
    ) -> Exchange:
        """Make an exchange; what none of its bindings takes goes to the alternate."""
        return Exchange(self, self._sync.declare_exchange(name, kind, alternate=alternate))

    settings = awaitable(sync.Broker.settings)
    remove_settings = awaitable(sync.Broker.remove_settings)
    patterns = awaitable(sync.Broker.patterns)
    bind = awaitable(sync.Broker.bind)
    unbind = awaitable(sync.Broker.unbind)
    divert = awaitable(sync.Broker.divert)
    undivert = awaitable(sync.Broker.undivert)
    delete_queue = awaitable(sync.Broker.delete_queue)
    delete_exchange = awaitable(sync.Broker.delete_exchange)

    # --- using --------------------------------------------------------------------------------

    async def queue(self, name: str) -> Queue:
        """A queue that exists."""
        return self._queue(self._sync.queue(name))

    def _queue(self, queue: sync_queue.Queue) -> Queue:
        known = self._queues.get(queue.name)
        if known is None or known._sync is not queue:
            known = self._queues[queue.name] = Queue(self, queue)
        return known

    async def exchange(self, name: str) -> Exchange:
        """An exchange that exists; "" is the default one, whose keys are names of queues."""
        return Exchange(self, self._sync.exchange(name))

    def subscribe(
        self,
        queue: str,
        *,
        start: Literal["now", "earliest"] = "now",
        lossy: bool = False,
        timeout: float | None = None,
    ) -> Subscription:
        """See every message of a queue without taking any, from this moment on."""
        subscription = self._sync.subscribe(queue, start=start, lossy=lossy, timeout=timeout)
        return Subscription(self, subscription, timeout)

    def transaction(self, *, timeout: float | None = None) -> Transaction:
        """Publishes and acknowledgements that happen together: `async with`.

        `timeout` is for how long the commit at the end waits for room.
        """
        return Transaction(self._sync.transaction(timeout=timeout))

    async def subscription(
        self,
        name: str,
        *,
        exchange: str,
        key: str = "",
        durable: bool = False,
        shared: bool = False,
        slots: int = sync.SLOTS,
        **settings: Unpack[CommonSettings],
    ) -> NamedSubscription:
        """Consume what an exchange has for this key, from a queue that this name stands for."""
        subscription = self._sync.subscription(
            name,
            exchange=exchange,
            key=key,
            durable=durable,
            shared=shared,
            slots=slots,
            **settings,
        )
        return NamedSubscription(self, subscription)

    unsubscribe = awaitable(sync.Broker.unsubscribe)

    # --- looking ------------------------------------------------------------------------------

    queues = awaitable(sync.Broker.queues)
    exchanges = awaitable(sync.Broker.exchanges)
    bindings = awaitable(sync.Broker.bindings)
    subscriptions = awaitable(sync.Broker.subscriptions)
    participants = awaitable(sync.Broker.participants)
    errors = awaitable(sync.Broker.errors)
    repair = awaitable(sync.Broker.repair)

    # --- leaving ------------------------------------------------------------------------------

    async def close(self) -> None:
        """Leave the vhost: who waits gets ConnectionClosed, what we have taken goes to others."""
        self._sync.close()
        await self._sleeper.close()

    async def __aenter__(self) -> Broker:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<aio {self._sync!r}>"
