"""A transaction for asyncio: ipc/transaction/transaction.py, awaitable where it may wait."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from shmbroker.core.codes import FULL, UNFINISHED
from shmbroker.ipc.aio.exchange import Exchange
from shmbroker.ipc.aio.queue import Queue
from shmbroker.ipc.aio.transaction_queue import TransactionQueue
from shmbroker.ipc.aio.verb import Face, at_once, twin, twin_to
from shmbroker.ipc.base.errors import (
    Error,
    GroupingTimeout,
    InvalidArgument,
    TransactionEnded,
    Unconfirmed,
)
from shmbroker.ipc.base.nap import longer
from shmbroker.ipc.base.timeout import Seconds, seconds
from shmbroker.ipc.message.confirm import Confirm, level_of
from shmbroker.ipc.queue.grouped import until_decided
from shmbroker.ipc.transaction import transaction as sync

if TYPE_CHECKING:
    from types import TracebackType

    from shmbroker.ipc.aio.broker import Broker


REPAIR_S: Final = 0.1


class Transaction(Face, of=sync.Transaction):
    def __init__(self, broker: Broker, transaction: sync.Transaction) -> None:
        self._broker = broker
        self._sync: sync.Transaction = transaction
        transaction._waits = False

    ack = at_once(sync.Transaction.ack)

    @twin(sync.Transaction.queue)
    def queue(self, queue: Queue | str) -> TransactionQueue:
        inner = queue._sync if isinstance(queue, Queue) else queue
        return TransactionQueue(self, self._sync.queue(inner))

    @twin_to(sync.Transaction.publish)
    def publish(self, destination: Queue | Exchange | str, body: Any, **options: Any) -> None:
        if isinstance(destination, (Queue, Exchange)):
            self._sync.publish(destination._sync, body, **options)
        elif isinstance(destination, str):
            self._sync.publish(destination, body, **options)
        else:
            raise InvalidArgument(
                f"publish to a queue or an exchange of aio, or a queue's name, not {destination!r}"
            )

    @twin(sync.Transaction.commit)
    async def commit(self, *, timeout: Seconds | None, confirm: Confirm | None) -> None:
        end = None if timeout is None else monotonic() + seconds(timeout)
        level_of(confirm)  # refuses what is no level
        await self._decided(timeout)
        nap = 0.0  # it may want room in several queues, and a bell tells of one
        repaired_at = monotonic()
        while (code := self._sync._commit(0)) in (FULL, UNFINISHED):
            now = monotonic()
            if code == FULL and (self._sync._is_refused or (end is not None and now >= end)):
                break
            if now >= repaired_at + REPAIR_S:  # as all who wait do: the dead may hold the room
                with suppress(Error):  # of others: it says nothing of this commit
                    self._broker._sync.repair()
                repaired_at = now
            nap = longer(nap)
            await asyncio.sleep(nap)
        self._sync._check(code, "committing")
        if confirm != "shm":
            left = None if end is None else max(0.0, end - monotonic())
            await self.confirm(level=confirm, timeout=left)

    async def _decided(self, timeout: Seconds | None) -> None:
        """Where messages of groups go that were published when nobody knew."""
        if self._sync._later:
            limit = until_decided(self._broker._sync, timeout)
            naps = self._broker._patience.until_done_by_naps
            await naps(self._sync._add_later, limit, (GroupingTimeout,))

    @twin(sync.Transaction.confirm)
    async def confirm(self, *, level: Confirm | None, timeout: Seconds | None) -> Confirm:
        end = None if timeout is None else monotonic() + seconds(timeout)
        nap = 0.0
        while True:
            try:
                return self._sync.confirm(level=level, timeout=0)
            except Unconfirmed as error:
                if end is not None and monotonic() >= end:
                    error.ask = lambda timeout: self.confirm(level=level, timeout=timeout)
                    raise
            nap = longer(nap)
            await asyncio.sleep(nap)

    rollback = at_once(sync.Transaction.rollback)

    def __len__(self) -> int:
        return len(self._sync)

    async def __aenter__(self) -> Transaction:
        self._sync._begin_block()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._sync._end_block()
        if kind is not None:
            self._sync._roll_back_quietly()
            return
        try:
            with suppress(TransactionEnded):  # explicitly, inside
                await self.commit(timeout=self._sync._timeout)
        except BaseException:
            self._sync._roll_back_quietly()
            raise
