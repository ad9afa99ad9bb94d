"""What a member may write into an engine: the rules of a voter, over what the engine has.

Each member has a judge of its own, and the engine sees to it that of two writes one is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import (
    Answer,
    FromMember,
    FromVoter,
    Node,
    Question,
    Release,
    Renewed,
    Verdict,
)
from shmbroker.netbridge.election.voter import Keep, Say, Voter
from shmbroker.netbridge.engine.engine import Lease, LeaseStep, Seen

NEVER: Final = float("inf")
MEND: Final = "shmbroker ha epoch set puts it right"


@dataclass(frozen=True, slots=True)
class Judged:
    answer: FromVoter | None
    """To be given once the write, if there is one, is done."""
    ledger: Ledger | None = None
    """To be written; None: nothing."""
    lease: LeaseStep = LeaseStep.STAYS
    waits_until: float | None = None
    """It was denied because the live's lease is not over: judge it again then, or at word of it."""
    refused: str = ""
    """The engine knows less than this member; for the log."""


@dataclass(slots=True)
class _Watched:
    """A lease, and since when it was not renewed, as far as we have seen."""

    lease: Lease
    since: float


class Judge:
    def __init__(self, me: str, *, ends_leases: bool) -> None:
        self.me = me
        self._ends_leases = ends_leases
        self._watched: dict[Node, _Watched] = {}
        self._told: dict[Node, int] = {}
        """The highest epoch that the engine has had."""

    def reconnected(self) -> None:
        """What was seen before was perhaps another server's."""
        self._watched.clear()

    def judge(self, what: FromMember, seen: Seen, now: float) -> Judged:
        until = self._leased_until(what.node, seen, now)
        if refused := self._is_behind(what, seen):
            return Judged(_denied(what, refused), refused=refused)
        voter = Voter(0.0, {what.node: seen.ledger} if seen.ledger else {}, now)
        voter.leased_until = {what.node: until}
        voter.linked(what.node, self.me)
        actions = list(voter.heard(self.me, what, now))
        kept = [each for each in actions if isinstance(each, Keep)]
        said = [each.what for each in actions if isinstance(each, Say)]
        for keep in kept:
            said += [each.what for each in voter.kept(keep.number) if isinstance(each, Say)]
        answer = said[-1] if said else None
        ledger = kept[-1].ledger if kept else None
        waits_until = until if voter.waiting else None
        if isinstance(answer, Renewed):
            return Judged(answer, ledger or seen.ledger, LeaseStep.TAKEN)
        if isinstance(what, Release):
            is_ours = what.node not in voter.leased_until and self._has_lease(seen)
            return Judged(None, seen.ledger, LeaseStep.FREED) if is_ours else Judged(None)
        if ledger is None:
            return Judged(answer, waits_until=waits_until)
        return Judged(answer, ledger, LeaseStep.IS_FREE if until <= now else LeaseStep.STAYS)

    def wrote(self, node: Node, ledger: Ledger) -> None:
        """The engine has it."""
        if ledger.newest is not None:
            self._told[node] = max(self._told.get(node, 0), ledger.newest.epoch)

    def _has_lease(self, seen: Seen) -> bool:
        return seen.lease is not None and seen.lease.holder == self.me

    def _leased_until(self, node: Node, seen: Seen, now: float) -> float:
        """Nobody else may be granted anything before; the past if nobody has the lease."""
        if seen.lease is None or seen.ledger is None:
            self._watched.pop(node, None)
            return now
        if self._ends_leases:
            return NEVER
        watched = self._watched.get(node)
        if watched is None or watched.lease != seen.lease:
            watched = self._watched[node] = _Watched(seen.lease, now)
        return watched.since + seen.ledger.lease_ms / 1000

    def _is_behind(self, what: FromMember, seen: Seen) -> str:
        """It was emptied, or restored from a backup: it may grant an epoch a second time."""
        newest = seen.ledger.newest if seen.ledger is not None else None
        has = newest.epoch if newest is not None else 0
        ours = self._told.get(what.node, 0)
        if not isinstance(what, Release):
            # that of a question is not granted yet; and a live of whose epoch the engine does not
            # know was handed over to while nobody could be asked
            ours = max(ours, what.grant.epoch - 1)
        if has >= ours:
            return ""
        return f"it knows epoch {has} of node {what.node.hex()}, and {self.me} epoch {ours}: {MEND}"


def _denied(what: FromMember, why: str) -> FromVoter | None:
    if not isinstance(what, Question):
        return None
    return Answer(what.node, what.step, what.attempt, Verdict.NO, why)
