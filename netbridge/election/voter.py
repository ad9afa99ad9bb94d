"""A voter: a witness, or the live of another node.  It grants epochs and keeps leases.

It says yes to MEMBER at EPOCH if it has granted no such epoch or a higher one to anybody else,
MEMBER is on the in-sync list, and:

* a live that asks has a link to this voter;
* for a backup, this voter has no link to the live, and the live's lease is over;
* or the live itself asks, in the name of a backup: it hands over.

What was accepted is never taken back, except by a later ballot for the same epoch.  An answer
leaves when everything that the voter knew by then is synced.  A voter that is in doubt may sync
nothing meanwhile: it says later at once, and goes on keeping leases.  After a restart each live has
a whole lease, because renewals are not kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import (
    Answer,
    FromMember,
    FromVoter,
    Grant,
    Listed,
    Node,
    Question,
    Release,
    Renew,
    Renewed,
    Stale,
    Step,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class Keep:
    """Sync this; then call `kept` with the number."""

    node: Node
    ledger: Ledger
    number: int


@dataclass(frozen=True, slots=True)
class Say:
    to: str
    what: FromVoter


Action = Keep | Say
Actions = Iterator[Action]
NOT_GRANTED = "it knows nothing of this node"


class Voter:
    def __init__(self, lease: float, ledgers: Mapping[Node, Ledger], now: float) -> None:
        self.lease = lease
        """Seconds; a live that wants a longer one has that."""
        self.ledgers = dict(ledgers)
        self.synced = dict(ledgers)
        """Of these: what may be told, whatever comes."""
        self.leased_until = {node: now + self._lease_of(node) for node in ledgers}
        """Until when nobody else gets a grant: of the live of each node."""
        self.links: set[tuple[Node, str]] = set()
        self.renewing: set[tuple[Node, str]] = set()
        """Lives that have renewed over the link that they have."""
        self.is_in_doubt = False
        """It is a live of which nobody knows whether it may go on: it answers later."""
        self.waiting: dict[tuple[Node, str], Question] = {}
        """By node and asker: what was denied because the live is seen, and may change."""
        self._unsaid: deque[tuple[int, Say]] = deque()
        self._keeping: deque[Keep] = deque()
        self._keeps = 0
        self._kept = 0

    # --- what happens -------------------------------------------------------------------------

    def linked(self, node: Node, member: str) -> None:
        self.links.add((node, member))

    def unlinked(self, node: Node, member: str, *, is_closed: bool, now: float) -> Actions:
        """`is_closed`: the member's host has closed the connection; else it fell silent."""
        self.links.discard((node, member))
        self.renewing.discard((node, member))
        self.waiting.pop((node, member), None)
        if is_closed:
            self._release(node, member)
        yield from self._ask_again(now)

    def heard(self, member: str, what: FromMember, now: float) -> Actions:
        if isinstance(what, Renew):
            yield from self._renew(member, what, now)
        elif isinstance(what, Release):
            newest = self._newest(what.node)
            if newest is not None and newest.epoch == what.epoch:
                self.renewing.discard((what.node, member))
                self._release(what.node, member)
            yield from self._ask_again(now)
        else:
            yield from self._asked(what, now)

    def kept(self, number: int) -> Actions:
        """Up to this one everything is synced."""
        self._kept = max(self._kept, number)
        while self._keeping and self._keeping[0].number <= self._kept:
            keep = self._keeping.popleft()
            self.synced[keep.node] = keep.ledger
        while self._unsaid and self._unsaid[0][0] <= self._kept:
            yield self._unsaid.popleft()[1]

    def forget(self, node: Node, epoch: int) -> Actions:
        """The operator says so: this node is no more, up to that epoch.  It is, as long as somebody
        of it has a link, or a higher epoch was granted."""
        newest = self._newest(node)
        is_there = any(of == node for of, _ in self.links)
        if newest is not None and newest.epoch <= epoch and not is_there:
            self.leased_until.pop(node, None)
            yield from self._keep(node, Ledger())

    @property
    def deadline(self) -> float:
        """When a lease ends that somebody waits for, of a live that has no link."""
        ends = []
        for (node, _), question in self.waiting.items():
            live = self.ledgers.get(node, Ledger()).before(question.grant.epoch)
            if live is None or (node, live.holder) not in self.renewing:
                ends.append(self.leased_until.get(node, 0.0))
        return min(ends, default=float("inf"))

    def tick(self, now: float) -> Actions:
        yield from self._ask_again(now)

    # --- questions ----------------------------------------------------------------------------

    def _asked(self, question: Question, now: float) -> Actions:
        node, epoch = question.node, question.grant.epoch
        yield from self._learn(node, question.told)
        verdict, reason = self._judged(question, now)
        if verdict is Verdict.LATER and self._kept < self._keeps:
            later = Answer(node, question.step, question.attempt, verdict, reason)
            yield Say(question.asker, later)
            return
        ledger = self.ledgers.get(node, Ledger())
        is_kept = verdict is Verdict.YES and not self._is_settled(ledger, epoch)
        if is_kept and question.ballot is not None:
            changed = replace(ledger, promised=(epoch, question.ballot))
            if question.accepts:
                changed = replace(changed, accepted=(question.ballot, question.grant))
            yield from self._keep(node, changed)
        ledger = self.ledgers.get(node, Ledger())
        promised = ledger.promised[1] if ledger.promised and ledger.promised[0] == epoch else None
        ballots = {Verdict.YES: question.ballot, Verdict.NO: promised}
        yield from self._say(
            question.asker,
            Answer(
                node, question.step, question.attempt, verdict, reason,
                ballots.get(verdict),
                ledger.accepted_from(epoch), ledger.listed,
            ),
        )  # fmt: skip

    def _learn(self, node: Node, told: Listed | None) -> Actions:
        """What the live told another voter, as if it came from there and were late: no lease."""
        ledger = self.ledgers.get(node, Ledger())
        had = ledger.listed
        if told is None or had is None or told.age <= had.age:
            return
        if ledger.accepted_from(told.grant.epoch + 1) is None:
            yield from self._keep(node, replace(ledger, known=told.grant, version=told.version))

    @staticmethod
    def _is_settled(ledger: Ledger, epoch: int) -> bool:
        return ledger.known is not None and ledger.known.epoch >= epoch

    def _judged(self, question: Question, now: float) -> tuple[Verdict, str]:
        ledger = self.ledgers.get(question.node, Ledger())
        grant = question.grant
        newest, live = ledger.newest, ledger.before(grant.epoch)
        asked_for = grant.epoch, grant.holder
        is_same = newest is not None and (newest.epoch, newest.holder) == asked_for
        is_settled = self._is_settled(ledger, grant.epoch)
        if newest is not None and (newest.epoch > grant.epoch or is_settled):
            return (Verdict.YES, "") if is_same else (Verdict.NO, _granted(newest))
        if live is None:
            return Verdict.NO, NOT_GRANTED
        if self.is_in_doubt:
            return Verdict.LATER, "it does not know whether it may go on"
        if ledger.promised is not None and question.ballot is not None:
            if (grant.epoch, question.ballot) < ledger.promised:
                return Verdict.NO, "somebody has asked later"
            is_other = ledger.promised != (grant.epoch, question.ballot)
            if question.step is Step.AT_ONCE and is_other and ledger.promised[0] == grant.epoch:
                return Verdict.NO, "somebody has asked before"
        if question.step is Step.ACCEPT:
            return self._may_accept(question, live, now)
        if is_same:
            return Verdict.YES, ""
        return self._would(question, live, now)

    def _would(self, question: Question, live: Grant, now: float) -> tuple[Verdict, str]:
        """By the rules at the head of this file."""
        node, grant = question.node, question.grant
        if not self._is_on_list(question, live):
            return Verdict.NO, f"{grant.holder} is not in sync"
        if grant.holder == live.holder:
            if (node, grant.holder) not in self.links:
                return Verdict.NO, f"it has no link to {grant.holder}"
        elif question.asker != live.holder and self._sees(node, live, now):
            self.waiting[node, question.asker] = question.before_any_promise()
            return Verdict.NO, f"it sees {live.holder}"
        return Verdict.YES, ""

    def _may_accept(self, question: Question, live: Grant, now: float) -> tuple[Verdict, str]:
        """A grant that may have been decided is accepted whoever is on the list."""
        node, grant = question.node, question.grant
        if not (question.is_adopted or self._is_on_list(question, live)):
            return Verdict.NO, f"{grant.holder} is not in sync"
        is_consented = live.holder in (grant.holder, question.asker)
        if not is_consented and now < self.leased_until.get(node, 0.0):
            return Verdict.NO, f"the lease of {live.holder} is not over"
        return Verdict.YES, ""

    def _is_on_list(self, question: Question, live: Grant) -> bool:
        holder = question.grant.holder
        if question.asker != holder:  # its live knows its boot
            known = self.ledgers[question.node].known
            if question.asker == live.holder and known is not None and holder in known.members:
                return True  # perhaps its live cannot begin the epoch, and gives it back
            return holder in live.members
        if question.has_met_all:
            return holder in live.members
        return any(copy.allows(holder, question.boot) for copy in live.copies)

    def _sees(self, node: Node, live: Grant, now: float) -> bool:
        return (node, live.holder) in self.renewing or now < self.leased_until.get(node, 0.0)

    def _ask_again(self, now: float) -> Actions:
        """What was denied because a live was seen."""
        for key, question in list(self.waiting.items()):
            live = self.ledgers.get(question.node, Ledger()).before(question.grant.epoch)
            if live is None or not self._sees(question.node, live, now):
                del self.waiting[key]
                yield from self._asked(question, now)

    # --- leases and lists ---------------------------------------------------------------------

    def _renew(self, member: str, renew: Renew, now: float) -> Actions:
        node, grant = renew.node, renew.grant
        ledger = self.ledgers.get(node, Ledger())
        newest = ledger.newest
        is_known = self._is_settled(ledger, grant.epoch)
        if newest is not None and (
            newest.epoch > grant.epoch or (is_known and newest.holder != grant.holder)
        ):
            stale = Stale(node, grant.epoch, newest, is_decided=newest is ledger.known)
            yield from self._say(member, stale)
            return
        said, had = (renew.version, renew.lease_ms), (ledger.version, ledger.lease_ms)
        is_new = said != had and renew.version >= ledger.version
        if not is_known or is_new:
            changed = replace(ledger, known=grant, version=renew.version, lease_ms=renew.lease_ms)
            yield from self._keep(node, changed)
        self.renewing.add((node, member))
        self.leased_until[node] = now + self._lease_of(node)
        synced = self.synced.get(node, Ledger())
        if self.is_in_doubt and self._is_settled(synced, grant.epoch):
            yield Say(member, Renewed(node, grant.epoch, synced.version, renew.serial))
        else:
            told = self.ledgers[node].version
            yield from self._say(member, Renewed(node, grant.epoch, told, renew.serial))

    def _release(self, node: Node, member: str) -> None:
        known = self.ledgers.get(node, Ledger()).known
        if known is not None and known.holder == member:
            self.leased_until.pop(node, None)

    def _lease_of(self, node: Node) -> float:
        return max(self.lease, self.ledgers[node].lease_ms / 1000)

    def _newest(self, node: Node) -> Grant | None:
        return self.ledgers.get(node, Ledger()).newest

    # --- synced, then told --------------------------------------------------------------------

    def _keep(self, node: Node, ledger: Ledger) -> Actions:
        self.ledgers[node] = ledger
        self._keeps += 1
        keep = Keep(node, ledger, self._keeps)
        self._keeping.append(keep)
        yield keep

    def _say(self, to: str, what: FromVoter) -> Actions:
        if self._kept >= self._keeps:
            yield Say(to, what)
        else:
            self._unsaid.append((self._keeps, Say(to, what)))


def _granted(grant: Grant) -> str:
    return f"epoch {grant.epoch} was granted to {grant.holder}"
