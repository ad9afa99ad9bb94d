"""One broker of a pair: events and a time in, actions out.

The client is the vote: as long as no application connects, nobody takes over, however long the
other broker is dead.  A broker that comes back stays passive until the acting one is restarted.

The table of states, where `peer` is what the other one said last:

    mine      peer pending            peer active   peer passive         application
    pending   primary: active         passive       wait                 refused; a primary that has
                                                                         heard nothing: active
    active    stay                    conflict      stay                 accepted
    passive   active                  stay          primary: active      active if peer is silent
    conflict  as pending, pending     (below)       pending              refused

Silence is what this broker has listened to.  While it stood still itself (stopped, its host paused,
or its thread late) it heard nothing, and the other one may have taken over meanwhile.

A conflict ends when the other one was reset or restarted.  It is then not active any more, or
active anew, which its activation tells; the latter makes this one passive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from shmbroker.netbridge.pair.told import Activation, State, Told

NEVER: Final = float("inf")
LONG_AGO: Final = float("-inf")
LONGEST_PAUSE: Final = 1.0
FOREIGN_MAX: Final = 100
"""So many names of wrong vhosts get a line each."""


@dataclass(frozen=True, slots=True)
class PairOptions:
    """Times in seconds."""

    is_primary: bool
    vhost: str
    peer: str
    """Its address, for applications that are sent there."""
    failover_timeout: float = 5.0
    is_accepted_pending: bool = True
    """`accept-when-pending = "primary"`."""
    has_primary_win: bool = False
    """`on-conflict = "primary-wins"`."""

    @property
    def pause(self) -> float:
        return min(LONGEST_PAUSE, self.failover_timeout / 2)


# --- what is done -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tell:
    what: Told


@dataclass(frozen=True, slots=True)
class Became:
    """One line, and the state that people are shown.  Links and agents run while it is active."""

    state: State
    why: str


@dataclass(frozen=True, slots=True)
class CloseApplications:
    pass


@dataclass(frozen=True, slots=True)
class Foreign:
    """One line: an application has asked for a vhost of another pair."""

    vhost: str
    ours: str


Action = Tell | Became | CloseApplications | Foreign


# --- what an application is answered ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Accepted:
    pass


@dataclass(frozen=True, slots=True)
class Refused:
    code: int
    reason: str
    peer: str = ""
    """Where to try instead."""


Answer = Accepted | Refused


class Pair:
    def __init__(self, options: PairOptions, life: int, now: float) -> None:
        """`life`: no two processes of a broker have the same."""
        self.options = options
        self.state = State.PENDING
        self.peer: State | None = None
        """What it said last; None: nothing yet."""
        self.heard_at = now
        """Or started: a peer that was never heard is not silent from the first moment on.  It is
        moved by the time in which nothing could be heard."""
        self._looked_at = now
        self._stood_still = False
        """For long, and has heard nothing since."""
        self._activation = Activation(life, 0)
        self._against: Activation | None = None
        self._due_at = now
        self._foreign: set[str] = set()
        self._actions: list[Action] = []

    # --- the other broker ---------------------------------------------------------------------

    def heard(self, told: Told, now: float) -> list[Action]:
        """Over the newest link: what was said over older ones does not count."""
        if self.state is State.LEAVING:
            return []
        self._looks(now)
        self._stood_still = False
        self.peer = told.state
        self.heard_at = LONG_AGO if told.state is State.LEAVING else now
        match self.state, told.state:
            case State.PENDING | State.CONFLICT, State.PENDING if self.options.is_primary:
                self._becomes(State.ACTIVE, "peer pending", now)
            case State.PENDING, State.ACTIVE:
                self._becomes(State.PASSIVE, "peer active", now)
            case State.PASSIVE, State.PENDING:
                self._becomes(State.ACTIVE, "peer pending", now)
            case State.PASSIVE, State.PASSIVE if self.options.is_primary:
                self._becomes(State.ACTIVE, "peer passive", now)
            case State.ACTIVE, State.ACTIVE:
                self._both_active(told, now)
            case State.ACTIVE, State.CONFLICT if told.against == self._activation:
                self._stops(told, now)
            case State.CONFLICT, State.PENDING | State.PASSIVE:
                self._becomes(State.PENDING, f"peer {told.state.value}", now)
            case State.CONFLICT, State.ACTIVE if self._against != told.activation:
                self._becomes(State.PASSIVE, "peer active", now)
        return self._done()

    def linked(self, now: float) -> list[Action]:
        """It can be told something: a link to it is up."""
        self._looks(now)
        self._tell(now)
        return self._done()

    # --- applications and people --------------------------------------------------------------

    def application(self, vhost: str, now: float) -> tuple[Answer, list[Action]]:
        """One connects.  Logins of peers and of people who look are not asked here."""
        self._looks(now)
        answer = self._asked(vhost, now)
        return answer, self._done()

    def reset(self, now: float) -> list[Action]:
        """`shmbroker ha reset`."""
        self._looks(now)
        if self.state is State.CONFLICT:
            self._becomes(State.PENDING, "reset", now)
        return self._done()

    def stop(self, now: float) -> list[Action]:
        """It ends in good order."""
        self.state = State.LEAVING
        self._tell(now)
        return self._done()

    # --- time ---------------------------------------------------------------------------------

    @property
    def deadline(self) -> float:
        return NEVER if self.state is State.LEAVING else self._due_at

    def tick(self, now: float) -> list[Action]:
        if now >= self.deadline:
            self._looks(now)
            is_late = now - self._due_at >= self._long
            if not is_late and self.silence(now) > self.options.failover_timeout:
                self._stood_still = False
            self._tell(now)
        return self._done()

    def silence(self, now: float) -> float:
        """So long the peer has said nothing, as far as this broker could hear."""
        return now - self.heard_at

    # --- inside -------------------------------------------------------------------------------

    @property
    def _long(self) -> float:
        """To be late: the peer may count this broker as dead soon."""
        return self.options.failover_timeout / 2

    def _looks(self, now: float) -> None:
        """Before anything else.  After it has stood still for long it waits anew, because what it
        knows of the peer is from before; but once in a silence: one that is always late would wait
        for ever."""
        late = now - max(self._due_at, self._looked_at)
        self._looked_at = now
        if late >= self._long and not self._stood_still:
            self.heard_at, self._stood_still = now, True
        else:
            self.heard_at += max(0.0, late)

    def _asked(self, vhost: str, now: float) -> Answer:
        ours = self.options.vhost
        if vhost != ours:
            if vhost not in self._foreign and len(self._foreign) < FOREIGN_MAX:
                self._foreign.add(vhost)
                self._actions.append(Foreign(vhost, ours))
            return Refused(402, f"this pair serves vhost {ours}, not {vhost}")
        if self.silence(now) > self.options.failover_timeout and self._may_begin:
            self._becomes(State.ACTIVE, "client asked", now)
        if self.state is State.ACTIVE:
            return Accepted()
        peer = self.options.peer if self.state is State.PASSIVE else ""
        return Refused(403, self.state.value, peer)

    @property
    def _may_begin(self) -> bool:
        """When nothing is heard of the other one, and a client asks."""
        if self.state is State.PENDING:
            return self.options.is_primary and self.options.is_accepted_pending
        return self.state is State.PASSIVE

    def _both_active(self, told: Told, now: float) -> None:
        if not self.options.has_primary_win:
            self._stops(told, now)
        elif not self.options.is_primary:
            self._becomes(State.PASSIVE, "both were active, and the primary wins", now)

    def _stops(self, told: Told, now: float) -> None:
        self._against = told.activation
        self._becomes(State.CONFLICT, "both were active", now)

    def _becomes(self, state: State, why: str, now: float) -> None:
        was_active = self.state is State.ACTIVE
        self.state = state
        if state is State.ACTIVE:
            self._activation = Activation(self._activation.life, self._activation.number + 1)
        if state is not State.CONFLICT:
            self._against = None
        if was_active:
            self._actions.append(CloseApplications())
        self._actions.append(Became(state, why))
        self._tell(now)

    def _tell(self, now: float) -> None:
        self._actions.append(Tell(Told(self.state, self._activation, self._against)))
        self._due_at = now + self.options.pause

    def _done(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions
