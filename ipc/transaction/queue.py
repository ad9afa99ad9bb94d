"""A queue in a transaction: the verbs of a queue, for what happens at commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from shmbroker.ipc.base.pickled import refuse_pickle
from shmbroker.ipc.base.timeout import Seconds
from shmbroker.ipc.message.room import BATCH
from shmbroker.ipc.queue.batch import several
from shmbroker.ipc.queue.taking import Taking
from shmbroker.ipc.schedule.scheduled import When
from shmbroker.ipc.selector.selection import Selection
from shmbroker.ipc.selector.selector import Selector
from shmbroker.ipc.transaction.message import TransactionMessage

if TYPE_CHECKING:
    from shmbroker.ipc.queue.queue import Queue
    from shmbroker.ipc.transaction.transaction import Transaction


class TransactionQueue(Taking):
    """Made by Transaction.queue: what is published is visible at commit, and what is acknowledged
    is given back in place on rollback."""

    __slots__ = ("_transaction", "_underlying")

    def __init__(self, transaction: Transaction, queue: Queue) -> None:
        super().__init__(queue._broker, queue.name, queue._queue, queue._arena)
        self._kept = queue._kept  # which knows the serializer
        self._transaction = transaction
        self._underlying = queue

    # --- publishing ---------------------------------------------------------------------------

    def publish(
        self,
        body: Any,
        *,
        key: str | None = None,
        properties: Mapping[str, Any] | None = None,
        ttl: Seconds | None = None,
        priority: int | None = None,
        message_id: str | bytes | None = None,
        group: str | None = None,
        deliver_after: Seconds | None = None,
        deliver_at: When | None = None,
    ) -> None:
        """Publish at commit: the body is copied now.  Nothing waits for room before the commit."""
        self._transaction.publish(
            self._underlying, body, key=key, properties=properties, ttl=ttl, priority=priority,
            message_id=message_id, group=group, deliver_after=deliver_after, deliver_at=deliver_at,
        )  # fmt: skip

    def publish_many(self, bodies: Iterable[Any]) -> int:
        """Publish several messages at commit: how many."""
        held = several(bodies)
        for body in held:
            self.publish(body)
        return len(held)

    # --- taking -------------------------------------------------------------------------------

    def get(
        self, selector: str | Selector | None = None, *, timeout: Seconds | None = None
    ) -> TransactionMessage:
        """Take the oldest message that nobody has; its ack() counts at commit."""
        if selector is not None:
            return self.select(selector, timeout=timeout)
        return TransactionMessage.of(self._transaction, super().get(timeout=timeout))

    def select(
        self, selection: str | Selector | Selection, *, timeout: Seconds | None = None
    ) -> TransactionMessage:
        """get, of the messages that are selected; the others are left to others, in their order."""
        return TransactionMessage.of(self._transaction, super().select(selection, timeout=timeout))

    def get_many(  # type: ignore[override]  # list is invariant, and nobody puts others in
        self, count: int, *, timeout: Seconds | None = None
    ) -> list[TransactionMessage]:
        """Take up to count messages at once, as many as are there; Empty if none came in time."""
        taken = super().get_many(count, timeout=timeout)
        return [TransactionMessage.of(self._transaction, each) for each in taken]

    def receive(self, *, timeout: Seconds | None = None) -> Any:
        """Take and copy the oldest message; it is acknowledged at commit."""
        return self._acknowledged(self.get(timeout=timeout))

    def receive_many(self, count: int = BATCH, *, timeout: Seconds | None = None) -> list[Any]:
        """receive for up to count messages at once; Empty if none came in time."""
        return [self._acknowledged(each) for each in self.get_many(count, timeout=timeout)]

    def _acknowledged(self, message: TransactionMessage) -> Any:
        """Its body, or its value if the queue has a serializer."""
        read = message.body if self.serializer is None else message.value
        message.ack()
        return read

    __reduce__ = refuse_pickle

    def __repr__(self) -> str:
        return f"<TransactionQueue {self.name!r} of {self._broker.vhost!r}>"
