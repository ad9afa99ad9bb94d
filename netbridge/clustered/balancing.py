"""Keeps the balanced sets of the vhost as they are to be; publishers read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import NotFound
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.sink.target import target_of
from shmbroker.netbridge.carrier.reached import serving
from shmbroker.netbridge.cluster.balancing import HERE, Member
from shmbroker.netbridge.clustered.towards import towards
from shmbroker.netbridge.election.question import Node

Which = tuple[str, int]
"""A queue: its name and reference, so that one that is made again is another one."""
Sets = Mapping[Which, tuple[Member, ...]]


class Balancing:
    """Of one thread at a time: it waits for the catalog's lock."""

    def __init__(
        self, broker: Broker, cluster: str, tell: Callable[[Mapping[str, Any]], None]
    ) -> None:
        self._broker, self._cluster, self._tell = broker, cluster, tell
        self._there: dict[Which, tuple[Member, ...]] = {}
        self._sets: dict[Which, int] = {}
        """References."""
        self.stands_for: dict[str, str] = {}
        """Whose messages are in a queue, by its name, if they are not its own."""
        lib.sb_balances_forget(broker._connection, 0)

    def sets(self, wanted: Sets) -> None:
        """From now on these, and no others."""
        for which in self._there.keys() - wanted.keys():
            self._set(which, ())
            del self._there[which]
            if left := self._sets.pop(which, 0):
                lib.sb_balances_forget(self._broker._connection, left)
        for which, members in wanted.items():
            if self._there.get(which) != members:
                self._set(which, members)
                self._there[which] = members

    def _set(self, which: Which, members: tuple[Member, ...]) -> None:
        name, reference = which
        words: list[int] = []
        eligible = 0
        with suppress(NotFound):  # it was deleted: the next look tells
            queue = serving(self._broker, name)
            if lib.sb_queue_reference(queue._queue) != reference:
                return  # so was this one
            for each in members:
                way = queue if each.node == HERE else self._way(each.node)
                if each.is_eligible:
                    eligible |= 1 << len(words) // 2
                target = 0 if each.node == HERE else target_of(self.stands_for.get(name, name))
                words += [int(lib.sb_queue_reference(way._queue)), target]
            given = ffi.new("int64_t[]", words)
            code = lib.sb_queue_balance(queue._queue, given, len(words) // 2, eligible)
            if code < 0:
                error = queue._error(code, "balancing")
                self._tell({"event": "cluster", "level": "error", "state": "not balanced",
                            "queue": name, "detail": str(error)})  # fmt: skip
            else:
                self._sets[which] = code

    def _way(self, node: Node) -> Any:
        return serving(self._broker, towards(self._cluster, node))

    def end(self) -> None:
        """What is published from now on stays here."""
        self.sets({})
