"""A loan for asyncio: memory in the arena that becomes a message without being copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shmbroker.ipc.aio.bell import Bell
from shmbroker.ipc.aio.verb import Face, at_once, waits
from shmbroker.ipc.message import loan as sync

if TYPE_CHECKING:
    from types import TracebackType

    from shmbroker.ipc.aio.queue import Queue


class Loan(Face, of=sync.QueueLoan):
    def __init__(self, queue: Queue, loan: sync.QueueLoan) -> None:
        self._queue = queue
        self._sync: sync.QueueLoan = loan
        self._until_done = queue._until_done

    @property
    def view(self) -> memoryview:
        return self._sync.view

    @property
    def position(self) -> int | None:
        return self._sync.position

    @property
    def is_open(self) -> bool:
        return self._sync.is_open

    def _room(self) -> Bell:
        return self._queue._room()

    publish = waits(sync.QueueLoan.publish, _room)
    drop = at_once(sync.QueueLoan.drop)

    async def __aenter__(self) -> Loan:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self.is_open:
            return
        try:
            if kind is None:
                await self.publish()
        finally:  # also when it is cancelled while it waits for room
            if self.is_open:
                self.drop()
