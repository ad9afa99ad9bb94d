"""Transactions of programs on other hosts that go from a broker that leaves to its successor.

What is acknowledged in them goes into queues of the broker's own first, one for each queue of a
transaction, which move like all others and from which nobody consumes; so the successor has it for
nobody else.  `$held` says there which transactions are whole.  Whoever comes and asks for its own
has it in hand again; what nobody has asked for within the ttl of sessions goes to its queue.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import msgpack

from shmbroker.core.codes import EMPTY, INTERRUPTED, OK
from shmbroker.core.layout import MARK_PRIORITY_MASK, MARK_PRIORITY_SHIFT, NAME_BYTES_MAX
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import Error, InvalidArgument, NotFound
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.instance.leaving import HELD, delete_own
from shmbroker.ipc.message.message import expiry_of
from shmbroker.ipc.queue.moving import pass_over
from shmbroker.ipc.queue.queue import Queue
from shmbroker.netbridge.carrier.reached import serving
from shmbroker.netbridge.remote.body import asked, told
from shmbroker.netbridge.serving.hands import TakenBatch
from shmbroker.netbridge.wire.frame import ID_BYTES, Command, Parting
from shmbroker.netbridge.wire.malformed import Malformed
from shmbroker.netbridge.wire.vocabulary import COUNT
from shmbroker.netbridge.wire.words import Role

if TYPE_CHECKING:
    from shmbroker.netbridge.serving.served import Served
    from shmbroker.netbridge.serving.service import Service

WHOLE: Final = "$held"
"""By session and transaction, its deliveries by queue, of those of which all is here."""
WHOLE_KEPT: Final = 7 * 86400.0
KEPT_SECONDS: Final = 86400.0
"""An empty queue of these is deleted when nothing has come for so long."""
ANSWER_SECONDS: Final = 1.0
"""So long programs are waited for that are asked."""
TOGETHER: Final = 250
"""Messages of a commit, two operations each."""
CONFIRMED_NS: Final = 5_000_000_000
LOOKS_OF_TTL: Final = 8
LOOK_SECONDS_MAX: Final = 5.0
Open = dict[int, list[int]]
"""By transaction, the deliveries that are acknowledged with it."""
Row = dict[str, Any]
TWICE: Final = (
    "transactions are asked for before anything is delivered, and each delivery in one of them: "
    "one number would be that of two messages"
)
OF: Final = "held"
"""The key of the session in a row of one of its transactions."""
ROW_BYTES_MAX: Final = 16 << 10
"""So many queues may be in a transaction as have room in its row."""


# --- names and rows -------------------------------------------------------------------------------


def name_of(session: bytes, transaction: int, queue: str) -> str:
    """InvalidArgument: it is too long."""
    name = f"{HELD}{_key(session, transaction)}.{queue}"
    if len(name.encode()) > NAME_BYTES_MAX:
        raise InvalidArgument(f"what is held of queue {queue!r} has no name: its own is too long")
    return name


def queue_of(name: str) -> str:
    """That the messages are from."""
    return _words(name)[-1]


def _words(name: str) -> list[str]:
    """`$held`, the session, the transaction, the queue."""
    return name.split(".", 3)


def _key(session: bytes, transaction: int) -> str:
    return f"{session.hex()}.{transaction}"


def opened(broker: Broker, name: str) -> Queue:
    return broker.declare_queue(
        name, slots=1024, durable=True, replicate="all", max_deliveries=None, auto_delete=True,
        auto_delete_delay=KEPT_SECONDS,
    )  # fmt: skip


def remember(broker: Broker, row: Row) -> None:
    """This transaction is whole here.  Error, KeyError: it is no row."""
    session, number, queues = row[OF], row["number"], row["queues"]
    is_named = isinstance(session, bytes) and len(session) == ID_BYTES and isinstance(number, int)
    if not is_named or not _are_deliveries(queues):
        raise InvalidArgument("this is no transaction with its deliveries")
    whole = broker.declare_queue(
        WHOLE, slots=4096, durable=True, last_value=True, ttl=WHOLE_KEPT, when_full="drop-oldest",
        replicate="all",
    )  # fmt: skip
    whole.publish(msgpack.packb(queues), key=_key(session, number), confirm="shm")


def _are_deliveries(queues: object) -> bool:
    """By queue."""
    return isinstance(queues, dict) and all(
        isinstance(name, str)
        and isinstance(of, list)
        and all(isinstance(each, int) for each in of)
        for name, of in queues.items()
    )


def _said(fields: Mapping[str, Any]) -> Open:
    """InvalidArgument."""
    try:
        given = {number: list(of) for number, of in fields["open"]}
        return {COUNT.read(number): list(map(COUNT.read, of)) for number, of in given.items()}
    except (TypeError, ValueError, KeyError, Malformed):
        raise InvalidArgument("these are no transactions with their deliveries") from None


# --- at the broker that leaves --------------------------------------------------------------------


@dataclass(slots=True)
class _Goes:
    """What a transaction has in hand, and nobody settles any more."""

    served: Served
    number: int
    deliveries: list[int]
    left: list[tuple[int, TakenBatch, int]] = field(default_factory=list)
    """Where in which batch each is."""


class Leaving:
    """Of a thread that is neither that of the network nor the worker."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._awaited: set[Served] = set()
        self._news = threading.Condition()

    def hand_over(self) -> list[Row]:
        """Ask the programs, and put aside what is acknowledged in their transactions: the rows of
        those that are whole.  Nothing that programs say is heard any more."""
        service = self._service
        service.ask(self._ask)
        with self._news:
            self._news.wait_for(lambda: not self._awaited, ANSWER_SECONDS)
        rows = []
        for goes in service.ask(self._begins):
            with suppress(Error):  # its program is told that it was rolled back
                rows.append(self._moves(goes))
        return rows

    def _ask(self) -> None:
        for session in self._service.sessions:
            end, served = self._service.end_of(session), self._service.served_of(session)
            if end is not None and served is not None and served.role is Role.CLIENT:
                self._awaited.add(served)
                end.say(Parting())

    def answered(self, served: Served) -> None:
        with self._news:
            self._awaited.discard(served)
            self._news.notify_all()

    def _begins(self) -> list[_Goes]:
        self._service.is_deaf = True
        return [
            _Goes(served, number, deliveries)
            for served in map(self._service.served_of, self._service.sessions)
            if served is not None
            for number, deliveries in served.open.items()
            if served.session.begins_to_settle(deliveries)
        ]

    def _moves(self, goes: _Goes) -> Row:
        """In this thread; the one of the network has left them alone from `_begins` on."""
        served = goes.served
        queues: dict[str, list[int]] = {}
        for each in sorted(goes.deliveries):
            for hand, start, _ in served.hands.stretches(each, 1):
                if isinstance(hand.batch, TakenBatch):  # else it is a copy
                    goes.left.append((each, hand.batch, start))
                    queues.setdefault(hand.batch.source, []).append(each)
        row = {OF: served.session.id, "number": goes.number, "queues": queues}
        if len(msgpack.packb(row)) > ROW_BYTES_MAX:
            raise InvalidArgument("a transaction of too many queues does not travel")
        held = {each: name_of(served.session.id, goes.number, each) for each in queues}
        into = {each: opened(served.own(), name) for each, name in held.items()}
        for at in range(0, len(goes.left), TOGETHER):
            self._move(served, goes.left[at : at + TOGETHER], into)
        return row

    def _move(
        self, served: Served, some: list[tuple[int, TakenBatch, int]], into: Mapping[str, Queue]
    ) -> None:
        transaction = served.own().transaction(warn=False)
        for _, batch, at in some:
            queue, message = into[batch.source], batch.at(at)
            if batch.queue.name == queue.name:  # it has come with a broker that has left before
                lib.sb_give_back(batch.queue._queue, message)
                continue
            copy, _kept = _copy(message)
            code = lib.sb_transaction_publish(transaction._transaction, queue._queue, copy)
            if code == OK:
                taken = batch.queue._queue
                code = lib.sb_transaction_ack(transaction._transaction, taken, message)
            transaction._check(code, f"putting aside what is acknowledged of {batch.source!r}")
        transaction.commit(timeout=0, confirm="shm")


