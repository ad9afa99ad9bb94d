"""A member whose journal is new: it founds a node, if it is preferred and nobody has one.

A disk that was lost looks like a first start.  The other members know better: one of them has a
node, be it live or in doubt.  So the others are met first, or had the time to connect, and whoever
meets one with a node founds none: it joins that node as soon as somebody serves it.  Who refuses
this member, or is refused by it, may have a node as well.
"""

from __future__ import annotations

from abc import abstractmethod

from shmbroker.netbridge.election.question import Copy, Grant
from shmbroker.netbridge.member.action import Action, Alert
from shmbroker.netbridge.member.claiming import Claiming
from shmbroker.netbridge.member.core import NEVER
from shmbroker.netbridge.member.standing import LOOKING, State


class Founding(Claiming):
    look_until = NEVER
    """For whoever serves."""
    founds_at = NEVER
    """By then each of the others has connected, if it runs."""
    awaits_others = False
    refusers: frozenset[str] = frozenset()
    """Who has refused it, and has not let it in since."""

    @abstractmethod
    def _join_later(self, state: State, now: float, why: str = "") -> None: ...

    @property
    def is_new(self) -> bool:
        """Its journal."""
        return not self.epoch and self.is_whole

    @property
    def heeds_refusals(self) -> bool:
        """It wants to join, or to found a node, and who refuses it may have one."""
        would_found = self.is_new and self.state in (State.STARTING, State.HELD)
        return self.state is State.JOINING or would_found

    def start(self, now: float) -> list[Action]:
        self._looks(now)
        return self.done()

    def _looks(self, now: float) -> None:
        self.look_until = now + self.look_seconds
        self.founds_at = now + self.meet_seconds

    def refused(self, member: str, why: str) -> list[Action]:
        """The link was not made: a wrong password, another group, another engine."""
        if self.state in LOOKING or self.heeds_refusals:
            self.refusers |= {member}
            self.look_until = NEVER  # it founds no node beside that one
            self.becomes(State.REFUSED, f"{member}: {why}")
        return self.done()

    def _is_let_in(self, now: float) -> None:
        """It has a link, after somebody has refused it."""
        if not self.is_new or self._with_node:
            self.becomes(State.JOINING)
        elif not self.refusers:
            self.becomes(State.STARTING)
            self._looks(now)

    def goes_on(self, at: float) -> None:
        """It is isolated no more, and until then it may meet who serves meanwhile."""
        if not self.epoch:
            self.look_until = at
        else:
            self.retry_at = at

    def _founds(self, fresh_node: bytes, now: float) -> None:
        """Nobody that serves was met."""
        with_node = self._with_node
        if not self.options.is_preferred:
            self._join_later(State.JOINING, now)
        elif with_node:
            which = with_node[0]
            epoch = self.peers[which].epoch
            self._hold(f"{which} has a node (epoch {epoch}), and the journal here is new")
        elif now < self.founds_at and not self._are_all_here:
            self.look_until, self.awaits_others = self.founds_at, True
        elif not self._is_held_back():
            self.node = fresh_node
            self._begin(Grant(1, self.me, (Copy(self.me),)))

    @property
    def _with_node(self) -> list[str]:
        return [member for member, hello in sorted(self.peers.items()) if hello.node]

    @property
    def _are_all_here(self) -> bool:
        """False where backups are not known by name: they run at other lives."""
        others = set(self.options.members) - {self.me}
        return bool(others) and others <= self.peers.keys()

    def _meets(self, now: float) -> None:
        """Another member has said what it has."""
        waits = self.awaits_others and self.look_until < NEVER
        is_held = self.state is State.HELD and self.is_new and not self._with_node  # any more
        if (waits or is_held) and self._are_all_here:
            self.look_until = now
        is_news = self.why != self.waits_for and not self.isolation
        if self.state is State.HELD and self.lost_theirs and is_news:
            self.log(Alert.HELD, self.waits_for)
            self.becomes(State.HELD, self.waits_for)

    @property
    def waits_for(self) -> str:
        """For people."""
        why = f"waits for {self.awaited} (epoch {self.epoch})"
        lost = ", ".join(sorted(self.lost_theirs))
        return f"{why}; the journal of {lost} is not of this node any more" if lost else why
