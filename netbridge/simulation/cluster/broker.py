"""A broker as a process: a member of the cluster, live in its node or its backup."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.cluster.advert import Queue
from shmbroker.netbridge.cluster.machine import Action, Line, Membership, Terms
from shmbroker.netbridge.cluster.redistribution import Here
from shmbroker.netbridge.cluster.said import Say, Told
from shmbroker.netbridge.election.question import Node as Id
from shmbroker.netbridge.election.threshold import Quorum
from shmbroker.netbridge.simulation.cluster.carrying import Carrying
from shmbroker.netbridge.simulation.cluster.leaving import Leaving, Successor
from shmbroker.netbridge.simulation.cluster.node import (
    TALK,
    WAY,
    Node,
    host_of,
    is_made_by,
    uri_of,
)
from shmbroker.netbridge.simulation.cluster.way import Far, Near
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.network import Message
from shmbroker.netbridge.simulation.replication.process import Process
from shmbroker.netbridge.simulation.world import Wrong

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.cluster.watch import Watch

LOOK_SECONDS: Final = 0.2
WINDOW_SECONDS: Final = 0.1
EVENTS_MAX: Final = 3000
"""In a window: more is a storm."""
OPENS_SECONDS: Final = 0.0, 0.5
"""Until the queues of a live are there."""


class Broker(Process):
    def __init__(
        self, host: Host, node: Node, statics: tuple[str, ...], attempts: int, watch: Watch
    ) -> None:
        super().__init__(host, node.store.disk)
        self.node, self.watch, self.store = node, watch, node.store
        self.incarnation = f"{host.name}{host.life}".encode().ljust(16, b".")
        terms = Terms(
            host.name, uri_of(host.name), node.hosts, tuple(map(uri_of, statics)),
            attempts=attempts,
        )  # fmt: skip
        self.machine = Membership(terms, self.incarnation, Quorum())
        self.carrying = Carrying(self, watch.mode)
        self.successor = Successor(self)
        self.leaving: Leaving | None = None
        self.is_live = self.listens = self.admits = self.takes_no_more = False
        """It admits programs, and listens for other nodes, once its queues are there."""
        self._term = 0
        """Times it became live."""
        self._links: dict[str, int] = {}
        self._made = 0
        self.nears: dict[str, Near] = {}
        self.fars: dict[str, Far] = {}
        self._seen: list[Here] | None = None
        self._window, self._events = 0.0, 0

    # --- what it is ---------------------------------------------------------------------------

    def waits(self) -> None:
        """As a backup, or since another one serves."""
        was_live = self.is_live
        self.is_live = self.listens = self.admits = False
        if was_live:
            self.carrying.stops()
            for key in list(self.lines):
                if WAY in key or not is_made_by(self.name, key):
                    self.lines[key].close()
        self._does(self.machine.becomes(self.node.id, self.node.epoch, is_live=False))

    def serves(self) -> None:
        node = self.node
        node.epoch += 1
        node.live, self.is_live, node.has_parted = self, True, False
        self._term += 1
        self.carrying.begins()
        self._does(self.machine.becomes(node.id, node.epoch, is_live=True))
        self.host.later(self.host.world.between(*OPENS_SECONDS), partial(self._opens, self._term))

    def _opens(self, term: int) -> None:
        if self.is_live and term == self._term:
            self.admits = self.listens = True
            self._seen = None
            self._look(term)

    # --- looking at its queues ----------------------------------------------------------------

    def _look(self, term: int) -> None:
        if not self.is_live or term != self._term:
            return
        has_parted = self.leaving is not None and self.leaving.has_parted
        here = [] if has_parted else self._here()
        if here != self._seen:
            self._seen = here
            self.watch.looks(self, here)
            self.carrying.sees(here)
            adverts = [
                Queue(each.name, True, each.is_consumed, each.may_be_balanced, each.selectors)
                for each in here
            ]
            self._does(self.machine.shows(adverts))
        self.host.later(LOOK_SECONDS, partial(self._look, term))

    def _here(self) -> list[Here]:
        content, consumers = self.store.memory, self.node.consumers
        return [
            Here(name, name in consumers, settings.delay, selectors=consumers.get(name, ()),
                 matches=settings.matches)
            for name, settings in content.settings.items()
        ]  # fmt: skip

    @property
    def runs(self) -> bool:
        return self.host.is_up and self.host.life == self.life

    # --- lines --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Silence is seen by the scene: beats would be most of what is said."""

    def connected(self, other: str) -> None:
        if WAY in other and is_made_by(self.name, other):
            near = self.carrying.near(other)
            if near is not None:
                self.nears[other] = near
        elif WAY in other:
            self.fars[other] = Far(self, other)
        else:
            self._made += 1
            self._links[other] = self._made
            self._does(self.machine.up(self._made, self.host.clock))

    def disconnected(self, other: str, *, is_closed: bool) -> None:
        self.nears.pop(other, None)
        self.fars.pop(other, None)
        link = self._links.pop(other, None)
        if link is not None:
            self.successor.gone(other)
            self._does(self.machine.down(link, self.host.clock))
        else:
            self.carrying.changed()

    def _happens(self) -> None:
        self._events += 1
        if self.host.clock > self._window + WINDOW_SECONDS:
            self._window, self._events = self.host.clock, 0
        elif self._events > EVENTS_MAX:
            raise Wrong(f"{self.name} does not come to rest")

    def heard(self, other: str, message: Message) -> None:
        self._happens()
        if other in self.nears:
            self.nears[other].heard(message)
        elif other in self.fars:
            self.fars[other].heard(message)
        elif other in self._links and not self.successor.heard(other, message):
            self._does(self.machine.heard(self._links[other], message, self.host.clock))
            if isinstance(message, Told):
                self.watch.knows(self, self._links[other], message)

    def talks_with(self, node: Id) -> str:
        """The line to the live of a node; empty: there is none."""
        live = self.machine.lives.get(node)
        for line, link in self._links.items():
            at = self.machine.present.get(link)
            if at is not None and live is not None and at.incarnation == live.incarnation:
                return line
        return ""

    def tick(self) -> None:
        self._happens()
        self._does(self.machine.tick(self.host.clock))

    def forgets(self, node: Id) -> bool:
        """By command."""
        if self.machine.forget(node):
            return False
        self._does(self.machine.forgets(node))
        return True

    def _does(self, actions: Iterable[Action]) -> None:
        lines = {link: line for line, link in self._links.items()}
        for action in list(actions):
            if isinstance(action, Say):
                if action.link in lines:
                    self.say(lines[action.link], action.what)
            elif isinstance(action, Line):
                self.host.world.tell(f"{self.name}: {action.state} {action.detail}")
                self.watch.logs(self, action.state)
        self.looks()

    def looks(self) -> None:
        """At all that follows from what it knows."""
        self.carrying.looks(self.machine)
        self.wake(min(self.machine.deadline, self.carrying.deadline))

    @property
    def wanted(self) -> list[str]:
        """Names of the lines that it wants, and has not."""
        wanted = [self.name + TALK + host_of(uri) for uri in self.machine.wanted]
        return [each for each in sorted([*wanted, *self.carrying.wanted]) if each not in self.lines]
