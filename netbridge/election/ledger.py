"""What a voter keeps about one node.  All of it is synced before anything of it is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shmbroker.netbridge.election.question import Ballot, Grant, Listed, Node


@dataclass(frozen=True, slots=True)
class Ledger:
    known: Grant | None = None
    """The newest that is decided, with the in-sync list as the live told it last."""
    version: int = 0
    """Of that list."""
    promised: tuple[int, Ballot] | None = None
    """Of the newest epoch that somebody asked for."""
    accepted: tuple[Ballot, Grant] | None = None
    """The newest; perhaps it is decided, perhaps not."""
    lease_ms: int = 0
    """That its live wants, as the live told it last."""

    @property
    def listed(self) -> Listed | None:
        return None if self.known is None else Listed(self.known, self.version)

    @property
    def newest(self) -> Grant | None:
        """Known or accepted; a decided one counts more than an attempt at the same epoch."""
        accepted = self.accepted[1] if self.accepted else None
        if accepted and (self.known is None or accepted.epoch > self.known.epoch):
            return accepted
        return self.known

    def before(self, epoch: int) -> Grant | None:
        """The newest of a lower epoch; a decided one counts more than an attempt."""
        found = [each for each in (self.known, self.accepted and self.accepted[1]) if each]
        return max(
            (each for each in found if each.epoch < epoch),
            key=lambda each: each.epoch,
            default=None,
        )

    def accepted_from(self, epoch: int) -> tuple[Ballot, Grant] | None:
        """For that epoch or a higher one: whoever asks for the lower one has to hear of it."""
        if self.accepted and self.accepted[1].epoch >= epoch:
            return self.accepted
        return None


def of_nodes(ledgers: Mapping[Node, Ledger]) -> dict[Node, Ledger]:
    """Without the empty ones: these are of nodes that were forgotten."""
    return {node: each for node, each in ledgers.items() if each != Ledger()}
