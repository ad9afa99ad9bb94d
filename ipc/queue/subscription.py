"""A subscription: every message of a queue, without taking any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shmbroker.core.codes import DAMAGED, EMPTY, GONE, INTERRUPTED, OK, TOO_SMALL
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Empty
from shmbroker.ipc.base.pickled import refuse_pickle
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.message.room import Room, length_of

if TYPE_CHECKING:
    from shmbroker.ipc.queue.opened import OpenedQueue

RELEASE_EVERY_MAX = 32
"""A gate is moved once for so many messages, or a quarter of the ring: it is one more cache line
that producers read."""


class Subscription(Closable):
    """An iterator of messages, which ends when none comes within the timeout.

    It belongs to one thread at a time.  Gating: the ring waits for us.  Lossy: nobody waits, and
    `missed` counts what we were too late for.
    """

    __reduce__ = refuse_pickle

    def __init__(
        self, queue: OpenedQueue, *, from_now: bool, lossy: bool, timeout: Seconds | None
    ) -> None:
        self._queue = queue
        self._timeout_ns = nanoseconds(timeout)
        self.timeout = timeout
        self._room = Room()
        self._unreleased = 0
        self._release_every = max(1, min(RELEASE_EVERY_MAX, queue.slots // 4))
        self._cursor = ffi.new("sb_cursor *")
        code: int = lib.sb_subscribe(queue._queue, self._cursor, from_now, lossy)
        if code != OK:
            raise queue._error(code, "subscribing to")

    @property
    def missed(self) -> int:
        missed: int = self._cursor.missed
        return missed

    @property
    def position(self) -> int:
        """The position of the next message."""
        position: int = self._cursor.position
        return position

    def get(self, *, timeout: Seconds | None = None) -> CopiedMessage:
        """The next message; Empty if none came within the timeout."""
        return self._get(nanoseconds(timeout))

    def _get(self, timeout_ns: int) -> CopiedMessage:
        chunk = self._fetch(timeout_ns)
        message = self._room.messages[0]
        return CopiedMessage.of(message.position, message.word, message.length, chunk)

    def _fetch(self, timeout_ns: int) -> bytes:
        """A copy of the chunk of the next message; what else there is to know is in our room."""
        # what was returned before is dealt with: move our gate before we wait
        if self._unreleased >= self._release_every:
            self._release()
        length = self._next(0)
        if length == EMPTY:
            self._release()  # producers may wait for us, who has nothing left to read
        if length == EMPTY and timeout_ns != 0:
            deadline = Deadline(timeout_ns)
            length = self._next(deadline.left())
            while length == INTERRUPTED:
                length = self._next(deadline.left())
        if length < 0:
            raise self._queue._error(length, "reading")
        self._unreleased += 1
        chunk: bytes = self._room.bytes[:length]
        return chunk

    def _next(self, timeout_ns: int) -> int:
        room = self._room
        while True:
            length: int = lib.sb_next(
                self._queue._queue,
                self._cursor,
                room.messages,
                room.buffer,
                room.capacity,
                timeout_ns,
            )
            if length == TOO_SMALL:
                room.enlarge(length_of(room.messages + 0))
            elif length not in (GONE, DAMAGED):
                return length

    def _release(self) -> None:
        if self._unreleased:
            self._unreleased = 0
            code: int = lib.sb_released(self._queue._queue, self._cursor)
            if code < 0:
                raise self._queue._error(code, "the gate of a subscription to")

    def _pass_over(self, position: int) -> None:
        """All below it has been seen; it is not before us, and not behind what was published."""
        if self._cursor.gate >= 0:
            code: int = lib.sb_gate_move(self._queue._queue, self._cursor.gate, position)
            if code < 0:
                raise self._queue._error(code, "the gate of a subscription to")
        self._cursor.position = position

    def close(self) -> None:
        """Give up our place; who waits for a message gets ConnectionClosed."""
        lib.sb_unsubscribe(self._queue._queue, self._cursor)

    def __iter__(self) -> Iterator[CopiedMessage]:
        return self

    def __next__(self) -> CopiedMessage:
        try:
            return self._get(self._timeout_ns)
        except Empty:
            raise StopIteration from None

    def __del__(self) -> None:
        if getattr(self, "_cursor", None) is not None:
            self.close()
