"""A consumer that takes nothing: each message of a queue is copied for it, as a subscriber sees it.

The ring keeps what it has not acknowledged, unless the queue is non_destructive: there everybody
sees all messages, and nobody waits for anybody.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from shmbroker.core.codes import EMPTY, OK
from shmbroker.core.layout import QUEUE_IDENTITY_HIGH_AT
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import Empty, Error, NotAllowed
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.message.room import length_of
from shmbroker.ipc.queue.retained_reader import RetainedReader
from shmbroker.ipc.queue.subscription import Subscription
from shmbroker.ipc.selector.selection import Selection
from shmbroker.netbridge.carrier.sleeper import ANY
from shmbroker.netbridge.serving.answer import too_large
from shmbroker.netbridge.serving.declaring import Fields
from shmbroker.netbridge.serving.looking import record
from shmbroker.netbridge.serving.naming import queue_named
from shmbroker.netbridge.wire.words import Role

if TYPE_CHECKING:
    from shmbroker.netbridge.serving.served import Served

BATCH = 256
BATCH_BYTES = 256 << 10


def _identity(broker: Broker, name: str) -> int | None:
    """Of the queue, which one that is made in its place does not have."""
    found = (each for each in broker._catalog.queues() if each.name == name)
    return next((each.word(QUEUE_IDENTITY_HIGH_AT) for each in found), None)


class ShownBatch:
    """The gate stands before the first that is not acknowledged."""

    def __init__(self, watcher: Watcher, positions: list[int]) -> None:
        self._watcher = watcher
        self._positions = positions

    def ack(self, start: int, count: int) -> int:
        self._watcher.seen(self._positions[start : start + count])
        return count

    give_back = ack

    def reject(self, start: int, count: int) -> list[int]:
        return [OK] * self.ack(start, count)


class Watcher:
    def __init__(
        self, served: Served, target: int, broker: Broker, fields: Fields, text: str | None
    ) -> None:
        name, stands = queue_named(fields), fields.get("stands")
        from_now = stands is None and fields.get("start", "now") == "now"
        is_program = served.role is Role.CLIENT
        self.queue = broker.queue(name) if is_program else broker._queue_there(name)
        self._identity = _identity(broker, name)
        self._served, self._target = served, target
        selection = None if text is None else Selection(text)
        self._keeps = not lib.sb_is_non_destructive(self.queue._queue)
        if self._keeps and not is_program:
            raise NotAllowed(
                f"the ring of queue {name!r} keeps what a subscriber has not seen, and publishers "
                "wait for it: only the role client subscribes; browse it"
            )
        self._subscription: Subscription = (
            broker.subscribe(name, start="now" if from_now else "earliest", timeout=0)
            if self._keeps
            else RetainedReader(self.queue, selection, 0)
        )
        self._unseen: set[int] = set()
        self._ticket: tuple[int, int] | None = None
        self._comes_again = False
        if stands is not None:
            self._go_on(*stands)

    def _go_on(self, identity: int, position: int) -> None:
        """Where it was in a former session; of another queue of this name it sees all."""
        is_behind = self._subscription.position < position <= self.queue.published
        if is_behind and identity == self._identity:
            self._subscription._pass_over(position)

    def stands(self) -> Fields:
        return {"identity": self._identity, "position": self._subscription.position}

    def offer(self) -> None:
        """Show what has come, as far as the session has room."""
        self._comes_again = False
        session = self._served.session
        messages, size = session.room(self._target)
        if not messages:
            return
        records: list[bytes] = []
        positions: list[int] = []
        used = 0
        failed: Error | None = None
        try:
            while len(records) < min(messages, BATCH) and used < min(size, BATCH_BYTES):
                shown = self._next()
                if shown is None:
                    break
                told = record(*shown)
                if (length := len(told)) > (limit := session.limits.message_bytes):
                    raise too_large(f"the next message of queue {self.queue.name!r}", length, limit)
                records.append(told)
                positions.append(shown[0].position)
                used += length
        except Error as error:  # it comes behind what was there before
            failed = error
        self._shows(records, positions)
        if failed is not None:
            raise failed
        if not records:
            self._watch()
        elif not self._comes_again:
            self._comes_again = True
            self._served.service.soon(self.rung)

    def _shows(self, records: list[bytes], positions: list[int]) -> None:
        if records:
            if self._keeps:
                self._unseen.update(positions)
            batch = ShownBatch(self, positions)
            self._served.delivers(self._target, len(records), b"".join(records), batch)

    def _next(self) -> tuple[CopiedMessage, bytes] | None:
        """And its chunk.  The gate stays: a subscription moves it with what it has returned."""
        reader = self._subscription
        if not self._keeps:
            with suppress(Empty):
                shown = reader.get(timeout=0)
                return shown, reader._room.bytes[: length_of(reader._room.messages + 0)]
            return None
        length = reader._next(0)
        if length == EMPTY:
            return None
        if length < OK:
            raise self.queue._error(length, "reading")
        message, chunk = reader._room.messages + 0, reader._room.bytes[:length]
        return CopiedMessage.of(message.position, message.word, message.length, chunk), chunk

    def rung(self) -> None:
        if self._served.consumers.get(self._target) is not self:
            return
        try:
            self.offer()
        except Error as error:
            self._served.lost_consumer(self._target, error)

    def seen(self, positions: list[int]) -> None:
        if not self._keeps:
            return
        self._unseen.difference_update(positions)
        cursor = self._subscription._cursor
        stands = min(self._unseen, default=cursor.position)
        lib.sb_gate_move(self.queue._queue, cursor.gate, stands)

    def _watch(self) -> None:
        if self._ticket is None:
            position = self._subscription.position
            sleeper = self._served.service.sleeper
            ticket = sleeper.watch(self.queue._queue, position, ANY, self._told)
            self._ticket = ticket, position

    def _told(self) -> None:
        self._ticket = None
        self.rung()

    def close(self) -> None:
        self._keeps = False  # the gate may be another's from now on
        if self._ticket is not None:
            ticket, position = self._ticket
            self._served.service.sleeper.forget(ticket, self.queue._queue, position, ANY)
            self._ticket = None
        self._subscription.close()
