"""A durable queue: what is published is safe once the broker's journal has it.

Publishing has done its part when the message is in the ring: there it outlives every program, the
broker included.  It outlives the machine when it is on disk, and that is what publish waits for
unless told otherwise.  If nobody confirms in time, the message is in the queue all the same, and
will be delivered when a broker has written it: Unconfirmed means "unknown", not "failed".
"""

from __future__ import annotations

from collections.abc import Iterable
from inspect import signature
from typing import Any, Unpack

from shmbroker.core.codes import INVALID
from shmbroker.core.layout import CONFIRM_REPLICATED, CONFIRM_SHM
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.signature import shows
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.message.confirm import Confirm, level_of
from shmbroker.ipc.message.outgoing import Options, OptionsWithId
from shmbroker.ipc.queue.opened import OpenedQueue
from shmbroker.ipc.queue.producer import Producer
from shmbroker.ipc.queue.queue import Queue


def checked(queue: OpenedQueue, confirm: Confirm | None) -> int:
    """A level that the queue has, or nothing is published."""
    level = level_of(confirm)
    if level > 0 and level & CONFIRM_REPLICATED:
        code = lib.sb_confirm(queue._queue, 0, level, 0)
        if code == INVALID:  # what is replicated of it is no message
            raise queue._error(code, "confirming what is published to")
    return level


class DurableProducer(Producer):
    """Made by DurableQueue.producer."""

    def publish(
        self,
        /,
        body: Any,
        *,
        confirm: Confirm | None = None,
        timeout: Seconds | None = None,
        **options: Any,
    ) -> int | None:
        """Producer.publish, and wait until the message is confirmed: Unconfirmed if not in time.

        Publish it again then, under the same number: if it is there it is not there twice.
        """
        deadline = Deadline(nanoseconds(timeout))
        checked(self._queue, confirm)
        position = super().publish(body, timeout=timeout, **options)
        if confirm != "shm":
            self._queue.confirm(position, level=confirm, timeout=deadline.seconds_left())
        return position

    publish.__signature__ = signature(Producer.publish)  # type: ignore[attr-defined]


class DurableQueue(Queue):
    """Made by Broker.declare_queue with `durable`: publishing waits for the disk."""

    __slots__ = ()

    @shows(OptionsWithId)
    def publish(  # type: ignore[override]  # as Queue.publish, which is overloaded
        self, /, body: Any, *, timeout: Seconds | None = None, **options: Any
    ) -> int | None:
        """Queue.publish, and wait until the message is confirmed: Unconfirmed if not in time.

        confirm="shm" does not wait; `confirmed` and `confirm` tell about its position later.  Any
        other level is a demand, in place of the queue's own.  What is scheduled is on disk when its
        place in the schedule is.
        """
        confirm = options.pop("confirm", None)
        level = checked(self, confirm)
        deadline = Deadline(nanoseconds(timeout))
        after, at = options.pop("deliver_after", None), options.pop("deliver_at", None)
        if after is not None or at is not None:
            number, receipt = self._schedule(body, deadline.left(), after, at, options)
            if level != CONFIRM_SHM:
                left = deadline.seconds_left()
                told = number or receipt.position
                self._confirm_at(receipt.queue, receipt.position, left, told, level)
            return number
        position: int | None = super().publish(body, timeout=timeout, **options)
        if level != CONFIRM_SHM:  # also for a duplicate: the one that counts may not be there yet
            self.confirm(position, level=confirm, timeout=deadline.seconds_left())
        return position

    def producer(self, name: str | bytes) -> DurableProducer:
        return DurableProducer(self, name)

    @shows(Options)
    def publish_nowait(self, body: Any, **options: Unpack[Options]) -> int:
        """publish without waiting, for the disk neither: QueueFull at once."""
        options["confirm"] = "shm"
        return self.publish(body, timeout=0, **options)  # type: ignore[return-value]

    def publish_many(
        self,
        bodies: Iterable[Any],
        *,
        timeout: Seconds | None = None,
        confirm: Confirm | None = None,
    ) -> int:
        """Queue.publish_many, and wait until all are confirmed: Unconfirmed if not in time.

        After QueueFull those that were published are in the queue, and `confirm` waits for them.
        """
        deadline = Deadline(nanoseconds(timeout))
        checked(self, confirm)
        published = super().publish_many(bodies, timeout=timeout)
        if confirm != "shm":
            self.confirm(level=confirm, timeout=deadline.seconds_left())
        return published
