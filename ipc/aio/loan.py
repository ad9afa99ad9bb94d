"""A loan for asyncio: memory in the arena that becomes a message without being copied."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from shmbroker.ipc.aio.bell import Bell
from shmbroker.ipc.message.loan import QueueLoan

if TYPE_CHECKING:
    from types import TracebackType

Published = int | None
UntilDone = Callable[
    [Callable[[], Published], Callable[[], Bell], float | None], Awaitable[Published]
]


class Loan:
    """Published on a clean exit of `async with`, dropped on an exception or when cancelled."""

    def __init__(self, loan: QueueLoan, until_done: UntilDone, room: Callable[[], Bell]) -> None:
        self._sync = loan
        self._until_done = until_done
        self._room = room

    @property
    def view(self) -> memoryview:
        return self._sync.view

    @property
    def position(self) -> int | None:
        """Where it was published; None if it was not."""
        return self._sync.position

    async def publish(self, *, timeout: float | None = None) -> int | None:
        """Publish: the message's position, None if one with its id was before.

        QueueFull leaves the loan as it is.
        """
        attempt = partial(self._sync.publish, timeout=0)
        return await self._until_done(attempt, self._room, timeout)

    def drop(self) -> None:
        """Return the memory without publishing."""
        self._sync.drop()

    async def __aenter__(self) -> Loan:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._sync.is_open:
            return
        try:
            if kind is None:
                await self.publish()
        finally:
            if self._sync.is_open:
                self.drop()
