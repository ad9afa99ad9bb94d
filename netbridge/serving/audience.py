"""The programs that came by one acceptor, and which nodes they are told of."""

from __future__ import annotations

from collections.abc import Iterable

from shmbroker.netbridge.carrier.end import End
from shmbroker.netbridge.remote.topology import Node, packed
from shmbroker.netbridge.serving.service import Service
from shmbroker.netbridge.wire.frame import Nodes


class Audience:
    """All of it but `tell` is of the network thread."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._ends: set[End] = set()
        self._told: Nodes | None = None
        self.heard = service.heard
        """Of each frame: so nothing stands between."""

    def came(self, end: End) -> None:
        self._ends.add(end)
        self._service.came(end)
        if self._told is not None:
            end.say(self._told)

    def gone(self, end: End) -> None:
        self._ends.discard(end)
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
