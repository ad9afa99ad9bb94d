"""A live of the cluster: what its machine says goes into its links, as frames."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.cluster.advert import Advert
from shmbroker.netbridge.cluster.codec import decode, encode
from shmbroker.netbridge.cluster.machine import Action, Membership, Terms
from shmbroker.netbridge.cluster.said import Ask, Here, Said, Say, Told
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.election.threshold import Quorum
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.wire import codec as frames
from shmbroker.netbridge.wire.frame import ID_BYTES, Talk

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.cost.cluster import Cluster

FRAME_BYTES: Final = LinkTimes().max_frame_size


def id_of(*words: object) -> bytes:
    return blake2b(repr(words).encode(), digest_size=ID_BYTES).digest()


def uri_of(name: str) -> str:
    return f"tcp://{name}.example.net:61619"


@dataclass(eq=False, slots=True)
class End:
    """Of a link, at one member."""

    member: Member
    number: int
    other: End | None = None
    """None: the link is lost."""
    sent: int = 0


class Member:
    def __init__(self, cluster: Cluster, name: str, statics: Iterable[str], epoch: int = 1) -> None:
        self.cluster, self.name, self.uri = cluster, name, uri_of(name)
        self.node: Node = id_of("node", name)
        terms = Terms(
            name, self.uri, (name,), tuple(map(uri_of, statics)),
            learns=not cluster.is_chain, hops=cluster.hops,
        )  # fmt: skip
        self.machine = Membership(terms, id_of("process", name, epoch), Quorum())
        self.ends: dict[int, End] = {}
        self.dialled: set[str] = set()
        """Where its own connections lead to, or are about to."""
        self._links = 0
        self.does(self.machine.becomes(self.node, epoch, is_live=True))

    def shows(self, adverts: Iterable[Advert]) -> None:
        self.does(self.machine.shows(adverts))

    def new_end(self) -> End:
        self._links += 1
        return End(self, self._links)

    def up(self, end: End) -> None:
        self.ends[end.number] = end
        self.does(self.machine.up(end.number, self.cluster.now))

    def down(self, end: End) -> None:
        del self.ends[end.number]
        self.does(self.machine.down(end.number, self.cluster.now))

    def arrived(self, end: End, message: bytes) -> None:
        _, frame = frames.decode(message, FRAME_BYTES)
        assert isinstance(frame, Talk)
        what = decode(frame.body)
        assert isinstance(what, Said)
        self.heard(end, what)

    def heard(self, end: End, what: Said) -> None:
        self.does(self.machine.heard(end.number, what, self.cluster.now))
        if not isinstance(what, Ask | Told):
            self.dials()

    def tick(self) -> None:
        self.does(self.machine.tick(self.cluster.now))

    def dials(self) -> None:
        for uri in sorted(self.machine.wanted - self.dialled):
            self.cluster.connects(self, uri)

    def does(self, actions: Iterable[Action]) -> None:
        for action in list(actions):
            end = self.ends.get(action.link) if isinstance(action, Say) else None
            if end is not None and isinstance(action, Say):
                if self.cluster.carries(action.what):
                    message = frames.encode(Talk(encode(action.what)), end.sent)
                    end.sent += 1
                    self.cluster.sends(end, type(action.what).__name__, message)

    @property
    def here(self) -> Here:
        """What it says of itself on a new link."""
        assert self.machine.me is not None
        return Here(self.machine.me, len(self.machine.lives) + 1, 0)

    @property
    def has_read_all(self) -> bool:
        adverts, lives = self.machine.adverts, self.machine.lives
        return all(adverts.is_read(node) for node in lives)
