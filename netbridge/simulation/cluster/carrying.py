"""Messages for other nodes, as `netbridge/clustered/messages.py` and its parts carry them.

Balanced sets and redistribution are decided by the real machines, with what is known of the others.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.cluster.balancing import Member, sets
from shmbroker.netbridge.cluster.machine import Membership
from shmbroker.netbridge.cluster.option import OFF_WITH_REDISTRIBUTION, ON_DEMAND
from shmbroker.netbridge.cluster.redistribution import Gives, Here, Redistribution
from shmbroker.netbridge.election.question import Node as Id
from shmbroker.netbridge.simulation.cluster.node import WAY, Selectors, chosen, host_of, takes
from shmbroker.netbridge.simulation.cluster.store import Message
from shmbroker.netbridge.simulation.cluster.way import Near

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.cluster.broker import Broker

REDISTRIBUTES: Final = frozenset({ON_DEMAND, OFF_WITH_REDISTRIBUTION})
MAKES_SECONDS: Final = 0.0, 0.1
TOGETHER: Final = 4
AGAIN_SECONDS: Final = 0.05


class Carrying:
    def __init__(self, broker: Broker, mode: str) -> None:
        self._broker, self.mode = broker, mode
        self.deadline = math.inf
        self._is_live = False
        self.is_leaving = False
        self._uris: dict[Id, str] = {}
        """Of each way: where the live of that node is."""
        self.made: frozenset[Id] = frozenset()
        """There is a queue towards these."""
        self._here: list[Here] | None = None
        self._looks = 0
        self._known: object = None
        self._redistribution = Redistribution()
        self.gives: tuple[Gives, ...] = ()
        self._gives_on = False
        self.sets: dict[str, tuple[Member, ...]] = {}
        self._turns: dict[str, int] = {}

    # --- ways ---------------------------------------------------------------------------------

    def begins(self) -> None:
        self._is_live = True
        self._known = None

    def stops(self) -> None:
        self._is_live = False
        self._uris.clear()
        self.made, self.sets, self.gives = frozenset(), {}, ()
        self._here, self.deadline = None, math.inf

    @property
    def wanted(self) -> list[str]:
        """Names of the lines of all ways."""
        return [self._broker.name + WAY + host_of(self._uris[node]) for node in self.made]

    @property
    def up(self) -> frozenset[Id]:
        return frozenset(each.node for each in self._broker.nears.values() if each.is_up)

    def near(self, line: str) -> Near | None:
        host = line.partition(WAY)[2]
        for node in self.made:
            if host_of(self._uris[node]) == host:
                return Near(self._broker, node, line)
        return None

    def changed(self) -> None:
        """A way is up, or is so no more."""
        self._broker.looks()

    def ships(self) -> None:
        for each in self._broker.nears.values():
            each.ships()

    def _follow(self, machine: Membership) -> None:
        """Who is live in the other nodes; those that were forgotten are not among them."""
        host = self._broker.host
        for node, live in machine.lives.items():
            former = self._uris.get(node)
            if former is None:
                host.later(host.world.between(*MAKES_SECONDS), partial(self._makes, node))
            if former != live.uri:
                self._uris[node] = live.uri
                self._ends(former)
        for node in self._uris.keys() - machine.lives.keys():
            self.made -= {node}
            self._ends(self._uris.pop(node))

    def _makes(self, node: Id) -> None:
        if self._is_live and node in self._uris:
            self._broker.store.make_way(node)
            self.made |= {node}
            self.changed()

    def _ends(self, uri: str | None) -> None:
        line = "" if uri is None else self._broker.name + WAY + host_of(uri)
        if line in self._broker.lines:
            self._broker.lines[line].close()

    # --- decisions ----------------------------------------------------------------------------

    def sees(self, here: list[Here]) -> None:
        self._here = here
        self._looks += 1

    def looks(self, machine: Membership) -> None:
        if not self._is_live:
            return
        self._follow(machine)
        up, now = self.up, self._broker.host.clock
        known = self._looks, machine.adverts.known, up, self.made, len(machine.forgotten)
        if self._here is None or (known == self._known and now < self.deadline):
            return
        self._known = known
        if self.is_leaving:
            self.deadline = math.inf  # else it would be due again and again
            return
        there = {
            node: machine.adverts.of(node).queues
            for node in machine.lives
            if node in self.made and machine.adverts.is_read(node)
        }
        balanced = sets(self.mode, self._here, there, up)
        self.sets = {name: members for (name, _), members in balanced.items()}
        if self.mode in REDISTRIBUTES:
            reached = {node: queues.values() for node, queues in there.items() if node in up}
            self.gives = tuple(self._redistribution.looks(self._here, reached, now))
            self.deadline = self._redistribution.deadline
            self._broker.watch.gives(self._broker, self.gives)
            self._go_on()

    def leaves(self) -> None:
        """Nothing is given to several nodes any more: all goes to one."""
        self.is_leaving = True
        self.sets, self.gives = {}, ()

    def turn(self, queue: str, kind: str) -> Id:
        """Whose it is."""
        turn = self._turns.get(queue, 0)
        self._turns[queue] = turn + 1
        return chosen(self.sets.get(queue, ()), turn, kind)

    # --- giving -------------------------------------------------------------------------------

    def _go_on(self) -> None:
        if self.gives and not self._gives_on:
            self._gives_on = True
            self._broker.host.later(0.0, self._give)

    def _give(self) -> None:
        self._gives_on = False
        if not self._is_live or not self.gives:
            return
        for each in self.gives:
            self._some(each)
        self._gives_on = True
        self._broker.host.later(AGAIN_SECONDS, self._give)

    def _some(self, of: Gives) -> None:
        node = self._broker.node
        for _ in of.to:
            turn = self._turns.get(f"give {of.queue}", 0)
            self._turns[f"give {of.queue}"] = turn + 1
            to = of.to[turn % len(of.to)]
            others = self._taken_here(of)
            if others is None:
                return
            free = self.waiting(of.queue)
            wanted = [each for each in free if takes(to.selectors, each.kind)
                      and not (others and takes(others, each.kind))]  # fmt: skip
            some = wanted[: 1 if len(of.to) > 1 else TOGETHER]
            if some and to.node in node.store.memory.towards:
                self._broker.watch.moves(self._broker, of.queue, some)
                node.store.move(of.queue, some, to.node)

    def _taken_here(self, of: Gives) -> Selectors | None:
        """Selectors of consumers here; None: they keep everything."""
        consumers = self._broker.node.consumers
        if of.queue not in consumers:
            return ()
        return None if of.unless is None else consumers[of.queue] or None

    def waiting(self, queue: str) -> list[Message]:
        """Those that nobody has in hand."""
        node = self._broker.node
        held = node.in_hand.get(queue, set())
        messages = node.store.memory.queues.get(queue, {})
        return [each for number, each in messages.items() if number not in held]
