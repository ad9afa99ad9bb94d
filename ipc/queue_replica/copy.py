"""Queues that follow those of another broker: chunks are filled as records come (staging.py), and
all that belongs to a moment is shown at once (moment.py).  Until then everybody sees what was there
before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from shmbroker.core.codes import (
    DAMAGED,
    INTERRUPTED,
    INVALID,
    NOT_FOUND,
    OK,
    READ_ONLY,
    TEXTS,
    TOO_SMALL,
)
from shmbroker.core.layout import (
    FOLLOWER_JOURNALER,
    POSITION_MASK,
    RECORD_HEAD_BYTES,
    RECORD_IS_MESSAGE,
    RECORD_KIND_SHIFT,
    RECORD_STANDS,
    REPLICA_BITS,
    REPLICA_BYTES,
    REPLICA_CODE,
    REPLICA_COUNT,
    REPLICA_END,
    REPLICA_FAILED,
    REPLICA_HEAD,
    REPLICA_LATER,
    REPLICA_LENGTH,
    REPLICA_NEXT,
    REPLICA_NUMBER,
    REPLICA_OF_BYTES_MAX,
    REPLICA_PORT,
    REPLICA_REVIVED,
    REPLICA_ROOM,
    REPLICA_STAGED,
    RING_CLOSED_AT,
    SETTING_LAST_VALUE_AT,
    SETTING_REPLICA_AT,
    SETTING_REPLICA_OF_AT,
    STAGED_BYTES,
    TRANSACTIONS_CONFIRMED_AT,
)
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.detail import checked
from shmbroker.ipc.base.errors import Error, error_for
from shmbroker.ipc.base.names import name_bytes
from shmbroker.ipc.base.timeout import Deadline
from shmbroker.ipc.journal.stored import HEAD
from shmbroker.ipc.queue_replica.moment import Kept, Moment
from shmbroker.ipc.ring.look import (
    WORD,
    address_of,
    head_of,
    looking,
    port_to,
    ring_at,
    ring_word,
    tail_of,
    word_at,
)

if TYPE_CHECKING:
    from shmbroker.ipc.catalog.catalog import BindingInfo
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.queue.queue import Queue

WHAT: Final = "replicas of queues"
STAGED_FIRST: Final = 256
"""There is room for so many messages, and then for twice as many."""


def declare(broker: Broker, name: str, position: int, of: bytes) -> None:
    """In place of the queue of this name: empty, at this position, closed to all but its applier.

    `of`: what it follows, for whoever runs it.  Its bindings are made again, so they are not there
    for a moment, or for good if this process dies in it.
    """
    bindings = [
        each for each in broker.bindings() if (each.to, each.destination) == ("queue", name)
    ]
    checked(
        lib.sb_replica_declare(broker._connection, name_bytes(name), position, of, len(of)),
        f"queue {name!r}",
    )
    for each in bindings:
        broker.bind(
            each.exchange, name, each.key, arguments=each.arguments or None, match=match_of(each)
        )


def match_of(binding: BindingInfo) -> Literal["all", "any"]:
    return "any" if binding.match == "any" else "all"


def followed_by(queue: Queue) -> bytes:
    """What it follows; nothing if it is no replica."""
    with looking(queue):
        port = port_to(queue)
        if ring_word(port, SETTING_REPLICA_AT) == 0:
            return b""
        length = ring_word(port, SETTING_REPLICA_OF_AT)
        if not 0 <= length <= REPLICA_OF_BYTES_MAX:
            raise queue._error(DAMAGED, "looking at")
        text = ffi.cast("char *", ring_at(port) + SETTING_REPLICA_OF_AT + WORD)
        return bytes(ffi.buffer(text, length))


def check_is_no_replica(queue: Queue) -> None:
    """ReplicaReadOnly: it follows still, and nothing but its original changes it."""
    with looking(queue):
        is_closed = ring_word(port_to(queue), RING_CLOSED_AT) != 0
    if is_closed:
        raise error_for(READ_ONLY, f"opening queue {queue.name!r} for a link")


def let_delete(queue: Queue, *, deletable: bool) -> None:
    """Whether anybody may delete it: what it follows is not there any more."""
    with looking(queue):
        lib.sb_port_replica_deletable(port_to(queue), deletable)


def detach(queue: Queue) -> int:
    """It is a queue like any other; of a durable one the number for `detached`, else 0."""
    connection = queue._broker._connection
    with looking(queue):
        port = port_to(queue)
        if ring_word(port, SETTING_LAST_VALUE_AT):
            checked(lib.sb_port_latest_repair(port), queue.name)
        lib.sb_port_replica_open(port)
        lib.sb_expiry_unknown(ffi.cast("void *", ring_at(port)))
        lib.sb_catalog_changed(queue._broker._catalog._catalog)  # who looks at queues looks again
        if not lib.sb_is_durable(queue._queue):
            return 0
        # the journaler declares it anew, in the next frame (ipc/broker/snapshot.c)
        number = int(lib.sb_commit_count(lib.sb_transactions(connection)))
        lib.sb_follower_rouse(connection, FOLLOWER_JOURNALER)
        return number


def detached(broker: Broker, number: int, timeout_ns: int) -> None:
    """Until that is confirmed.  Unconfirmed: not in this time."""
    deadline, code = Deadline(timeout_ns), INTERRUPTED
    while code == INTERRUPTED:
        code = lib.sb_commit_gate_await(broker._connection, number, -1, deadline.left())
    checked(code, WHAT)


@dataclass(frozen=True, slots=True)
class Copied:
    next: int
    """All below is known here."""
    head: int
    tail: int
    slots: int
    staged: int
    """Messages that nobody sees yet."""
    why: str
    """It cannot follow any more; nothing if it can."""
    is_stale: bool
    """Because its original has lost what it was done with: begin anew."""


class Copy:
    """One replica; its methods are called while it is looked at."""

    def __init__(self, queue: Queue, number: int, later: int) -> None:
        self.queue = queue
        self.is_durable = bool(lib.sb_is_durable(queue._queue))
        lib.sb_queue_serve(queue._queue)  # it keeps nobody from deleting it
        self.port = port_to(queue)
        self.has_news = False
        """It was told how the original stands."""
        self._bits = b""
        self._staged = ffi.NULL
        self.memory = ffi.new("int64_t[]", REPLICA_BYTES // WORD)
        lib.sb_port_replica_unstage(self.port)
        self._put(REPLICA_PORT, address_of(self.port))
        self._put(REPLICA_NUMBER, number)
        self._put(REPLICA_LATER, later)
        self._put(REPLICA_HEAD, head_of(self.port))
        for each in (REPLICA_NEXT, REPLICA_END):
            self._put(each, tail_of(self.port))

    def has(self, at: int) -> int:
        """A word of it (REPLICA_*)."""
        return int(self.memory[at // WORD])

    def _put(self, at: int, word: int) -> None:
        self.memory[at // WORD] = word

    @property
    def code(self) -> int:
        """Why it cannot follow; OK if it can."""
        return self.has(REPLICA_CODE)

    @property
    def is_to_be_shown(self) -> bool:
        return self.has_news and self.code == OK

    # --- staging ------------------------------------------------------------------------------

    def stage(self, at: int, end: int) -> int:
        """Its messages from this record on: where the next one is.  InvalidArgument: they are none.
        Nothing more is put into it if one has no room."""
        found = ffi.new("int64_t *", at)
        while (code := lib.sb_messages_stage(self.memory, found[0], end, found)) == TOO_SMALL:
            self._make_room()
        if code == INVALID:
            raise _contradicts()
        return int(found[0]) if code == OK else int(lib.sb_records_pass(found[0], end))

    def _make_room(self) -> None:
        room = max(STAGED_FIRST, 2 * self.has(REPLICA_ROOM))
        made = ffi.new("int64_t[]", room * STAGED_BYTES // WORD)
        ffi.memmove(made, self._staged, self.has(REPLICA_COUNT) * STAGED_BYTES)
        self._staged = made
        self._put(REPLICA_STAGED, address_of(made))
        self._put(REPLICA_ROOM, room)

    def note_stands(self, head: int, body: bytes) -> None:
        """How the original stands (RECORD_STANDS)."""
        if len(body) < WORD or len(body) % WORD:
            raise _contradicts()
        end = int.from_bytes(body[:WORD], "little", signed=True)
        if not head <= end <= POSITION_MASK:
            raise _contradicts()
        self._bits = body[WORD:]
        self._put(REPLICA_BITS, address_of(ffi.from_buffer(self._bits)))
        self._put(REPLICA_LENGTH, len(self._bits))
        self._put(REPLICA_HEAD, head)
        self._put(REPLICA_END, end)
        self._put(REPLICA_NEXT, max(self.has(REPLICA_NEXT), end))
        self.has_news = True

    # --- showing ------------------------------------------------------------------------------

    def fits(self) -> bool:
        """Whether its slots are enough; else it cannot follow any more."""
        return bool(lib.sb_replica_fits(self.memory))

    def kept(self) -> Kept:
        """What is to be written down, which others may show."""
        lib.sb_port_replica_promise(self.port)
        reference = lib.sb_queue_reference(self.queue._queue)
        staged = b""
        if count := self.has(REPLICA_COUNT):
            staged = bytes(ffi.buffer(self._staged, count * STAGED_BYTES))
        head, end = self.has(REPLICA_HEAD), self.has(REPLICA_END)
        return Kept(reference, head, end, self._bits, staged)

    # --- what is told -------------------------------------------------------------------------

    def stands(self) -> Copied:
        slots, head = lib.sb_queue_slots(self.queue._queue), head_of(self.port)
        revived, why = self.has(REPLICA_REVIVED), ""
        if self.code < 0:
            why = (
                f"message {self.has(REPLICA_FAILED)} of the original finds no place in {slots} "
                f"slots from {head} on: {TEXTS[self.code]}"
            )
        if revived:
            why = f"message {revived - 1} is done with here, and came back there"
        following, staged = self.has(REPLICA_NEXT), self.has(REPLICA_COUNT)
        return Copied(following, head, tail_of(self.port), slots, staged, why, revived > 0)


class Copies(Closable):
    """Of one thread at a time.  Close it before its broker."""

    def __init__(self, broker: Broker) -> None:
        broker._check_open()
        self._broker = broker
        self._transactions = lib.sb_transactions(broker._connection)
        self._members: dict[int, Copy] = {}
        self._moment = Moment(broker)
        try:
            self._moment.finish()
        except BaseException:
            self._moment.close()
            raise
        # whoever showed them before may have died before that was confirmed
        self._number = int(lib.sb_commit_begun(self._transactions))

    def add(self, queue: Queue, number: int, later: int) -> None:
        """`later`: is added to times of expiry."""
        self.drop(number)
        with looking(queue):
            self._members[number] = Copy(queue, number, later)

    def has(self, number: int) -> bool:
        return number in self._members

    def drop(self, number: int) -> None:
        dropped = self._members.pop(number, None)
        if dropped is not None and _is_looked_at(dropped):
            lib.sb_port_replica_unstage(dropped.port)
            lib.sb_port_close(dropped.port)
            _looked_at(dropped)

    def take(self, records: bytes | memoryview) -> None:
        """Nobody sees it yet.  InvalidArgument: they are no records."""
        begin = address_of(ffi.from_buffer(records))
        if begin % WORD:
            records = bytes(records)
            begin = address_of(ffi.from_buffer(records))
        at, size = 0, len(records)
        while at < size:
            length, number, where = _head(records, at)
            one = self._members.get(number)
            if one is None or one.code != OK or not _is_looked_at(one):
                at = lib.sb_records_pass(begin + at, begin + size) - begin
                continue
            try:
                if where >> RECORD_KIND_SHIFT == RECORD_IS_MESSAGE:
                    at = one.stage(begin + at, begin + size) - begin
                elif where >> RECORD_KIND_SHIFT == RECORD_STANDS:
                    body = at + RECORD_HEAD_BYTES
                    one.note_stands(where & POSITION_MASK, bytes(records[body : body + length]))
                    at = _behind(at, length)
                else:
                    raise _contradicts()
            finally:
                _looked_at(one)

    def show(self) -> bool:
        """All that was taken is there; False: some cannot follow any more (`stands`)."""
        looked_at = []
        for each in self._members.values():
            if each.is_to_be_shown and _is_looked_at(each):
                looked_at.append(each)
            else:
                each.has_news = False
        try:
            self._show([each for each in looked_at if each.fits()])
            for each in looked_at:
                each.has_news = False
        finally:
            for each in looked_at:
                _looked_at(each)
        return all(each.code == OK for each in self._members.values())

    def _show(self, shown: list[Copy]) -> None:
        is_durable = any(each.is_durable for each in shown)
        number = self._moment.show(
            [each.kept() for each in shown],
            [each.memory for each in shown],
            is_durable=is_durable,
        )
        if is_durable:
            self._number = number
            lib.sb_follower_rouse(self._broker._connection, FOLLOWER_JOURNALER)

    @property
    def is_confirmed(self) -> bool:
        """What was shown of durable ones is on disk; before that no more is to be shown."""
        for each in self._members.values():
            if each.is_durable and _is_looked_at(each):
                is_confirmed = self._is_journaled and lib.sb_port_replica_is_confirmed(each.port)
                _looked_at(each)
                if not is_confirmed:
                    return False
        return True

    @property
    def _is_journaled(self) -> bool:
        confirmed = word_at(address_of(self._transactions) + TRANSACTIONS_CONFIRMED_AT)
        return confirmed >= self._number

    def stands(self, number: int) -> Copied:
        """NotFound: the queue was deleted."""
        one = self._members.get(number)
        if one is None:
            raise error_for(NOT_FOUND, WHAT, detail="no replica with this number is there")
        with looking(one.queue):
            return one.stands()

    def close(self) -> None:
        for number in list(self._members):
            self.drop(number)
        self._moment.close()


def _is_looked_at(one: Copy) -> bool:
    """Its ring stays mapped until `_looked_at`; False: it was deleted."""
    return bool(lib.sb_queue_look(one.queue._queue) == OK)


def _looked_at(one: Copy) -> None:
    lib.sb_queue_looked(one.queue._queue)


def _behind(at: int, length: int) -> int:
    return at + RECORD_HEAD_BYTES + (length + 7 & -8)


def _head(records: bytes | memoryview, at: int) -> tuple[int, int, int]:
    """Length, queue, and kind with position, of a whole record."""
    if at + RECORD_HEAD_BYTES <= len(records):
        _, _, length, _, number, where = HEAD.unpack_from(records, at)
        if _behind(at, length) <= len(records):
            return length, number, where
    raise error_for(INVALID, WHAT, detail="a record of an original is cut off")


def _contradicts() -> Error:
    return error_for(INVALID, WHAT, detail="a record of an original contradicts itself")