def _copy(message: Any) -> tuple[Any, Any]:
    """To be published, with what it must not outlive."""
    made, key, properties = ffi.new("sb_outgoing *"), ffi.new("int64_t *"), ffi.new("int64_t *")
    made.body, made.length = message.body, message.length
    made.key = lib.sb_message_key(message, key)
    made.properties = lib.sb_message_properties(message, properties)
    made.key_length, made.properties_length = key[0], properties[0]
    made.priority = (message.mark >> MARK_PRIORITY_SHIFT) & MARK_PRIORITY_MASK
    made.deliveries = 1
    if (expiry := expiry_of(message)) > 0:
        made.ttl_ns = max(1, expiry - time.monotonic_ns())
    return made, message


# --- at its successor -----------------------------------------------------------------------------


class HeldBatch(TakenBatch):
    """What is not acknowledged goes to its queue."""

    def __init__(self, queue: Queue, messages: Any, goes_back: Callable[[], None]) -> None:
        super().__init__(queue, messages)
        self._goes_back = goes_back

    @property
    def source(self) -> str:
        return queue_of(self.queue.name)

    def give_back(self, start: int, count: int) -> int:
        ours = super().give_back(start, count)
        self._goes_back()
        return ours


Claimed = list[tuple[int, HeldBatch]]
"""Deliveries, and where each is."""


