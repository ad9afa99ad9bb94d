"""Gives messages away to other nodes, in a thread of its own: a batch of each queue in turn.

A message goes from its queue into the queue towards a node in one transaction.  Before each batch
it is looked whether a consumer came: then the rest stays, or what its selector matches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, NamedTuple

from shmbroker.ipc._native import lib
from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error, NotFound, SelectorError
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.queue.moving import Passed, changes, pass_over
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.selector.choice import Choice
from shmbroker.ipc.selector.selector import Selector
from shmbroker.ipc.sink.target import target_of
from shmbroker.netbridge.carrier.fruitless import Fruitless
from shmbroker.netbridge.carrier.reached import serving
from shmbroker.netbridge.cluster.balancing import HERE
from shmbroker.netbridge.cluster.redistribution import Gives, To
from shmbroker.netbridge.clustered.towards import towards

Selectors = tuple[str, ...]

TOGETHER: Final = 1024
"""Messages of a batch, some milliseconds: then others have their turn, and it is looked for
consumers."""
SHARES: Final = 8
"""So many batches at least for each of several nodes, until a batch is one message."""
AGAIN_SECONDS: Final = 0.05
"""When a queue is tried again that was empty.  So long it is waited for room on a full way."""


class Bound(NamedTuple):
    """Of a batch."""

    messages: int
    seconds: float
    """So long it is waited for room."""


class Giving(Closable):
    def __init__(
        self, broker: Broker, cluster: str, tell: Callable[[Mapping[str, Any]], None]
    ) -> None:
        self._broker, self._cluster, self._tell = broker, cluster, tell
        self.given: dict[str, int] = {}
        """Of each queue, how many messages went away."""
        self._told: set[str] = set()
        """Queues of which it was told that they cannot be given away."""
        self._turns: dict[str, int] = {}
        self._full: list[Gives] = []
        """Those for which there was no room on a way, in this round."""
        self._waits = 0
        self._wanted: tuple[Gives, ...] = ()
        self._standing: dict[str, Gives] = {}
        """Stand-ins, by their names."""
        self._fruitless = Fruitless()
        """What was chosen nothing of, by queue and selectors."""
        self._rung: set[str] = set()
        """Those of them in which there may be something."""
        self.emptied: Callable[[str], None] = lambda name: None
        """There is nothing in this stand-in: look at it when there is."""
        self._news = threading.Event()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="shmbroker-giving", daemon=True)
        self._thread.start()

    def gives(self, wanted: tuple[Gives, ...]) -> None:
        """From now on these, and no others."""
        if wanted != self._wanted:
            self._wanted = wanted
            self._news.set()

    def passes_on(self, wanted: tuple[Gives, ...]) -> None:
        """What is in these stand-ins does not stay, whoever consumes."""
        former, self._standing = self._standing, {each.queue: each for each in wanted}
        for name, each in self._standing.items():
            if former.get(name) != each:
                self.look(name)

    def look(self, name: str) -> None:
        """At this stand-in."""
        self._rung.add(name)
        self._news.set()

    @property
    def standing(self) -> int:
        """Messages that are in stand-ins."""
        return sum(map(self._count_in, list(self._standing)))

    def close(self) -> None:
        self._is_closed = True
        self._news.set()
        self._thread.join()

    # --- in the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_closed:
            wanted = self._wanted
            self._full.clear()
            moved = sum(self._some(each) for each in wanted) + self._pass_on()
            if not moved and not self._waits_for_room():
                self._news.wait(AGAIN_SECONDS if wanted or self._rung else None)
                self._news.clear()

    def _waits_for_room(self) -> bool:
        """On the way of one of them, and of the next one the next time."""
        if not self._full:
            return False
        self._waits += 1
        self._some(self._full[self._waits % len(self._full)], AGAIN_SECONDS)
        return True

    def _pass_on(self) -> int:
        moved = 0
        for name in list(self._rung):
            gives = self._standing.get(name)
            if gives is not None:
                moved += self._some(gives)
            if gives is None:
                self._rung.discard(name)
            elif not self._count_in(name):
                self._rung.discard(name)
                self.emptied(name)
        return moved

    def _count_in(self, name: str) -> int:
        with suppress(Error):  # it was deleted
            return serving(self._broker, name).statistics().depth
        return 0

    def _some(self, of: Gives, patience: float = 0.0) -> int:
        """A batch to each node whose turn it is: how many messages."""
        moved, bound = 0, Bound(self._share(of), patience)
        for _ in of.to:
            turn = self._turns.get(of.queue, 0)
            self._turns[of.queue] = turn + 1
            moved += self._batch(of, of.to[turn % len(of.to)], of.unless or (), bound)
        if of.rest is not None:
            selectors = {text for to in of.to for text in to.selectors}
            moved += self._batch(of, To(of.rest), tuple(sorted(selectors)), bound)
        return moved

    def _share(self, of: Gives) -> int:
        """Messages of a batch: each of several nodes has its share, of a few messages too."""
        if len(of.to) == 1:
            return TOGETHER
        with suppress(Error):  # it was deleted
            length = changes(serving(self._broker, of.queue)).length_at_most
            return max(1, min(TOGETHER, length // (SHARES * len(of.to))))
        return 1

    def _batch(self, of: Gives, to: To, others: Selectors, bound: Bound) -> int:
        """Of what it takes, and none of the others."""
        name = of.queue
        try:
            source = serving(self._broker, name)
            here = () if of.whose else self._taken_here(of, source)
            if self._is_closed or here is None:
                return 0
            passed = self._chosen(of, source, to, tuple(sorted({*others, *here})), bound)
        except NotFound:  # it was deleted: the next look tells
            return 0
        except Error as error:  # it is a replica, or there is no memory, or the vhost ends
            if name not in self._told:
                self._told.add(name)
                self._tell({"event": "cluster", "level": "warning", "state": "not redistributed",
                            "queue": name, "detail": str(error)})  # fmt: skip
            return 0
        self.given[name] = self.given.get(name, 0) + passed.messages
        if passed.is_full:
            self._full.append(of)
        return passed.messages

    def _taken_here(self, of: Gives, source: Queue) -> Selectors | None:
        """Selectors of consumers here; None: they keep everything."""
        reference = int(lib.sb_queue_reference(source._queue))
        found = self._broker._participants.taken([reference])
        if reference not in found:
            return ()
        return None if of.unless is None else tuple(sorted(found[reference])) or None

    def _chosen(self, of: Gives, source: Queue, to: To, others: Selectors, bound: Bound) -> Passed:
        wanted = to.selectors
        choice = _choice(wanted, others) if wanted or others else None
        known = of.queue, wanted, others
        before = changes(source)
        if choice is not None and self._fruitless.has(known, before.news):
            return Passed(0, False, before.head)
        is_here, whose = to.node == HERE, of.whose or of.queue
        way = serving(self._broker, whose if is_here else towards(self._cluster, to.node))
        target = 0 if is_here else target_of(whose)
        passed = pass_over(
            source, way, bound.messages, None, bound.seconds, copies=False, towards=target,
            choice=choice,
        )  # fmt: skip
        is_in_vain = not passed.messages and not passed.is_full
        if choice is not None and is_in_vain and passed.end >= before.tail:
            self._fruitless.add(known, before.news)  # else the rest of it is not synced yet
        return passed


@lru_cache(64)
def _choice(wanted: Selectors, others: Selectors) -> Choice:
    try:
        return Choice(wanted, others)
    except SelectorError:  # of a broker of another version: it counts as taking everything
        return Choice((), [each for each in others if _is_known(each)])


def _is_known(text: str) -> bool:
    with suppress(SelectorError):
        Selector(text)
        return True
    return False
