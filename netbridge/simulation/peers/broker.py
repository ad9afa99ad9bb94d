"""A broker as a process: live in its node, or its backup, with the ends of its links.

The worlds say what they do with the ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.link.ending import State
from shmbroker.netbridge.link.handshake import Far
from shmbroker.netbridge.link.peer import Identity, Place, Service
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.peers.dialler import Dialler
from shmbroker.netbridge.simulation.peers.end import PeerEnd
from shmbroker.netbridge.simulation.peers.message import Message
from shmbroker.netbridge.simulation.peers.sink import Verdict
from shmbroker.netbridge.simulation.world import Step
from shmbroker.netbridge.wire.frame import Body
from shmbroker.netbridge.wire.words import Role, Standing

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.peers.node import Node
    from shmbroker.netbridge.simulation.peers.scene import Scene
    from shmbroker.netbridge.simulation.peers.watch import Watch

WORK_SECONDS: Final = 0.0, 0.03
PEERING: Final = frozenset({Role.PEERING})


class Broker(ABC):
    """Of one life of its host."""

    def __init__(self, scene: Scene, host: Host, node: Node) -> None:
        self.scene, self.host, self.node = scene, host, node
        self.life = host.life
        self.is_live = False
        self.ends: list[PeerEnd] = []
        """Those that it made, and those that it was connected to."""
        self.diallers: list[Dialler] = []
        self._newest: dict[Place, tuple[bytes, int]] = {}
        self._works_until = 0.0

    @property
    def watch(self) -> Watch:
        return self.scene.watch

    @property
    def runs(self) -> bool:
        return self.host.is_up and self.host.life == self.life

    @property
    def identity(self) -> Identity:
        standing = Standing.LIVE if self.is_live else Standing.BACKUP
        incarnation = f"{self.host.name}{self.life}".encode().ljust(16, b".")
        return Identity(self.node.id, incarnation, self.host.name, standing, self.node.epoch)

    def works(self, step: Step) -> None:
        """Its worker, which takes one thing after the other."""
        begins = max(self._works_until, self.host.world.now)
        self._works_until = begins + self.host.world.between(*WORK_SECONDS)
        self.host.at(self._works_until, step)

    # --- its life -----------------------------------------------------------------------------

    def serves(self) -> None:
        self.is_live = True
        self.begins()
        self._says_that_it_serves()
        for each in self.links():
            self.diallers.append(each)
            each.start()

    def _says_that_it_serves(self) -> None:
        """To those that were told that it is passive; and nobody else is told so."""
        for end in list(self.ends):
            far = end.machine.handshake
            if isinstance(far, Far):
                end.does(end.machine.activate(self.host.clock))
            if isinstance(far, Far) and far.peer is None:
                far.ours, far.service = self.identity, replace(far.service, served=PEERING)

    def news(self) -> None:
        """There may be more to ship."""
        for end in list(self.ends):
            end.news()

    def accepts(self) -> PeerEnd:
        """A connection that somebody makes."""
        served = PEERING if self.is_live else frozenset[Role]()
        service = Service(frozenset("/"), PEERING, served, newest=self._newest)
        secret = self.scene.secret()
        end = PeerEnd(self, Far(self.identity, service, secret, secret))
        self.ends.append(end)
        return end

    # --- of its ends --------------------------------------------------------------------------

    def dialler_of(self, end: PeerEnd) -> Dialler | None:
        """None: another broker has made it."""
        return next((each for each in self.diallers if each.has(end)), None)

    def became(self, end: PeerEnd, state: State) -> None:
        dialler = self.dialler_of(end)
        if dialler is not None:
            dialler.became(end, state)
            if state is State.UP:
                self.goes(end)
        elif end.machine.is_near or state is not State.SYNCING:
            return
        else:
            self._supersede(end)
            self.came(end)

    def _supersede(self, end: PeerEnd) -> None:
        """A former connection of the same link is over, whether it knows or not."""
        place = _place_of(end)
        far = end.machine.handshake
        hello = far.hello if isinstance(far, Far) else None
        assert hello is not None, "it is met"
        self._newest[place] = hello.incarnation, hello.attempt
        for each in list(self.ends):
            is_met = not each.machine.is_near and each.machine.handshake.peer is not None
            if each is not end and is_met and _place_of(each) == place:
                each.does(each.machine.supersede(self.host.clock))

    def is_passive(self, end: PeerEnd) -> None:
        """The one that it is connected to."""
        dialler = self.dialler_of(end)
        if dialler is not None:
            dialler.is_passive()

    def ended(self, end: PeerEnd) -> None:
        dialler = self.dialler_of(end)
        self.forgets(end)
        if dialler is not None:
            dialler.ended(end)

    def forgets(self, end: PeerEnd) -> None:
        if end in self.ends:
            self.ends.remove(end)
            self.gone(end)

    # --- of the world -------------------------------------------------------------------------

    @abstractmethod
    def begins(self) -> None:
        """It is live; before any link is."""

    @abstractmethod
    def links(self) -> list[Dialler]: ...
    @abstractmethod
    def came(self, end: PeerEnd) -> None:
        """Of a link that another broker has made."""

    @abstractmethod
    def goes(self, end: PeerEnd) -> None:
        """Of its own: it is up."""

    @abstractmethod
    def gone(self, end: PeerEnd) -> None: ...
    @abstractmethod
    def heard(self, end: PeerEnd, body: Body) -> None: ...
    @abstractmethod
    def publishes(self, message: Message) -> bool:
        """By a program.  False: there is no room, or nobody takes it."""

    @abstractmethod
    def verdict(self, end: PeerEnd, message: Message) -> Verdict:
        """What becomes of a message that comes."""

    @abstractmethod
    def refused(self, end: PeerEnd, message: Message, why: str) -> None:
        """The other end does not take it."""


def _place_of(end: PeerEnd) -> Place:
    peer, role = end.machine.handshake.peer, end.machine.handshake.role
    assert peer is not None, "it is met"
    assert role is not None, "it is met"
    return peer.node, end.link, role
