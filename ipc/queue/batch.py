"""A batch: several messages on their way into a queue, in one piece of memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import FULL, INTERRUPTED
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.base.timeout import Deadline
from shmbroker.ipc.message.outgoing import as_buffer

if TYPE_CHECKING:
    from shmbroker.ipc.queue.opened import OpenedQueue


def several(bodies: Iterable[Any]) -> list[Any]:
    """One body that is taken for several would be published byte by byte."""
    if isinstance(bodies, (bytes, bytearray, memoryview, str)):
        raise InvalidArgument("bodies are several: put this one into a list, or publish it")
    try:
        return list(bodies)
    except TypeError as error:
        raise InvalidArgument(f"bodies are several buffers: {error}") from error


class Batch:
    """Remembers how many are in the queue, so that it can go on where there was no room."""

    __slots__ = ("_at", "_lengths", "_queue", "_whole", "done")

    def __init__(self, queue: OpenedQueue, bodies: Iterable[Any]) -> None:
        held = several(bodies)
        if not set(map(type, held)) <= {bytes}:  # len() counts items, not always bytes
            held = [ffi.buffer(as_buffer(body))[:] for body in held]
        self._queue = queue
        self._whole = b"".join(held)
        self._lengths = array("q", map(len, held))
        self._at = 0
        self.done = 0

    def go_on(self, timeout_ns: int) -> int:
        """Publish those that are left: how many it has; an error says how many were published."""
        lengths, total = self._lengths, len(self._lengths)
        deadline = Deadline(timeout_ns)
        while self.done < total:
            code: int = lib.sb_publish_many(
                self._queue._queue,
                ffi.from_buffer(self._whole) + self._at,
                ffi.cast("int64_t *", ffi.from_buffer("int64_t[]", lengths)) + self.done,
                total - self.done,
                deadline.left(),
            )
            if code == INTERRUPTED:
                continue
            if code <= 0:
                doing = f"{self.done:,} of {total:,} messages were published to"
                error = self._queue._error(code or FULL, doing)
                error.published = self.done
                raise error
            self._at += sum(lengths[self.done : self.done + code])
            self.done += code
        return total
