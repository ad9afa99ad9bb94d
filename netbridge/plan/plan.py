"""A plan: which member of a list is tried next, and when. Events and a time in, actions out.

    IDLE         --start, round-->                   CONNECTING the first member of a round
    CONNECTING   --connected, greeted-->             HANDSHAKING, SYNCING
    SYNCING      --up-->                             UP
    CONNECTING…  --failed, refused-->                CONNECTING the next member, or the round ends
    end of round --said something-->                 PEER_PASSIVE, REFUSED, FAILED
    end of round --nobody answered-->                BACKOFF; UNREACHABLE after some such rounds
    UP           --lost-->                           LOST, and a new round
    any          --stop-->                           STOPPED

An attempt is one connection to one member, from its opening until it is up or has failed. A round
tries each member once. The owner is told of every loss and every change of member, however many
rounds the plan makes by itself: nothing of the former member is used for the next one.

A change of state has one line in the log when a round has ended, never for an attempt. A link that
breaks within a second of being up goes through back-off as if the round had failed: else a far end
that ends each link at once would be tried without a pause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from shmbroker.netbridge.plan.action import (
    Actions,
    Changed,
    Connect,
    Disconnect,
    Lost,
    Move,
    NoMember,
    Present,
    ReadMembers,
    Refused,
    Release,
)
from shmbroker.netbridge.plan.pacing import Chance, Pacing
from shmbroker.netbridge.plan.standby import Standby
from shmbroker.netbridge.plan.state import FINAL, LATER, LEVELS, State, state_after
from shmbroker.netbridge.plan.terms import NEVER, Terms
from shmbroker.netbridge.plan.uri import Member, Single, singles
from shmbroker.netbridge.wire.words import Refusal

SETTLED_SECONDS: Final = 1.0
SILENT_SECONDS: Final = 0.05
CLOSED_SECONDS: Final = 0.25
"""For whom a round begins with after a loss: a process that is killed may close one socket at once,
and keep others, on which nobody answers, for as long as a sync of its takes."""
NEVER_AT: Final = float("inf")
TRYING: Final = (State.CONNECTING, State.HANDSHAKING, State.SYNCING)
OF_A_ROUND: Final = (State.PEER_PASSIVE, State.REFUSED, State.FAILED)
"""What a round comes to: the first of these that a member said."""


class Plan:
    def __init__(self, members: tuple[Member, ...], terms: Terms, chance: Chance) -> None:
        self.terms = terms
        self.state = State.IDLE
        self.present: Single | None = None
        """The other end, while it is up."""
        self.attempts: Counter[Single] = Counter()
        self._members = members
        self._chance = chance
        self._standby = Standby(terms, chance)
        self._pacing = Pacing(terms.pace, chance)
        self._owner_pacing = Pacing(terms.owner_pace or terms.pace, chance)
        self._due: float | None = None
        self._is_barred = False
        """The last round has ended, and none of its members may be tried yet."""
        self._left = 0
        """Rounds until the owner is told that there is no member."""
        self._is_told = False
        self._trying: Single | None = None
        self._patient_until: float | None = None
        """Then the next member is tried, if this one has not answered."""
        self._queue: list[Single] = []
        """The rest of this round."""
        self._said: dict[Single, str] = {}
        self._answers: set[State] = set()
        self._aside: dict[Single, float] = {}
        """Members that refused, and when they are tried again."""
        self._failed_rounds = 0
        self._first: tuple[Single, ...] = ()
        """Whom the next round begins with, if they are of this plan."""
        self._up_at = 0.0
        self._target: Single | None = None
        """Where the link is about to move."""
        self._logged = State.IDLE
        self._logged_at = 0.0

    @property
    def due(self) -> float | None:
        """When `woken` wants to be called; None: only an event changes anything."""
        times = (self._due, self._patient_until, self._standby.due)
        return min((each for each in times if each is not None), default=None)

    @property
    def members(self) -> tuple[Single, ...]:
        return tuple(dict.fromkeys(one for each in self._members for one in singles(each)))

    # --- rounds -------------------------------------------------------------------------------

    def start(self, now: float) -> Actions:
        """Also after it was stopped or refused: all members are tried again."""
        if self.state in TRYING or self.state is State.UP:
            return
        if self.state is State.IDLE:
            self._logged_at = now
        self._aside.clear()
        self._failed_rounds = 0
        self._pacing.reset()
        self._owner_pacing.reset()
        self._begin_count(self.terms.startup_rounds or 1)
        yield from self._begin_round(now)

    def round(self, now: float) -> Actions:
        """The owner asks for a single round."""
        if self.state not in TRYING and self.state is not State.UP:
            self._begin_count(1)
            yield from self._begin_round(now)

    def woken(self, now: float) -> Actions:
        """The time has come."""
        if self._patient_until is not None and self._patient_until <= now:
            self._patient_until = None
            yield from self._postpone(now)
        if self._due is not None and self._due <= now:
            yield from self._begin_round(now)
        yield from self._standby.update(now, self.present, self.members)

    def _begin_count(self, rounds: int) -> None:
        self._left = rounds
        self._is_told = False

    def _begin_round(self, now: float) -> Actions:
        self._due, self._is_barred = None, False
        self._said.clear()
        self._answers.clear()
        if self.terms.lists_from is not None:
            yield ReadMembers(self.terms.lists_from)
        self._aside = {each: at for each, at in self._aside.items() if at > now}
        free = dict.fromkeys(each for each in self._ordered() if each not in self._aside)
        self._queue = self._standby.held_first(free)
        first, self._first = [each.place for each in self._first], ()
        if first:
            self._queue.sort(
                key=lambda each: first.index(each.place) if each.place in first else len(first)
            )
        yield from self._try_next(now)

    def _ordered(self) -> Iterator[Single]:
        """Lists inside of the list stay together."""

        def ordered(members: tuple[Member, ...], is_random: bool) -> Iterator[Single]:
            order = list(members)
            if is_random:
                self._chance.shuffle(order)
            for each in order:
                if isinstance(each, Single):
                    yield each
                else:
                    is_free = each.scheme == "failover"
                    yield from ordered(each.members, dict(each.values).get("randomize", is_free))

        return ordered(self._members, self.terms.is_random)

    def _try_next(self, now: float) -> Actions:
        if not self._queue:
            yield from self._end_round(now)
            return
        self._patient_until = None
        self._trying = member = self._queue.pop(0)
        self.attempts[member] += 1
        self.state = State.CONNECTING
        is_held = member in self._standby.held
        self._standby.forget(member)
        yield Connect(member, is_held)

    def _end_round(self, now: float) -> Actions:
        self._trying = None
        if self._aside and not self._said:
            self._answers.add(State.REFUSED)
        state = next((each for each in OF_A_ROUND if each in self._answers), State.BACKOFF)
        self._failed_rounds = self._failed_rounds + 1 if state is State.BACKOFF else 0
        if 0 < self.terms.warn_after <= self._failed_rounds:
            state = State.UNREACHABLE
        yield from self._settle(state, now, self.why)
        if self._left > 0:
            self._left -= 1
        yield from self._pause(now)

    @property
    def why(self) -> str:
        """What each member of this round has said so far."""
        if len(self._said) < 2:
            return next(iter(self._said.values()), "")
        return "; ".join(f"{member.peer}: {why}" for member, why in self._said.items())

    def _pause(self, now: float) -> Actions:
        """Until the next round, which is ours, or asked for by `static:`, or by the owner."""
        is_ours = self._left != 0
        if not is_ours and not self._is_told:
            self._is_told = True
            yield NoMember(dict(self._said))
        if not is_ours and self.terms.owner_pace is None:
            return
        pause = (self._pacing if is_ours else self._owner_pacing).pause()
        self._due = now + pause
        self._is_barred = bool(self.members) and all(each in self._aside for each in self.members)
        if self._is_barred and self.terms.lists_from is None:
            at = max(self._due, min(self._aside.values()))
            self._due = None if at == NEVER_AT else at

    # --- an attempt ---------------------------------------------------------------------------

    def connected(self) -> None:
        """The transport is there; the handshake begins."""
        if self.state is State.CONNECTING:
            self.state = State.HANDSHAKING

    def welcomed(self) -> None:
        """The far end has said welcome; marks are compared."""
        if self.state in TRYING:
            self.state = State.SYNCING

    def up(self, now: float) -> Actions:
        if self._trying is None:
            return
        self.present, self._trying = self._trying, None
        self._patient_until = None
        self._queue.clear()
        self._failed_rounds = 0
        self._up_at = now
        yield Present(self.present)
        yield from self._settle(State.UP, now, "")
        yield from self._standby.update(now, self.present, self.members)

    def attempt_failed(self, now: float, reason: str) -> Actions:
        """No connection, or a handshake that was not finished."""
        if self._trying is not None:
            self._said[self._trying] = reason
            yield Disconnect(self._trying)
            yield from self._try_next(now)

    def refused(
        self, now: float, refusal: Refusal, reason: str, live: Single | None = None
    ) -> Actions:
        """`live`: whom a passive member names; tried next."""
        member = self._trying
        if member is None:
            return
        self._said[member] = reason
        self._answers.add(state_after(refusal))
        if refusal in FINAL | LATER:
            retry = self.terms.refused_retry
            is_over = refusal in FINAL or retry == NEVER
            self._aside[member] = NEVER_AT if is_over else now + retry
            yield Refused(member, refusal, reason)
        if refusal is not Refusal.PASSIVE:  # that one may say later, on this connection, `active`
            yield Disconnect(member)
        if live is not None and self.terms.finds_live:
            tried = {each.place for each in (*self.members, *self._queue, *self._said)}
            if live.place not in tried:
                self._queue.append(live)
        self._queue.sort(key=lambda each: live is None or each.place != live.place)
        yield from self._try_next(now)

    def active(self, member: Single, now: float) -> Actions:
        """A member that was passive serves now: who has not answered yet waits."""
        trying = self._trying
        if self.state in (State.UP, State.STOPPED) or trying == member:
            return
        if trying is not None:
            self._queue = [member, *(each for each in self._queue if each != member)]
            yield from self._postpone(now)
        elif member in self.members:
            self._due = None
            self._queue = [member]
            yield from self._try_next(now)

    def _postpone(self, now: float) -> Actions:
        """Whoever is tried, and has not said welcome, comes last in this round."""
        member = self._trying
        if member is not None and self._queue and self.state is not State.SYNCING:
            self._queue.append(member)
            yield Disconnect(member)
            yield from self._try_next(now)

    # --- being up no more ---------------------------------------------------------------------

    def lost(
        self, now: float, reason: str, *, is_malformed: bool = False, is_silent: bool = False,
        first: tuple[Single, ...] = (),
    ) -> Actions:  # fmt: skip
        """The link broke, or said something that no link says; `first`: whom to try then.

        Who is lost is tried as well, but the others do not wait for long until it answers, and
        less if it fell silent.
        """
        member, self.present, self._target = self.present, None, None
        if member is None:
            return
        state = State.FAILED if is_malformed else State.LOST
        yield from self._settle(state, now, reason, member)
        yield Disconnect(member)
        yield Lost(member, reason)
        self._begin_count(self.terms.rounds)
        self._said = {member: reason}
        self._first = first
        is_brief = is_malformed or now - self._up_at < SETTLED_SECONDS
        if not is_brief:
            self._pacing.reset()
            self._owner_pacing.reset()
        is_asked_for = self.terms.rounds == 0 and self.terms.owner_pace is None
        if is_brief or is_asked_for or self.terms.waits_first:
            yield from self._pause(now)
        else:
            if self.terms.rounds == 0:
                self._is_told = True
                yield NoMember({member: reason})
            yield from self._begin_round(now)
            if self._trying == member and self._queue:
                patience = SILENT_SECONDS if is_silent else CLOSED_SECONDS
                self._patient_until = now + patience

    def stop(self, now: float) -> Actions:
        """Until it is started again."""
        member = self.present or self._trying
        was_present, self.present, self._trying, self._target = self.present, None, None, None
        self._due = self._patient_until = None
        self._is_barred = False
        self._queue.clear()
        yield from self._standby.update(now, None, self.members)
        if member is not None:
            yield Disconnect(member)
        if was_present is not None:
            yield Lost(was_present, "stopped")
        yield from self._settle(State.STOPPED, now, "stopped", member)

    # --- other members ------------------------------------------------------------------------

    def held(self, member: Single) -> Actions:
        """A further member is connected and authenticated."""
        if not self._standby.arrived(member):
            yield Release(member)
            return
        present, members = self.present, self.members
        is_better = self.terms.is_priority and self._standby.is_preferred(member, members)
        if present and is_better and not self._standby.is_preferred(present, members):
            yield from self._move(member)

    def hold_failed(self, member: Single, now: float) -> None:
        """It could not be connected, or what was held broke."""
        self._standby.failed(member, now)

    def move_asked(self, member: Single) -> Actions:
        """The broker asks for it."""
        if self.terms.obeys_moves and self.present not in (None, member):
            yield from self._move(member)

    def _move(self, member: Single) -> Actions:
        if self._target is None:
            self._target = member
            yield Move(member)

    def drained(self, now: float) -> Actions:
        """The batch in flight is finished: go where the link wants to be."""
        former, target = self.present, self._target
        if former is None or target is None:
            return
        self.present = self._target = None
        yield Disconnect(former)
        yield Lost(former, f"moved to {target.peer}")
        self._begin_count(self.terms.rounds or 1)
        self._said.clear()
        self._answers.clear()
        self._logged = State.CONNECTING
        self._queue = [target, *(each for each in self._ordered() if each != target)]
        yield from self._try_next(now)

    @property
    def listed(self) -> tuple[Member, ...]:
        """As it was given, or offered: with the lists that are inside."""
        return self._members

    def offered(
        self, members: tuple[Member, ...], now: float, *, was_read: bool = False
    ) -> Actions:
        """A list that a broker pushed, or that was read; it holds from the next round on, which
        begins at once if it was put off because all of the former list have refused."""
        if members and (was_read or self.terms.takes_lists):
            self._members = members
            self._aside = {each: at for each, at in self._aside.items() if each in self.members}
            yield from self._standby.update(now, self.present, self.members)
            if self._is_barred and any(each not in self._aside for each in self.members):
                yield from self._begin_round(now)

    def _settle(
        self, state: State, now: float, reason: str, member: Single | None = None
    ) -> Actions:
        self.state = state
        if state in LEVELS and state is not self._logged:
            shown = member or self.present or next(iter(self._said), None)
            yield Changed(state, self._logged, now - self._logged_at, shown, reason)
            self._logged, self._logged_at = state, now
