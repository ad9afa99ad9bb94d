"""A transaction: publishes and acknowledgements that happen together, or not at all."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from shmbroker.core.codes import ENDED, INTERRUPTED, OK, UNFINISHED
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import (
    ConnectionClosed,
    ConnectionForked,
    Error,
    GroupingTimeout,
    InvalidArgument,
    InvalidName,
    NotFound,
    TransactionEnded,
    Unconfirmed,
    error_for,
)
from shmbroker.ipc.base.pickled import refuse_pickle
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.exchange.exchange import Exchange
from shmbroker.ipc.exchange.publication import unroutable, wishes
from shmbroker.ipc.message.confirm import Confirm, level_name, level_of
from shmbroker.ipc.message.group import GROUP
from shmbroker.ipc.message.message import Message
from shmbroker.ipc.message.outgoing import outgoing
from shmbroker.ipc.queue.grouped import decided
from shmbroker.ipc.queue.open_transaction import OpenTransaction
from shmbroker.ipc.queue.publishing import look_for_transactions
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.schedule.scheduled import When, schedule
from shmbroker.ipc.transaction.queue import TransactionQueue

if TYPE_CHECKING:
    from types import TracebackType

    from shmbroker.ipc.connection.broker import Broker


IS_GROUPED: Final = GROUP.encode()


class Transaction:
    """Made by Broker.transaction: commits on a clean exit of `with`, rolls back on an exception.

    Its own verbs and those of its `queue` are part of it.  What is published beside it takes effect
    at once; inside the block that warns.  Of one thread at a time.  docs/transactions.md says what
    others see, and when.
    """

    __slots__ = (
        "__weakref__", "_broker", "_is_over", "_later", "_open", "_timeout", "_transaction",
        "_waits",
    )  # fmt: skip

    def __init__(self, broker: Broker, timeout: Seconds | None, warn: bool) -> None:
        nanoseconds(timeout)  # refuses what is no time-out
        self._open = OpenTransaction(broker, warn)
        self._timeout = timeout
        self._broker = broker
        self._waits = True
        """Until it is decided where a message of a group goes; else it is added later."""
        self._later: deque[tuple[Queue | Exchange, str, int, Any, list[Any]]] = deque()
        self._is_over = False
        made = ffi.new("sb_transaction **")
        self._check(lib.sb_transaction_begin(broker._connection, made), "beginning")
        self._transaction = made[0]

    def queue(self, queue: Queue | str) -> TransactionQueue:
        """A queue whose verbs are part of this transaction: what they do happens at commit."""
        return TransactionQueue(self, self._queue_of(queue))

    def _queue_of(self, queue: Queue | str) -> Queue:
        if isinstance(queue, str):
            return self._broker.queue(queue)
        if isinstance(queue, Queue):
            return queue
        raise InvalidArgument(f"a queue of a transaction is a queue, or its name, not {queue!r}")

    def ack(self, message: Message) -> None:
        """Acknowledge at commit; on rollback the message is given back in place.

        It is the transaction's from now on: read what you need of it before.
        """
        if not isinstance(message, Message):
            raise InvalidArgument(f"a transaction acknowledges messages of queues, not {message!r}")
        inner = message._message or message._dealt_with()
        self._check(
            lib.sb_transaction_ack(self._transaction, message._source, inner),
            f"acknowledging message {inner.position}",
        )
        message._in_hand = 0

    def publish(
        self,
        destination: Queue | Exchange | str,
        body: Any,
        *,
        key: str | None = None,
        properties: Mapping[str, Any] | None = None,
        ttl: Seconds | None = None,
        priority: int | None = None,
        message_id: str | bytes | None = None,
        group: str | None = None,
        mandatory: bool = False,
        deliver_after: Seconds | None = None,
        deliver_at: When | None = None,
    ) -> None:
        """Publish at commit: the body is copied, and an exchange decides who gets it, now.

        The destination is a queue, its name, or an exchange.  With `mandatory`, Unroutable if no
        queue takes it.  With a message_id that a queue has already, or gets before, it is left out
        there, and the rest happens.  A delay counts from now.
        """
        if isinstance(destination, str):
            destination = self._queue_of(destination)
        made = getattr(destination, "_outgoing", outgoing)
        message, *kept = made(body, key, properties, ttl, priority, message_id, group)
        schedule(message, deliver_after, deliver_at)
        if not isinstance(destination, (Queue, Exchange)):
            raise InvalidArgument(
                f"publish to a queue, its name, or an exchange, not {destination!r}"
            )
        wished = wishes(mandatory=mandatory)
        try:
            if not self._later:
                self._add(destination, key or "", wished, message, kept)
                return
        except GroupingTimeout:
            if self._waits:
                raise
        if self._is_over:
            raise self._error(ENDED, f"publishing to {destination.name!r}")
        # behind those that are not decided; the body is the caller's again
        body = ffi.from_buffer(bytes(ffi.buffer(message.body, message.length)))
        message.body = body
        if message.delay_ns:
            message.deliver_at_ns = time.time_ns() + message.delay_ns
            message.delay_ns = 0
        held = [body, *kept[0][1:], *kept[1:]]
        self._later.append((destination, key or "", wished, message, held))

    def _add(
        self, destination: Queue | Exchange, key: str, wished: int, message: Any, _kept: list[Any]
    ) -> None:
        doing = f"publishing to {destination.name!r}"
        if message.properties_length and IS_GROUPED in bytes(
            ffi.buffer(message.properties, message.properties_length)
        ):
            self._check(self._decided(destination, key, message), doing)
        if isinstance(destination, Queue):
            code = lib.sb_transaction_publish(self._transaction, destination._queue, message)
        else:
            message.target = wished
            code = lib.sb_transaction_route(self._transaction, destination._exchange, message)
            if code == 0 and wished:
                raise unroutable(destination.name, key, wished)
        self._check(code, doing)

    def _decided(self, destination: Queue | Exchange, key: str, message: Any) -> int:
        if isinstance(destination, Exchange):
            if destination.name:  # each node has its copy
                return OK
            try:
                destination = self._broker.queue(key)
            except (InvalidName, NotFound):  # that is said by whoever routes it
                return OK
        return decided(destination, message, waits=self._waits)

    def _add_later(self) -> None:
        """What was not decided; GroupingTimeout if it still is not."""
        while self._later:
            self._add(*self._later[0])  # whatever it raises, it is still to be added
            self._later.popleft()

    def commit(self, *, timeout: Seconds | None = None, confirm: Confirm | None = None) -> None:
        """All of it happens, at once for whoever looks later.

        With durable queues in it, it is done when all of it has the level `confirm`, None: their
        effective level.  Unconfirmed if nobody says so in time; it is committed all the same.

        QueueFull if a queue has no room within the timeout (None waits for ever), at once with
        when_full="fail"; DeliveryRevoked if a message is no longer ours, NotFound if a queue was
        deleted: then nothing has happened, and it can be committed again or rolled back.
        """
        deadline = Deadline(nanoseconds(timeout))
        level_of(confirm)  # refuses what is no level
        code = INTERRUPTED
        while code == INTERRUPTED:
            code = self._commit(deadline.left())
        while code in (UNFINISHED, INTERRUPTED):  # it is decided: what is left takes its time
            code = self._commit(-1)
        self._check(code, "committing")
        if confirm != "shm":
            self.confirm(level=confirm, timeout=deadline.seconds_left())

    def confirm(self, *, level: Confirm | None = None, timeout: Seconds | None = None) -> Confirm:
        """Wait until all of it has this level, once it is committed: the level that it has.

        None: the effective level of its queues.  Unconfirmed if not in time.
        """
        deadline, wanted = Deadline(nanoseconds(timeout)), level_of(level)
        code: int = INTERRUPTED
        while code == INTERRUPTED:
            code = lib.sb_transaction_confirm(self._transaction, wanted, deadline.left())
        if code < 0:
            error = self._error(code, "confirming")
            if isinstance(error, Unconfirmed):
                error.ask = lambda timeout: self.confirm(level=level, timeout=timeout)
            raise error
        return level_name(code)

    def _commit(self, timeout_ns: int) -> int:
        code: int = lib.sb_transaction_commit(self._transaction, timeout_ns)
        self._is_over |= code in (OK, UNFINISHED)
        if code == OK:
            self._end_block()
        return code

    @property
    def _is_refused(self) -> bool:
        """After FULL: by a queue that fails when it is full."""
        return bool(lib.sb_transaction_refused(self._transaction))

    def rollback(self) -> None:
        """Nothing of it happens: its messages are given back, in place."""
        self._later.clear()
        self._is_over = True
        self._check(lib.sb_transaction_rollback(self._transaction), "rolling back")
        self._end_block()

    def _undo(self) -> None:
        """rollback, and nothing of it was delivered."""
        self._later.clear()
        self._is_over = True
        self._check(lib.sb_transaction_undo(self._transaction), "rolling back")
        self._end_block()

    def __len__(self) -> int:
        """How many operations it has: one for each queue that a message goes to or is from."""
        count: int = lib.sb_transaction_operations(self._transaction)
        return count + len(self._later)

    def _check(self, code: int, doing: str) -> None:
        if code < OK:
            raise self._error(code, doing)

    def _error(self, code: int, doing: str) -> Error:
        what = f"vhost {self._broker.vhost!r}, a transaction, {doing}"
        return error_for(code, what, ffi.errno, detail_of(code))

    def _begin_block(self) -> None:
        self._open.begin()
        look_for_transactions()

    def _end_block(self) -> None:
        self._open.end()
        look_for_transactions()

    __reduce__ = refuse_pickle

    def __enter__(self) -> Transaction:
        self._begin_block()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end_block()
        if kind is None:
            with suppress(TransactionEnded):  # explicitly, inside
                self._commit_or_roll_back()
        else:
            self._roll_back_quietly()

    def _commit_or_roll_back(self) -> None:
        try:
            self.commit(timeout=self._timeout)
        except BaseException:
            self._roll_back_quietly()
            raise

    def _roll_back_quietly(self) -> None:
        """Unless it is over: a connection that was closed has given everything back."""
        with suppress(TransactionEnded, ConnectionClosed, ConnectionForked):
            self.rollback()

    def __del__(self) -> None:
        with suppress(AttributeError):  # it was not begun
            self._end_block()
            lib.sb_transaction_free(self._transaction)
