"""Both brokers and their applications on one stage; never two accept without an excuse."""

from __future__ import annotations

from functools import partial
from typing import Final

from shmbroker.netbridge.pair.machine import PairOptions
from shmbroker.netbridge.pair.told import State
from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.network import DELAY_SECONDS
from shmbroker.netbridge.simulation.pair.broker import VHOST, PairProcess
from shmbroker.netbridge.simulation.replication.process import BEAT_SECONDS, SILENCE_SECONDS, Line
from shmbroker.netbridge.simulation.stage import Stage
from shmbroker.netbridge.simulation.world import World, Wrong

PRIMARY: Final = "east"
BACKUP: Final = "west"
DIAL_SECONDS: Final = 0.1
DOWN_SECONDS: Final = 0.05, 3.0
ASK_SECONDS: Final = 0.05, 0.4
FAILOVER_SECONDS: Final = 1.5
RECONNECT_SECONDS: Final = SILENCE_SECONDS + BEAT_SECONDS + 2 * DIAL_SECONDS
"""After a way is free again, until both have heard of each other."""
CLOCK_RATES: Final = 0.95, 1.05
APPLICATIONS: Final = {"right": (PRIMARY, BACKUP), "wrong": (BACKUP, PRIMARY)}
STAYS: Final = 0.7
"""An application that has a session keeps it so often."""
SILENT: Final = frozenset({"one-way", "partition", "stand-still", "half-open", "drop"})
"""After these a broker may be silent for long, and live."""


