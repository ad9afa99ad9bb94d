"""A queue in a transaction for asyncio: ipc/transaction/queue.py, awaitable where it may wait."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from shmbroker.ipc.aio.getting import Getting
from shmbroker.ipc.aio.taking import Taking
from shmbroker.ipc.aio.verb import Face, at_once, twin, waits
from shmbroker.ipc.base.timeout import Seconds
from shmbroker.ipc.message.serializer import Codec
from shmbroker.ipc.selector.selection import Selection
from shmbroker.ipc.selector.selector import Selector
from shmbroker.ipc.transaction import queue as sync
from shmbroker.ipc.transaction.message import TransactionMessage

if TYPE_CHECKING:
    from shmbroker.ipc.aio.transaction import Transaction


class TransactionQueue(Taking, Face, of=sync.TransactionQueue):
    def __init__(self, transaction: Transaction, queue: sync.TransactionQueue) -> None:
        self._broker = transaction._broker
        self._sync: sync.TransactionQueue = queue
        self._until_done = self._broker._patience.until_done

    @property
    def name(self) -> str:
        return self._sync.name

    @property
    def serializer(self) -> Codec | None:
        return self._sync.serializer

    @property
    def slots(self) -> int:
        return self._sync.slots

    publish = at_once(sync.TransactionQueue.publish)
    publish_many = at_once(sync.TransactionQueue.publish_many)

    @twin(sync.TransactionQueue.get)
    def get(
        self, selector: str | Selector | None, *, timeout: Seconds | None
    ) -> Getting[TransactionMessage]:
        if selector is not None:
            return self._select(selector, timeout)
        attempt = partial(self._sync.get, timeout=0)
        return Getting(self._until_done(attempt, self._messages, timeout))

    @twin(sync.TransactionQueue.select)
    def select(
        self, selection: str | Selector | Selection, *, timeout: Seconds | None
    ) -> Getting[TransactionMessage]:
        return self._select(selection, timeout)

    get_many = waits(sync.TransactionQueue.get_many, Taking._messages)
    receive = waits(sync.TransactionQueue.receive, Taking._messages)
    receive_many = waits(sync.TransactionQueue.receive_many, Taking._messages)
