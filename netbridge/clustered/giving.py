"""Gives messages away to other nodes, in a thread of its own: a batch of each queue in turn.

A message goes from its queue into the queue towards a node in one transaction.  Before each batch
it is looked whether a consumer came: then the rest stays.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from shmbroker.ipc.base.closable import Closable
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.queue.moving import pass_over
from shmbroker.ipc.sink.target import target_of
from shmbroker.netbridge.carrier.reached import serving
from shmbroker.netbridge.cluster.redistribution import Gives
from shmbroker.netbridge.clustered.towards import towards
from shmbroker.netbridge.election.question import Node

TOGETHER: Final = 64
"""Messages of a batch: then others have their turn, and it is looked for consumers."""
AGAIN_SECONDS: Final = 0.05
"""When a queue is tried again that was empty, or whose way there was full."""


class Giving(Closable):
    def __init__(
        self, broker: Broker, cluster: str, tell: Callable[[Mapping[str, Any]], None]
    ) -> None:
        self._broker, self._cluster, self._tell = broker, cluster, tell
        self.given: dict[str, int] = {}
        """Of each queue, how many messages went away."""
        self._turns: dict[str, int] = {}
        self._wanted: tuple[Gives, ...] = ()
        self._news = threading.Event()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="shmbroker-giving", daemon=True)
        self._thread.start()

    def gives(self, wanted: tuple[Gives, ...]) -> None:
        """From now on these, and no others."""
        if wanted != self._wanted:
            self._wanted = wanted
            self._news.set()

    def close(self) -> None:
        self._is_closed = True
        self._news.set()
        self._thread.join()

    # --- in the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_closed:
            wanted = self._wanted
            moved = sum(self._some(each) for each in wanted)
            if not moved:
                self._news.wait(AGAIN_SECONDS if wanted else None)
                self._news.clear()

    def _some(self, of: Gives) -> int:
        """A batch to each node whose turn it is: how many messages."""
        moved = 0
        for _ in of.to:
            turn = self._turns.get(of.queue, 0)
            self._turns[of.queue] = turn + 1
            moved += self._batch(of.queue, of.to[turn % len(of.to)], len(of.to))
        return moved

    def _batch(self, name: str, node: Node, nodes: int) -> int:
        try:
            source = serving(self._broker, name)
            if self._is_closed or source.statistics().consumers:
                return 0
            way = serving(self._broker, towards(self._cluster, node))
            # among several nodes one by one, so that each has its share of a few messages too
            many = 1 if nodes > 1 else TOGETHER
            moved = pass_over(source, way, many, None, 0, copies=False, towards=target_of(name))
        except Error as error:  # it was deleted, or is a replica, or the vhost ends
            if name not in self.given:
                self._tell({"event": "cluster", "level": "warning", "state": "not redistributed",
                            "queue": name, "detail": str(error)})  # fmt: skip
                self.given[name] = 0
            return 0
        self.given[name] = self.given.get(name, 0) + moved
        return moved
