"""Carries out what the machine of a pair decides.  All of it is of the network thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

from shmbroker.netbridge.link.peer import Denied
from shmbroker.netbridge.pair.codec import LIFE_BITS
from shmbroker.netbridge.pair.machine import (
    NEVER,
    Accepted,
    Action,
    Became,
    CloseApplications,
    Foreign,
    Pair,
    PairOptions,
    Tell,
)
from shmbroker.netbridge.pair.told import State, Told
from shmbroker.netbridge.paired.talks import Talks
from shmbroker.netbridge.replicated.process import now
from shmbroker.netbridge.wire.words import Refusal

REFUSALS: Final = {402: Refusal.VHOST, 403: Refusal.PASSIVE}


class Effects(Protocol):
    """Of the network of the broker; called in the network thread."""

    def close_applications(self, why: str) -> None: ...

    def became(self, *, is_active: bool) -> None:
        """Bridges run, or do not; applications that wait may come."""

    def shows(self, shown: Mapping[str, Any]) -> None: ...


class Acting:
    """A member of the network thread, the gate of its listeners, and what its link says."""

    def __init__(
        self, options: PairOptions, effects: Effects, tell: Callable[[Mapping[str, Any]], None]
    ) -> None:
        life = int.from_bytes(os.urandom(8)) >> (64 - LIFE_BITS)
        self.machine = Pair(options, life, now())
        self.talks = Talks(self, tell, is_primary=options.is_primary)
        self._effects, self._tell = effects, tell
        self._peer: State | None = None
        self.due = NEVER
        """By the clock of the thread."""

    # --- of the thread ------------------------------------------------------------------------

    def begin(self, thread_now: float) -> None:
        self.due = thread_now
        self._tell({"event": "pair", "state": self._state, "why": "started"})

    def woken(self, thread_now: float) -> None:
        self.does(self.machine.tick(now()))
        self.due = thread_now + max(0.0, self.machine.deadline - now())

    def end(self) -> None:
        """It was told when it stopped."""

    # --- what happens -------------------------------------------------------------------------

    def linked(self) -> None:
        self.does(self.machine.linked(now()))

    def told(self, what: Told) -> None:
        self.does(self.machine.heard(what, now()))
        if what.state is not self._peer:
            self._peer = what.state
            self._effects.shows(self.shown)

    def denies(self, vhost: str) -> Denied | None:
        """Whether an application is accepted: the machine may become active by it."""
        answer, actions = self.machine.application(vhost, now())
        self.does(actions)
        if isinstance(answer, Accepted):
            return None
        return Denied(REFUSALS[answer.code], f"{answer.code} {answer.reason}", answer.peer)

    def passive(self) -> Denied | None:
        state = self.machine.state
        return None if state is State.ACTIVE else Denied(Refusal.PASSIVE, f"it is {state.value}")

    def reset(self) -> str:
        """Why it is not done, or nothing."""
        state = self.machine.state
        if state is not State.CONFLICT:
            return f"it is {state.value}: there is no conflict to reset"
        self.does(self.machine.reset(now()))
        return ""

    def stop(self) -> None:
        self.does(self.machine.stop(now()))
        self._effects.shows(self.shown)

    def patience(self, failover_timeout: float) -> None:
        """The configuration was read again."""
        machine = self.machine
        machine.options = replace(machine.options, failover_timeout=failover_timeout)

    # --- what is done -------------------------------------------------------------------------

    def does(self, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:
                case Tell(what):
                    self.talks.say(what)
                case Became(state, why):
                    self._tell({"event": "pair", "state": state.value, "why": why})
                    self._effects.shows(self.shown)
                    self._effects.became(is_active=state is State.ACTIVE)
                case CloseApplications():
                    self._effects.close_applications(f"the pair: this broker is {self._state}")
                case Foreign(vhost, ours):
                    self._tell({
                        "event": "pair", "level": "warning", "state": self._state,
                        "what": "an application of another vhost was refused",
                        "asked": vhost, "served": ours,
                    })  # fmt: skip

    @property
    def _state(self) -> str:
        return self.machine.state.value

    @property
    def shown(self) -> dict[str, Any]:
        """What `status` says; the silence of one that was never heard is since our start."""
        machine = self.machine
        return {
            "role": "primary" if machine.options.is_primary else "backup",
            "pair": self._state,
            "peer": machine.peer.value if machine.peer is not None else "",
            "peer-address": machine.options.peer,
            "silence": None if self._left else round(machine.silence(now()), 3),
            "linked": self.talks.is_linked,
        }

    @property
    def _left(self) -> bool:
        return self.machine.peer is State.LEAVING
