"""A queue that was opened: what C knows it by, and what of its structures is not in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import Error, error_for
from shmbroker.ipc.base.owner import Kept
from shmbroker.ipc.message.room import Room

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.message.serializer import Codec


class OpenedQueue:
    """What publishing, taking, looking and managing share."""

    __slots__ = (
        "__weakref__", "_address", "_arena", "_broker", "_kept", "_queue", "_room", "name",
    )  # fmt: skip

    def __init__(self, broker: Broker, name: str, queue: Any, arena: Any) -> None:
        self._broker = broker
        self.name = name
        self._queue = queue
        self._arena = arena
        self._address = int(ffi.cast("intptr_t", queue))
        self._kept = Kept(broker._owner, queue, arena)
        # one that is not in use: a thread takes it out and puts it back, so that no two have the
        # same; a room that two put back is lost, which is cheaper than keeping both
        self._room: Room | None = None

    @property
    def slots(self) -> int:
        slots: int = lib.sb_queue_slots(self._queue)
        return slots

    @property
    def serializer(self) -> Codec | None:
        """What it was opened with: dumps makes a body of a value, loads a value of a body."""
        codec: Codec | None = self._kept.codec
        return codec

    def _error(self, code: int, doing: str) -> Error:
        detail = detail_of(code)
        return error_for(code, f"{doing} queue {self.name!r}", ffi.errno, detail)

    def _told(self, ring: Any = None) -> Any:
        told = ffi.new("sb_queue_statistics *")
        code: int = lib.sb_statistics(ring or self._queue, told)
        if code < 0:
            raise self._error(code, "looking at")
        return told

    def __reduce__(self) -> tuple[Any, ...]:
        return _open, (self._broker, self.name, self.serializer)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of {self._broker.vhost!r}>"


def _open(broker: Broker, name: str, serializer: Codec | None) -> OpenedQueue:
    """What a handle is pickled as: another process opens the queue for itself."""
    return broker.queue(name, serializer=serializer)
