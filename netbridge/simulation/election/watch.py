"""What must never happen, as far as voters, leases and lists can bring it about."""

from __future__ import annotations

from collections.abc import Iterable

from shmbroker.netbridge.election.question import Grant
from shmbroker.netbridge.simulation.replication.watch import Watch
from shmbroker.netbridge.simulation.world import Wrong


class ElectionWatch(Watch):
    def __init__(self, needed: int) -> None:
        super().__init__(needed, may_split=False)
        self.waits: dict[int, frozenset[str]] = {}
        """By epoch that was begun: for whom its live waits before it confirms."""
        self.granted = 0
        """How many epochs."""
        self.adopted = 0
        """Ballots that bring to its end what another one may have decided."""

    def _decides(self, grant: Grant) -> None:
        self.granted += 1
        super()._decides(grant)
        self._has_all(grant)

    def _has_all(self, grant: Grant) -> None:
        before = max((each for each in self.begun if each < grant.epoch), default=0)
        if before and grant.holder not in self.waits[before]:
            raise Wrong(f"{grant.holder} may lack what {self.begun[before]} has confirmed in "
                        f"epoch {before}, and has epoch {grant.epoch}")

    def serves_from(self, member: str, grant: Grant) -> None:
        """It begins this epoch: the first one of all, one that it has had, or one granted to it."""
        former = self.begun.setdefault(grant.epoch, member)
        if former != member:
            raise Wrong(f"epoch {grant.epoch} is begun by {former} and by {member}")
        if grant.epoch not in self.waits and len(self.begun) > 1:
            self.told(grant)
            self._has_all(grant)
        self.waits[grant.epoch] = grant.members

    def told(self, grant: Grant) -> None:
        """A member was told that this is decided."""
        decided = self.decided.get(grant.epoch)
        holder = decided.holder if decided is not None else self.begun.get(grant.epoch)
        if holder != grant.holder:
            raise Wrong(f"{grant.holder} is said to have epoch {grant.epoch}, and {holder} has it")

    def waits_for(self, epoch: int, members: Iterable[str]) -> None:
        self.waits[epoch] = frozenset(members)
