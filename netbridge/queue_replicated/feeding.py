"""The side of originals: each broker that follows queues of this one has a link here.

Queues are read without gates, so nothing waits for who follows: whoever is slow finds less to copy.
How much is on the way is bounded, and so is how often it is looked: that takes a fifth of a
processor at most.  What is done with is looked for a hundred times a second while there is
something, and ten times when there is not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from shmbroker.ipc.base.errors import Error, NotFound
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.queue_replica.original import Originals, Stands
from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.carrier.sleeper import ANY
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.queue_replica.codec import encode, from_replica
from shmbroker.netbridge.queue_replica.original import begins_at
from shmbroker.netbridge.queue_replica.told import (
    CHAIN_MAX,
    Chain,
    Chained,
    Counted,
    Follow,
    Follows,
    Has,
    Hop,
    Leave,
    Moment,
    OfOriginal,
    Shown,
    Unserved,
    Why,
)
from shmbroker.netbridge.queue_replica.unshown import Unshown
from shmbroker.netbridge.queue_replicated.confirming import Confirming
from shmbroker.netbridge.wire.frame import ID_BYTES, Frame, Shipment, Talk
from shmbroker.netbridge.wire.malformed import Malformed

WINDOW_BYTES: Final = 8 << 20
"""That the other end has not said that it has."""
READS_MAX: Final = 4
"""In a turn of the thread."""
PAUSE_SECONDS: Final = 0.01
IDLE_SECONDS: Final = 0.1
SHARE: Final = 4
"""So many times as long as it has taken nothing is read."""
MANY_BYTES: Final = 256 << 10
"""If so much was sent it was copying that took the time, and there is more."""
HEAD_ROOM: Final = 1024
NEVER: Final = math.inf


def apart_ns() -> int:
    """The time of day, less the monotonic time of this host."""
    return time.time_ns() - time.monotonic_ns()


class Feedings:
    """All links of those who follow.  All of it is of the network thread."""

    def __init__(
        self, thread: NetworkThread, name: str, confirming: Confirming, *, is_on: bool
    ) -> None:
        """`name`: of this broker; `is_on`: whether others may follow its queues."""
        self.thread, self.name, self.is_on = thread, name, is_on
        self.confirming = confirming
        self.node = bytes(ID_BYTES)
        self.chain_of: Callable[[str], Chain] = lambda _: ()
        """What a queue of this broker follows itself, and so on."""
        self._feedings: dict[End, Feeding] = {}

    def came(self, end: End) -> None:
        if self not in self.thread.members:
            self.thread.members.append(self)
        self._feedings[end] = Feeding(self, end)

    def heard(self, end: End, frame: Frame) -> None:
        feeding = self._feedings.get(end)
        if feeding is None:
            return
        try:
            feeding.heard(frame)
        except Error as error:  # of this link only
            end.does(end.machine.malformed(Malformed(str(error)), time.monotonic()))

    def gone(self, end: End) -> None:
        feeding = self._feedings.pop(end, None)
        if feeding is not None:
            feeding.close()

    @property
    def due(self) -> float:
        feedings = min((each.due for each in self._feedings.values()), default=NEVER)
        return min(feedings, self.confirming.due)

    def woken(self, now: float) -> None:
        self.confirming.woken(now)
        for end, each in list(self._feedings.items()):
            if each.due > now:
                continue
            try:
                each.woken(now)
            except Error as error:  # of this link only
                each.close()
                end.does(end.machine.malformed(Malformed(str(error)), time.monotonic()))

    def chained(self, name: str) -> None:
        """A queue follows something else than before."""
        for each in list(self._feedings.values()):  # a link may be lost in what it says
            each.chained(name)

    def shown(self) -> None:
        """Queues that follow others have news."""
        for each in self._feedings.values():
            each.shown()

    def chain(self, name: str) -> Chain:
        """As those are told that follow this queue."""
        return (Hop(self.node, self.name), *self.chain_of(name))

    def end(self) -> None:
        for each in self._feedings.values():
            each.close()
        self._feedings.clear()


class Feeding:
    def __init__(self, all_: Feedings, link: End) -> None:
        self._all, self._link = all_, link
        self._originals: Originals | None = None
        self._queues: dict[int, Queue] = {}
        self._watched: dict[int, tuple[int, int]] = {}
        """By number, the ticket and the position."""
        self._sent = self._has = 0
        self._unshown = Unshown()
        self._pause = PAUSE_SECONDS
        self._looked_at = 0.0
        self.due = NEVER

    # --- what the other end says --------------------------------------------------------------

    def heard(self, frame: Frame) -> None:
        if not isinstance(frame, Talk):
            raise Malformed(f"a replica says no {type(frame).__name__.lower()}")
        said = from_replica(frame.body)
        if isinstance(said, Follow):
            self._follow(said)
        elif isinstance(said, Leave):
            self._drop(said.number)
        elif isinstance(said, Has):
            if not self._has <= said.bytes <= self._sent:
                raise Malformed(f"a replica has {said.bytes} bytes of {self._sent}")
            self._has = said.bytes
            self.due = 0.0
            self._answered()
        elif isinstance(said, Shown):
            self._shown(said.moments)
            self._answered()

    def _follow(self, said: Follow) -> None:
        self._drop(said.number)
        if any(each.name == said.queue for each in self._queues.values()):
            raise Malformed(f"a replica follows queue {said.queue!r} under two numbers")
        if not self._all.is_on:
            why = f"ha.queue-replication is false on {self._all.name}"
            self._say(Unserved(said.number, Why.OFF, why))
            return
        try:
            queue = self._found(said.queue)
            unfit = self._unfit(queue)
            if unfit:
                self._say(Unserved(said.number, Why.UNFIT, unfit))
            else:
                self._begin(queue, said)
        except NotFound as error:
            self._say(Unserved(said.number, Why.MISSING, str(error)[:500]))
        except Error as error:
            self._say(Unserved(said.number, Why.UNFIT, str(error)[:500]))

    def _found(self, name: str) -> Queue:
        """Asking for it does not make it."""
        broker = self._all.thread.broker
        if name not in broker._catalog.queue_names().values():
            raise NotFound(f"there is no queue {name!r} on {self._all.name}")
        return broker.queue(name)

    def _unfit(self, queue: Queue) -> str:
        if len(self._all.chain(queue.name)) > CHAIN_MAX:
            return f"queue {queue.name!r} is the end of a chain of {CHAIN_MAX} replicas already"
        if queue.explain()["when_full"].value == "page":
            return f"queue {queue.name!r} of {self._all.name} pages, and pages are not replicated"
        return ""

    def _begin(self, queue: Queue, said: Follow) -> None:
        if self._originals is None:
            self._originals = Originals(self._all.thread.broker)
        self._originals.add(queue, said.number, 0)
        stands = self._originals.stands(said.number)
        begins = begins_at(said, stands.identity, stands.head, stands.tail)
        self._originals.add(queue, said.number, begins)
        self._queues[said.number] = queue
        settings = queue.explain()
        wanted = settings["confirm_replicas"].value
        self._unshown.follow(said.number, stands.identity if wanted else None)
        if wanted:
            self._all.confirming.follow(self._link, stands.identity, queue, wanted)
        chain = self._all.chain(queue.name)
        is_durable = bool(settings["durable"].value)
        self._say(
            Follows(
                said.number, stands.identity, begins, stands.slots, apart_ns(), chain, is_durable
            )
        )
        self.due = 0.0

    def chained(self, name: str) -> None:
        chain = self._all.chain(name)[:CHAIN_MAX]
        for number, queue in list(self._queues.items()):
            if queue.name == name:
                self._say(Chained(number, chain))

    def shown(self) -> None:
        if any(self._all.chain_of(each.name) for each in self._queues.values()):
            self.due = 0.0

    def _drop(self, number: int) -> None:
        queue = self._queues.pop(number, None)
        if queue is None or self._originals is None:
            return
        self._forget(number, queue)
        self._originals.drop(number)
        if (identity := self._unshown.drop(number)) is not None:
            self._all.confirming.gone(self._link, identity)

    # --- reading ------------------------------------------------------------------------------

    def woken(self, now: float) -> None:
        self.due = NEVER
        if self._originals is None or not self._queues:
            return
        if now - self._looked_at >= IDLE_SECONDS:
            self._looked_at = now
            self._look_for_deleted()
            if self._originals is None:
                return  # the link was lost in saying something
        begun, before = time.monotonic(), self._sent
        is_idle = self._read(self._originals)
        if self._originals is None:
            return
        if self._sent - self._has >= WINDOW_BYTES:
            return  # until it says that it has some
        took = time.monotonic() - begun
        self._pause = min(2 * self._pause, IDLE_SECONDS) if is_idle else PAUSE_SECONDS
        looks = SHARE * took if self._sent - before < MANY_BYTES else 0.0
        self.due = begun + took + max(looks, self._pause if is_idle else 0.0)
        if is_idle:
            self._watch(self._originals)

    def _read(self, originals: Originals) -> bool:
        """Whether there is nothing left."""
        for _ in range(READS_MAX):
            if self._sent - self._has >= WINDOW_BYTES:
                return False
            if self._originals is not originals:
                return True  # the link was lost in saying something
            found = originals.read()
            if found is None:
                if originals.is_held:  # and with it those who wait for the other end's answer
                    ends = {number: each.tail for number, each in self._stand(originals).items()}
                    lacking = self._unshown.lacking(ends)
                    self._all.confirming.sent(self._link, lacking, time.monotonic())
                return True
            self._ship(found.memory)
            if not found.more and self._originals is originals:
                self._end_moment(originals, is_whole=found.whole)
        return False

    def _end_moment(self, originals: Originals, *, is_whole: bool) -> None:
        self._say(Moment(is_whole))
        if is_whole and self._originals is originals:
            self._unshown.sent(
                {number: each.next for number, each in self._stand(originals).items()}
            )

    def _stand(self, originals: Originals) -> dict[int, Stands]:
        """By number, the queues whose confirms wait for it."""
        found = {}
        for each in self._unshown.numbers:
            with suppress(NotFound):  # deleted just now, which is told soon
                found[each] = originals.stands(each)
        return found

    def _ship(self, records: memoryview) -> None:
        room = self._link.machine.handshake.frame_bytes - HEAD_ROOM
        for at in range(0, len(records), room):
            part = records[at : at + room]
            self._link.say(Shipment(at + room < len(records), part))
        self._sent += len(records)
        self._all.confirming.sent(self._link, self._awaited, time.monotonic())

    # --- who waits for them -------------------------------------------------------------------

    @property
    def _awaited(self) -> set[bytes]:
        return self._unshown.identities

    def _shown(self, moments: int) -> None:
        for identity, end in self._unshown.shown(moments):
            self._all.confirming.shown(self._link, identity, end)
        for number in self._unshown.counted(moments):
            self._say(Counted(number))

    def _answered(self) -> None:
        owes = bool(self._unshown) or self._sent > self._has
        self._all.confirming.answered(self._link, self._awaited, time.monotonic(), owes=owes)

    # --- what is gone -------------------------------------------------------------------------

    def _look_for_deleted(self) -> None:
        for number, queue in list(self._queues.items()):
            if self._originals is None:
                return
            try:
                self._originals.stands(number)
            except NotFound:
                self._drop(number)
                why = f"queue {queue.name!r} was deleted on {self._all.name}"
                self._say(Unserved(number, Why.MISSING, why))

    # --- waiting ------------------------------------------------------------------------------

    def _watch(self, originals: Originals) -> None:
        """What is published is told; what is done with is not, and is looked for."""
        for number, queue in self._queues.items():
            if number in self._watched:
                continue
            with suppress(Error):  # it was deleted, which is found soon
                position = originals.stands(number).next
                told = partial(self._rung, number)
                ticket = self._all.thread.sleeper.watch(queue._queue, position, ANY, told)
                self._watched[number] = ticket, position

    def _rung(self, number: int) -> None:
        self._watched.pop(number, None)
        self.due = min(self.due, time.monotonic())

    def _forget(self, number: int, queue: Queue) -> None:
        ticket = self._watched.pop(number, None)
        if ticket is not None:
            self._all.thread.sleeper.forget(ticket[0], queue._queue, ticket[1], ANY)

    def _say(self, what: OfOriginal) -> None:
        self._link.say(Talk(encode(what)))

    def close(self) -> None:
        for number in list(self._queues):
            self._drop(number)
        if self._originals is not None:
            self._originals.close()
            self._originals = None
        self.due = NEVER
