"""Queues that follow those of another broker (ipc/queue_replica/copy.c, declare.c)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from shmbroker.core.codes import TEXTS
from shmbroker.core.layout import REPLICA_OF_BYTES_MAX
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.detail import detail_of
from shmbroker.ipc.base.errors import error_for
from shmbroker.ipc.base.names import name_bytes

if TYPE_CHECKING:
    from shmbroker.ipc.catalog.catalog import BindingInfo
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.queue.queue import Queue


def declare(broker: Broker, name: str, position: int, of: bytes) -> None:
    """In place of the queue of this name: empty, at this position, closed to all but its applier.

    `of`: what it follows, for whoever runs it.  Its bindings are made again, so they are not there
    for a moment, or for good if this process dies in it.
    """
    bindings = [
        each for each in broker.bindings() if (each.to, each.destination) == ("queue", name)
    ]
    _check(
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
    room = ffi.new("char[]", REPLICA_OF_BYTES_MAX)
    length = _check(lib.sb_replica_of(queue._queue, room, REPLICA_OF_BYTES_MAX), queue.name)
    return bytes(ffi.buffer(room, length))


def let_delete(queue: Queue, *, deletable: bool) -> None:
    """Whether anybody may delete it: what it follows is not there any more."""
    _check(lib.sb_replica_deletable(queue._queue, deletable), queue.name)


def detach(queue: Queue) -> int:
    """It is a queue like any other; of a durable one the number for `detached`, else 0."""
    return _check(lib.sb_replica_detach(queue._queue), queue.name)


def detached(broker: Broker, number: int, timeout_ns: int) -> None:
    """Until that is confirmed.  Unconfirmed: not in this time."""
    _check(lib.sb_replica_detached(broker._connection, number, timeout_ns))


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


class Copies(Closable):
    """Of one thread at a time.  Close it before its broker."""

    def __init__(self, broker: Broker) -> None:
        made = ffi.new("sb_copies **")
        _check(lib.sb_copies_open(broker._connection, made))
        self._copies: Any = made[0]
        self._queues: dict[int, Queue] = {}

    def add(self, queue: Queue, number: int, later: int) -> None:
        """`later`: is added to times of expiry."""
        _check(lib.sb_copies_add(self._copies, queue._queue, number, later), queue.name)
        self._queues[number] = queue

    def has(self, number: int) -> bool:
        return number in self._queues

    def drop(self, number: int) -> None:
        lib.sb_copies_drop(self._copies, number)
        self._queues.pop(number, None)

    def take(self, records: bytes | memoryview) -> None:
        """Nobody sees it yet.  InvalidArgument: they are no records."""
        _check(lib.sb_copies_take(self._copies, ffi.from_buffer(records), len(records)))

    def show(self) -> bool:
        """All that was taken is there; False: some cannot follow any more (`stands`)."""
        return _check(lib.sb_copies_show(self._copies)) == 0

    @property
    def is_confirmed(self) -> bool:
        """What was shown of durable ones is on disk; before that no more is to be shown."""
        return bool(lib.sb_copies_confirmed(self._copies))

    def stands(self, number: int) -> Copied:
        """NotFound: the queue was deleted."""
        place = ffi.new("sb_copy_place *")
        _check(lib.sb_copies_stands(self._copies, number, place))
        why = ""
        if place.code < 0:
            why = (
                f"message {place.failed_at} of the original finds no place in {place.slots} slots "
                f"from {place.head} on: {TEXTS[place.code]}"
            )
        if place.revived:
            why = f"message {place.revived - 1} is done with here, and came back there"
        return Copied(
            place.next, place.head, place.tail, place.slots, place.staged, why, place.revived > 0
        )

    def close(self) -> None:
        if self._copies is not None:
            lib.sb_copies_close(self._copies)
            self._copies = None
            self._queues.clear()


def _check(code: int, what: str = "replicas of queues") -> int:
    if code < 0:
        raise error_for(code, what, ffi.errno, detail_of(code))
    return code
