"""A named producer for asyncio: ipc/queue/producer.py, awaitable."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from shmbroker.ipc.base.timeout import Deadline, nanoseconds
from shmbroker.ipc.message.outgoing import Confirm
from shmbroker.ipc.queue import producer as sync

if TYPE_CHECKING:
    from shmbroker.ipc.aio.queue import Queue


class Producer:
    """Made by Queue.producer.  Its messages go one at a time, in the order of numbers."""

    def __init__(self, queue: Queue, producer: sync.Producer) -> None:
        self._queue = queue
        self._sync = producer

    @property
    def name(self) -> str | bytes:
        return self._sync.name

    @property
    def last_sequence(self) -> int:
        """The highest number that was published under this name by anybody, 0 at first."""
        return self._sync.last_sequence

    async def publish(
        self,
        body: Any,
        *,
        sequence: int | None = None,
        key: str | None = None,
        properties: Mapping[str, Any] | None = None,
        ttl: float | None = None,
        priority: int | None = None,
        confirm: Confirm | None = None,
        timeout: float | None = None,
    ) -> int | None:
        """Publish as the message of this number: its position, or None if that was before.

        Without a number it is the next one, at the moment when there is room.  To a durable queue
        it is done when the message is on disk, unless confirm is "shm".
        """
        unconfirmed = self._queue._unconfirmed
        deadline = Deadline(nanoseconds(timeout))
        attempt = partial(
            self._sync.publish,
            body,
            sequence=sequence,
            key=key,
            properties=properties,
            ttl=ttl,
            priority=priority,
            confirm=unconfirmed or confirm,
            timeout=0,
        )
        position = await self._queue._when_there_is_room(attempt, timeout)
        if unconfirmed is not None and confirm != "shm":
            await self._queue.confirm(position, timeout=deadline.seconds_left())
        return position

    def __repr__(self) -> str:
        return f"<aio {self._sync!r}>"
