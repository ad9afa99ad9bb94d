"""A connection to a vhost for asyncio: ipc/connection/broker.py, awaitable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary, finalize

from shmbroker.ipc.aio.durable import DurableQueue
from shmbroker.ipc.aio.exchange import Exchange
from shmbroker.ipc.aio.named_subscription import NamedSubscription
from shmbroker.ipc.aio.patience import Patience
from shmbroker.ipc.aio.queue import Queue
from shmbroker.ipc.aio.requests import Requests
from shmbroker.ipc.aio.sleeper import Sleeper
from shmbroker.ipc.aio.subscription import Subscription
from shmbroker.ipc.aio.transaction import Transaction
from shmbroker.ipc.aio.verb import Face, awaitable, begins, opens, twin, twin_function
from shmbroker.ipc.base.errors import NotAsyncio, NotFound
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.connection import broker as sync
from shmbroker.ipc.queue import durable as sync_durable
from shmbroker.ipc.queue import queue as sync_queue

if TYPE_CHECKING:
    from types import TracebackType


class Connecting:
    """What connect answers: `async with` it, or await it."""

    def __init__(self, connect: Callable[[], sync.Broker]) -> None:
        self._connect_now = connect
        self._broker: Broker | None = None

    async def _connect(self) -> Broker:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise NotAsyncio(
                "shmbroker.aio needs a loop of asyncio, and this is none: run it by asyncio.run, "
                "or anyio.run(main, backend='asyncio'); trio is not supported"
            ) from None
        return Broker(self._connect_now())

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


@twin_function(sync.connect)
def connect(url: str, **options: Any) -> Connecting:
    return Connecting(partial(sync.connect, url, **options))


class Broker(Face, of=sync.Broker):
    def __init__(self, broker: sync.Broker) -> None:
        self._sync: sync.Broker = broker
        self._patience = Patience(broker)
        self._sleeper = Sleeper(broker._owner, broker._tell_log)
        self._queues: WeakValueDictionary[str, Queue] = WeakValueDictionary()
        self._requests = Requests()
        finalize(self, self._sleeper.stop)  # who forgets to close leaves no thread behind

    @property
    def vhost(self) -> str:
        return self._sync.vhost

    @property
    def participant(self) -> int:
        return self._sync.participant

    @property
    def is_closed(self) -> bool:
        return self._sync.is_closed

    @property
    def message_bytes_max(self) -> int:
        return self._sync.message_bytes_max

    def _queue(self, queue: sync_queue.Queue) -> Queue:
        face = DurableQueue if isinstance(queue, sync_durable.DurableQueue) else Queue
        if queue.serializer is not None:
            return face(self, queue)
        known = self._queues.get(queue.name)
        if known is None or known._sync is not queue:
            known = self._queues[queue.name] = face(self, queue)
        return known

    # --- declaring ----------------------------------------------------------------------------

    declare_queue = opens(sync.Broker.declare_queue, _queue)
    temporary_queue = opens(sync.Broker.temporary_queue, _queue)
    returned = opens(sync.Broker.returned, _queue)
    declare_exchange = opens(sync.Broker.declare_exchange, Exchange)
    settings = awaitable(sync.Broker.settings)
    remove_settings = awaitable(sync.Broker.remove_settings)
    bind = awaitable(sync.Broker.bind)
    unbind = awaitable(sync.Broker.unbind)
    divert = awaitable(sync.Broker.divert)
    undivert = awaitable(sync.Broker.undivert)
    delete_queue = awaitable(sync.Broker.delete_queue)
    delete_exchange = awaitable(sync.Broker.delete_exchange)

    # --- using --------------------------------------------------------------------------------

    queue = opens(sync.Broker.queue, _queue)
    _queue_there = opens(sync.Broker._queue_there, _queue)
    exchange = opens(sync.Broker.exchange, Exchange)
    subscribe = begins(sync.Broker.subscribe, Subscription)
    transaction = begins(sync.Broker.transaction, Transaction)
    subscription = opens(sync.Broker.subscription, NamedSubscription)
    unsubscribe = awaitable(sync.Broker.unsubscribe)

    # --- looking ------------------------------------------------------------------------------

    patterns = awaitable(sync.Broker.patterns)
    queues = awaitable(sync.Broker.queues)
    exchanges = awaitable(sync.Broker.exchanges)
    bindings = awaitable(sync.Broker.bindings)
    subscriptions = awaitable(sync.Broker.subscriptions)
    participants = awaitable(sync.Broker.participants)
    errors = awaitable(sync.Broker.errors)
    repair = awaitable(sync.Broker.repair)

    def __reduce__(self) -> tuple[Any, ...]:
        return Broker, (self._sync,)

    # --- leaving ------------------------------------------------------------------------------

    @twin(sync.Broker.close)
    async def close(self) -> None:
        self._sync.close()
        await self._sleeper.close()

    @twin(sync.Broker.drain)
    async def drain(self, *, timeout: Seconds | None) -> int:
        deadline = Deadline(nanoseconds(timeout))
        self._sync._draining.append(True)
        try:
            for queue in self._sync._durable_queues():
                with suppress(NotFound):  # it was deleted
                    await self._queue(queue).confirm(timeout=deadline.seconds_left())
            while (left := self._sync._in_hand()) > 0 and deadline.left() != 0:
                await asyncio.sleep(sync.DRAIN_NAP_S)
            return left
        finally:
            await self.close()

    async def __aenter__(self) -> Broker:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
