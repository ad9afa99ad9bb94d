"""A member that looks for a live, joins it, and follows it: what its journal says by that.

JOINING --a live is met--> SYNCING --the live says so--> IN_SYNC
        --no free place--> WAITING     --another node, a wrong password--> REFUSED
"""

from __future__ import annotations

from shmbroker.netbridge.member.action import Action, Alert, Follow
from shmbroker.netbridge.member.claiming import UNANSWERED_MAX
from shmbroker.netbridge.member.core import NEVER
from shmbroker.netbridge.member.founding import Founding
from shmbroker.netbridge.member.options import MemberOptions
from shmbroker.netbridge.member.said import AskBack, Join, Joined, NotJoined
from shmbroker.netbridge.member.standing import (
    LOOKING,
    Began,
    Copies,
    HandedOver,
    Parked,
    Past,
    Position,
    Record,
    State,
)


class Joining(Founding):
    def __init__(
        self, options: MemberOptions, past: Past, *, boot: str, life: str, now: float
    ) -> None:
        super().__init__(options, past, boot=boot, life=life, now=now)
        self.closing_until = NEVER
        """The live has begun to stop, and has not handed over yet."""
        self.stream = 0
        """Of its newest request to follow."""
        self.has_asked_back = False

    # --- joining ------------------------------------------------------------------------------

    def _join_later(self, state: State, now: float, why: str = "") -> None:
        self.joins_later(now)
        self.becomes(state, why)
        self._look(now)

    def _look(self, now: float) -> None:
        """Join whoever serves this node, if somebody does."""
        if self.state not in LOOKING or self.is_stopping:
            return
        if self.candidate is not None and not self.candidate.may_be_dropped:
            return
        lives = [
            (hello.epoch, member)
            for member, hello in self.peers.items()
            if hello.serves and hello.epoch >= self.epoch and self.node in (b"", hello.node)
        ]
        if lives and not self.live:
            self.live = max(lives)[1]
            self.drop_vote()
            self.look_until = NEVER
            is_new = self.state is State.HELD and not self.epoch  # it founds no node any more
            if self.state is State.ASKING or is_new:
                self.becomes(State.JOINING)
            self.stream += 1
            join = Join(self.node, self.last, self.is_whole, self.has_left, self.boot, self.stream)
            self.tell(self.live, join)
            self.retry_at = now + self.options.retry_wait * 2**self.unanswered
            self.unanswered = min(self.unanswered + 1, UNANSWERED_MAX)

    def _joined(self, member: str, what: Joined, now: float) -> None:
        if self.state not in LOOKING or (member, what.stream) != (self.live, self.stream):
            return
        if not self.node:
            self.node = self.peers[member].node
        self.is_whole = not what.is_all
        if what.is_all:
            self.copies = ()
        self.retry_at, self.closing_until, self.unanswered = NEVER, NEVER, 0
        self.has_asked_back = self.was_in_sync = False
        self.proven.clear()
        self.let_ahead = frozenset()
        self.becomes(State.SYNCING)
        self.does(Follow(member, what.epoch, what.is_all, what.stream))

    def _not_joined(self, member: str, what: NotJoined, now: float) -> None:
        if self.state not in LOOKING or (member, what.stream) != (self.live, self.stream):
            return
        states = {"already-replicating": State.WAITING, "node": State.REFUSED}
        state = states.get(what.reason, State.JOINING)
        self.joins_later(now)
        self.becomes(state, f"{member}: {what.reason}")

    # --- following ----------------------------------------------------------------------------

    def took(self, last: Position, records: tuple[Record, ...] = ()) -> list[Action]:
        """Frames of the live are in the journal, and these records were among them."""
        self.last = last
        self.epoch = last.epoch
        for record in records:
            if isinstance(record, (Began, Copies)):
                self.copies = record.copies
                if any(copy.member == self.me for copy in record.copies):
                    self.has_left = False
            if isinstance(record, Began):
                if record.holder != self.me:
                    self.has_drained = self.is_closed = False
                self.is_forced = record.is_forced
                self.handed_to, self.is_parked = "", False
            elif isinstance(record, HandedOver):
                self.handed_to = record.to
            elif isinstance(record, Parked):
                self.is_parked = True
        return self.done()

    def copied(self, last: Position) -> list[Action]:
        """The whole copy is complete and synced; what was set aside may be erased."""
        self.is_whole = True
        return self.took(last)

    def _in_sync(self, member: str, now: float) -> None:
        if self.state is State.SYNCING:
            self.was_in_sync = True
            self.becomes(State.IN_SYNC)
            self.log(Alert.IN_SYNC)
        options = self.options
        wants = options.is_preferred and options.check_for_live and options.allow_failback
        if wants and not self.has_asked_back:
            self.has_asked_back = True
            self.log(Alert.FAILBACK_ASKED, member)
            self.tell(member, AskBack())
