"""Members, links between them, what is on its way, and what was sent."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from typing import Final

from shmbroker.netbridge.cluster.advert import Advert
from shmbroker.netbridge.cluster.machine import NEVER
from shmbroker.netbridge.cluster.said import Ask, Said, Told
from shmbroker.netbridge.simulation.cost.member import End, Member, uri_of
from shmbroker.netbridge.simulation.cost.tally import Tally

WAY_SECONDS: Final = 0.001
"""Of what is said."""
CONNECT_SECONDS: Final = 0.005
"""Until a connection is made, and both ends have proved who they are."""


class Cluster:
    def __init__(self, *, hops: int = 0) -> None:
        """`hops`: of a chain; 0: each broker connects to each other one."""
        self.is_chain, self.hops = hops > 0, hops or 1
        self.members: dict[str, Member] = {}
        """By uri."""
        self.now = 0.0
        self.tally = Tally()
        """What was sent since it was at rest."""
        self.links = 0
        """That are up."""
        self._is_meeting = False
        self._steps: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    # --- what happens -------------------------------------------------------------------------

    def starts(
        self, name: str, statics: Iterable[str], adverts: Iterable[Advert], epoch: int = 1
    ) -> Member:
        """A live.  It connects to whom it knows, and those that know its address connect to it."""
        member = Member(self, name, statics, epoch)
        self.members[member.uri] = member
        member.shows(adverts)
        if not self._is_meeting:
            for each in list(self.members.values()):
                each.dials()
        return member

    def dies(self, member: Member) -> None:
        """It is gone, and so are its connections."""
        del self.members[member.uri]
        for end in list(member.ends.values()):
            if (other := end.other) is not None:
                end.other = other.other = None
                self.links -= 1
                other.member.dialled.discard(member.uri)
                other.member.down(other)

    def meets(self, adverts: Mapping[str, list[Advert]]) -> None:
        """These are there and know each other, without what they would say of third ones until
        then: of n brokers that start together it is n · n · n messages, and takes hours."""
        self._is_meeting = True
        made = [self.starts(name, list(adverts)[:1], rows) for name, rows in adverts.items()]
        for pair in combinations(made, 2):
            for near, far in (pair, pair[::-1]):
                near.dialled.add(far.uri)
                self._links(near, far)
        for member in made:
            for end in list(member.ends.values()):
                if end.other is not None:
                    member.heard(end, end.other.member.here)
        while any(each.machine.deadline < NEVER for each in made):
            self.now += 1
            for each in made:
                each.tick()
        self.rests()
        self._is_meeting = False

    def rests(self) -> Tally:
        """Until there is nothing more to say: what was sent since the last time."""
        while True:
            while self._steps:
                self.now, _, step = heapq.heappop(self._steps)
                step()
            members = list(self.members.values())
            due = min((each.machine.deadline for each in members), default=NEVER)
            if due == NEVER:
                break
            self.now = max(self.now, due)
            for each in members:
                if each.machine.deadline <= self.now:
                    each.tick()
        told, self.tally = self.tally, Tally()
        return told

    # --- of members ---------------------------------------------------------------------------

    def connects(self, near: Member, uri: str) -> None:
        """If nobody is there, it is tried when somebody starts there."""
        if uri in self.members and not self._is_meeting:
            near.dialled.add(uri)
            self._later(CONNECT_SECONDS, lambda: self._connected(near, uri))

    def _connected(self, near: Member, uri: str) -> None:
        far = self.members.get(uri)
        if far is None or self.members.get(near.uri) is not near:
            near.dialled.discard(uri)
        else:
            self._links(near, far)

    def _links(self, near: Member, far: Member) -> None:
        ends = near.new_end(), far.new_end()
        ends[0].other, ends[1].other = ends[1], ends[0]
        self.links += 1
        far.up(ends[1])
        near.up(ends[0])

    def carries(self, what: Said) -> bool:
        return not self._is_meeting or isinstance(what, Ask | Told)

    def sends(self, end: End, kind: str, message: bytes) -> None:
        self.tally.sent(kind, len(message))
        other = end.other

        def comes() -> None:
            if other is not None and other.other is end:
                other.member.arrived(other, message)

        self._later(WAY_SECONDS, comes)

    def _later(self, seconds: float, step: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._steps, (self.now + seconds, self._count, step))

    def named(self, name: str) -> Member:
        return self.members[uri_of(name)]
