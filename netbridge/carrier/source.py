"""A queue that a link ships: read behind a lasting gate, retired as far as the far end confirms.

The link is its only consumer.  What is done with otherwise (expired, moved) is passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Any

from shmbroker.core.codes import FULL, GONE, NOT_FOUND, OK
from shmbroker.core.layout import POSITION_BITS, RECORD_WHERE_AT
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.follower.follower import Follower
from shmbroker.ipc.queue_replica.copy import check_is_no_replica
from shmbroker.netbridge.carrier.sleeper import ANY, Sleeper
from shmbroker.netbridge.link.held import Held, Told
from shmbroker.netbridge.link.origin import origin_of
from shmbroker.netbridge.link.outflow import Batch, Outlet
from shmbroker.netbridge.wire.words import Level, TargetKind

POSITION_MASK = (1 << POSITION_BITS) - 1
WHERE = Struct("<Q")


@dataclass(frozen=True, slots=True)
class Shipped:
    """What goes where."""

    queue: str
    target: str
    kind: TargetKind = TargetKind.QUEUE


def position_in(record: memoryview) -> int:
    (where,) = WHERE.unpack_from(record, RECORD_WHERE_AT)
    return int(where & POSITION_MASK)


class Source:
    """Of one connection."""

    def __init__(
        self,
        broker: Broker,
        sleeper: Sleeper,
        link: str,
        shipped: Shipped,
        news: Callable[[], None],
        confirmed: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`confirmed`: told below which position all is at the far end, and gone from the queue."""
        self._broker, self._shipped = broker, shipped
        self._link = link
        self._queue = broker.queue(shipped.queue)
        check_is_no_replica(self._queue)  # who begins to follow is made anew
        self._sleeper = sleeper
        self._news, self._confirmed = news, confirmed
        self._ticket: tuple[int, int] | None = None
        self._was_rung = False
        self._follower = Follower(broker, f"link {link}", kind="link", lasting=True, skips=True)
        try:
            self._number = self._follower.add(self._queue)
        except Error:  # another has its gate, or there are too many
            self._follower.close()
            raise
        self._gate = self._follower.stands(self._number).gate
        self._held: Held | None = None
        self._is_closed = False

    def holds(self, after_sync: Callable[[Told], None]) -> None:
        """From now on what links pour into the queue is shipped only when it is synced here."""
        self._held = Held(after_sync, self._end, self._goes_on)
        if self._end() > self._gate:
            self.hold()

    def _end(self) -> int:
        return self._follower.stands(self._number).end

    def hold(self) -> None:
        """A link has poured into it just now."""
        assert self._held is not None
        self._held.hold(self._follower.next(self._number))

    def _goes_on(self) -> None:
        if not self._is_closed:
            self._news()

    def outlet(self, target: int, node: bytes, history: int, *, exact: bool = True) -> Outlet:
        place = self._follower.stands(self._number)
        return Outlet(
            target=target,
            kind=self._shipped.kind,
            name=self._shipped.target,
            origin=origin_of(node, self._link, place.identity, history),
            level=Level.DISK if lib.sb_is_durable(self._queue._queue) else Level.SHM,
            confirmed=place.gate,
            released=place.gate,
            sent=place.end,
            end=place.end,
            exact=exact,
        )

    def seek(self, position: int) -> None:
        self._follower.seek(self._number, position)

    def read(self, messages: int, size: int) -> Batch | None:
        """Its records are there until the next read: they are sent, or in a buffer of their own."""
        if self._was_rung:
            # who has published may have died before it told our gate's bell: look in any case,
            # where we are by now, for what was held may have been read meanwhile
            self._was_rung = False
            self.seek(self._follower.next(self._number))
        limit = None if self._held is None else self._held.limit
        if limit is not None:
            batch = self._read_below(limit, messages, size)
            if batch is None:
                return None  # `_goes_on` tells
        else:
            batch = self._follower.read_some(messages, size)
        if batch is None:
            self._watch()
            return None
        end = self._follower.next(self._number)
        return Batch(position_in(batch.memory), end, batch.messages, batch.memory)

    def _read_below(self, limit: int, messages: int, size: int) -> Any:
        """Positions without a message make a batch end later than they are counted."""
        follower, number = self._follower, self._number
        begin = follower.next(number)
        most = min(messages, limit - begin)
        while most > 0:
            batch = follower.read_some(most, size)
            if batch is None or follower.next(number) <= limit:
                return batch
            follower.seek(number, begin)
            most //= 2
        return None

    def retire(self, end: int) -> None:
        if end > self._gate:
            self._follower.retire(self._number, end)
            self._gate = end
            self._confirmed(end)

    def set_aside(self, position: int) -> bool:
        """False: there is no room where it goes."""
        code: int = lib.sb_reject_at(self._queue._queue, position)
        if code not in (OK, GONE, FULL):  # gone: it was set aside before
            raise self._queue._error(code, "setting a message aside of")
        return code != FULL

    def returned(self, position: int, why: str) -> bool:
        """It goes back to whoever has published it.

        False: who that is is not known, or is gone, or has no room.
        """
        follower, number = self._follower, self._number
        there = follower.next(number)
        follower.seek(number, position)
        batch = follower.read_some(1, 1)
        code = NOT_FOUND
        if batch is not None and position_in(batch.memory) == position:
            code = lib.sb_record_return(
                self._broker._connection, ffi.from_buffer(batch.memory), len(batch.memory),
                self._shipped.target.encode(), why.encode(),
            )  # fmt: skip
        follower.seek(number, there)
        return code == OK

    def _watch(self) -> None:
        if self._ticket is None:
            position = self._follower.next(self._number)
            ticket = self._sleeper.watch(self._queue._queue, position, ANY, self._rung)
            self._ticket = ticket, position

    def _rung(self) -> None:
        self._ticket = None
        self._was_rung = True
        self._news()

    def close(self) -> None:
        self._is_closed = True
        if self._ticket is not None:
            ticket, position = self._ticket
            self._sleeper.forget(ticket, self._queue._queue, position, ANY)
            self._ticket = None
        if self._held is not None:
            self._held.drop()
        self._follower.close()