class Arriving:
    """Of the worker, but for what says otherwise."""

    def __init__(self, service: Service, ttl: float) -> None:
        """Of the network thread."""
        self._service, self._ttl = service, ttl
        self._came: dict[str, float] = {}
        """When a queue was seen first."""
        self._claimed: set[str] = set()
        self._is_looking = False
        self.look()

    def look(self) -> None:
        """Whether there is anything that nobody asks for; and again, while there is.  Of the
        network thread."""
        if not self._is_looking:
            self._is_looking = True
            self._look()

    def _look(self) -> None:
        if self._service.is_deaf:  # what is given back travels on
            self._is_looking = False
        else:
            self._service.worker.do(self._releases, self._again)

    def _again(self, is_some: bool | Exception) -> None:
        self._is_looking = is_some is not False and not self._service.is_deaf
        if self._is_looking:
            soon = min(self._ttl / LOOKS_OF_TTL, LOOK_SECONDS_MAX)
            self._service.alarms.at(time.monotonic() + soon, self._look)

    def _releases(self) -> bool:
        broker, now = self._service.broker, time.monotonic()
        names = [each for each in broker._catalog.queue_names().values() if each.startswith(HELD)]
        self._came = {each: self._came.get(each, now) for each in names}
        for each, came in self._came.items():
            is_due = each in self._claimed or now >= came + self._ttl
            if is_due and not self._service.is_deaf:
                with suppress(Error):  # it is full, or we were too slow
                    self._release(each)
        return bool(names)

    def _release(self, name: str) -> None:
        """What nobody has in hand."""
        broker = self._service.broker
        held = serving(broker, name)
        if not len(held):
            _, session, number, _ = _words(name)
            if self._whole(f"{session}.{number}"):
                self._claimed.discard(name)  # all that was to come has come
                delete_own(broker, name)
            return
        try:
            to = serving(broker, queue_of(name))
        except NotFound:  # with its messages
            delete_own(broker, name)
        else:
            pass_over(held, to, None, None, 0, copies=False, flags=True)

    def claim(self, served: Served, wanted: Open) -> tuple[list[int], Claimed]:
        """Which transactions are whole here, and all that they have in hand."""
        numbers: list[int] = []
        found: Claimed = []
        ours = f"{HELD}{served.session.id.hex()}."
        names = self._service.broker._catalog.queue_names().values()
        self._claimed |= {each for each in names if each.startswith(ours)}
        for number, deliveries in wanted.items():
            queues = self._whole(_key(served.session.id, number))
            if queues is None or sorted(chain(*queues.values())) != sorted(deliveries):
                continue
            taken = self._take_all(served, number, queues)
            if taken is not None:
                numbers.append(number)
                served.travelled.add(number)
                found += taken
        return numbers, sorted(found, key=lambda each: each[0])

    def _whole(self, key: str) -> dict[str, list[int]] | None:
        """None: it is not, or was."""
        with suppress(NotFound):
            value = serving(self._service.broker, WHOLE).value(key)
            if value is not None:
                found: dict[str, list[int]] = msgpack.unpackb(value.body)
                return found
        return None

    def _take_all(
        self, served: Served, number: int, queues: Mapping[str, list[int]]
    ) -> Claimed | None:
        """None: something is not here."""
        found: Claimed = []
        with suppress(NotFound):  # what was there was released
            for each, deliveries in queues.items():
                queue = served.own().queue(name_of(served.session.id, number, each))
                messages = ffi.new("sb_message[]", len(deliveries))
                for place in range(_taken(queue, messages, len(deliveries))):
                    batch = HeldBatch(queue, messages + place, self._soon)
                    found.append((deliveries[place], batch))
        if len(found) == sum(map(len, queues.values())):
            return found
        for _, batch in found:
            batch.give_back(0, 1)
        return None

    def _soon(self) -> None:
        self._service.soon(self.look)


def _taken(queue: Queue, messages: Any, wanted: int) -> int:
    """What has just come may be on its way to the disk."""
    count, late = 0, time.monotonic_ns() + CONFIRMED_NS
    while count < wanted and (left := late - time.monotonic_ns()) > 0:
        code = lib.sb_get_many(queue._queue, messages + count, wanted - count, left)
        if code not in (EMPTY, INTERRUPTED) and code < OK:
            raise queue._error(code, "taking from")
        count += max(0, code)
    return count


# --- what programs say ----------------------------------------------------------------------------


def transactions(served: Served, command: Command) -> None:
    """What is acknowledged in those that are open; repeated, in a session made again."""
    said = _said(told(command.body))
    if not command.repeated:
        served.open = said
        served.done(command)
        served.service.leaving.answered(served)
        return
    deliveries = list(chain(*said.values()))
    if served.session.next_delivery or len(set(deliveries)) < len(deliveries):
        raise InvalidArgument(TWICE)
    served.session.counts_behind(max(deliveries, default=-1))

    def came(made: tuple[list[int], Claimed]) -> None:
        numbers, found = made
        for delivery, batch in found:
            served.hands.add(delivery, 1, batch)
        served.session.has_in_hand([each for each, _ in found])
        served.done(command, body=asked(whole=numbers))
        served.service.arriving.look()

    served.in_worker(command, partial(served.service.arriving.claim, served, said), came)
