"""Requests for asyncio: as many as there are coroutines that ask, through one queue for replies.

As long as somebody waits, one task takes replies and hands each to whoever it is for.  A reply that
nobody waits for any more is dropped, so nothing is lost by a task that is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import Error, InvalidArgument, NoReply, NotFound
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.message.message import Message
from shmbroker.ipc.request.request import (
    CORRELATION,
    CORRELATION_DIGITS,
    REPLY_TO,
    Reply,
    check_properties,
    take_back,
)
from shmbroker.ipc.request.return_address import is_of_this_node

if TYPE_CHECKING:
    from shmbroker.ipc.aio.broker import Broker
    from shmbroker.ipc.aio.queue import Queue

SLOTS: Final = 4096
"""So many replies may wait for the loop; beyond that the oldest makes place."""


def _is_usable(replies: Queue) -> bool:
    """Nobody has deleted it, and it is of the node that we are now."""
    queue = replies._sync
    return lib.sb_published(queue._queue) >= 0 and is_of_this_node(queue._broker, queue.name)


async def _taken_back(queue: Queue, replies: str, number: int) -> bool:
    """Awaited, as over a link, though nothing of it waits."""
    return take_back(queue._sync, replies, number)


class Requests:
    """All that the coroutines of a connection have asked."""

    def __init__(self) -> None:
        self._replies: Queue | None = None
        self._numbers = count(1)
        self._waiting: dict[str, asyncio.Future[Reply]] = {}
        self._reader: asyncio.Task[None] | None = None

    async def request(
        self,
        queue: Queue,
        body: Any,
        key: str | None,
        properties: Mapping[str, Any] | None,
        timeout: Seconds | None,
    ) -> Reply:
        check_properties(properties)
        deadline = Deadline(nanoseconds(timeout))
        replies = await self._queue_of(queue._broker)
        number = next(self._numbers)
        correlation = f"{number:0{CORRELATION_DIGITS}x}"
        asked = {**(properties or {}), REPLY_TO: replies.name, CORRELATION: correlation}
        answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[correlation] = answered
        try:
            # a reply says more than a confirm
            await queue.publish(
                body, key=key, properties=asked, confirm="shm", timeout=deadline.seconds_left()
            )
            if self._reader is None or self._reader.done():
                self._reader = asyncio.create_task(self._read(replies))
            async with asyncio.timeout(deadline.seconds_left()):
                return await answered
        except TimeoutError as late:
            if isinstance(late, Error):  # of who publishes
                raise
            error = NoReply(f"a request to queue {queue.name!r}: no reply came in time")
            error.ask_back = partial(_taken_back, queue, replies.name, number)
            raise error from None
        finally:
            answered.cancel()
            del self._waiting[correlation]
            if not self._waiting and self._reader is not None:
                self._reader.cancel()
                self._reader = None  # who asks before it has ended needs another

    async def _queue_of(self, broker: Broker) -> Queue:
        former = self._replies
        if former is not None and not self._waiting and not _is_usable(former):
            self._replies = self._reader = None
            with suppress(NotFound):  # somebody else has deleted it
                await broker.delete_queue(former.name, force=True)
        if self._replies is None:
            self._replies = await broker.temporary_queue(
                slots=SLOTS, max_deliveries=None, when_full="drop-oldest"
            )
        return self._replies

    async def _read(self, replies: Queue) -> None:
        """Hand replies over, until nobody waits."""
        try:
            while True:
                async with await replies.get() as message:
                    self._came(message)
        except Error as error:  # the connection was closed, or the queue deleted
            self._replies = None
            for each in self._waiting.values():
                if not each.done():
                    each.set_exception(error)

    def _came(self, message: Message) -> None:
        try:
            correlation = message.correlation_id
        except InvalidArgument:
            return  # who replied wrote what cannot be read: nobody knows to whom
        waiting = self._waiting.get(correlation) if isinstance(correlation, str) else None
        if waiting is not None and not waiting.done():
            waiting.set_result(Reply(message.body, message._packed))