class Scene(Stage):
    names = PRIMARY, BACKUP

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.has_primary_win = world.random.random() < 0.5
        self.disks = {name: Disk(world) for name in self.names}
        self.brokers: dict[str, PairProcess] = {}
        self.sessions: dict[str, PairProcess] = {}
        """By application: with whom it has one."""
        self.accepted = 0
        self.excused_until = 0.0
        self.is_calm = False
        """Everything was healed: applications stay where they are."""
        self.conflicts: dict[str, PairProcess] = {}
        """Who has stopped, and is to be stopped until one of both is reset or restarted."""

    @property
    def published(self) -> int:
        return self.accepted

    def begin(self) -> None:
        for host in self.hosts.values():
            host.jumped = self.world.between(0, 1000)
            host.rate = self.world.between(*CLOCK_RATES)
            self.world.later(self.world.between(0, 0.5), partial(self._starts, host))
            host.is_up = False
        self._dial()
        for name in APPLICATIONS:
            self._asks(name)

    # --- processes ----------------------------------------------------------------------------

    def _starts(self, host: Host) -> None:
        if host.is_up:
            return
        host.starts()
        other = BACKUP if host.name == PRIMARY else PRIMARY
        options = PairOptions(
            is_primary=host.name == PRIMARY, vhost=VHOST, peer=other,
            failover_timeout=FAILOVER_SECONDS, has_primary_win=self.has_primary_win,
        )  # fmt: skip
        self.conflicts.clear()
        process = PairProcess(host, self.disks[host.name], options, self._changed)
        self.brokers[host.name] = process
        process.begin()

    def ends(self, host: Host, loses_power: bool) -> None:
        if not host.is_up:
            return
        if not loses_power:
            self.network.killed(host)
        host.ends()
        self.world.later(self.world.between(*DOWN_SECONDS), partial(self._starts, host))

    def runs(self, name: str) -> PairProcess | None:
        process = self.brokers.get(name)
        return process if process is not None and self.hosts[name].is_up else None

    @property
    def running(self) -> list[PairProcess]:
        found = [self.runs(name) for name in self.names]
        return [each for each in found if each is not None]

    def _dial(self) -> None:
        near = self.runs(PRIMARY)
        if near and self.runs(BACKUP) and BACKUP not in near.lines:
            near.host.later(self.world.between(*DELAY_SECONDS), self._join)
        self.world.later(DIAL_SECONDS, self._dial)

    def _join(self) -> None:
        near, far = self.runs(PRIMARY), self.runs(BACKUP)
        is_free = self.network.is_free(self.hosts[PRIMARY], self.hosts[BACKUP])
        if near is None or far is None or BACKUP in near.lines or not is_free:
            return
        lines = Line(near, BACKUP), Line(far, PRIMARY)
        connection = self.network.connect(*lines)
        for side, line in enumerate(lines):
            line.joined(connection, side)
        far.soon(partial(self._accepts, far, lines[1]))
        near.connect(lines[0])

    def _accepts(self, far: PairProcess, line: Line) -> None:
        assert line.connection is not None
        if not line.connection.is_told[1]:
            line.heard_at = line.host.clock
            far.connect(line)

    # --- applications -------------------------------------------------------------------------

    def _asks(self, name: str) -> None:
        """Whoever has no session tries both brokers, in its order."""
        self.world.later(self.world.between(*ASK_SECONDS), lambda: self._asks(name))
        session = self.sessions.get(name)
        if session is not None and self._has(session, name):
            if self.is_calm or self.world.random.random() < STAYS:
                return
            session.applications.discard(name)
        for broker in APPLICATIONS[name]:
            process = self.runs(broker)
            stands = self.hosts[broker].stands_until > self.world.now
            if process is not None and not stands and process.accepts(name):
                self.sessions[name] = process
                self.accepted += 1
                return

    def _has(self, process: PairProcess, name: str) -> bool:
        return process is self.runs(process.name) and name in process.applications

    # --- what is true -------------------------------------------------------------------------

    def strike(self, fault: Fault) -> None:
        until = self.world.now + fault.seconds
        if fault.kind in SILENT:
            self.excused_until = max(self.excused_until, until + RECONNECT_SECONDS)
        elif fault.kind == "clock":
            self.excused_until = max(self.excused_until, self.world.now + 1.0)
        if fault.kind == "stop":
            self._stops(fault.host)
        else:
            super().strike(fault)

    def _stops(self, name: str) -> None:
        process = self.runs(name)
        if process is not None:
            process.does(process.machine.stop(process.host.clock))
            self.ends(process.host, loses_power=False)

    def _changed(self, name: str, why: str) -> None:
        self.world.tell(f"{name} is {self.brokers[name].machine.state.value}: {why}")
        if self.conflicts.get(name) is self.brokers[name]:
            raise Wrong(f"{name} goes on ({why}), and nobody was reset or restarted")
        if self.brokers[name].machine.state is State.CONFLICT and self._knows_the_other(name):
            self.conflicts[name] = self.brokers[name]
        active = [each.name for each in self.running if each.is_active]
        if len(active) == 2 and self.world.now > self.excused_until:
            raise Wrong(f"both accept, and neither was silent: {name} became active ({why})")

    def _knows_the_other(self, name: str) -> bool:
        """Or that one was started anew before this one heard what it had said."""
        other = BACKUP if name == PRIMARY else PRIMARY
        line = self.brokers[name].lines.get(other)
        connection = None if line is None else line.connection
        if line is None or connection is None:
            return False
        return connection.lives[1 - line.side] == self.hosts[other].life

    def reset(self) -> None:
        """A person comes, if both have stopped."""
        self.conflicts.clear()
        for process in self.running:
            if process.machine.state is State.CONFLICT:
                process.does(process.machine.reset(process.host.clock))
                return

    @property
    def is_whole(self) -> bool:
        """One serves, and every application has a session with it."""
        states = sorted(each.machine.state.value for each in self.running)
        sessions = [self.sessions.get(name) for name in APPLICATIONS]
        return states == ["active", "passive"] and all(
            each is not None and each.is_active and self._has(each, name)
            for name, each in zip(APPLICATIONS, sessions, strict=True)
        )

    @property
    def is_in_conflict(self) -> bool:
        return any(each.machine.state is State.CONFLICT for each in self.running)

    def misses(self) -> str:
        return "; ".join(f"{each.name} is {each.machine.state.value}" for each in self.running)
