"""Queues that stand in for balanced queues that are not here.

What is published to an exchange for such a queue goes to a node that has it, in turn.  So a
stand-in has a set as a balanced queue has, but is no member of it: publishers go past it.  What
they leave in it all the same is passed on, in turn as well: messages with an id, scheduled ones,
those of transactions and of programs on other hosts, and all that comes before it is known who has
the queue.  It is durable, and outlives this process, as the bindings that lead to it do.

One that nobody needs any more stays, for who publishes by an older route.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import DeclaredDifferently, Error
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.queue.queue import Queue
from shmbroker.ipc.sink.target import target_of
from shmbroker.netbridge.carrier.reached import serving
from shmbroker.netbridge.carrier.sleeper import ANY
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.cluster.balancing import HERE, Member, takers
from shmbroker.netbridge.cluster.redistribution import Gives, To
from shmbroker.netbridge.clustered.balancing import Balancing, Which
from shmbroker.netbridge.clustered.giving import Giving
from shmbroker.netbridge.election.question import Node

STANDS_IN: Final = "$turns."
SLOTS: Final = 1 << 13
"""So many may wait until it is known who has the queue; then whoever publishes to an exchange that
leads to it waits, too.  There may be thousands of stand-ins, and each has memory for all of its
slots: with those of a queue towards a node, of which there are few, it would be 4 MiB."""
A_MESSAGE: int = lib.SB_A_MESSAGE

Holders = Mapping[str, tuple[Node, ...]]
"""Of each queue, who has it."""


def stand_in(queue: str) -> str:
    """Its name: that of the queue may be too long to be a part of it."""
    return f"{STANDS_IN}{target_of(queue):x}"


class StandIns:
    def __init__(
        self, thread: NetworkThread, broker: Broker, balancing: Balancing, giving: Giving,
        tell: Callable[[Mapping[str, Any]], None],
    ) -> None:  # fmt: skip
        self._thread, self._broker, self._tell = thread, broker, tell
        self._balancing, self._giving = balancing, giving
        self._queues: dict[str, Queue] = {}
        """By the names of those that they stand in for."""
        self.lacking: frozenset[str] = frozenset()
        """Queues that have none, since it could not be made, which was told: it is to be tried
        again."""
        self._tickets: dict[str, int] = {}
        self._is_closed = False
        giving.emptied = lambda name: thread.call(partial(self._watch, name))

    # --- of the worker ------------------------------------------------------------------------

    def sets(self, wanted: Mapping[str, tuple[Member, ...]]) -> dict[Which, tuple[Member, ...]]:
        """One for each of these queues, with these turns."""
        found: dict[Which, tuple[Member, ...]] = {}
        lacking = set()
        for name, members in wanted.items():
            try:
                queue = self._made(name)
            except Error as error:
                lacking.add(name)
                if name not in self.lacking:
                    self._tell({"event": "cluster", "level": "error", "state": "not balanced",
                                "queue": name, "detail": str(error)})  # fmt: skip
                continue
            self._balancing.stands_for[queue.name] = name
            found[queue.name, int(lib.sb_queue_reference(queue._queue))] = members
        self.lacking = frozenset(lacking)
        return found

    def _made(self, name: str) -> Queue:
        """There, whoever has made it: a former broker, or a journal."""
        if name not in self._queues:
            declare = partial(
                self._broker.declare_queue, stand_in(name), durable=True, max_deliveries=None,
                replicate="all",
            )  # fmt: skip
            try:
                self._queues[name] = declare(slots=SLOTS)
            except DeclaredDifferently:  # by a former version, with fewer
                self._queues[name] = declare()
        return self._queues[name]

    def passes_on(
        self, turns: Mapping[str, tuple[Member, ...]], holders: Callable[[], Holders]
    ) -> None:
        """What is in any of them goes to those who have turns; and of one that nobody needs any
        more to who has the queue.

        `holders`: of all balanced queues.
        """
        names = {each for each in self._broker._catalog.queue_names().values()
                 if each.startswith(STANDS_IN)}  # fmt: skip
        gives = {stand_in(name): _to_those_who_take(name, members)
                 for name, members in turns.items()}  # fmt: skip
        if names - gives.keys():
            left = ((stand_in(name), name, to) for name, to in holders().items())
            gives |= {own: Gives(own, tuple(map(To, to)), name) for own, name, to in left
                      if own in names and own not in gives}  # fmt: skip
        self._giving.passes_on(tuple(each for name, each in gives.items() if name in names))

    # --- of the network thread ----------------------------------------------------------------

    def _watch(self, name: str) -> None:
        """Until there is something in it."""
        if self._is_closed or name in self._tickets:
            return
        with suppress(Error):  # it was deleted
            queue = serving(self._broker, name)
            rung = partial(self._rung, name)
            self._tickets[name] = self._thread.sleeper.watch(queue._queue, A_MESSAGE, ANY, rung)

    def _rung(self, name: str) -> None:
        del self._tickets[name]
        self._giving.look(name)

    def close(self) -> None:
        def end() -> None:
            self._is_closed = True
            for name, ticket in self._tickets.items():
                with suppress(Error):
                    queue = serving(self._broker, name)
                    self._thread.sleeper.forget(ticket, queue._queue, A_MESSAGE, ANY)
            self._tickets.clear()

        self._thread.ask(end)


def _to_those_who_take(name: str, members: tuple[Member, ...]) -> Gives:
    to, rest = takers(members)
    return Gives(stand_in(name), to, name, rest=rest)


def holders(here: Iterable[str], there: Mapping[Node, Iterable[str]]) -> Holders:
    """HERE, for what is here, and else the nodes in the order in which they became known."""
    found: dict[str, tuple[Node, ...]] = dict.fromkeys(here, (HERE,))
    for node, names in there.items():
        for name in names:
            if found.get(name) != (HERE,):
                found[name] = (*found.get(name, ()), node)
    return found
