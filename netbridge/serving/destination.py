"""Where a producer's messages go: a queue, or an exchange and the queues behind it."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Protocol

from shmbroker.core.codes import INVALID
from shmbroker.core.layout import (
    CONFIRM_EFFECTIVE,
    CONFIRM_REPLICATED,
    CONFIRM_SHM,
    SHAPE_BODY_SHIFT,
)
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import InvalidArgument, NotFound
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.exchange.exchange import Exchange
from shmbroker.ipc.exchange.publication import Publication
from shmbroker.ipc.journal.stored import stored
from shmbroker.ipc.message.confirm import level_name
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.message.properties import Packed
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.sink.sink import ORIGIN_BYTES, Poured, Sink
from shmbroker.netbridge.carrier.reached import everything_in, is_durable, serving
from shmbroker.netbridge.serving.confirms import Hearer, Waits, wait_for_all
from shmbroker.netbridge.serving.naming import allowed
from shmbroker.netbridge.wire.frame import Body


def origin_of(session: bytes, producer: int) -> bytes:
    """Of a producer without one of its own: in all generations of its session the same."""
    return blake2b(b"%b %d" % (session, producer), digest_size=ORIGIN_BYTES).digest()


def messages_of(records: Body) -> Iterator[CopiedMessage]:
    """InvalidArgument: one of them is no message."""
    for each in stored(memoryview(records)):
        length = int.from_bytes(each.body[:8], "little") >> SHAPE_BODY_SHIFT
        try:
            message = CopiedMessage.of(each.position, 0, length, each.body)
        except struct.error as error:
            raise InvalidArgument(f"a record is no message: {error}") from error
        yield message


def led_to(exchange: Exchange, key: str, properties: Any) -> set[str]:
    """The names of the queues to which it leads such a message now."""
    route = Publication(exchange, b"", key=key, properties=properties).routed()
    return {ffi.string(lib.sb_queue_name(queue)).decode() for queue in route}


class Destination(Protocol):
    """Of one thread at a time."""

    may_confirm: bool
    """A level above `shm` may be asked for."""
    tells_how_many: bool
    """Queues have a message, and not where it is in one."""

    @property
    def full(self) -> Any:
        """The queue, as C knows it, that has no room."""

    def position(self) -> int: ...

    def pour(self, records: memoryview) -> Poured: ...

    def give_up(self, first: int, count: int) -> None: ...

    def pass_over(self, number: int) -> None:
        """It is known from now on, without a message."""

    def check(self, level: int) -> None:
        """InvalidArgument: it never has this level."""

    def confirming(self, level: int, records: Body) -> list[Queue]:
        """The durable queues that have what was published: there is nothing else to wait for."""

    def confirm(self, queues: list[Queue], position: int, level: int, told: Hearer) -> None: ...

    def close(self, *, forgets: bool) -> None: ...


class _Stream:
    """The numbers of a producer, at a sink."""

    def __init__(self, sink: Sink, opens: Callable[[Sink], object]) -> None:
        self._sink = sink
        try:
            opens(sink)
        except BaseException:
            sink.close()
            raise

    def position(self) -> int:
        return self._sink.position()

    def begin(self, floor: int) -> int:
        """All numbers below are decided: the highest that is known."""
        if floor > 1:
            self._sink.give_up(0, floor - 1)
        return self.position()

    def pour(self, records: memoryview) -> Poured:
        return self._sink.pour(records, later=time.monotonic_ns())

    def give_up(self, first: int, count: int) -> None:
        self._sink.give_up(first - 1, first - 1 + count)

    def close(self, *, forgets: bool) -> None:
        self._sink.close(forgets=forgets)


class ToQueue(_Stream):
    tells_how_many = False

    def __init__(
        self, broker: Broker, shared: Broker, name: str, origin: bytes, waits: Waits
    ) -> None:
        """`shared`: the connection by which confirms are waited for."""
        self._queue = broker.queue(allowed(name))
        self._waits = waits
        self.may_confirm = is_durable(self._queue._queue)
        self._waited_for = serving(shared, name) if self.may_confirm else self._queue
        sink = Sink(broker, origin, checks=True, counts=True, stops_at_refused=True)
        super().__init__(sink, lambda sink: sink.to_queue(self._queue))
        self.full = self._queue._queue

    def __str__(self) -> str:
        return f"queue {self._queue.name!r}"

    def pass_over(self, number: int) -> None:
        self._sink.give_up(number - 1, number)

    def check(self, level: int) -> None:
        if level > CONFIRM_SHM and not self.may_confirm:
            raise InvalidArgument(f"{self} is not durable: it cannot confirm {level_name(level)!r}")
        if level > CONFIRM_SHM and level & CONFIRM_REPLICATED:
            handle = self._waited_for._queue
            code = lib.sb_confirm(handle, 0, level, 0)
            if code == INVALID:  # what is replicated of it is no message
                raise self._waited_for._error(code, "confirming what is published to")

    def confirming(self, level: int, records: Body) -> list[Queue]:
        return [self._waited_for] if self.may_confirm else []

    def confirm(self, queues: list[Queue], position: int, level: int, told: Hearer) -> None:
        """-1: it was published before; where is not known, but below what is there now."""
        handle = self._waited_for._queue
        places = [(handle, position)] if position >= 0 else everything_in(handle)
        wait_for_all(self._waits, places, level, told)


class ToExchange(_Stream):
    tells_how_many = True

    def __init__(
        self, broker: Broker, shared: Broker, name: str, origin: bytes, waits: Waits
    ) -> None:
        self._broker, self._shared, self._waits = broker, shared, waits
        self._exchange: Exchange = broker.exchange(name)
        self.may_confirm = True
        sink = Sink(broker, origin, checks=True, counts=True)
        super().__init__(sink, lambda sink: sink.to_exchange(self._exchange))

    def __str__(self) -> str:
        return f"exchange {self._exchange.name!r}"

    @property
    def full(self) -> Any:
        return self._sink.full

    def pass_over(self, number: int) -> None:
        """Each of its queues does so by itself."""

    def check(self, level: int) -> None:
        """What its queues are is known when it has reached them."""

    def confirming(self, level: int, records: Body) -> list[Queue]:
        names = set[str]()
        for each in messages_of(records) if level != CONFIRM_EFFECTIVE else ():
            # as they came: it is published, whether they can be read or not
            properties: Any = Packed(each.unreadable) if each.unreadable else each.properties
            names |= led_to(self._exchange, each.key or "", properties)
        queues = []
        for name in sorted(names):
            with suppress(NotFound):  # deleted since
                queues.append(serving(self._shared, name))
        return [each for each in queues if is_durable(each._queue)]

    def confirm(self, queues: list[Queue], position: int, level: int, told: Hearer) -> None:
        """All that they have now: it is among that."""
        places = everything_in(*(each._queue for each in queues))
        wait_for_all(self._waits, places, level, told)
