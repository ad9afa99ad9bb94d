"""A transaction for asyncio: ipc/transaction/transaction.py, awaitable where it may wait."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import FULL, UNFINISHED
from shmbroker.ipc.aio.exchange import Exchange
from shmbroker.ipc.aio.queue import Queue
from shmbroker.ipc.base.errors import InvalidArgument, TransactionEnded, Unconfirmed
from shmbroker.ipc.base.timeout import nanoseconds
from shmbroker.ipc.message.message import Message
from shmbroker.ipc.message.outgoing import Confirm
from shmbroker.ipc.schedule.scheduled import When
from shmbroker.ipc.transaction import transaction as sync

if TYPE_CHECKING:
    from types import TracebackType

NAP_S = 0.001
NAP_S_MAX = 0.016
"""It may want room for several messages in several queues, and a bell tells of one."""


class Transaction:
    """Made by Broker.transaction: commits on a clean exit of `async with`, else rolls back.

    If a commit is cancelled while it waits for room, nothing has happened.
    """

    def __init__(self, transaction: sync.Transaction) -> None:
        self._sync = transaction

    def ack(self, message: Message) -> None:
        """Acknowledge at commit; on rollback the message is given back in place."""
        self._sync.ack(message)

    def publish(
        self,
        destination: Queue | Exchange,
        body: Any,
        *,
        key: str | None = None,
        properties: Mapping[str, Any] | None = None,
        ttl: float | None = None,
        priority: int | None = None,
        message_id: str | bytes | None = None,
        group: str | None = None,
        mandatory: bool = False,
        deliver_after: float | None = None,
        deliver_at: When | None = None,
    ) -> None:
        """Publish at commit: the body is copied, and an exchange decides who gets it, now."""
        if not isinstance(destination, (Queue, Exchange)):
            raise InvalidArgument(f"publish to a queue or an exchange of aio, not {destination!r}")
        self._sync.publish(
            destination._sync,
            body,
            key=key,
            properties=properties,
            ttl=ttl,
            priority=priority,
            message_id=message_id,
            group=group,
            mandatory=mandatory,
            deliver_after=deliver_after,
            deliver_at=deliver_at,
        )

    async def commit(self, *, timeout: float | None = None, confirm: Confirm | None = None) -> None:
        """All of it happens; or QueueFull, DeliveryRevoked, NotFound, and nothing has happened.

        With durable queues in it, it is done when all of it is on disk, unless confirm is "shm".
        """
        nanoseconds(timeout)  # refuses what is no time-out
        end = None if timeout is None else monotonic() + timeout
        nap = NAP_S
        while (code := self._sync._commit(0)) in (FULL, UNFINISHED):
            if code == FULL and end is not None and monotonic() >= end:
                break
            await asyncio.sleep(nap)
            nap = min(2 * nap, NAP_S_MAX)
        self._sync._check(code, "committing")
        if confirm != "shm":
            left = None if end is None else max(0.0, end - monotonic())
            await self.confirm(timeout=left)

    async def confirm(self, *, timeout: float | None = None) -> None:
        """Until all of it is on disk, once it is committed: Unconfirmed if not in time."""
        end = None if timeout is None else monotonic() + timeout
        nap = NAP_S
        while True:
            try:
                return self._sync.confirm(timeout=0)
            except Unconfirmed:
                if end is not None and monotonic() >= end:
                    raise
            await asyncio.sleep(nap)
            nap = min(2 * nap, NAP_S_MAX)

    def rollback(self) -> None:
        """Nothing of it happens: its messages are given back, in place."""
        self._sync.rollback()

    def __len__(self) -> int:
        return len(self._sync)

    async def __aenter__(self) -> Transaction:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._sync._roll_back_quietly()
            return
        try:
            with suppress(TransactionEnded):  # explicitly, inside
                await self.commit(timeout=self._sync._timeout)
        except BaseException:
            self._sync._roll_back_quietly()
            raise
