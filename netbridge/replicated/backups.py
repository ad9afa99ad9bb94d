"""The replicas of a live: what its machine is told of them, and when confirms wait for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from shmbroker.netbridge.member.action import Action, Ship
from shmbroker.netbridge.member.machine import Member
from shmbroker.netbridge.member.standing import SERVING
from shmbroker.netbridge.member.written import OwnFrames
from shmbroker.netbridge.replicated.admission import Admission
from shmbroker.netbridge.replicated.process import now
from shmbroker.netbridge.replicated.served import Followers, Served
from shmbroker.netbridge.replicated.talks import Talks


class Live(Protocol):
    """`acting.Acting`."""

    machine: Member
    talks: Talks
    served: Served | None
    frames: OwnFrames

    def does(self, actions: Iterable[Action]) -> None: ...


class Backups:
    """Of the network thread."""

    def __init__(self, live: Live) -> None:
        self._live, self._admission = live, Admission()

    def end(self) -> None:
        """It serves no more."""
        self._admission = Admission()

    def ship(self, ship: Ship) -> None:
        served, end = self._live.served, self._live.talks.end(ship.member)
        if served is not None and end is not None:
            self._admission.ship(ship.member, ship.stream)
            served.followers.ship(ship.member, end)

    def stop(self, member: str) -> None:
        self._admission.stop(member)
        if self._live.served is not None:
            self._live.served.followers.stop(member)

    def is_cut(self, member: str) -> bool:
        """The files here do not have all that comes behind its last frame: it has to copy all."""
        served = self._live.served
        return served is not None and member in served.followers.anew

    # --- what the machine is told ---------------------------------------------------------------

    def tell(self, followers: Followers) -> None:
        for member in list(self._live.machine.followers):
            self.replica_has(member, followers.has(member))

    def replica_has(self, member: str, number: int) -> None:
        machine, served = self._live.machine, self._live.served
        if served is not None and served.asks_ahead and not machine.may_run_ahead:
            self._live.does(machine.wants_replicated(now()))
        stream = self._admission.stream(member)
        if stream and number:
            has = self._live.frames.position(number).number
            is_awaited = machine.awaits(member)
            actions = machine.replica_has(member, stream, has, now())
            if is_awaited:
                self._live.does(actions)

    def replica_over(self, member: str, why: str) -> None:
        self._live.does(self._live.machine.replica_failed(member, why, now()))

    # --- when confirms wait ---------------------------------------------------------------------

    def admit(self, name: str, boot: bytes, then: Callable[[], bool]) -> None:
        """It has all that there was when its end was attached."""
        machine, served = self._live.machine, self._live.served
        self._admission.admit(name, then)
        self._admission.count([name] if name in machine.counted else [])
        stream = self._admission.stream(name)
        self._live.does(machine.replica_can_count(name, stream, now()))
        if served is not None:
            self.replica_has(name, served.followers.has(name))

    def release(self, name: str, why: str, then: Callable[[], None]) -> None:
        self._admission.release(name, then)
        self.let_go()

    def count(self, followers: Followers) -> None:
        """Before a record is written that lists some of them."""
        self._admission.count(self._live.machine.counted)
        self.hold_confirms(followers, now())

    def hold_confirms(self, followers: Followers, at: float) -> None:
        """Who is counted may take over: nothing is confirmed without an end that stands for it."""
        machine = self._live.machine
        is_held = followers.holds(machine.counted)
        followers.awaits_backups(not is_held or machine.is_withholding(at))

    def let_go(self) -> None:
        """Confirms go on without those that the machine counts no more."""
        machine, served = self._live.machine, self._live.served
        if served is None or served.is_over:
            return
        if machine.state in SERVING and machine.granted is None:
            self._admission.let_go(machine.counted)
