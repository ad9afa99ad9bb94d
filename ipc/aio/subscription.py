"""A subscription for asyncio: every message of a queue, without taking any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shmbroker.ipc.aio.bell import Bell
from shmbroker.ipc.aio.verb import Face, twin
from shmbroker.ipc.base.errors import ConnectionClosed, Empty
from shmbroker.ipc.base.timeout import Seconds
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.queue import subscription as sync

if TYPE_CHECKING:
    from types import TracebackType

    from shmbroker.ipc.aio.broker import Broker


class Subscription(Face, of=sync.Subscription):
    def __init__(self, broker: Broker, subscription: sync.Subscription) -> None:
        self._broker = broker
        self._sync: sync.Subscription = subscription
        self._is_closed = False
        # of its own: subscribers wait for different positions, and all are woken
        self._bell = Bell(broker._sleeper, subscription._queue._queue, subscription.position)

    @property
    def missed(self) -> int:
        return self._sync.missed

    @property
    def position(self) -> int:
        return self._sync.position

    def _get_now(self) -> CopiedMessage:
        if self._is_closed:
            raise ConnectionClosed(f"the subscription to {self._sync._queue.name!r} was closed")
        return self._sync.get(timeout=0)

    def _next(self) -> Bell:
        self._sync._release()  # before we wait: somebody may wait for us
        self._bell.position = self._sync.position
        return self._bell

    @twin(sync.Subscription.get)
    async def get(self, *, timeout: Seconds | None) -> CopiedMessage:
        return await self._broker._patience.until_done(self._get_now, self._next, timeout)

    @twin(sync.Subscription.close)
    def close(self) -> None:
        self._is_closed = True
        self._sync.close()
        self._bell.ring_all()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> CopiedMessage:
        try:
            return await self.get(timeout=self._sync.timeout)
        except Empty:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
