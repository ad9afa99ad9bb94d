"""A durable queue for asyncio: ipc/queue/durable.py, awaitable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shmbroker.core.layout import CONFIRM_SHM
from shmbroker.ipc.aio.producer import Producer
from shmbroker.ipc.aio.queue import Queue
from shmbroker.ipc.aio.verb import at_once, awaited, begins, twin
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.message.confirm import Confirm
from shmbroker.ipc.queue import durable as sync


class DurableProducer(Producer, of=sync.DurableProducer):
    @twin(sync.DurableProducer.publish)
    async def publish(
        self, body: Any, *, confirm: Confirm | None, timeout: Seconds | None, **options: Any
    ) -> int | None:
        deadline = Deadline(nanoseconds(timeout))
        sync.checked(self._queue._sync, confirm)
        position = await super().publish(body, timeout=timeout, confirm="shm", **options)
        if confirm != "shm":
            left = deadline.seconds_left()
            await self._queue.confirm(position, level=confirm, timeout=left)
        return position


class DurableQueue(Queue, of=sync.DurableQueue):
    async def _publish(self, body: Any, *, timeout: Seconds | None, **options: Any) -> int | None:
        confirm = options.pop("confirm", None)
        level = sync.checked(self._sync, confirm)
        deadline = Deadline(nanoseconds(timeout))
        if options.get("deliver_after") is not None or options.get("deliver_at") is not None:
            number, receipt = await self._schedule(body, timeout, options)
            if level != CONFIRM_SHM:
                left = deadline.seconds_left()
                told = number or receipt.position
                await self._confirm_at(receipt.queue, receipt.position, left, told, level)
            return number
        position = await super()._publish(body, timeout=timeout, confirm="shm", **options)
        if level != CONFIRM_SHM:  # also for a duplicate: the one that counts may not be there yet
            await self.confirm(position, level=confirm, timeout=deadline.seconds_left())
        return position

    publish = awaited(sync.DurableQueue.publish, _publish)  # type: ignore[arg-type]  # as there
    publish_nowait = at_once(sync.DurableQueue.publish_nowait)
    producer = begins(sync.DurableQueue.producer, DurableProducer)

    @twin(sync.DurableQueue.publish_many)
    async def publish_many(
        self, bodies: Iterable[Any], *, timeout: Seconds | None, confirm: Confirm | None
    ) -> int:
        deadline = Deadline(nanoseconds(timeout))
        sync.checked(self._sync, confirm)
        published = await super().publish_many(bodies, timeout=timeout, confirm="shm")
        if confirm != "shm":
            await self.confirm(level=confirm, timeout=deadline.seconds_left())
        return published
