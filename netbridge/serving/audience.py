"""The programs that came by one acceptor, which nodes they are told of, and who of them is invited
to a node that is new.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Final

from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.cluster.newcomers import Newcomers, share
from shmbroker.netbridge.remote.topology import Node, packed
from shmbroker.netbridge.serving.service import Service
from shmbroker.netbridge.wire.frame import Invite, Nodes
from shmbroker.netbridge.wire.words import Role

APART_SECONDS: Final = 0.02
"""Between two that are invited: a new node is not to get all of them at once."""


class Audience:
    """All of it but `tell` and `shares_with` is of the network thread."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._ends: dict[End, None] = {}
        """In the order in which they came."""
        self._told: Nodes | None = None
        self._newcomers = Newcomers()
        self._invited: deque[tuple[End, Invite]] = deque()
        """Those who are told soon."""
        self.heard = service.heard
        """Of each frame: so nothing stands between."""

    def came(self, end: End) -> None:
        self._ends[end] = None
        self._service.came(end)
        if self._told is not None:
            end.say(self._told)

    def gone(self, end: End) -> None:
        self._ends.pop(end, None)
        self._service.gone(end)

    def tell(self, nodes: Iterable[Node]) -> None:
        """Those that are here, and those that come."""
        told = Nodes(packed(nodes))
        self._service.soon(lambda: self._tell(told))

    def _tell(self, told: Nodes) -> None:
        if told != self._told:
            self._told = told
            for end in list(self._ends):
                end.say(told)

    # --- a share of them goes to a node that is new -------------------------------------------

    def shares_with(self, there: Iterable[Node]) -> None:
        """These nodes serve, and this one; none: programs stay where they are."""
        nodes = {each.id: each.live for each in there}
        self._service.soon(lambda: self._share(nodes))

    def _share(self, nodes: dict[bytes, str]) -> None:
        new = self._newcomers.see(nodes, time.monotonic()) if nodes else ()
        for node in sorted(new):
            programs = [
                each for each in reversed(self._ends)
                if each.machine.handshake.role is Role.CLIENT
            ]  # fmt: skip
            invite = Invite(nodes[node])
            was_idle = not self._invited
            goes = islice(programs, share(len(programs), len(nodes)))
            self._invited.extend((each, invite) for each in goes)
            if was_idle:
                self._invite()

    def _invite(self) -> None:
        """One of those that are here still; the next one in a moment."""
        while self._invited:
            end, invite = self._invited.popleft()
            if end in self._ends:
                end.say(invite)
                self._service.alarms.at(time.monotonic() + APART_SECONDS, self._invite)
                return
