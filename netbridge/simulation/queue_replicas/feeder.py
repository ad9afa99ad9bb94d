"""The side of originals on one link, as netbridge/queue_replicated/feeding.py has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.queue_replica.codec import encode, from_replica
from shmbroker.netbridge.queue_replica.original import begins_at
from shmbroker.netbridge.queue_replica.told import (
    CHAIN_MAX,
    Chained,
    Counted,
    Follow,
    Follows,
    Has,
    Leave,
    Moment,
    OfOriginal,
    Shown,
    Unserved,
    Why,
)
from shmbroker.netbridge.queue_replica.unshown import Unshown
from shmbroker.netbridge.simulation.queue_replicas.copy import Record, Stands
from shmbroker.netbridge.simulation.queue_replicas.queue import Queue
from shmbroker.netbridge.simulation.queue_replicas.reading import Reading
from shmbroker.netbridge.wire.frame import Body

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.queue_replicas.broker import Broker

WINDOW: Final = 16
"""Records that the other end has not said that it has."""
PAUSE_SECONDS: Final = 0.01
IDLE_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class OfReplicas:
    """What a replica says."""

    said: bytes


@dataclass(frozen=True, slots=True)
class OfOriginals:
    """What an original says; with a moment, which version of each queue it is."""

    said: bytes
    versions: dict[int, int]


@dataclass(frozen=True, slots=True)
class Shipped:
    records: list[Record | Stands]


class Feeder:
    def __init__(self, broker: Broker, other: str) -> None:
        self._broker, self._other = broker, other
        self._reading = Reading(broker.memory)
        self._queues: dict[int, Queue] = {}
        self._sent = self._has = 0
        self._unshown = Unshown()
        self._pause = PAUSE_SECONDS
        self._is_closed = self._is_awake = False

    def numbers(self, names: tuple[str, ...]) -> set[int]:
        """Of these queues that are fed."""
        return {number for number, queue in self._queues.items() if queue.name in names}

    # --- what the other end says --------------------------------------------------------------

    def heard(self, body: Body) -> None:
        said = from_replica(body)
        if isinstance(said, Follow):
            self._follow(said)
        elif isinstance(said, Leave):
            self._drop(said.number)
        elif isinstance(said, Has):
            self._has = said.bytes
            self._wake(0.0)
            self._answered()
        elif isinstance(said, Shown):
            self._shown(said.moments)
            self._answered()

    def _follow(self, wish: Follow) -> None:
        self._drop(wish.number)
        queue = self._broker.memory.queues.get(wish.queue)
        chain = self._broker.chain(wish.queue)
        if not self._broker.is_on:
            self._say(Unserved(wish.number, Why.OFF, "off"))
        elif queue is None:
            self._say(Unserved(wish.number, Why.MISSING, "there is none"))
        elif len(chain) > CHAIN_MAX:
            self._say(Unserved(wish.number, Why.UNFIT, "the end of a chain"))
        else:
            self._begin(queue, wish)

    def _begin(self, queue: Queue, wish: Follow) -> None:
        tail = self._broker.memory.end(queue)
        begins = begins_at(wish, queue.identity, queue.head, tail)
        self._broker.watch.begins(self._broker, self._other, queue, wish, begins)
        self._reading.add(queue, wish.number, begins)
        self._queues[wish.number] = queue
        self._unshown.follow(wish.number, queue.identity if queue.is_durable else None)
        if queue.is_durable:
            self._broker.confirming.follow(self._key, queue)
        chain = self._broker.chain(queue.name)
        self._say(
            Follows(wish.number, queue.identity, begins, queue.slots, 0, chain, queue.is_durable)
        )
        self._wake(0.0)

    def chained(self, name: str) -> None:
        chain = self._broker.chain(name)[:CHAIN_MAX]
        for number, queue in self._queues.items():
            if queue.name == name:
                self._say(Chained(number, chain))

    def _drop(self, number: int) -> None:
        if self._queues.pop(number, None) is None:
            return
        self._reading.drop(number)
        if (identity := self._unshown.drop(number)) is not None:
            self._broker.confirming.gone(self._key, identity)

    # --- reading ------------------------------------------------------------------------------

    def _wake(self, seconds: float) -> None:
        if not self._is_awake:
            self._is_awake = True
            self._broker.host.later(seconds, self._woken)

    def _woken(self) -> None:
        self._is_awake = False
        if self._is_closed or not self._queues:
            return
        self._look_for_deleted()
        is_idle = self._reads()
        if self._sent - self._has >= WINDOW:
            return  # until it says that it has some
        self._pause = min(2 * self._pause, IDLE_SECONDS) if is_idle else PAUSE_SECONDS
        self._wake(self._broker.host.world.between(0.0, self._pause))

    def _reads(self) -> bool:
        """Whether there is nothing left."""
        batch = self._reading.read(self._broker.room)
        if batch is None:
            return True
        self._sent += len(batch.records)
        self._broker.say(self._other, Shipped(batch.records))
        self._broker.confirming.sent(self._key, self._awaited)
        if not batch.more:
            self._end_moment(is_whole=batch.whole)
        return not batch.more

    def _end_moment(self, *, is_whole: bool) -> None:
        originals = self._reading.originals
        versions = {number: each.version for number, each in originals.items()}
        self._broker.say(self._other, OfOriginals(encode(Moment(is_whole)), versions))
        if is_whole:
            numbers = self._unshown.numbers & originals.keys()
            self._unshown.sent({each: originals[each].seen.end for each in numbers})

    def _look_for_deleted(self) -> None:
        for number, queue in list(self._queues.items()):
            if self._broker.memory.queues.get(queue.name) is not queue:
                self._drop(number)
                self._say(Unserved(number, Why.MISSING, "it was deleted"))

    # --- who waits for them -------------------------------------------------------------------

    @property
    def _key(self) -> tuple[str, int]:
        return self._other, id(self)

    @property
    def _awaited(self) -> set[bytes]:
        return self._unshown.identities

    def _shown(self, moments: int) -> None:
        for identity, end in self._unshown.shown(moments):
            self._broker.confirming.shown(self._key, identity, end)
        for number in self._unshown.counted(moments):
            self._say_counted(number)

    def _say_counted(self, number: int) -> None:
        """What it draws for its way is drawn again by others: all seeds stay what they were."""
        random = self._broker.host.world.random
        before = random.getstate()
        self._say(Counted(number))
        random.setstate(before)

    def _answered(self) -> None:
        owes = bool(self._unshown) or self._sent > self._has
        self._broker.confirming.answered(self._key, self._awaited, owes=owes)

    def _say(self, what: OfOriginal) -> None:
        self._broker.say(self._other, OfOriginals(encode(what), {}))

    def close(self) -> None:
        for number in list(self._queues):
            self._drop(number)
        self._is_closed = True
