"""A loop over the messages of a queue, sent ahead as far as `prefetch` says."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from shmbroker.ipc.base.errors import ConnectionClosed, Error
from shmbroker.ipc.base.timeout import Seconds
from shmbroker.netbridge.client.delivery import Message
from shmbroker.netbridge.client.inbox import Inbox
from shmbroker.netbridge.remote.body import asked
from shmbroker.netbridge.wire.words import Verb

if TYPE_CHECKING:
    from shmbroker.netbridge.client.queue import Queue


class Consumer:
    """Acknowledges each message when the next is asked for, unless it was dealt with before."""

    def __init__(
        self,
        queue: Queue,
        selector: str | None,
        timeout: Seconds | None,
        prefetch: int,
        priority: int,
        exclusive: bool,
    ) -> None:
        self._queue, self._session = queue, queue._session
        self._timeout = timeout
        self._asked = asked(
            queue=queue.name, selector=selector, priority=priority or None,
            exclusive=exclusive or None,
        )  # fmt: skip
        self._prefetch = prefetch
        self._inbox: Inbox | None = None
        self._last: Message | None = None
        self._draining = queue._broker._draining
        self._is_over = False

    async def __anext__(self) -> Message:
        last, self._last = self._last, None
        if last is not None and last.is_in_hand:
            last._ack_soon()
        if self._draining or self._is_over:
            self._end()
            raise StopAsyncIteration
        try:
            inbox = self._inbox or await self._begin()
            arrived = await inbox.next(self._timeout)
        except ConnectionClosed:
            self._end()
            if self._draining:
                raise StopAsyncIteration from None
            raise
        except BaseException:
            self._end()
            raise
        if arrived is None:
            self._end()
            raise StopAsyncIteration
        copy, generation, number = arrived
        queue = self._queue
        self._last = Message(self._session, queue.name, copy, generation, number, queue.serializer)
        return self._last

    async def _begin(self) -> Inbox:
        inbox = self._inbox = Inbox(self._session, self._prefetch)
        await self._session.begin(
            f"consuming queue {self._queue.name!r}", Verb.CONSUMER, inbox.target,
            self._prefetch, body=self._asked,
        )  # fmt: skip
        return inbox

    def __aiter__(self) -> Consumer:
        return self

    async def aclose(self) -> None:
        """End it; what was not dealt with is given back."""
        self._end()

    def close(self) -> None:
        """End it; what was not dealt with is given back."""
        self._end()

    def __del__(self) -> None:
        self._end()

    def _end(self) -> None:
        self._is_over = True
        inbox, self._inbox = self._inbox, None
        last, self._last = self._last, None
        if inbox is None or self._session.is_closed:
            return
        with suppress(Error):
            # first, or what is given back comes here once more
            self._session.begin("ending a consumer", Verb.LEAVE, inbox.target)
            if last is not None and last.is_in_hand:
                last._settle(Verb.GIVE_BACK)
            inbox.close()
