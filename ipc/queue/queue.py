"""A queue: publish to it, take from it.  Any thread may use one."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from struct import iter_unpack
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from shmbroker.core.codes import DUPLICATE, EMPTY, FULL, GONE, INTERRUPTED, OK, TOO_SMALL
from shmbroker.core.layout import (
    COPIED_BYTES,
    DONE,
    IN_INBOX,
    SETTINGS_GIVEN_BYTES_MAX,
    STATE_MASK,
    STATE_SHIFT,
)
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc._quick import lib as quick
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import Empty, Error, InvalidArgument, Unconfirmed, error_for
from shmbroker.ipc.base.timeout import Deadline, nanoseconds
from shmbroker.ipc.connection.owner import Spare
from shmbroker.ipc.latency.latency import Counts, Histogram, counts_of
from shmbroker.ipc.latency.statistics import Latency, QueueStatistics
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.message.group import GroupInfo, group_bytes, groups_of
from shmbroker.ipc.message.loan import QueueLoan
from shmbroker.ipc.message.message import Message, UncopiedMessage
from shmbroker.ipc.message.outgoing import (
    Confirm,
    Options,
    PartsWithId,
    as_buffer,
    id_bytes,
    key_bytes,
    outgoing,
    parts,
)
from shmbroker.ipc.message.room import BATCH, Room, length_of
from shmbroker.ipc.queue.consuming import Consuming
from shmbroker.ipc.queue.moving import pass_over
from shmbroker.ipc.queue.producer import Producer
from shmbroker.ipc.queue.retained_reader import RetainedReader
from shmbroker.ipc.queue.retry import Retried, retry
from shmbroker.ipc.request.request import Reply, request
from shmbroker.ipc.ring.port import LOOKS, Port
from shmbroker.ipc.schedule.scheduled import ScheduledMessage, When, ring_of, schedule, scheduled
from shmbroker.ipc.selector.selection import Selection
from shmbroker.ipc.selector.selector import Selector
from shmbroker.ipc.settings.settings import Explained, explained

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker

_publish = quick.sb_publish_now
_look = quick.sb_look_and_copy
_look_and_receive = quick.sb_look_and_receive
_get = lib.sb_get
_receive = lib.sb_receive
_new = ffi.new
_ALL = -1
POSITION_MAX = 2**63 - 1
_MESSAGE = ffi.typeof("sb_message *")


def checked_position(position: int) -> int:
    if not isinstance(position, int) or not 0 <= position <= POSITION_MAX:
        raise InvalidArgument(f"a position is a number from 0 to 2^63 - 1, not {position!r}")
    return position


class Queue:
    """Made by Broker.queue and Broker.declare_queue."""

    __slots__ = ("__weakref__", "_arena", "_broker", "_queue", "_room", "_spare", "name")

    def __init__(self, broker: Broker, name: str, queue: Any, arena: Any) -> None:
        self._broker = broker
        self.name = name
        self._queue = queue
        self._arena = arena
        # structures for C that are not in use: a thread takes one out and puts it back, so that no
        # two have the same; a room that two put back is lost, which is cheaper than keeping both
        self._spare = Spare(broker._owner)
        self._room: Room | None = None

    @property
    def slots(self) -> int:
        slots: int = lib.sb_queue_slots(self._queue)
        return slots

    def _error(self, code: int, doing: str) -> Error:
        detail = detail_of(code)
        return error_for(code, f"{doing} queue {self.name!r}", ffi.errno, detail)

    # --- publishing ---------------------------------------------------------------------------

    @overload
    def publish(
        self, body: Any, *, timeout: float | None = None, **options: Unpack[Options]
    ) -> int: ...

    @overload
    def publish(
        self,
        body: Any,
        *,
        message_id: str | bytes | None,
        timeout: float | None = None,
        **options: Unpack[Options],
    ) -> int | None: ...

    def publish(self, body: Any, *, timeout: float | None = None, **options: Any) -> int | None:
        """Publish a copy of bytes, or of any buffer: the message's position.

        QueueFull if there is no room within the timeout; None waits for ever.

        Options are key, properties, ttl, priority, group, message_id, confirm, deliver_after and
        deliver_at.  With one of the last two the message is scheduled: it has no position yet, and
        this is its id in the schedule.  With a message_id it is published once, however often it is
        tried and by whom: None if the queue has, or had, a message with this id.
        """
        timeout_ns = -1 if timeout is None else nanoseconds(timeout)
        if not options and type(body) is bytes:
            position: int = _publish(self._queue, body, len(body))
            if position >= 0:
                return position
            if position != FULL or timeout_ns == 0:
                raise self._error(position, "publishing to")
        after, at = options.pop("deliver_after", None), options.pop("deliver_at", None)
        if after is not None or at is not None:
            return self._publish_scheduled(body, timeout_ns, after, at, options)
        identity = id_bytes(options.pop("message_id", None))
        self._check_confirm(options.pop("confirm", None))
        return self._publish_any((*parts(body, **options), *identity), timeout_ns)

    def _check_confirm(self, confirm: Confirm | None) -> None:
        if confirm not in (None, "shm"):
            raise InvalidArgument(
                f"queue {self.name!r} is not durable: it cannot confirm {confirm!r}"
            )

    def _publish_any(self, message: PartsWithId, timeout_ns: int) -> int | None:
        deadline = Deadline(timeout_ns)
        position: int = INTERRUPTED
        while position == INTERRUPTED:
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
        deliver_after: float | None,
        deliver_at: When | None,
        options: dict[str, Any],
    ) -> int:
        self._check_confirm(options.pop("confirm", None))
        return self._schedule(body, timeout_ns, deliver_after, deliver_at, options)[0]

    def _schedule(
        self,
        body: Any,
        timeout_ns: int,
        deliver_after: float | None,
        deliver_at: When | None,
        options: dict[str, Any],
    ) -> tuple[int, Any]:
        """Its id, and the receipt that says where it is: in the schedule, unless it is due."""
        message, _kept = outgoing(body, **options)
        schedule(message, deliver_after, deliver_at)
        receipt = ffi.new("sb_receipt *")
        deadline = Deadline(timeout_ns)
        code = INTERRUPTED
        while code == INTERRUPTED:
            code = lib.sb_publish_receipt(self._queue, message, deadline.left(), receipt)
        if code < 0:
            raise self._error(code, "publishing to")
        return code, receipt

    def publish_nowait(self, body: Any, **options: Unpack[Options]) -> int:
        """publish without waiting: QueueFull at once."""
        return self.publish(body, timeout=0, **options)

    def publish_many(
        self,
        bodies: Iterable[Any],
        *,
        timeout: float | None = None,
        confirm: Confirm | None = None,
    ) -> int:
        """Publish several messages at once: for how many there was room in time, from the first."""
        self._check_confirm(confirm)
        if isinstance(bodies, (bytes, bytearray, memoryview, str)):
            raise InvalidArgument("bodies are several: put this one into a list, or publish it")
        try:
            several = list(bodies)
        except TypeError as error:
            raise InvalidArgument(f"bodies are several buffers: {error}") from error
        if not set(map(type, several)) <= {bytes}:  # len() counts items, not always bytes
            several = [ffi.buffer(as_buffer(body))[:] for body in several]
        whole = b"".join(several)
        lengths = array("q", map(len, several))
        total, done = len(lengths), 0
        deadline = Deadline(nanoseconds(timeout))
        at = 0
        while done < total:
            code: int = lib.sb_publish_many(
                self._queue,
                ffi.from_buffer(whole) + at,
                ffi.cast("int64_t *", ffi.from_buffer("int64_t[]", lengths)) + done,
                total - done,
                deadline.left(),
            )
            if code == INTERRUPTED:
                continue
            if code == FULL:
                break
            if code < 0 and done == 0:
                raise self._error(code, "publishing to")
            if code <= 0:
                break
            at += sum(lengths[done : done + code])
            done += code
            if deadline.left() == 0:
                break
        return done

    def confirm(self, position: int | None = None, *, timeout: float | None = None) -> None:
        """Wait until the message at this position is on disk; None: all that was published or
        scheduled before.

        Unconfirmed if nobody says so in time.  Only a durable queue confirms.
        """
        self._confirm_at(
            self._queue, _ALL if position is None else checked_position(position), timeout
        )

    def _confirm_at(
        self, ring: Any, position: int, timeout: float | None, number: int | None = None
    ) -> None:
        """confirm, in our ring or that of what is scheduled, where it has this number."""
        deadline = Deadline(nanoseconds(timeout))
        code = INTERRUPTED
        while code == INTERRUPTED:
            code = lib.sb_confirm(ring, position, deadline.left())
        if code >= 0:
            return
        error = self._error(code, "confirming what was published to")
        if isinstance(error, Unconfirmed):
            if number is None:
                number = self.published - 1 if position == _ALL else position
            error.pending = ((self.name, number),)
            error.ask = lambda timeout: self._confirm_at(ring, position, timeout, number)
        raise error

    def _ends(self) -> list[tuple[Any, int]]:
        """The last of the ring, of the inbox while it pages, and of what is scheduled: where."""
        ends = [(self._queue, self.published - 1)]
        if ends[0][1] >= IN_INBOX:
            ends.insert(0, (self._queue, self._told().tail - 1))
        if schedule := ring_of(self):
            ends.append((schedule, lib.sb_published(schedule) - 1))
        return ends

    @property
    def published(self) -> int:
        """The position of the next message: all that was published is below it."""
        position: int = lib.sb_published(self._queue)
        if position < 0:
            raise self._error(position, "looking at")
        return position

    @property
    def confirmed(self) -> int:
        """All messages below this position are on disk.  Only a durable queue knows."""
        position: int = lib.sb_confirmed(self._queue)
        if position < 0:
            raise self._error(position, "looking at")
        return position

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
        ttl: float | None = None,
        priority: int | None = None,
        message_id: str | bytes | None = None,
        group: str | None = None,
    ) -> QueueLoan:
        """Memory in the arena to fill in place; published on a clean exit of `with`."""
        if not isinstance(length, int) or length < 0:
            raise InvalidArgument(f"the length of a loan is a number of bytes, not {length!r}")
        shape, _kept = outgoing(b"", key, properties, ttl, priority, message_id, group)
        shape.length = min(length, 1 << 62)
        loan = ffi.new("sb_loan *")
        code: int = lib.sb_loan_take(self._queue, shape, loan)
        if code < 0:
            raise self._error(code, "a loan from")
        return QueueLoan(self, loan)

    def request(
        self,
        body: Any,
        *,
        key: str | None = None,
        properties: Mapping[str, Any] | None = None,
        timeout: float | None = 1.0,
    ) -> Reply:
        """Publish, and wait for the reply: Message.reply() of whoever takes it.  NoReply."""
        return request(self, body, key, properties, timeout)

    # --- taking -------------------------------------------------------------------------------

    def get(self, *, timeout: float | None = None) -> Message:
        """Take the oldest message that nobody has; Empty if none came within the timeout."""
        spare = self._spare
        try:
            message = spare.pop()
        except IndexError:
            message = _new(_MESSAGE)
        room = self._room
        self._room = None
        if room is None:
            room = Room()
        try:
            timeout_ns = -1 if timeout is None else nanoseconds(timeout)
            length: int = _look(self._queue, message, room.room, LOOKS)
            if length < 0:
                self._get_rarely(length, message, timeout_ns)
                return UncopiedMessage(self._queue, message, self._arena, spare)
            if length > COPIED_BYTES:
                return UncopiedMessage(self._queue, message, self._arena, spare)
            copied = room.bytes[:length]
            self._room = room
            return Message(self._queue, message, self._arena, spare, copied)
        except BaseException:
            if message.word:  # taken, and then Ctrl-C came
                lib.sb_give_back(self._queue, message)
            spare.append(message)
            raise

    def _get_rarely(self, code: int, message: Any, timeout_ns: int) -> None:
        if code == EMPTY and timeout_ns != 0:
            deadline = Deadline(timeout_ns)
            code = INTERRUPTED
            while code == INTERRUPTED:
                code = _get(self._queue, message, deadline.left())
        if code < 0:
            raise self._error(code, "taking from")

    def select(self, selection: Selection, *, timeout: float | None = None) -> Message:
        """get, of the messages that are selected; the others are left to others, in their order."""
        spare = self._spare
        message = spare.pop() if spare else _new(_MESSAGE)
        try:
            deadline = Deadline(nanoseconds(timeout))
            wanted = selection.selection
            code: int = lib.sb_get_selected(self._queue, message, wanted, deadline.left())
            while code == INTERRUPTED:
                code = lib.sb_get_selected(self._queue, message, wanted, deadline.left())
            if code < 0:
                raise self._error(code, "selecting from")
            return UncopiedMessage(self._queue, message, self._arena, spare)
        except BaseException:
            if message.word:  # taken, and then Ctrl-C came
                lib.sb_give_back(self._queue, message)
            spare.append(message)
            raise

    def get_nowait(self) -> Message:
        """get without waiting: Empty at once."""
        return self.get(timeout=0)

    def _count(self, count: int) -> int:
        if not isinstance(count, int) or count < 1:
            raise InvalidArgument(f"count is a positive number, not {count!r}")
        return min(count, BATCH)

    def get_many(self, count: int, *, timeout: float | None = None) -> list[Message]:
        """Take up to count messages at once, as many as are there; Empty if none came in time."""
        count = self._count(count)
        messages = ffi.new("sb_message[]", count)
        deadline = Deadline(nanoseconds(timeout))
        taken: list[Message] = []
        try:
            code: int = lib.sb_get_many(self._queue, messages, count, deadline.left())
            while code == INTERRUPTED:
                code = lib.sb_get_many(self._queue, messages, count, deadline.left())
            if code < 0:
                raise self._error(code, "taking from")
            for index in range(code):
                message = _new(_MESSAGE, messages[index])
                taken.append(UncopiedMessage(self._queue, message, self._arena, self._spare))
        except BaseException:
            for index in range(len(taken), count):
                if messages[index].word:
                    lib.sb_give_back(self._queue, messages + index)
            raise
        return taken

    def consume(
        self,
        *,
        selector: str | Selector | None = None,
        timeout: float | None = None,
        prefetch: int = 1,
        priority: int = 0,
        exclusive: bool = False,
    ) -> Iterator[Message]:
        """Take messages one after another, until none comes within the timeout.

        With a selector, only those that meet its condition (docs/selectors.md), each for itself.
        Where one consumer is active at a time, priority and exclusive say which (docs/groups.md);
        groups that were bound to us are let go at the end.

        Each is acknowledged when the next is asked for, unless it was dealt with before.  If the
        loop is left in the middle of one, it is given back.  Of a non_destructive queue nothing is
        taken: each call is a consumer that sees all messages, from the first one on.
        """
        selection = None if selector is None else Selection(selector)
        consuming = Consuming(self, priority, exclusive)
        if lib.sb_is_non_destructive(self._queue):
            yield from self._look_on(selection, timeout)
            return
        consuming.begin()
        try:
            while True:
                try:
                    if selection is not None:
                        messages = [self.select(selection, timeout=timeout)]
                    elif prefetch == 1:
                        messages = [self.get(timeout=timeout)]
                    else:
                        messages = self.get_many(prefetch, timeout=timeout)
                except Empty:
                    return
                messages.reverse()
                while messages:
                    message = messages.pop()
                    yield message
                    if message.is_in_hand:
                        message.ack()
                del message
        finally:
            consuming.end()

    def _look_on(self, selection: Selection | None, timeout: float | None) -> Iterator[Message]:
        """What is shown has all that a message in hand has, but is in nobody's."""
        with RetainedReader(self, selection, timeout) as retained_reader:
            yield from cast("Iterator[Message]", retained_reader)

    def receive(self, *, timeout: float | None = None) -> bytes:
        """Take, copy and acknowledge the oldest message in one call: at most once."""
        room = self._room
        self._room = None
        if room is None:
            room = Room()
        timeout_ns = -1 if timeout is None else nanoseconds(timeout)
        length: int = _look_and_receive(self._queue, room.room, LOOKS)
        if length < 0:
            length = self._receive_rarely(length, room, timeout_ns)
        body: bytes = room.bytes[:length]
        self._room = room
        return body

    def _receive_rarely(self, code: int, room: Room, timeout_ns: int) -> int:
        if code == EMPTY and timeout_ns != 0:
            deadline = Deadline(timeout_ns)
            code = INTERRUPTED
            while code == INTERRUPTED:
                code = _receive(self._queue, room.room, deadline.left())
        if code == TOO_SMALL:
            return self._receive_large(room)
        if code < 0:
            raise self._error(code, "receiving from")
        return code

    def _receive_large(self, room: Room) -> int:
        """The message was taken, because there was no room for a copy: make some."""
        message = room.messages + 0
        length: int = message.length
        try:
            room.enlarge(length)
            ffi.memmove(room.buffer, message.body, length)
        except BaseException:
            lib.sb_give_back(self._queue, message)
            raise
        code = lib.sb_ack(self._queue, message)
        if code < 0:
            raise self._error(code, "receiving from")
        return length

    def receive_many(self, count: int = BATCH, *, timeout: float | None = None) -> list[bytes]:
        """receive for up to count messages at once; Empty if none came in time."""
        count = self._count(count)
        room = self._room
        self._room = None
        if room is None:
            room = Room()
        bodies = self._receive_many(room, count, timeout)
        self._room = room
        return bodies

    def _receive_many(self, room: Room, count: int, timeout: float | None) -> list[bytes]:
        deadline = Deadline(nanoseconds(timeout))
        taken: int = lib.sb_receive_many(self._queue, room.room, count, deadline.left())
        while taken == INTERRUPTED:
            taken = lib.sb_receive_many(self._queue, room.room, count, deadline.left())
        if taken == TOO_SMALL:
            length = self._receive_large(room)  # in another buffer then
            bodies = [room.bytes[:length]]
        elif taken < 0:
            raise self._error(taken, "receiving from")
        else:
            ends = room.ends
            whole = room.bytes[: ends[taken - 1]]
            if ends[count] > 0:
                bodies = [body for (body,) in iter_unpack(f"{ends[count]}s", whole)]
            else:
                bodies = [whole[start:end] for start, end in pairwise((0, *ends[:taken]))]
        return bodies

    # --- looking ------------------------------------------------------------------------------

    def browse(self, *, unconfirmed: bool = False) -> Iterator[CopiedMessage]:
        """All messages that are there, in order, taken by somebody or not, without taking any.

        Of a durable queue those that are on disk; with `unconfirmed` the others too, which say so
        (`is_confirmed`).
        """
        for message, _chunk in self._copies(self._queue, unconfirmed):
            yield message

    def scheduled(self) -> list[ScheduledMessage]:
        """What is not to be delivered yet, first what is due first."""
        ring = ring_of(self)
        return scheduled(self._copies(ring, unconfirmed=True)) if ring else []

    def _copies(
        self, ring: Any, unconfirmed: bool = False
    ) -> Iterator[tuple[CopiedMessage, bytes]]:
        """All messages of a ring, and their chunks."""
        told = self._told(ring)
        room = Room()
        for position in range(told.head, told.tail):
            message = self._look(ring, position, room, unconfirmed)
            if message is not None:
                yield message

    def _look(
        self, ring: Any, position: int, room: Room, unconfirmed: bool
    ) -> tuple[CopiedMessage, bytes] | None:
        """The message at this position, and its chunk, if it is there and not done with."""
        message = room.messages + 0
        # before the copy: what is confirmed while we copy is shown as it was
        is_confirmed = not unconfirmed or lib.sb_is_confirmed(ring, position) == 1
        browse = lib.sb_browse_ahead if unconfirmed else lib.sb_browse
        length: int = browse(ring, position, message, room.buffer, room.capacity)
        if length == TOO_SMALL:
            room.enlarge(length_of(message))
            return self._look(ring, position, room, unconfirmed)
        if length in (GONE, EMPTY):
            return None
        if length < 0:
            raise self._error(length, "browsing")
        if (message.word >> STATE_SHIFT) & STATE_MASK == DONE:
            return None
        chunk = room.bytes[:length]
        copied = CopiedMessage.of(position, message.word, message.length, chunk, is_confirmed)
        return copied, chunk

    def value(self, key: str) -> CopiedMessage | None:
        """The newest message of this key, taken by somebody or not; None if there is none.

        For queues that keep the last value; nothing is taken (docs/last-value.md).
        """
        name = key_bytes(key)
        room = self._room or Room()
        self._room = None
        message = room.messages + 0
        while True:
            length: int = lib.sb_value(
                self._queue, name, len(name), message, room.buffer, room.capacity
            )
            if length != TOO_SMALL:
                break
            room.enlarge(length_of(message))
        chunk = room.bytes[: max(0, length)]
        self._room = room
        if length == EMPTY:
            return None
        if length < 0:
            raise self._error(length, f"the value of {key!r} in")
        is_confirmed = lib.sb_is_confirmed(self._queue, message.position) == 1
        return CopiedMessage.of(message.position, message.word, message.length, chunk, is_confirmed)

    def _told(self, ring: Any = None) -> Any:
        told = ffi.new("sb_queue_statistics *")
        code: int = lib.sb_statistics(ring or self._queue, told)
        if code < 0:
            raise self._error(code, "looking at")
        return told

    def statistics(self) -> QueueStatistics:
        """What the queue has seen and holds."""
        told = self._told()
        waited = self._counts().get("publish-take") if told.histograms else None
        return QueueStatistics.of(told, None if waited is None else Latency.of(waited.since(None)))

    def histograms(self) -> dict[str, Histogram]:
        """The times that were recorded since `latency` was first switched on, in nanoseconds.

        `publish-take`: how long messages waited; `take-ack`: how long they were in hand.
        """
        return {kind: counts.since(None) for kind, counts in self._counts().items()}

    def _counts(self) -> dict[str, Counts]:
        reference = lib.sb_queue_reference(self._queue)
        counts = counts_of(self._broker._connection, reference)
        if isinstance(counts, int):
            raise self._error(counts, "reading the latency of")
        return counts

    @property
    def is_paused(self) -> bool:
        return bool(self._told().paused)

    def explain(self) -> dict[str, Explained]:
        """Each setting: its value, and where that comes from."""
        room = ffi.new("char[]", SETTINGS_GIVEN_BYTES_MAX)
        length: int = lib.sb_settings_given(self._queue, room, SETTINGS_GIVEN_BYTES_MAX)
        if length < 0:
            raise self._error(length, "explaining")
        return explained(ffi.buffer(room)[:length])

    def groups(self) -> list[GroupInfo]:
        """Which groups there are and whose; or who is the single active consumer."""
        return groups_of(self._queue, self.browse(unconfirmed=True))

    # --- managing -----------------------------------------------------------------------------

    def let_go(self, group: str | None = None) -> int:
        """Let other consumers have this group, or all that is bound to us: how many buckets.

        Messages of it that we have in hand are ours until they are dealt with; until then nobody
        gets others.
        """
        named = ffi.NULL if group is None else group_bytes(group)
        freed: int = lib.sb_let_go(self._queue, named, 0 if group is None else len(named))
        if freed < 0:
            raise self._error(freed, "letting go of groups of")
        return freed

    def expire(self) -> int:
        """Move what is expired to where it belongs, or drop it: how many.

        Nobody gets such a message anyway, and waiting calls do this by themselves.
        """
        expired: int = lib.sb_expire(self._queue)
        if expired < 0:
            raise self._error(expired, "expiring")
        return expired

    def cancel_scheduled(self, message_id: int) -> bool:
        """A scheduled message is not delivered; False if there is none of this id (any more)."""
        if not isinstance(message_id, int) or isinstance(message_id, bool):
            raise InvalidArgument(f"an id is a number that publish answered, not {message_id!r}")
        known = 0 < message_id < 1 << 62
        code: int = lib.sb_cancel_scheduled(self._queue, message_id) if known else 0
        if code < 0:
            raise self._error(code, "cancelling in")
        return code == 1

    def retry(self, limit: int | None = None) -> Retried:
        """Send dead letters back to the queues that they come from, up to limit of them.

        Each is published there before it is acknowledged here, so a death in between leaves it in
        both.  What cannot go back stays.
        """
        return retry(self, limit)

    def move_to(
        self,
        other: Queue,
        limit: int | None = None,
        selector: str | Selector | None = None,
        *,
        timeout: float | None = 0,
    ) -> int:
        """Move what is there now and nobody has, or what is selected of it, in order: how many.

        Stops where the other queue has no room within the timeout.
        """
        return pass_over(lib.sb_move, self, other, limit, selector, timeout)

    def copy_to(
        self,
        other: Queue,
        limit: int | None = None,
        selector: str | Selector | None = None,
        *,
        timeout: float | None = 0,
    ) -> int:
        """move_to, and the messages stay here as well."""
        return pass_over(lib.sb_copy, self, other, limit, selector, timeout)

    def purge(self) -> int:
        """Drop all messages that nobody has, and all that are scheduled: how many."""
        dropped: int = lib.sb_purge(self._queue)
        if dropped < 0:
            raise self._error(dropped, "purging")
        return dropped

    def latency(
        self,
        records: bool,
        *,
        lowest: float | None = None,
        highest: float | None = None,
        digits: int | None = None,
        one_in: int = 1,
    ) -> None:
        """Record how long messages wait and are in hand, from now on, or stop (docs/latency.md).

        Of all messages, or of one in 2, 4, 8 ... that stands for the others.

        Times from lowest to highest, in seconds, are told apart by 2 or 3 digits: 1 ns to an hour
        and 2, unless said otherwise.  Another range than before begins a new histogram.
        """
        times = [0 if each is None else nanoseconds(each) for each in (lowest, highest)]
        if (lowest is not None and times[0] == 0) or (highest is not None and times[1] <= 0):
            raise InvalidArgument("a range is from at least a nanosecond up to some time")
        if digits is not None and (not isinstance(digits, int) or not 2 <= digits <= 3):
            raise InvalidArgument(f"a histogram has 2 or 3 digits, not {digits!r}")
        if not isinstance(one_in, int) or not 1 <= one_in <= POSITION_MAX:
            raise InvalidArgument(f"one in so many messages is a number from 1 up, not {one_in!r}")
        code: int = lib.sb_latency(self._queue, bool(records), *times, digits or 0, one_in)
        if code != OK:
            raise self._error(code, "recording the latency of")

    def pause(self) -> None:
        """Deliver nothing until resume; publishing goes on."""
        self._set_paused(True)

    def resume(self) -> None:
        """Deliver again."""
        self._set_paused(False)

    def _set_paused(self, paused: bool) -> None:
        code: int = lib.sb_pause(self._queue, paused)
        if code != OK:
            raise self._error(code, "pausing" if paused else "resuming")

    def port(self) -> Port:
        """One thread's own way in, for compiled code (shmbroker.kernels): Port.address."""
        port = ffi.new("sb_port **")
        code: int = lib.sb_queue_port(self._queue, port)
        if code != OK:
            raise self._error(code, "a port of")
        opened = Port(self, port[0])
        self._broker._ports.add(opened)
        return opened

    def _port_close(self, port: Any) -> None:
        lib.sb_queue_port_return(self._queue, port)

    def __repr__(self) -> str:
        return f"<Queue {self.name!r} of {self._broker.vhost!r}>"
