"""Transactions of programs, and their scheduled messages: all of a command happens, or nothing.

Each leaves a mark with its number in the same transaction, so that a command that is said again
after a loss is not carried out again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from shmbroker.core.codes import ENDED, FULL, OK, REVOKED, UNFINISHED
from shmbroker.core.layout import (
    CONFIRM_DISK,
    CONFIRM_EFFECTIVE,
    CONFIRM_REPLICATED,
    CONFIRM_SHM,
    TRANSACTION_OPERATIONS,
)
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import (
    Error,
    GroupingTimeout,
    InvalidArgument,
    NotFound,
    Unconfirmed,
    error_for,
)
from shmbroker.ipc.base.nap import longer
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.exchange.exchange import Exchange
from shmbroker.ipc.message.properties import MESSAGE_ID
from shmbroker.ipc.queue.grouped import decision_limit
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.transaction.transaction import Transaction
from shmbroker.netbridge.carrier.reached import everything_in, is_durable, queues_behind, serving
from shmbroker.netbridge.carrier.sleeper import ANY, ROOM
from shmbroker.netbridge.remote.body import named, told, unpacked
from shmbroker.netbridge.serving.alarms import Alarm
from shmbroker.netbridge.serving.confirms import in_time, wait_for_all
from shmbroker.netbridge.serving.destination import led_to, messages_of
from shmbroker.netbridge.serving.hands import TakenBatch
from shmbroker.netbridge.serving.naming import allowed
from shmbroker.netbridge.serving.producer import LEVEL_NUMBERS, LEVEL_WORDS
from shmbroker.netbridge.wire.frame import Command
from shmbroker.netbridge.wire.words import Demand, Verb

if TYPE_CHECKING:
    from shmbroker.netbridge.serving.served import Served
    from shmbroker.netbridge.serving.service import Service

MARKS = "$sessions.commits"
MARKS_KEPT = 7 * 86400.0
MARKS_SLOTS = 4096
MARK: Final = Struct("<qq")
"""Of a mark: what the command is answered, and what its queues are, as a Reach."""
NOT_REPLICATED: Final = (
    "it is committed, and no queue of it has replicate 'all', so no replica confirms it: ask for "
    "'disk'"
)
SCHEDULING: Final = ("key", "properties", "ttl", "priority", "message_id", "group")
AGAIN_SECONDS: Final = 0.1
"""When what is committed, and lacks room for a part of it, is looked at again."""


def marks(broker: Broker) -> Queue:
    """Of the worker.  The oldest mark makes place for another."""
    return broker.declare_queue(
        MARKS, slots=MARKS_SLOTS, durable=True, last_value=True, ttl=MARKS_KEPT,
        when_full="drop-oldest", replicate="all",
    )  # fmt: skip


def mark_of(session: bytes, transaction: int) -> str:
    return f"{session.hex()}.{transaction}"


class Reach(IntEnum):
    """Of the queues of a transaction: the most that one of them is."""

    MEMORY = 0
    REPLICATED = 1
    DURABLE = 2
    """And other members have nothing of any of them."""

    def with_(self, queue: Any) -> Reach:
        """And of this queue, as C knows it."""
        if not is_durable(queue) or self is Reach.REPLICATED:
            return self
        return Reach.REPLICATED if lib.sb_is_replicated(queue) else Reach.DURABLE


@dataclass(frozen=True, slots=True)
class Committed:
    """All of it has happened; what is left is its level."""

    value: int = 0
    reach: Reach = Reach.MEMORY
    copied: Collection[str] = ()
    """Queues whose confirms wait for replicas of them alone."""

    @classmethod
    def of(cls, mark: bytes) -> Committed:
        value, reach = MARK.unpack(mark)
        return cls(value, Reach(reach))

    def answer(self, served: Served, command: Command, until: float) -> None:
        """As soon as the mark has the level that is asked for: it is in one frame with the rest."""
        level = LEVEL_NUMBERS[command.demand]
        if level == CONFIRM_SHM or self.reach is Reach.MEMORY:
            self._answer(served, command, CONFIRM_SHM)
            return
        if self.reach is Reach.DURABLE:
            if level > CONFIRM_SHM and level & CONFIRM_REPLICATED:
                served.refuse(command, InvalidArgument(NOT_REPLICATED), published=self.value)
                return
            level = CONFIRM_DISK  # the mark is with replicas, too, and need not be
        service = served.service
        mark = serving(service.broker, MARKS)
        told = in_time(service.alarms, until, partial(self._answer, served, command))
        queues = [mark, *self._waited(service, level)]
        places = everything_in(*(each._queue for each in queues))
        wait_for_all(service.confirms, places, level, told)

    def _waited(self, service: Service, level: int) -> Iterator[Queue]:
        for name in self.copied if level == CONFIRM_EFFECTIVE else ():
            with suppress(NotFound):
                yield serving(service.broker, name)

    def _answer(self, served: Served, command: Command, level: int) -> None:
        if level < OK:
            served.refuse(command, error_for(level, "committing"), published=self.value)
        else:
            if self.reach is Reach.DURABLE:
                level &= ~CONFIRM_REPLICATED
            served.done(command, value=self.value, level=LEVEL_WORDS[level])


@dataclass(eq=False)
class Commit:
    """From the first try until it is committed, or has failed."""

    served: Served
    command: Command
    until: float
    queues: list[Queue] = field(default_factory=list)
    """Whose room it may wait for."""
    routes: bool = False
    """It may wait for room behind an exchange, too, of which no bell tells."""
    deliveries: list[int] = field(default_factory=list)
    has_begun: bool = False
    """To settle its deliveries."""
    pledged: int = 0
    """So many of them are the transaction's."""
    value: int = 0
    numbers: Callable[[], int] | None = None
    """What it is answered, of what is scheduled."""
    durable: int = 0
    """Queues that are to confirm what is scheduled through an exchange."""
    reach: Reach = Reach.MEMORY
    copied: set[str] = field(default_factory=set)
    transaction: Transaction | None = None
    decided_by: float = 0.0
    """Until then it waits for where messages of groups go."""
    error: Error | None = None
    """Why it cannot even be tried."""
    tickets: list[tuple[int, Queue]] = field(default_factory=list)
    alarm: Alarm | None = None
    nap: float = 0.0

    # --- what it does, of the worker ----------------------------------------------------------

    def prepare(self) -> Committed | None:
        """What has become of it, if it was committed before."""
        command = self.command
        is_known = not command.repeated  # whether it was done before
        try:
            if command.verb is Verb.COMMIT and (not command.repeated or self._has_travelled):
                self._add_deliveries(unpacked(command.body))  # else they are of a former session
            own = self.served.own()
            self._marks = marks(own)
            if command.repeated:
                own.repair()  # who was to do it may have died between its decision and its mark
                mark = self._marks.value(self._mark)
                is_known = True
                if mark is not None:
                    return Committed.of(mark.body)
                if command.verb is Verb.COMMIT and not self._has_travelled:
                    raise error_for(ENDED, "a transaction that was asked for again")
            self.transaction = own.transaction(warn=False)
            self.transaction._waits = False  # others wait for the worker
            if command.verb is Verb.COMMIT:
                for kind, name, records in unpacked(command.body):
                    if kind != "ack":
                        self._publish(kind, name, records)
            else:
                self._schedule(told(command.body))
            if self.transaction._later:
                self.decided_by = min(self.until, time.monotonic() + decision_limit(own))
        except Error as error:
            self.error = error
            if not is_known and not self.served.is_thrown_out_by(error):
                self.error = Unconfirmed(f"whether it was done before is unknown: {error}")
        return None

    @property
    def _has_travelled(self) -> bool:
        """What it acknowledges is in hand here, too."""
        return self.command.value in self.served.travelled

    @property
    def _of(self) -> Transaction:
        assert self.transaction is not None
        return self.transaction

    @property
    def _mark(self) -> str:
        if self.command.value < 1:
            raise InvalidArgument("transactions and scheduled messages are numbered from 1 on")
        return mark_of(self.served.session.id, self.command.value)

    def _add_deliveries(self, operations: Any) -> None:
        if not isinstance(operations, list):
            raise InvalidArgument("the body of a commit is no list")
        for each in operations:
            if not isinstance(each, list) or len(each) != 3:
                raise InvalidArgument("an operation of a commit is a list of three")
            if each[0] not in ("ack", "queue", "exchange"):
                raise InvalidArgument(f"a commit does not {each[0]!r:.40}")
        for _, first, count in [each for each in operations if each[0] == "ack"]:
            if not 0 < count <= TRANSACTION_OPERATIONS - len(self.deliveries):
                raise InvalidArgument(f"a commit settles up to {TRANSACTION_OPERATIONS} messages")
            self.deliveries += range(first, first + count)

    def _publish(self, kind: str, name: str, records: bytes) -> None:
        to = self._destination(kind, name)
        if isinstance(to, Exchange):
            self._note(queues_behind(self.served.own(), name))
        for message in messages_of(records):
            properties = dict(message.read())
            if isinstance(to, Exchange) and not name:  # no binding says where it goes
                self._note(self._reached(to, message.key or "", properties))
            self._of.publish(
                to, message.body, key=message.key or (None if kind == "queue" else ""),
                message_id=properties.pop(MESSAGE_ID, None), properties=properties,
                ttl=message.expires_ns / 1e9 if message.expires_ns else None,
                priority=message.priority,
            )  # fmt: skip
            self.value += 1

    def _destination(self, kind: str, name: str) -> Queue | Exchange:
        broker = self.served.own()
        if kind == "queue":
            queue = broker.queue(allowed(name))
            self.queues.append(queue)
            self._note([queue])
            return queue
        self.routes = True
        return broker.exchange(name)

    def _reached(self, exchange: Exchange, key: str, properties: Any) -> list[Queue]:
        """The queues to which it goes now."""
        reached = []
        for name in sorted(led_to(exchange, key, properties)):
            with suppress(NotFound):  # deleted since
                reached.append(self.served.own().queue(name))
        return reached

    def _note(self, reached: Iterable[Queue]) -> None:
        for each in reached:
            self.reach = self.reach.with_(each._queue)
            if is_durable(each._queue):
                if each.explain()["confirm_replicas"].value:
                    self.copied.add(each.name)

    def _schedule(self, fields: Any) -> None:
        after, at = fields.get("after"), fields.get("at")
        if after is None and at is None:
            raise InvalidArgument("a message is scheduled after some time, or at some time")
        kind = "exchange" if "exchange" in fields else "queue"
        to = self._destination(kind, named(fields, kind))
        self.queues.clear()  # room in a schedule is not waited for
        self.routes = False
        options = {name: fields[name] for name in SCHEDULING if name in fields}
        if isinstance(to, Exchange):
            key = options.setdefault("key", "")
            reached = self._reached(to, key, options.get("properties"))
            self._note(reached)
            if self.command.demand is not Demand.SHM:
                self.durable = sum(is_durable(each._queue) for each in reached)
        body = named(fields, "body", bytes)
        self._of.publish(to, body, deliver_after=after, deliver_at=at, **options)
        self.numbers = self._how_many
        if kind == "queue":
            self.numbers = partial(lib.sb_transaction_scheduled, self._of._transaction)

    def _how_many(self) -> int:
        """Queues that it goes to; if a level is asked for, those that confirm it, if any does."""
        return self.durable or len(self._of)

    # --- trying -------------------------------------------------------------------------------

    def begin(self) -> None:
        """What is acknowledged with it is the transaction's from now on."""
        try:
            if self.error is not None:
                raise self.error
            self._of._add_later()
            if self.numbers is not None:
                self.value = self.numbers()
            self._pledge()
            mark = MARK.pack(self.value, self.reach)
            self._of.publish(self._marks, mark, key=self._mark)
        except Error as error:
            if isinstance(error, GroupingTimeout) and time.monotonic() < self.decided_by:
                self.nap = longer(self.nap)
                self.alarm = self.served.service.alarms.at(time.monotonic() + self.nap, self.begin)
            else:
                self.fails(error)
        else:
            self.go_on()

    def _pledge(self) -> None:
        self.has_begun = self.served.session.begins_to_settle(self.deliveries)
        if not self.has_begun:
            raise error_for(REVOKED, "committing")
        for delivery in self.deliveries:
            for hand, start, _ in self.served.hands.stretches(delivery, 1):
                if isinstance(hand.batch, TakenBatch):
                    queue = hand.batch.queue._queue
                    message = hand.batch.at(start)
                    self._check(lib.sb_transaction_ack(self._of._transaction, queue, message))
                    self.reach = self.reach.with_(queue)
            self.pledged += 1

    def _check(self, code: int) -> None:
        if code < OK:
            raise self._of._error(code, "committing")

    def go_on(self) -> None:
        self._forget()
        code = lib.sb_transaction_commit(self._of._transaction, 0)
        if code == OK:
            self._settled()
            self.served.commits.discard(self)
            done = Committed(self.value, self.reach, self.copied)
            done.answer(self.served, self.command, self.until)
        elif code == UNFINISHED:
            self._wait_for_room(time.monotonic() + AGAIN_SECONDS)
        elif code == FULL and self._may_wait:
            self._wait_for_room(self._next_try())
        else:
            self.fails(self._of._error(code, "committing"))

    @property
    def _may_wait(self) -> bool:
        """For room."""
        may = (self.queues or self.routes) and not self._of._is_refused
        return bool(may) and self.until > time.monotonic()

    def _next_try(self) -> float:
        """If no bell rings."""
        if not self.routes:
            return self.until
        self.nap = longer(self.nap)
        return min(self.until, time.monotonic() + self.nap)

    def _wait_for_room(self, until: float) -> None:
        service = self.served.service
        for queue in {id(each): each for each in self.queues}.values():
            ticket = service.sleeper.watch(queue._queue, ROOM, ANY, self._rung)
            self.tickets.append((ticket, queue))
        self.alarm = service.alarms.at(until, self.go_on)

    def _rung(self) -> None:
        """One of its queues has room for one message: more may be wanted, and of others."""
        self._forget()
        self.nap = longer(self.nap)
        self.alarm = self.served.service.alarms.at(time.monotonic() + self.nap, self.go_on)

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
        served, session = self.served, self.served.session
        served.commits.discard(self)
        if self.transaction is not None:
            with suppress(Error):  # its connection was closed, which has given everything back
                self.transaction.rollback()
        rest = self.deliveries[self.pledged :]
        del self.deliveries[self.pledged :]
        self._settled()
        served.service.does(session, session.withdraws(rest, has_begun=self.has_begun))
        served.refuse(self.command, error)

    def _settled(self) -> None:
        served = self.served
        for delivery in self.deliveries:
            for hand, _, count in list(served.hands.stretches(delivery, 1)):
                served.hands.dealt_with(hand, count)
        served.session.has_settled(self.deliveries)

    def close(self) -> None:
        """Its session is over."""
        self._forget()
        if self.transaction is not None:
            lib.sb_transaction_rollback(self.transaction._transaction)
