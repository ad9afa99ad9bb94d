"""What must never happen, seen from above: it knows all voters, journals and confirms at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import Answer, Ballot, Grant, Question, Step, Verdict
from shmbroker.netbridge.member.standing import Began, HandedOver, Position
from shmbroker.netbridge.simulation.network import Message
from shmbroker.netbridge.simulation.replication.log import Frame, Log
from shmbroker.netbridge.simulation.world import Wrong


class Watch:
    def __init__(self, needed: int, *, may_split: bool) -> None:
        self.needed = needed
        self.may_split = may_split
        """Nobody can be asked, and each goes on alone."""
        self.accepted: dict[tuple[int, Ballot], dict[str, Grant]] = defaultdict(dict)
        self.decided: dict[int, Grant] = {}
        self.begun: dict[int, str] = {}
        self.would: dict[tuple[str, int], set[str]] = defaultdict(set)
        self.given: set[Position] = set()
        """Frames of journals that were emptied: what was in them is at another node."""
        self.drained = 0
        self.newest: Frame | None = None
        """The last frame that was confirmed and has to last."""
        self.logs: Mapping[str, Log] = {}
        self.leases: Callable[[], Iterable[tuple[str, int]]] = tuple
        """Who has one that is valid now by its clock, and of which epoch."""
        self.takeovers = 0
        self.handovers = 0
        self.votes = 0
        self.synced = 0
        """How often a replica was in sync."""

    # --- voters -------------------------------------------------------------------------------

    def keeps(self, voter: str, ledger: Ledger) -> None:
        """It is synced there."""
        if ledger.accepted is None:
            return
        ballot, grant = ledger.accepted
        voters = self.accepted[grant.epoch, ballot]
        if any(each != grant for each in voters.values()):
            raise Wrong(f"ballot {ballot} of epoch {grant.epoch} is for two grants")
        voters[voter] = grant
        if len(voters) >= self.needed:
            if grant.epoch not in self.decided:
                self._decides(grant)
            former = self.decided[grant.epoch]
            if former != grant:
                raise Wrong(f"epoch {grant.epoch} is decided twice: {former}, {grant}")

    def _decides(self, grant: Grant) -> None:
        """A lease says that this cannot be."""
        self.decided[grant.epoch] = grant
        for member, epoch in self.leases():
            if member != grant.holder and epoch < grant.epoch:
                raise Wrong(
                    f"{grant.holder} is granted epoch {grant.epoch}, and {member} has a lease of "
                    f"epoch {epoch}"
                )

    def answers(self, voter: str, to: str, what: Message) -> None:
        if isinstance(what, Answer) and what.step is Step.WOULD and what.verdict is Verdict.YES:
            self.would[to, what.attempt].add(voter)

    def asks(self, voter: str, what: Message) -> None:
        """Nobody makes voters promise anything before a majority would say yes."""
        if isinstance(what, Question) and what.step in (Step.PREPARE, Step.AT_ONCE):
            self.votes += 1
            if len(self.would[what.asker, what.attempt]) < self.needed:
                raise Wrong(f"{what.asker} asks for a promise that nobody would give")

    # --- members ------------------------------------------------------------------------------

    def begins(self, member: str, epoch: int, log: Log) -> None:
        """It serves: in this epoch, and with all that was confirmed."""
        former = self.begun.setdefault(epoch, member)
        if self.may_split:
            return
        if former != member:
            raise Wrong(f"epoch {epoch} is begun by {former} and by {member}")
        decided = self.decided.get(epoch)
        if decided is not None and not self._may_begin(decided, member, log):
            raise Wrong(f"{member} begins epoch {epoch}, which was granted to {decided.holder}")
        if not log.marks.is_whole:
            raise Wrong(f"{member} begins epoch {epoch} with half a copy")
        if self.newest is not None and not log.has(self.newest.position):
            raise Wrong(f"{member} begins epoch {epoch} without frame {self.newest.number}")

    def _may_begin(self, decided: Grant, member: str, log: Log) -> bool:
        """The epoch is granted to it, or was granted to one that begins nothing: that one has the
        record by which the live of before handed over to this member."""
        before = [frame for frame in log.frames if frame.epoch == decided.epoch - 1]
        handed = [frame for frame in before if frame.record == HandedOver(member)]
        knows = bool(handed) and self.logs[decided.holder].has(handed[-1].position)
        return decided.holder == member or knows

    def loses_power(self, member: str) -> None:
        """It did not begin an epoch of whose first record nobody has a copy any more: who serves
        has synced it."""
        here = {frame.record.epoch for log in self.logs.values() for frame in log.frames
                if isinstance(frame.record, Began) and frame.record.holder == member}  # fmt: skip
        self.begun = {e: name for e, name in self.begun.items() if name != member or e in here}

    def serves(self, member: str, log: Log, began_at: int) -> None:
        if log.synced < began_at:
            raise Wrong(f"{member} serves, and its first record is not synced")

    def confirms(self, member: str, epoch: int, frame: Frame, *, is_lasting: bool) -> None:
        if self.may_split:
            return
        later = [grant for e, grant in self.decided.items() if e > epoch and grant.holder != member]
        begun = [name for e, name in self.begun.items() if e > epoch and name != member]
        for holder in [*(grant.holder for grant in later), *begun]:
            if not self.logs[holder].has(frame.position) and frame.position not in self.given:
                raise Wrong(
                    f"{member} confirms frame {frame.number} in epoch {epoch}; {holder} has a "
                    "higher one, and not the frame"
                )
        if frame.position in self.given:
            return
        if is_lasting and (self.newest is None or frame.number > self.newest.number):
            self.newest = frame

    def empties(self, log: Log) -> None:
        """All that it has is at another node."""
        self.drained += 1
        self.given |= {frame.position for frame in log.frames}
        if self.newest is not None and self.newest.position in self.given:
            self.newest = None

    def delivers(self, member: str, epoch: int) -> None:
        if self.may_split:
            return
        later = [name for e, name in self.begun.items() if e > epoch and name != member]
        if later:
            raise Wrong(f"{member} delivers in epoch {epoch}, and {later[-1]} serves")
