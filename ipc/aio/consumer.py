"""A consumer: `async for message in queue.consume()`."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from shmbroker.ipc.base.errors import ConnectionClosed, Empty
from shmbroker.ipc.base.timeout import Seconds
from shmbroker.ipc.message.message import Message
from shmbroker.ipc.queue.consuming import Consuming
from shmbroker.ipc.queue.taking import give_back
from shmbroker.ipc.selector.selection import Selection

if TYPE_CHECKING:
    from shmbroker.ipc.aio.queue import Queue
    from shmbroker.ipc.aio.subscription import Subscription
    from shmbroker.ipc.message.copied import CopiedMessage


class Consumer:
    """Acknowledges each message when the next is asked for, unless it was dealt with before.

    No async generator: one that is left in the middle is closed some time later, by the loop; what
    this one has in hand goes back to the queue as soon as it is dropped, whoever still refers to
    the message.
    """

    def __init__(
        self,
        queue: Queue,
        consuming: Consuming,
        selection: Selection | None,
        timeout: Seconds | None,
        prefetch: int,
    ) -> None:
        self._queue = queue
        self._consuming = consuming
        self._selection = selection
        self._timeout = timeout
        self._prefetch = prefetch
        self._fetched: deque[Message] = deque()
        self._last: Message | None = None  # what the loop has
        self._draining = queue._broker._sync._draining

    def __aiter__(self) -> Consumer:
        return self

    async def __anext__(self) -> Message:
        last, self._last = self._last, None
        if last is not None and last.is_in_hand:
            last.ack()
        if self._draining:
            self._fetched.clear()
            self._consuming.end()
            raise StopAsyncIteration
        self._consuming.begin()
        if not self._fetched:
            self._fetched.extend(await self._fetch())
        self._last = self._fetched.popleft()
        return self._last

    async def aclose(self) -> None:
        """End it; what was not dealt with is given back."""
        self._end()

    def __del__(self) -> None:
        self._end()

    def _end(self) -> None:
        if self._last is not None:
            self._fetched.append(self._last)
        give_back(self._fetched)
        self._fetched.clear()
        self._consuming.end()

    async def _fetch(self) -> list[Message]:
        try:
            if self._selection is not None:
                return [await self._queue.select(self._selection, timeout=self._timeout)]
            if self._prefetch == 1:
                return [await self._queue.get(timeout=self._timeout)]
            return await self._queue.get_many(self._prefetch, timeout=self._timeout)
        except Empty:
            self._consuming.end()
            raise StopAsyncIteration from None
        except ConnectionClosed:
            if self._draining:
                raise StopAsyncIteration from None
            raise


class RetainedConsumer:
    """The same of a non_destructive queue: what it shows is in nobody's hand."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._draining = subscription._broker._sync._draining

    def __aiter__(self) -> RetainedConsumer:
        return self

    async def __anext__(self) -> CopiedMessage:
        try:
            message = await self._subscription.__anext__()
        except ConnectionClosed:
            if not self._draining:
                raise
        else:
            if not self._draining:
                return message
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End it."""
        self._subscription.close()
