"""Moves what other brokers fetch into the rings that are shipped to them, in a thread of its own.

A message goes from its queue into such a ring in one transaction, so whoever dies leaves it in one
of the two.  From there it goes nowhere but to that broker: what was sent and is not confirmed may
be there already.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from shmbroker.ipc._native import lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error, NotFound
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.queue.moving import changes, pass_over
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.queue_replica.copy import followed_by
from shmbroker.ipc.sink.fetch import Fetch
from shmbroker.ipc.sink.target import target_of
from shmbroker.netbridge.broker.gates import FETCHED
from shmbroker.netbridge.broker.own import OF_ONE_PLACE, OWN
from shmbroker.netbridge.carrier.fruitless import Fruitless
from shmbroker.netbridge.carrier.reached import serving
from shmbroker.netbridge.network.supply import Turn, Way, turns

SLOTS: Final = 1 << 14
"""Of a ring: more than a link may prefetch."""
UNDELIVERABLE: Final = "links.undeliverable"
"""The queue of messages that the other end has refused."""
TOGETHER: Final = 1024
"""Messages of a batch: then others have their turn, and it is looked for consumers."""
AGAIN_SECONDS: Final = 0.05
"""When it is looked again for messages, and for room."""


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


class Supplying(Closable):
    def __init__(self, broker: Broker, tell: Callable[[Mapping[str, Any]], None]) -> None:
        self._broker, self._tell = broker, tell
        self._ways: tuple[Way, ...] = ()
        self._may_go: dict[int, bool] = {}
        """By references of queues: settings stay as they were declared."""
        self._fruitless = Fruitless()
        """What was fetched nothing of, by queue and ring."""
        self._told: set[str] = set()
        self._news = threading.Event()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="shmbroker-supply", daemon=True)
        self._thread.start()

    def goes(self, ways: tuple[Way, ...]) -> None:
        """From now on by these, and no others."""
        if ways != self._ways:
            self._ways = ways
            self._news.set()

    def close(self) -> None:
        self._is_closed = True
        self._news.set()
        self._thread.join()

    # --- in the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_closed:
            ways = self._ways
            queues = sorted(frozenset[str]().union(*(each.queues for each in ways)))
            waiting = {each.ring: self._waiting(each) for each in ways}
            if not sum(self._some(name, ways, waiting) for name in queues):
                self._news.wait(AGAIN_SECONDS if queues else None)
                self._news.clear()

    def _waiting(self, way: Way) -> int:
        """Messages on their way, or a few more if that is less than may be."""
        with suppress(Error):  # the vhost ends
            ring = serving(self._broker, way.ring)
            most = changes(ring).length_at_most
            return most if most < way.prefetch else len(ring)
        return way.prefetch

    def _some(self, name: str, ways: tuple[Way, ...], waiting: dict[str, int]) -> int:
        """A batch to each that wants it: how many messages."""
        moved = 0
        try:
            source = self._source(name)
            if source is None:
                return 0
            now = changes(source)
            for each in turns(name, ways, waiting, now.consumers):
                count = self._batch(source, each, now.news)
                waiting[each.ring] += count
                moved += count
        except NotFound:  # it was deleted
            pass
        except Error as error:  # it is a replica, or the vhost ends
            if name not in self._told:
                self._told.add(name)
                self._tell({"event": "network", "level": "warning", "what": "not fetched",
                            "queue": name, "detail": str(error)})  # fmt: skip
        return moved

    def _source(self, name: str) -> Queue | None:
        """None: nothing of it goes."""
        if self._is_closed or is_own(name):
            return None
        source = serving(self._broker, name)
        return source if changes(source).length_at_most and self._is_shared(source) else None

    def _is_shared(self, queue: Queue) -> bool:
        reference = int(lib.sb_queue_reference(queue._queue))
        if reference not in self._may_go:
            settings = queue.explain()
            is_of_one_place = any(settings[each].value for each in OF_ONE_PLACE)
            self._may_go[reference] = not is_of_one_place and not followed_by(queue)
        return self._may_go[reference]

    def _batch(self, source: Queue, turn: Turn, now: object) -> int:
        """`now`: another one if a message has come, or come back."""
        which = int(lib.sb_queue_reference(source._queue)), turn.ring
        seen = turn.cycle, turn.turn, now
        if self._fruitless.has(which, seen):
            return 0
        moved = pass_over(
            source, serving(self._broker, turn.ring), min(turn.most, TOGETHER), None, 0,
            copies=False, towards=target_of(source.name), fetch=Fetch(turn.cycle, turn.turn),
        ).messages  # fmt: skip
        if not moved:
            self._fruitless.add(which, seen)
        return moved
