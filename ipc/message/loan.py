"""A loan: memory in the arena that becomes a message without being copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import DUPLICATE, INTERRUPTED
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.pickled import refuse_pickle
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds

if TYPE_CHECKING:
    from types import TracebackType

    from shmbroker.ipc.queue.opened import OpenedQueue
    from shmbroker.ipc.ring.port import Port


class Loan:
    """Published on a clean exit of `with`, dropped on an exception."""

    __slots__ = ("_chunk", "_owner", "_port", "position", "view")

    def __init__(self, owner: Port, port: Any, chunk: int, length: int) -> None:
        self._owner = owner
        self._port = port
        self._chunk = chunk
        self.position: int | None = None
        self.view = memoryview(ffi.buffer(lib.sb_port_loan_body(port, chunk), length))

    def publish(self, spins: int = 2000) -> int:
        """Publish: the message's position.  QueueFull leaves the loan as it is."""
        position: int = lib.sb_port_publish_chunk_wait(self._port, self._chunk, spins)
        if position < 0:
            raise self._owner._error(position, "publishing to")
        self.view.release()
        self.position = position
        return position

    def drop(self) -> None:
        """Return the memory without publishing."""
        self.view.release()
        lib.sb_port_unreserve(self._port, self._chunk)

    def __enter__(self) -> Loan:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.publish()
        else:
            self.drop()


class QueueLoan:
    """A loan from a queue: published on a clean exit of `with`, dropped on an exception."""

    __slots__ = ("_loan", "_queue", "position", "view")

    __reduce__ = refuse_pickle

    def __init__(self, queue: OpenedQueue, loan: Any) -> None:
        self._queue = queue
        self._loan = loan
        self.position: int | None = None
        self.view = memoryview(ffi.buffer(loan.body, loan.length))

    @property
    def is_open(self) -> bool:
        """It was neither published nor dropped so far."""
        return bool(self._loan.lane != ffi.NULL)

    def publish(self, *, timeout: Seconds | None = None) -> int | None:
        """Publish: the message's position, None if one with its id was before.

        QueueFull leaves the loan as it is.
        """
        deadline = Deadline(nanoseconds(timeout))
        position: int = lib.sb_loan_publish(self._queue._queue, self._loan, deadline.left())
        while position == INTERRUPTED:
            position = lib.sb_loan_publish(self._queue._queue, self._loan, deadline.left())
        if position == DUPLICATE:
            self.view.release()
            return None
        if position < 0:
            raise self._queue._error(position, "publishing to")
        self.view.release()
        self.position = position
        return position

    def drop(self) -> None:
        """Return the memory without publishing."""
        self.view.release()
        lib.sb_loan_drop(self._queue._queue, self._loan)

    def __enter__(self) -> QueueLoan:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self.is_open:
            return
        if kind is None:
            self.publish()
        else:
            self.drop()

    def __del__(self) -> None:
        if self.is_open:
            self.drop()
