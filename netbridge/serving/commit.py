"""Transactions of programs: one command has all of it, and all of it happens or nothing.

Each leaves a mark with its number in the same transaction, so that after a loss it can be told
whether it was committed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import ENDED, FULL, OK, REVOKED, UNFINISHED
from shmbroker.core.layout import CONFIRM_SHM, SHAPE_BODY_SHIFT
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import Error, InvalidArgument, error_for
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.journal.stored import stored
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.message.properties import MESSAGE_ID
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.transaction.transaction import Transaction
from shmbroker.netbridge.carrier.reached import is_durable, serving
from shmbroker.netbridge.carrier.sleeper import ANY, ROOM
from shmbroker.netbridge.remote.body import unpacked
from shmbroker.netbridge.serving.alarms import Alarm
from shmbroker.netbridge.serving.confirms import in_time, wait_for_all
from shmbroker.netbridge.serving.hands import TakenBatch
from shmbroker.netbridge.serving.producer import LEVEL_NUMBERS, LEVEL_WORDS, until
from shmbroker.netbridge.wire.frame import Command

if TYPE_CHECKING:
    from shmbroker.netbridge.serving.served import Served

MARKS = "$sessions.commits"
MARKS_KEPT = 7 * 86400.0
MARKS_SLOTS = 4096


def marks(broker: Broker) -> Queue:
    """Of the worker.  The oldest mark makes place for another."""
    return broker.declare_queue(
        MARKS, slots=MARKS_SLOTS, durable=True, last_value=True, ttl=MARKS_KEPT,
        when_full="drop-oldest",
    )  # fmt: skip


def mark_of(session: bytes, transaction: int) -> str:
    return f"{session.hex()}.{transaction}"


def messages_of(records: bytes) -> Iterator[CopiedMessage]:
    for each in stored(memoryview(records)):
        length = int.from_bytes(each.body[:8], "little") >> SHAPE_BODY_SHIFT
        yield CopiedMessage.of(each.position, 0, length, each.body)


@dataclass(eq=False)
class Commit:
    """From the first try until it has the level that is asked for."""

    served: Served
    command: Command
    transaction: Transaction
    queues: list[Queue] = field(default_factory=list)
    deliveries: list[int] = field(default_factory=list)
    published: int = 0
    until: float = 0.0
    tickets: list[tuple[int, Queue]] = field(default_factory=list)
    alarm: Alarm | None = None

    # --- what it does -------------------------------------------------------------------------

    def add(self, operations: Any, marks: Queue) -> None:
        if not isinstance(operations, list):
            raise InvalidArgument("the body of a commit is no list")
        for each in operations:
            if not isinstance(each, list) or len(each) != 3:
                raise InvalidArgument("an operation of a commit is a list of three")
            if each[0] == "ack":
                self.deliveries += range(each[1], each[1] + each[2])
            elif each[0] in ("queue", "exchange"):
                self._publish(*each)
            else:
                raise InvalidArgument(f"a commit does not {each[0]!r:.40}")
        key = mark_of(self.served.session.id, self.command.value)
        self.transaction.publish(marks, b"", key=key)

    def _publish(self, kind: str, name: str, records: bytes) -> None:
        broker = self.served.own()
        to = broker.queue(name) if kind == "queue" else broker.exchange(name)
        if isinstance(to, Queue):
            self.queues.append(to)
        for message in messages_of(records):
            properties = dict(message.properties)
            self.transaction.publish(
                to, message.body, key=message.key or (None if kind == "queue" else ""),
                message_id=properties.pop(MESSAGE_ID, None), properties=properties,
                ttl=message.expires_ns / 1e9 if message.expires_ns else None,
                priority=message.priority,
            )  # fmt: skip
            self.published += 1

    def begin(self) -> None:
        """What is acknowledged with it is the transaction's from now on."""
        session = self.served.session
        if not session.begins_to_settle(self.deliveries):
            self.deliveries.clear()
            raise error_for(REVOKED, "committing")
        for delivery in self.deliveries:
            for hand, start, _ in self.served.hands.stretches(delivery, 1):
                if isinstance(hand.batch, TakenBatch):
                    queue = hand.batch.queue
                    message = hand.batch.messages + start
                    self._check(
                        lib.sb_transaction_ack(self.transaction._transaction, queue._queue, message)
                    )

    def _check(self, code: int) -> None:
        if code < OK:
            raise self.transaction._error(code, "committing")

    # --- trying -------------------------------------------------------------------------------

    def go_on(self) -> None:
        self._forget()
        code = lib.sb_transaction_commit(self.transaction._transaction, 0)
        if code == OK:
            self._committed()
        elif code == UNFINISHED or (code == FULL and self.until > time.monotonic()):
            self._wait_for_room()
        else:
            self.fails(self.transaction._error(code, "committing"))

    def _wait_for_room(self) -> None:
        service = self.served.service
        for queue in {id(each): each for each in self.queues}.values():
            ticket = service.sleeper.watch(queue._queue, ROOM, ANY, self.go_on)
            self.tickets.append((ticket, queue))
        self.alarm = service.alarms.at(self.until, self.go_on)

    def _forget(self) -> None:
        for ticket, queue in self.tickets:
            self.served.service.sleeper.forget(ticket, queue._queue, ROOM, ANY)
        self.tickets.clear()
        if self.alarm is not None:
            self.alarm.cancel()
            self.alarm = None

    def fails(self, error: Error) -> None:
        """Nothing of it has happened: what was to be acknowledged comes again."""
        self._forget()
        served = self.served
        served.commits.discard(self)
        self.transaction.rollback()
        self._settled()
        served.refuse(self.command, error)

    def _settled(self) -> None:
        served = self.served
        for delivery in self.deliveries:
            for hand, _, count in list(served.hands.stretches(delivery, 1)):
                served.hands.dealt_with(hand, count)
        served.session.has_settled(self.deliveries)

    # --- confirming ---------------------------------------------------------------------------

    def _committed(self) -> None:
        self._settled()
        level = LEVEL_NUMBERS[self.command.demand]
        durable = {each.name for each in self.queues if is_durable(each._queue)}
        if level == CONFIRM_SHM or not durable:
            self._done(CONFIRM_SHM)
            return
        service = self.served.service
        shared = [serving(service.broker, each) for each in durable]
        told = in_time(service.alarms, self.until, self._done)
        wait_for_all(service.confirms, shared, level, told)

    def _done(self, level: int) -> None:
        self.served.commits.discard(self)
        if level < OK:
            self.served.refuse(self.command, error_for(level, "committing"))
        else:
            self.served.done(self.command, value=self.published, level=LEVEL_WORDS[level])

    def close(self) -> None:
        """Its session is over."""
        self._forget()
        lib.sb_transaction_rollback(self.transaction._transaction)


def begun(served: Served, command: Command) -> Commit | bool:
    """Of the worker: what is to be committed; of a repeated one, whether it was."""
    kept = marks(served.own())
    if command.repeated:
        return kept.value(mark_of(served.session.id, command.value)) is not None
    commit = Commit(served, command, served.own().transaction(warn=False))
    commit.until = until(command)
    commit.add(unpacked(command.body), kept)
    return commit


def not_committed() -> Error:
    return error_for(ENDED, "a transaction that was asked for again")
