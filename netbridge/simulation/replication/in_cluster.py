"""A member whose voters are the lives of a cluster: it knows those that it has met."""

from __future__ import annotations

from typing import Any

from shmbroker.netbridge.election.candidate import Electorate
from shmbroker.netbridge.simulation.replication.member import MemberProcess


class ClusterMember(MemberProcess):
    def __init__(self, voters: tuple[str, ...], *given: Any) -> None:
        self.others = voters
        self.known: set[str] = set()
        super().__init__(*given)

    def connected(self, other: str) -> None:
        if other in self.others and other not in self.known:
            self.known.add(other)
            electorate = self.machine.options.electorate
            assert electorate is not None
            met = Electorate(tuple(sorted(self.known)), electorate.needed)
            self.does(self.machine.voters_are(met, self.host.clock))
        super().connected(other)
