"""A named producer for asyncio: ipc/queue/producer.py, awaitable."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from shmbroker.ipc.aio.verb import Face, twin
from shmbroker.ipc.base.timeout import Seconds
from shmbroker.ipc.queue import producer as sync

if TYPE_CHECKING:
    from shmbroker.ipc.aio.queue import Queue


class Producer(Face, of=sync.Producer):
    def __init__(self, queue: Queue, producer: sync.Producer) -> None:
        self._queue = queue
        self._sync: sync.Producer = producer

    @property
    def name(self) -> str | bytes:
        return self._sync.name

    @property
    def last_sequence(self) -> int:
        return self._sync.last_sequence

    @twin(sync.Producer.publish)
    async def publish(self, body: Any, *, timeout: Seconds | None, **options: Any) -> int | None:
        # without a number it is the next one at the moment when there is room
        attempt = partial(self._sync.publish, body, timeout=0, **options)
        return await self._queue._when_there_is_room(attempt, timeout)
