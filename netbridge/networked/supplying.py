"""Moves what other brokers fetch into the rings that are shipped to them, in a thread of its own.

A message goes from its queue into such a ring in one transaction, so whoever dies leaves it in one
of the two.  From there it goes nowhere but to that broker: what was sent and is not confirmed may
be there already.

The thread sleeps until a message may be taken, or comes back, or a link has confirmed a share of
what it may have on its way.  Then it looks at the queues that this concerns.  Two things nothing
tells: that a queue was declared, and that a consumer came or left, which changes the turns.  So
while there are queues that are not there, or that have messages which do not go, it compares a few
times a second what is stored of both.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from shmbroker.ipc._native import lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error, NotFound
from shmbroker.ipc.base.names import OWN
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.queue.moving import Changes, Passed, changes, pass_over
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.queue_replica.copy import followed_by
from shmbroker.ipc.sink.fetch import Fetch
from shmbroker.ipc.sink.target import target_of
from shmbroker.netbridge.broker.gates import FETCHED
from shmbroker.netbridge.broker.own import OF_ONE_PLACE
from shmbroker.netbridge.carrier.reached import serving
from shmbroker.netbridge.network.supply import Turn, Way, share, turns
from shmbroker.netbridge.networked.awaited import Awaited

SLOTS: Final = 1 << 14
"""Of a ring: more than a link may prefetch."""
UNDELIVERABLE: Final = "links.undeliverable"
"""The queue of messages that the other end has refused."""
TOGETHER: Final = 1024
"""Messages of a batch: then others have their turn, and it is looked for consumers."""
LOOK_SECONDS: Final = 0.2
"""Between two looks at what nothing tells."""
ANEW_SECONDS: Final = 1.0
"""Between two looks at all messages that do not go.  Whoever gives one back and is killed before it
says so tells nobody, and neither does who lets a paused queue go on."""
KNOWN_MAX: Final = 10_000


def is_own(queue: str) -> bool:
    """What it has is of this broker alone."""
    return queue.startswith(OWN) or queue == UNDELIVERABLE


def ring_of(node: bytes, link: str) -> str:
    """The name of the ring with what this node fetches over this link."""
    return f"{FETCHED}{node.hex()}.{link}"


def made(broker: Broker, ring: str) -> Queue:
    """There, whoever has made it: a former broker, or a journal."""
    queue = broker.declare_queue(
        ring, slots=SLOTS, durable=True, max_deliveries=None, dead_letter=UNDELIVERABLE,
        replicate="all",
    )  # fmt: skip
    queue.pause()  # nobody takes from it; the link reads behind a gate of its own
    return queue


def former(broker: Broker, ring: str) -> Queue | None:
    """If it is there."""
    return made(broker, ring) if ring in broker._catalog.queue_names().values() else None


class Supplying(Closable):
    def __init__(self, broker: Broker, tell: Callable[[Mapping[str, Any]], None]) -> None:
        self._broker, self._tell = broker, tell
        self._wanted: tuple[Way, ...] = ()
        """The ways that there are now; `_ways` are those that the thread knows of."""
        self._ways: tuple[Way, ...] = ()
        self._room_at: dict[str, int] = {}
        """Of rings that are waited for: below which position all has to be confirmed."""
        self._free: frozenset[str] = frozenset()
        """Rings with room, when it was looked last: they have turns."""
        self._failed: set[str] = set()
        """Queues of which nothing could be moved: there was no memory, or no room in a ring."""
        self._may_go: dict[int, bool] = {}
        """By references of queues: settings stay as they were declared."""
        self._passed: dict[tuple[int, str], tuple[tuple[int, int, int], int]] = {}
        """By queue and ring: whose turn it was and how much had come back, and below which position
        nothing goes this way as long as that holds."""
        self._seen: object = None
        self._look_at = self._anew_at = 0.0
        self._told: set[str] = set()
        self._is_closed = False
        self._awaited = Awaited()
        self._thread = threading.Thread(target=self._run, name="shmbroker-supply", daemon=True)
        self._thread.start()

    # --- of the network thread ----------------------------------------------------------------

    def goes(self, ways: tuple[Way, ...]) -> None:
        """From now on by these, and no others."""
        if ways != self._wanted:
            self._wanted = ways
            self._awaited.wake()

    def confirmed(self, ring: str, end: int) -> None:
        """All below this position of a ring is at the other end."""
        at = self._room_at.get(ring)
        if at is not None and end >= at:
            self._awaited.wake()

    def close(self) -> None:
        self._is_closed = True
        self._awaited.wake()
        self._thread.join()
        self._awaited.close()

    # --- in the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        awaited = self._awaited
        while not self._is_closed:
            awaited.hear()
            self._follows()
            awaited.looks_at(self._failed)
            self._failed.clear()
            waiting = self._waiting()
            for name in list(awaited.due):
                self._some(name, waiting)
            self._has_room(waiting)
            if not awaited.due and not self._is_closed:
                self._sleep()

    def _follows(self) -> None:
        """The ways that are wanted now."""
        if self._ways is not self._wanted:
            self._ways = self._wanted
            self._awaited.wants(frozenset[str]().union(*(each.queues for each in self._ways)))

    def _sleep(self) -> None:
        """Until something is due, or there is room."""
        awaited = self._awaited
        self._wait_for_room()
        self._has_room(self._waiting())  # what was confirmed before we said that we wait
        if awaited.due:
            return
        if not (awaited.stuck or awaited.absent):
            awaited.sleep(None)
            return
        awaited.sleep(max(0.0, self._look_at - time.monotonic()))
        if time.monotonic() >= self._look_at:
            with suppress(Error):  # the vhost ends
                self._look_around()

    def _look_around(self) -> None:
        """At what nothing tells."""
        broker, awaited, now = self._broker, self._awaited, time.monotonic()
        self._look_at = now + LOOK_SECONDS
        seen = broker._catalog.generation, broker._participants.uses_now()
        if seen != self._seen:
            self._seen = seen
            awaited.looks_at(awaited.absent | awaited.stuck)
        if now >= self._anew_at:
            self._anew_at = now + ANEW_SECONDS
            self._passed.clear()
            awaited.looks_at(awaited.stuck)

    # --- room ---------------------------------------------------------------------------------

    def _waiting(self) -> dict[str, int]:
        """By rings, messages on their way."""
        return {each.ring: self._waiting_in(each) for each in self._ways}

    def _waiting_in(self, way: Way) -> int:
        """Or a few more, if there is room for a share all the same."""
        with suppress(Error):  # the vhost ends
            ring = serving(self._broker, way.ring)
            most = changes(ring).length_at_most
            return most if most + share(way.prefetch) <= way.prefetch else len(ring)
        return way.prefetch

    def _is_free(self, way: Way, waiting: int) -> bool:
        """Until it is full, and then when there is room for a share."""
        least = 1 if way.ring in self._free else share(way.prefetch)
        return waiting + least <= way.prefetch

    def _has_room(self, waiting: Mapping[str, int]) -> None:
        """Those who have turns may be others by now: what does not go is looked at again."""
        free = frozenset(way.ring for way in self._ways if self._is_free(way, waiting[way.ring]))
        for way in self._ways:
            if way.ring in free ^ self._free:
                self._awaited.looks_at(self._awaited.stuck & way.queues)
        self._free = free

    def _wait_for_room(self) -> None:
        """On ways that are full, for a share; after a failure, for anything."""
        found: dict[str, int] = {}
        for way in self._ways:
            if not self._failed.isdisjoint(way.queues):
                found[way.ring] = 0
            elif way.ring not in self._free and not self._awaited.stuck.isdisjoint(way.queues):
                with suppress(Error):  # the vhost ends
                    end = changes(serving(self._broker, way.ring)).tail
                    found[way.ring] = end - way.prefetch + share(way.prefetch)
        self._room_at = found

    # --- messages -----------------------------------------------------------------------------

    def _some(self, name: str, waiting: dict[str, int]) -> None:
        """A batch to each that wants it."""
        try:
            source = self._source(name)
            if source is None:
                self._awaited.is_absent(name)
            else:
                self._supply(source, waiting)
        except NotFound:  # it was deleted
            self._awaited.is_absent(name)
        except Error as error:  # it is a replica, or the vhost ends
            self._awaited.is_stuck(name)
            self._failed.add(name)
            if name not in self._told:
                self._told.add(name)
                self._tell({"event": "network", "level": "warning", "what": "not fetched",
                            "queue": name, "detail": str(error)})  # fmt: skip

    def _source(self, name: str) -> Queue | None:
        """None: nothing of it goes."""
        if self._is_closed or is_own(name):
            return None
        source = serving(self._broker, name)
        return source if self._is_shared(source) else None

    def _is_shared(self, queue: Queue) -> bool:
        reference = int(lib.sb_queue_reference(queue._queue))
        if reference not in self._may_go:
            settings = queue.explain()
            self._may_go[reference] = not any(settings[each].value for each in OF_ONE_PLACE)
        return self._may_go[reference] and not followed_by(queue)

    def _supply(self, source: Queue, waiting: dict[str, int]) -> None:
        now = changes(source)
        if not now.length_at_most:
            self._awaited.is_empty(source.name, (source._queue, now.tail, now.returned))
            return
        passed = []
        for turn in turns(source.name, self._ways, waiting, now.consumers):
            passed.append(self._batch(source, turn, now))
            waiting[turn.ring] += passed[-1].messages
        if any(each.messages for each in passed):
            return
        if any(each.is_full for each in passed):
            self._failed.add(source.name)
            self._awaited.is_stuck(source.name)
        else:
            end = min((each.end for each in passed), default=None)
            until = None if end is None else (source._queue, end, now.returned)
            self._awaited.is_stuck(source.name, until)

    def _batch(self, source: Queue, turn: Turn, now: Changes) -> Passed:
        which = int(lib.sb_queue_reference(source._queue)), turn.ring
        whose = turn.cycle, turn.turn, now.returned
        seen, begin = self._passed.get(which, (None, 0))
        passed = pass_over(
            source, serving(self._broker, turn.ring), min(turn.most, TOGETHER), None, 0,
            copies=False, towards=target_of(source.name), fetch=Fetch(turn.cycle, turn.turn),
            begin=begin if seen == whose else 0,
        )  # fmt: skip
        if len(self._passed) > KNOWN_MAX:
            self._passed.clear()
        self._passed[which] = whose, passed.end
        return passed
