"""The retained reader: consumes a non-destructive queue, in which each consumer sees all messages.

A place of our own in the ring, which nobody waits for: what is dropped before we come is missed.
What was carried to the end of the ring (core/carry.py) is the same message: whoever has seen it is
not shown the copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shmbroker.core.layout import (
    CHUNK_CARRIED,
    MARK_AGE_MASK,
    MARK_AGE_SHIFT,
    MARK_FLAGS_SHIFT,
)
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.base.timeout import Deadline, Seconds
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.message.room import length_of
from shmbroker.ipc.message.serializer import value_of
from shmbroker.ipc.queue.subscription import Subscription

if TYPE_CHECKING:
    from types import TracebackType

    from shmbroker.ipc.queue.opened import OpenedQueue
    from shmbroker.ipc.selector.selection import Selection


class KeptMessage(CopiedMessage):
    """A message that stays where it is.  It is in nobody's hand, so acknowledging does nothing."""

    __slots__ = ("_queue",)

    _queue: OpenedQueue

    @property
    def queue(self) -> str:
        """The name of the queue that it is in."""
        return self._queue.name

    @property
    def value(self) -> Any:
        """The body as the serializer of the queue's handle reads it (docs/handles.md)."""
        return value_of(self.body, self._queue.serializer)

    @property
    def is_in_hand(self) -> bool:
        return False

    def ack(self) -> None:
        """Nothing: the next one is shown anyway."""

    def give_back(self) -> None:
        """Nothing: others see it anyway."""

    def reject(self) -> None:
        raise InvalidArgument(
            f"message {self.position} is in a non_destructive queue: others see it too, so nobody "
            "can reject it; let it expire, or replace it"
        )

    def nack(self, *, requeue: bool = True) -> None:
        """give_back, or without `requeue` reject."""
        if not requeue:
            self.reject()

    def __enter__(self) -> KeptMessage:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Nothing is to be undone."""

    async def __aenter__(self) -> KeptMessage:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Nothing is to be undone."""


class RetainedReader(Subscription):
    """From the first message on; `missed` counts positions that were gone before we came there."""

    def __init__(
        self, queue: OpenedQueue, selection: Selection | None, timeout: Seconds | None
    ) -> None:
        super().__init__(queue, from_now=False, lossy=True, timeout=timeout)
        self._selection = selection
        self._start = self._seen_to = self.position
        self._seen = bytearray(queue.slots)  # of the positions below _seen_to, of one lap

    def _pass_over(self, position: int) -> None:
        super()._pass_over(position)
        self._start, self._seen_to = 0, position
        self._seen = bytearray(b"\1") * len(self._seen)

    def _get(self, timeout_ns: int) -> KeptMessage:
        deadline = Deadline(timeout_ns)
        while True:
            chunk = self._fetch(deadline.left())
            message = self._room.messages[0]
            if self._is_news(message) and self._is_selected(message, chunk):
                kept = KeptMessage.of(message.position, message.word, message.length, chunk)
                object.__setattr__(kept, "_queue", self._queue)
                return kept

    def _is_news(self, message: Any) -> bool:
        """Whether we have not seen it yet; now we have."""
        position: int = message.position
        slots = len(self._seen)
        if position - self._seen_to >= slots:
            self._seen = bytearray(slots)
        else:
            for passed in range(self._seen_to, position):
                self._seen[passed % slots] = False
        self._seen_to = position + 1
        is_known = self._is_known(message, slots)
        self._seen[position % slots] = True
        return not is_known

    def _is_known(self, message: Any, slots: int) -> bool:
        """A copy of what we have seen."""
        if not (message.mark >> MARK_FLAGS_SHIFT) & CHUNK_CARRIED:
            return False
        behind = (message.position - (message.mark >> MARK_AGE_SHIFT)) & MARK_AGE_MASK
        before = message.position - behind
        return behind < slots and before >= self._start and bool(self._seen[before % slots])

    def _is_selected(self, message: Any, chunk: bytes) -> bool:
        if self._selection is None:
            return True
        held = ffi.from_buffer(chunk)
        copy = ffi.new("sb_message *", message)  # what it points to may be recycled by now
        copy.body = ffi.cast("char *", held) + (length_of(message) - message.length)
        copy.chunk = held
        return bool(lib.sb_is_selected(copy, self._selection.selection))
