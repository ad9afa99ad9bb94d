"""Publishing to a queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack, overload

from shmbroker.core.codes import DUPLICATE, INTERRUPTED, OK
from shmbroker.core.layout import CONFIRM_EFFECTIVE, IN_INBOX, WAYS_MAX
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc._taken import publish as publish_now
from shmbroker.ipc.base.errors import InvalidArgument, NotEnoughReplicas, Unconfirmed
from shmbroker.ipc.base.signature import check_names, shows
from shmbroker.ipc.base.timeout import Deadline, Seconds, nanoseconds
from shmbroker.ipc.follower.gates import MISSING, gates_of
from shmbroker.ipc.message.confirm import Confirm, level_name, level_of
from shmbroker.ipc.message.loan import QueueLoan
from shmbroker.ipc.message.outgoing import (
    Options,
    OptionsWithId,
    PartsWithId,
    id_bytes,
    outgoing,
    parts,
)
from shmbroker.ipc.queue.batch import Batch
from shmbroker.ipc.queue.grouped import decided
from shmbroker.ipc.queue.open_transaction import OPEN, notice
from shmbroker.ipc.queue.opened import OpenedQueue
from shmbroker.ipc.queue.producer import Producer
from shmbroker.ipc.request.request import Reply, request
from shmbroker.ipc.schedule.scheduled import When, id_of, ring_of, schedule

_ALL = -1
_publish = publish_now
"""Bodies that are bytes are published in the shortest way, unless a transaction is open: asking for
that in there would cost each message."""


def _publish_later(_queue: int, _body: Any) -> None:
    """In place of it while a transaction is open."""


def look_for_transactions() -> None:
    """One was opened, or closed."""
    global _publish
    _publish = publish_now
    if OPEN:  # looked at last, so that of two threads the later one is right
        _publish = _publish_later


POSITION_MAX = 2**63 - 1


def checked_position(position: int) -> int:
    if not isinstance(position, int) or not 0 <= position <= POSITION_MAX:
        raise InvalidArgument(f"a position is a number from 0 to 2^63 - 1, not {position!r}")
    return position


class Publishing(OpenedQueue):
    """The verbs that put messages into a queue, and wait for the disk."""

    __slots__ = ()

    _outgoing = staticmethod(outgoing)

    def _encoded(self, body: Any) -> Any:
        """Of a queue with a serializer a body, of others what it was given."""
        return body

    @overload
    def publish(
        self, body: Any, *, timeout: Seconds | None = None, **options: Unpack[Options]
    ) -> int: ...

    @overload
    def publish(
        self,
        body: Any,
        *,
        message_id: str | bytes | None,
        timeout: Seconds | None = None,
        **options: Unpack[Options],
    ) -> int | None: ...

    @shows(OptionsWithId)
    def publish(self, body: Any, *, timeout: Seconds | None = None, **options: Any) -> int | None:
        """Publish a copy of bytes, or of any buffer: the message's position.

        QueueFull if there is no room within the timeout; None waits for ever.

        With deliver_after or deliver_at the message is scheduled: it has no position yet, and this
        is its id in the schedule, 0 if it was due and is in the queue.  With a message_id it is
        published once, however often it is tried and by whom: None if the queue has, or had, a
        message with this id.
        """
        if timeout is not None:
            nanoseconds(timeout)  # refuses what is no time-out
        if not options:
            position = _publish(self._address, body)
            if position is not None:
                return position
        timeout_ns = nanoseconds(timeout)
        if OPEN:
            self._notice()
        after, at = options.pop("deliver_after", None), options.pop("deliver_at", None)
        if after is not None or at is not None:
            return self._publish_scheduled(body, timeout_ns, after, at, options)
        identity = id_bytes(options.pop("message_id", None))
        self._check_confirm(options.pop("confirm", None))
        try:
            message = parts(body, **options)
        except TypeError:
            check_names("publish", options, OptionsWithId.__annotations__)
            raise
        return self._publish_any((*message, *identity), timeout_ns)

    def _notice(self) -> None:
        notice(self._broker, f"queue {self.name!r}")

    def _check_confirm(self, confirm: Confirm | None) -> None:
        if confirm not in (None, "shm"):
            raise InvalidArgument(
                f"queue {self.name!r} is not durable: it cannot confirm {confirm!r}"
            )

    def _publish_any(self, message: PartsWithId, timeout_ns: int) -> int | None:
        deadline = Deadline(timeout_ns)
        position: int = lib.sb_publish_with(self._queue, *message, deadline.left())
        while position == INTERRUPTED:
            self._broker._tell_log()
            position = lib.sb_publish_with(self._queue, *message, deadline.left())
        if position == DUPLICATE:
            return None
        if position < 0:
            raise self._error(position, "publishing to")
        return position

    def _publish_scheduled(
        self,
        body: Any,
        timeout_ns: int,
        deliver_after: Seconds | None,
        deliver_at: When | None,
        options: dict[str, Any],
    ) -> int:
        self._check_confirm(options.pop("confirm", None))
        return self._schedule(body, timeout_ns, deliver_after, deliver_at, options)[0]

    def _schedule(
        self,
        body: Any,
        timeout_ns: int,
        deliver_after: Seconds | None,
        deliver_at: When | None,
        options: dict[str, Any],
    ) -> tuple[int, Any]:
        """Its id, and the receipt that says where it is: in the schedule; 0 if it was due."""
        try:
            message, _kept = outgoing(body, **options)
        except TypeError:
            check_names("publish", options, OptionsWithId.__annotations__)
            raise
        schedule(message, deliver_after, deliver_at)
        code, receipt = self._offer(message, timeout_ns)
        return id_of(self, code, receipt), receipt

    def _offer(self, message: Any, timeout_ns: int) -> tuple[int, Any]:
        """Publish what was made for C: its position or id, and the receipt."""
        if OPEN:
            self._notice()
        receipt = ffi.new("sb_receipt *")
        deadline = Deadline(timeout_ns)
        code = INTERRUPTED
        while code == INTERRUPTED:
            code = lib.sb_publish_receipt(self._queue, message, deadline.left(), receipt)
        if code < 0:
            raise self._error(code, "publishing to")
        return code, receipt

    @shows(Options)
    def publish_nowait(self, body: Any, **options: Unpack[Options]) -> int:
        """publish without waiting: QueueFull at once."""
        return self.publish(body, timeout=0, **options)

    def publish_many(
        self,
        bodies: Iterable[Any],
        *,
        timeout: Seconds | None = None,
        confirm: Confirm | None = None,
    ) -> int:
        """Publish several messages at once: how many.

        QueueFull if there is no room for all within the timeout: its `published` says how many of
        them, from the first, are in the queue.
        """
        if OPEN:
            self._notice()
        self._check_confirm(confirm)
        return self._batch(bodies).go_on(nanoseconds(timeout))

    def _batch(self, bodies: Iterable[Any]) -> Batch:
        return Batch(self, bodies)

    def confirm(
        self,
        position: int | None = None,
        *,
        level: Confirm | None = None,
        timeout: Seconds | None = None,
    ) -> Confirm:
        """Wait until the message at this position is confirmed: at which level it is then.

        None: all that was published or scheduled before.  Without a level that of the queue counts,
        `level`.  Unconfirmed if it is not reached in time.  Only a durable queue confirms.
        """
        where = _ALL if position is None else checked_position(position)
        return level_name(self._confirm_at(self._queue, where, timeout, level=level_of(level)))

    def _confirm_at(
        self,
        ring: Any,
        position: int,
        timeout: Seconds | None,
        number: int | None = None,
        level: int = CONFIRM_EFFECTIVE,
    ) -> int:
        """confirm, in our ring or that of what is scheduled, where it has this number."""
        deadline = Deadline(nanoseconds(timeout))
        code: int = INTERRUPTED
        while code == INTERRUPTED:
            code = lib.sb_confirm(ring, position, level, deadline.left())
        if code >= 0:
            return code
        error = self._error(code, "confirming what was published to")
        if isinstance(error, Unconfirmed):
            if number is None:
                number = self.published - 1 if position == _ALL else position
            gates = gates_of(ring)
            if not isinstance(gates, int) and any(each.name == MISSING for each in gates):
                error = NotEnoughReplicas(f"{error}: fewer copies are in sync than min-insync")
                error.code = code
            error.pending = ((self.name, number),)
            error.ask = lambda timeout: self._confirm_at(ring, position, timeout, number, level)
        raise error

    def _ends(self) -> list[tuple[Any, int]]:
        """The last of the ring, of the inbox while it pages, of what is scheduled, and of what went
        to other nodes: where; those in which there was anything."""
        ends = [(self._queue, self.published - 1)]
        if ends[0][1] >= IN_INBOX:
            ends.insert(0, (self._queue, self._told().tail - 1))
        if schedule := ring_of(self):
            ends.append((schedule, lib.sb_published(schedule) - 1))
        ends += [(self._queue, each) for each in self._towards()]
        return [end for end in ends if end[1] >= 0]

    def _towards(self) -> list[int]:
        """The last of what went to other nodes by this connection."""
        last = ffi.new("int64_t[]", 2 * WAYS_MAX)
        count = lib.sb_published_towards(self._queue, last, 2 * WAYS_MAX)
        if count < 0:
            raise self._error(count, "looking at")
        return list(last[0:count])

    @property
    def published(self) -> int:
        """The position of the next message: all that was published is below it."""
        position: int = lib.sb_published(self._queue)
        if position < 0:
            raise self._error(position, "looking at")
        return position

    @property
    def confirmed(self) -> int:
        """All messages below this position are confirmed.  Only a durable queue knows."""
        position: int = lib.sb_confirmed(self._queue)
        if position < 0:
            raise self._error(position, "looking at")
        return position

    @property
    def level(self) -> Confirm:
        """What a confirm waits for, and a consumer too, now: "disk" unless there are replicas."""
        level: int = lib.sb_confirm_level(self._queue)
        if level < 0:
            raise self._error(level, "looking at")
        return level_name(level)

    def producer(self, name: str | bytes) -> Producer:
        """A producer that numbers its messages: who has its name goes on where it ended.

        A queue knows 55 names at most, for good.
        """
        return Producer(self, name)

    def loan(
        self,
        length: int,
        *,
        key: str | None = None,
        properties: Mapping[str, Any] | None = None,
        ttl: Seconds | None = None,
        priority: int | None = None,
        message_id: str | bytes | None = None,
        group: str | None = None,
    ) -> QueueLoan:
        """Memory in the arena to fill in place; published on a clean exit of `with`."""
        shape, _kept = outgoing(b"", key, properties, ttl, priority, message_id, group)
        return self._lent(length, shape, waits=True)

    def _lent(self, length: int, shape: Any, *, waits: bool) -> QueueLoan:
        if OPEN:
            self._notice()
        if not isinstance(length, int) or length < 0:
            raise InvalidArgument(f"the length of a loan is a number of bytes, not {length!r}")
        shape.length = min(length, 1 << 62)
        loan = ffi.new("sb_loan *")
        code = decided(self, shape, waits=waits) if shape.properties_length else OK
        if code == OK:
            code = lib.sb_loan_take(self._queue, shape, loan)
        if code < 0:
            raise self._error(code, "a loan from")
        return QueueLoan(self, loan)

    def request(
        self,
        body: Any,
        *,
        key: str | None = None,
        properties: Mapping[str, Any] | None = None,
        timeout: Seconds | None = 1.0,
    ) -> Reply:
        """Publish, and wait for the reply: Message.reply() of whoever takes it.  NoReply."""
        if OPEN:
            self._notice()
        return request(self, body, key, properties, timeout)
