"""A named producer: it numbers its messages, so that publishing again after a crash is safe."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import DUPLICATE, INTERRUPTED
from shmbroker.core.layout import SEQUENCE_MASK
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.message.confirm import Confirm
from shmbroker.ipc.message.outgoing import id_bytes
from shmbroker.ipc.queue.open_transaction import OPEN

if TYPE_CHECKING:
    from shmbroker.ipc.queue.publishing import Publishing


class Producer:
    """Made by Queue.producer.  Its messages go one at a time, in the order of numbers."""

    def __init__(self, queue: Publishing, name: str | bytes) -> None:
        self._queue = queue
        self.name = name
        packed, length = id_bytes(name, "the name of a producer")
        code: int = lib.sb_producer_open(queue._queue, packed, abs(length))
        if code < 0:
            raise queue._error(code, "a named producer of")
        self._number = code
        self._outgoing = queue._outgoing
        self._lock = Lock()

    @property
    def last_sequence(self) -> int:
        """The highest number that was published under this name by anybody, 0 at first."""
        code: int = lib.sb_producer_sequence(self._queue._queue, self._number)
        if code < 0:
            raise self._queue._error(code, "a named producer of")
        return code

    def publish(
        self,
        body: Any,
        *,
        sequence: int | None = None,
        key: str | None = None,
        properties: Mapping[str, Any] | None = None,
        ttl: Seconds | None = None,
        priority: int | None = None,
        confirm: Confirm | None = None,
        timeout: Seconds | None = None,
    ) -> int | None:
        """Publish as the message of this number: its position, or None if that was before.

        Without a number it is the next one.  A number that is not above the last was published
        before; numbers may be left out.  To a durable queue it is done when the message is
        confirmed, unless confirm is "shm".
        """
        if OPEN:
            self._queue._notice()
        self._queue._check_confirm(confirm)
        message, _kept = self._outgoing(body, key, properties, ttl, priority, None)
        deadline = Deadline(nanoseconds(timeout))
        with self._lock:
            message.producer = self._number
            message.sequence = self.last_sequence + 1 if sequence is None else checked(sequence)
            code: int = INTERRUPTED
            while code == INTERRUPTED:
                code = lib.sb_publish_message(self._queue._queue, message, deadline.left())
        if code == DUPLICATE:
            return None
        if code < 0:
            raise self._queue._error(code, "publishing to")
        return code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._queue, self.name)

    def __repr__(self) -> str:
        return f"<Producer {self.name!r} of {self._queue!r}>"


def checked(sequence: int) -> int:
    if isinstance(sequence, int) and not isinstance(sequence, bool):
        if 1 <= sequence <= SEQUENCE_MASK:
            return sequence
    raise InvalidArgument(f"a sequence is a number from 1 to {SEQUENCE_MASK}, not {sequence!r}")
