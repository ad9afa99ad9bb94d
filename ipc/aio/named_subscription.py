"""A subscription by name for asyncio: ipc/exchange/named_subscription.py, awaitable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shmbroker.ipc.aio.queue import Queue
from shmbroker.ipc.aio.verb import awaitable
from shmbroker.ipc.exchange import named_subscription as sync

if TYPE_CHECKING:
    from types import TracebackType

    from shmbroker.ipc.aio.broker import Broker


class NamedSubscription(Queue, of=sync.NamedSubscription):
    def __init__(self, broker: Broker, subscription: sync.NamedSubscription) -> None:
        super().__init__(broker, subscription)
        self._subscription = subscription

    @property
    def subscription(self) -> str:
        return self._subscription.subscription

    close = awaitable(sync.NamedSubscription.close)
    delete = awaitable(sync.NamedSubscription.delete)

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedSubscription, (self._broker, self._subscription)

    async def __aenter__(self) -> NamedSubscription:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._subscription.__exit__(kind, error, traceback)
