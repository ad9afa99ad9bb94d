"""Subscriptions over a link: every message of a queue, and queues that an exchange fills."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from shmbroker.ipc.aio.verb import twin
from shmbroker.ipc.base.errors import ConnectionClosed, Empty, Error
from shmbroker.ipc.base.pickled import refuse_pickle
from shmbroker.ipc.base.timeout import Seconds, nanoseconds
from shmbroker.ipc.exchange import named_subscription as local_named
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.queue import subscription as local
from shmbroker.netbridge.client.closing import Closing
from shmbroker.netbridge.client.inbox import Inbox, runs
from shmbroker.netbridge.client.queue import Queue
from shmbroker.netbridge.remote.body import asked
from shmbroker.netbridge.remote.place import Place
from shmbroker.netbridge.wire.words import Verb

if TYPE_CHECKING:
    from shmbroker.netbridge.client.broker import Broker

AHEAD = 128
SETTLED = 32
"""What was shown is settled in runs: the ring waits for us by that much more."""


class Subscription(Closing):
    """An iterator of messages, which ends when none comes within the timeout.

    The ring waits for us, and for what is on its way to us.
    """

    __reduce__ = refuse_pickle

    def __init__(self, broker: Broker, queue: str, start: str, timeout: Seconds | None) -> None:
        nanoseconds(timeout)
        self._session = broker._session
        self._name = queue
        self.timeout = timeout
        self.position = 0
        self._place = Place(queue, start)
        self._inbox = Inbox(self._session, AHEAD, self._place)
        self._shown: list[tuple[int, int]] = []
        self._opening = self._session.begin(
            f"subscribing to queue {queue!r}", Verb.CONSUMER, self._inbox.target, AHEAD,
            body=self._place.asks(), place=self._place,
        )  # fmt: skip
        self._is_open = self._is_closed = False

    @property
    def missed(self) -> int:
        """What left the queue while nobody's session had our place in it."""
        return self._place.missed

    async def _open(self) -> None:
        if not self._is_open:
            if self._session.may_wait:  # who is cancelled here may come again
                await self._session.way.wait(self._opening.signal)
            await self._opening
            self._is_open = True

    @twin(local.Subscription.get)
    async def get(self, *, timeout: Seconds | None) -> CopiedMessage:
        return await self._get(timeout)

    async def _get(self, timeout: Seconds | None) -> CopiedMessage:
        if self._is_closed:
            raise ConnectionClosed(f"the subscription to {self._name!r} was closed")
        await self._open()
        if len(self._shown) >= SETTLED or not self._inbox.has_more:
            self._settle()
        arrived = await self._inbox.next(timeout)
        if arrived is None:
            raise Empty(f"reading queue {self._name!r}: there is nothing to take")
        copy, generation, number = arrived
        self._shown.append((generation, number))
        self.position = copy.position + 1
        return copy

    def _settle(self) -> None:
        shown, self._shown = self._shown, []
        for generation, first, count in runs(shown):
            self._session.begin(
                "passing on", Verb.ACK, 0, first, count,
                asked(queue=self._name, positions=[]), generation=generation,
            )  # fmt: skip

    @twin(local.Subscription.close)
    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if not self._session.is_closed:
            with suppress(Error):
                self._settle()
                what = "ending a subscription"
                self._session.begin(what, Verb.LEAVE, self._inbox.target)
        self._inbox.close()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> CopiedMessage:
        try:
            return await self._get(self.timeout)
        except Empty:
            raise StopAsyncIteration from None

    async def _leave(self) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_is_closed"):
            self.close()


class NamedSubscription(Queue, Closing):
    """Made by Broker.subscription.  Leaving `with` lets others consume it, if it is not shared."""

    subscription: str
    _target: int

    @twin(local_named.NamedSubscription.close)
    async def close(self) -> None:
        self._broker._stands.pop(self._target, None)
        what = f"closing subscription {self.subscription!r}"
        await self._session.begin(what, Verb.LEAVE, self._target)

    @twin(local_named.NamedSubscription.delete)
    async def delete(self, *, force: bool) -> None:
        await self._broker._delete("subscription", self.subscription, force)

    async def _leave(self) -> None:
        if not self._session.is_closed:
            await NamedSubscription.close(self)


def opened(broker: Broker, made: Any, subscription: str, target: int, codec: Any) -> Any:
    queue = broker.kinds["NamedSubscription"](broker, made["queue"], made, codec)
    queue.subscription, queue._target = subscription, target
    return queue
