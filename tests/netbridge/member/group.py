"""A small group of members on the simulation's stage, driven step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shmbroker.netbridge.member.action import Line
from shmbroker.netbridge.member.machine import Member
from shmbroker.netbridge.member.options import MemberOptions
from shmbroker.netbridge.member.standing import SERVING, State
from shmbroker.netbridge.simulation.replication.member import MemberProcess
from shmbroker.netbridge.simulation.replication.scene import Cast, Scene
from shmbroker.netbridge.simulation.world import World
from shmbroker.netbridge.wire.words import Level

STEP_SECONDS = 0.02
PATIENCE_SECONDS = 60.0
LONG = 1e6


class Group(Scene):
    def __init__(
        self,
        members: int = 2,
        voters: int = 1,
        *,
        splits: bool = False,
        max_replicas: int = 1,
        changes: dict[str, Any] | None = None,
        fails_back: bool = True,
        has_command: bool = False,
    ) -> None:
        self.changes = changes or {}
        self.of_one: dict[str, dict[str, Any]] = {}
        """Options of single members."""
        cast = Cast(members, voters, max_replicas, splits, False, fails_back, has_command)
        super().__init__(World(1, is_traced=True), cast)
        self.stays_down: set[str] = set()
        self.clients.clear()

    def _options(self, name: str) -> MemberOptions:
        changes = self.changes | self.of_one.get(name, {})
        return replace(super()._options(name), **changes)

    def _again(self, host: Any) -> None:
        if host.name not in self.stays_down:
            super()._again(host)

    def starts(self, *names: str) -> None:
        """These only; all of them if there are no names."""
        names = names or self.names
        for name, host in self.hosts.items():
            if name in names:
                self._starts(host)
            else:
                host.ends()
        self._dial()

    def returns(self, name: str) -> None:
        self.stays_down.discard(name)
        self._starts(self.hosts[name])

    def dies(self, name: str, *, power: bool = False) -> None:
        """And stays away."""
        self.stays_down.add(name)
        self.ends(self.hosts[name], loses_power=power)

    def parts(self, one: str, *others: str) -> None:
        """They do not reach each other any more."""
        for other in others:
            self._block(one, [other], LONG)

    def heals(self) -> None:
        self.network.blocked.clear()

    def dials_now(self) -> None:
        self.world.run(self.world.now + 0.2)

    # --- what it looks like -------------------------------------------------------------------

    def machine(self, name: str) -> Member:
        return self.members[name].machine

    def state(self, name: str) -> State:
        return self.machine(name).state

    def write(self, name: str, message: str = "", level: Level | None = None) -> bool:
        """A publish: whether this member takes it, and confirms it in time."""
        from shmbroker.netbridge.history.event import Queue
        from shmbroker.netbridge.simulation.replication.log import Made, Put

        process: MemberProcess = self.members[name]
        queue, answers = Queue("orders"), []
        rings = process.rings
        if rings is not None and queue not in rings.queues:
            process.write((Made(queue),), level, answers.append)
        self.number += 1
        put = Put(queue, message or f"m{self.number}", f"p{self.number}", 1)
        if not process.write((put,), level, answers.append):
            return False
        until = self.world.now + 1.0
        taken = len(answers)
        while len(answers) <= taken and self.world.now < until:
            self.world.run(self.world.now + STEP_SECONDS)
        return bool(answers)

    def lines(self) -> str:
        return "\n".join(self.world.trace or [])

    def until(self, what: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
        end = self.world.now + seconds
        while not what():
            assert self.world.now < end, self.misses() + "\n" + self.lines()
            self.world.run(self.world.now + STEP_SECONDS)

    def reaches(self, name: str, *states: State) -> None:
        self.until(lambda: name in self.members and self.state(name) in states)

    def rests(self, seconds: float = 3.0) -> None:
        self.world.run(self.world.now + seconds)

    @property
    def serving(self) -> list[str]:
        return [
            name
            for name, each in self.members.items()
            if each.host.is_up and each.machine.state in SERVING
        ]


def pair(**options: Any) -> Group:
    """A live and a backup in sync."""
    group = Group(**options)
    group.starts()
    group.reaches("a", State.LIVE)
    group.reaches("b", State.IN_SYNC)
    return group


def alerts(actions: list[Any]) -> list[str]:
    return [each.alert.value for each in actions if isinstance(each, Line)]


def three(**options: Any) -> Group:
    """Of which two are in sync with the live, and nobody can be asked."""
    group = pair(members=3, voters=0, max_replicas=2, fails_back=False, **options)
    group.until(lambda: len(group.machine("a").backups) == 2)
    return group


def is_told_of_the_death(group: Group, name: str, dead: str = "a") -> None:
    group.members[name].does(group.machine(name).died(dead, group.hosts[name].clock))
