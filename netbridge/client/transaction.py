"""A transaction over a link: kept here until it is committed, in one command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgpack

from shmbroker.core.layout import TRANSACTION_OPERATIONS
from shmbroker.ipc.aio.verb import twin, twin_to
from shmbroker.ipc.base.errors import (
    ConnectionClosed,
    DeliveryRevoked,
    Error,
    InvalidArgument,
    TooMany,
    TransactionEnded,
    TransactionRolledBack,
    Unconfirmed,
)
from shmbroker.ipc.base.pickled import refuse_pickle
from shmbroker.ipc.base.timeout import Seconds, nanoseconds
from shmbroker.ipc.message.confirm import Confirm
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.message.group import grouped
from shmbroker.ipc.message.outgoing import parts
from shmbroker.ipc.queue.batch import several
from shmbroker.ipc.schedule.scheduled import When
from shmbroker.ipc.transaction import queue as local_queue
from shmbroker.ipc.transaction import transaction as local
from shmbroker.netbridge.client.delivery import Message
from shmbroker.netbridge.client.exchange import Exchange
from shmbroker.netbridge.client.not_local import not_local, refused
from shmbroker.netbridge.client.producing import demand_of
from shmbroker.netbridge.client.queue import Queue, identified
from shmbroker.netbridge.client.record import record
from shmbroker.netbridge.wire.words import Verb

if TYPE_CHECKING:
    from types import TracebackType

    from shmbroker.netbridge.client.broker import Broker

OPERATIONS_MAX: Final = TRANSACTION_OPERATIONS - 1
"""The broker notes with them that they are committed."""


class Transaction:
    """Made by Broker.transaction: commits on a clean exit of `with`, rolls back on an exception.

    What it publishes is checked and copied at once, and the broker sees it at commit: which queues
    an exchange leads to is decided there.
    """

    def __init__(self, broker: Broker, timeout: Seconds | None) -> None:
        nanoseconds(timeout)
        self._broker, self._session = broker, broker._session
        self._timeout = timeout
        self._number = next(self._session.transactions)
        self._operations: list[list[Any]] = []
        self._acked: list[Message] = []
        self._deliveries: list[int] = []
        """Of these; the session looks at it."""
        self._has_ended = False
        self._failure: Error | None = None
        """Of a commit that failed and gave its messages back."""

    @twin(local.Transaction.queue)
    def queue(self, queue: Queue | str) -> Any:
        if isinstance(queue, str):
            queue = self._broker._unopened(queue)
        if not isinstance(queue, Queue):
            raise InvalidArgument(f"a queue of a transaction is one, or its name, not {queue!r}")
        return self._broker.kinds["TransactionQueue"](self, queue)

    @twin(local.Transaction.ack)
    def ack(self, message: Message) -> None:
        self._ack(message)

    def _ack(self, message: Message) -> None:
        if not isinstance(message, Message):
            raise InvalidArgument(f"a transaction acknowledges messages of queues, not {message!r}")
        if not message.is_in_hand:
            message._was_dealt_with()
        if message._generation != self._session.generation:
            raise DeliveryRevoked(f"message {message.position}: its session was made again")
        self._check_room()
        self._deliveries.append(message._delivery)
        self._add(["ack", message._delivery, 1], message._generation)
        message._dealt = "acknowledged"
        self._acked.append(message)

    @twin_to(local.Transaction.publish)
    def publish(
        self,
        destination: Any,
        body: Any,
        *,
        key: str | None,
        properties: Mapping[str, Any] | None,
        ttl: Seconds | None,
        priority: int | None,
        message_id: str | bytes | None,
        group: str | None,
        mandatory: bool,
        deliver_after: Seconds | None,
        deliver_at: When | None,
    ) -> None:
        if deliver_after is not None or deliver_at is not None:
            refused("Transaction.publish(deliver_after=...)")
        if mandatory:
            refused("Transaction.publish(mandatory=True)")
        if isinstance(destination, str):
            destination = self._broker._unopened(destination)
        if not isinstance(destination, (Queue, Exchange)):
            raise InvalidArgument(
                f"publish to a queue, its name, or an exchange, not {destination!r}"
            )
        codec = getattr(destination, "serializer", None)
        body = body if codec is None else codec.dumps(body)
        properties = identified(grouped(properties, group), message_id)
        noun = "queue" if isinstance(destination, Queue) else "exchange"
        told = record(parts(body, key, properties, ttl, priority))
        self._add([noun, destination.name, told], self._session.generation)

    def _add(self, operation: list[Any], generation: int) -> None:
        self._check_room()
        if not self._operations:
            self._session.work(self._number, self._deliveries, generation)
        self._operations.append(operation)

    def _check_room(self) -> None:
        if self._has_ended:
            raise TransactionEnded("the transaction was committed or rolled back before")
        if len(self._operations) >= OPERATIONS_MAX:
            raise TooMany(
                f"a transaction over a link has at most {OPERATIONS_MAX} operations: commit it, "
                f"and begin another"
            )

    @twin(local.Transaction.commit)
    async def commit(self, *, timeout: Seconds | None, confirm: Confirm | None) -> None:
        await self._commit(timeout, confirm)

    confirm = not_local("Transaction.confirm", local.Transaction.confirm)

    async def _commit(self, timeout: Seconds | None, confirm: Confirm | None) -> None:
        if self._has_ended:
            raise TransactionEnded("the transaction was committed or rolled back before")
        if self._failure is not None:
            is_gone = isinstance(self._failure, TransactionRolledBack)
            kind = TransactionRolledBack if is_gone else DeliveryRevoked
            raise kind(f"it could not be committed before, and is over: {self._failure}")
        self._session.check_may_wait("committing")
        demand = demand_of(confirm)
        body: bytes = msgpack.packb(self._operations)
        settles = tuple(each._delivery for each in self._acked)
        begun = self._session.begin(  # what is too large is not sent: the transaction stays open
            "committing", Verb.COMMIT, value=self._number, body=body, demand=demand,
            waits=timeout, settles=settles,
        )  # fmt: skip
        try:
            await begun
        except Unconfirmed:  # it may be committed: its token, and nothing else, asks again
            self._has_ended = True
            raise
        except Error as error:
            self._has_failed(error)
            raise
        except BaseException:  # cancelled, or Ctrl-C: what it has not settled comes again
            self.rollback()
            raise
        self._has_ended = True

    def _has_failed(self, error: Error) -> None:
        """Nothing has happened, and its messages come again.  What only publishes may be tried
        again, under another number."""
        if self._acked or isinstance(error, TransactionRolledBack):
            self._failure = error
        self._give_back()
        self._deliveries = []
        self._number = next(self._session.transactions)
        if self._operations:
            self._session.work(self._number, self._deliveries, self._session.generation)

    @twin(local.Transaction.rollback)
    def rollback(self) -> None:
        if self._has_ended:
            raise TransactionEnded("the transaction was committed or rolled back before")
        self._has_ended = True
        if self._operations:
            with suppress(ConnectionClosed):
                self._session.no_work(self._number)
        self._give_back()

    def _give_back(self) -> None:
        """What was acknowledged.  The broker has done so only if it was asked to commit."""
        for message in self._acked:
            message._dealt = ""
            with suppress(Error):
                message._settle(Verb.GIVE_BACK)
        self._acked.clear()

    def __len__(self) -> int:
        return len(self._operations)

    async def __aenter__(self) -> Transaction:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._end(kind)

    async def _end(self, kind: type[BaseException] | None) -> None:
        if self._has_ended:
            return
        try:
            if kind is None:
                await self._commit(self._timeout, None)
        finally:
            if not self._has_ended:
                self.rollback()

    __reduce__ = refuse_pickle


class TransactionMessage(Message):
    """A message whose `ack` counts at commit; on rollback it is given back in place."""

    __slots__ = ("_transaction",)

    _transaction: Transaction

    def ack(self) -> None:
        self._transaction._ack(self)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is None and self.is_in_hand:
            self.ack()
        else:
            super().__exit__(kind, error, traceback)

    async def __aexit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is None and self.is_in_hand:
            self.ack()
        else:
            await super().__aexit__(kind, error, traceback)


class TransactionQueue(Queue):
    """Made by Transaction.queue."""

    def __init__(self, transaction: Transaction, queue: Queue) -> None:
        told = {"slots": queue.slots, "durable": queue.is_durable}
        super().__init__(queue._broker, queue.name, told, queue.serializer)
        self._transaction = transaction

    def _at_commit(self, body: Any, **options: Any) -> None:
        self._transaction.publish(self, body, **options)

    publish = twin(local_queue.TransactionQueue.publish)(_at_commit)

    @twin(local_queue.TransactionQueue.publish_many)
    def publish_many(  # type: ignore[override]  # at once
        self, bodies: Iterable[Any]
    ) -> int:
        held = several(bodies)
        for body in held:
            self._transaction.publish(self, body)
        return len(held)

    def _message(self, copy: CopiedMessage, generation: int, number: int) -> Message:
        made = TransactionMessage(
            self._session, self.name, copy, generation, number, self.serializer
        )
        made._transaction = self._transaction
        return made

    async def _receive(self, count: int, timeout: Seconds | None) -> list[Any]:
        taken = await self._take(count, None, timeout)
        for each in taken:
            each.ack()
        return [each.body if self.serializer is None else each.value for each in taken]

    __reduce__ = refuse_pickle
