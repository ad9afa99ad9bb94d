"""Members and voters, who start again when they have ended; lines between them are made again when
they are lost."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from functools import partial
from itertools import combinations

from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.network import DELAY_SECONDS
from shmbroker.netbridge.simulation.replication.process import Line, Process
from shmbroker.netbridge.simulation.replication.voter import VoterProcess
from shmbroker.netbridge.simulation.replication.watch import Watch
from shmbroker.netbridge.simulation.stage import Stage
from shmbroker.netbridge.simulation.world import World

DIAL_SECONDS = 0.1


class Dialled(Stage):
    watch: Watch
    clock_rates: tuple[float, float]
    down_seconds: tuple[float, float]
    beyond: tuple[str, ...] = ()
    """Whom else a host that is isolated does not reach."""

    def __init__(self, world: World, members: tuple[str, ...], voters: tuple[str, ...]) -> None:
        self.names_of_members, self.names_of_voters = members, voters
        self.names = (*members, *voters)
        super().__init__(world)
        self.disks = {name: Disk(world) for name in self.names}
        self.ledgers: dict[str, dict[Node, Ledger]] = {name: {} for name in voters}
        self.voters: dict[str, VoterProcess] = {}

    @abstractmethod
    def member(self, name: str) -> Process: ...

    def process(self, name: str) -> Process:
        return self.voters[name] if name in self.voters else self.member(name)

    # --- processes ----------------------------------------------------------------------------

    def _start_all(self) -> None:
        for host in self.hosts.values():
            host.jumped = self.world.between(0, 1000)
            host.rate = self.world.between(*self.clock_rates)
            self._starts(host)
        self._dial()

    @abstractmethod
    def _starts(self, host: Host) -> None: ...

    def _voter_starts(self, host: Host) -> VoterProcess:
        ledgers = self.ledgers[host.name]
        made = VoterProcess(host, self.disks[host.name], ledgers, self.watch)
        self.voters[host.name] = made
        return made

    def ends(self, host: Host, loses_power: bool, down: float | None = None) -> None:
        """`down`: for so many seconds; None: some."""
        if not host.is_up:
            return
        if not loses_power:
            self.network.killed(host)
        host.ends()
        disk = self.disks[host.name]
        if loses_power:
            disk.loses_power()
        else:
            disk.flush()
        self._has_ended(host, loses_power=loses_power)
        seconds = self.world.between(*self.down_seconds) if down is None else down
        self.world.later(seconds, lambda: self._again(host))

    def _has_ended(self, host: Host, *, loses_power: bool) -> None:
        """What else that means."""

    def _again(self, host: Host) -> None:
        if not host.is_up:
            self._starts(host)

    # --- lines --------------------------------------------------------------------------------

    def _dial(self) -> None:
        """Everybody who has no line to somebody makes one."""
        for near, far in combinations(self.names, 2):
            is_line = near in self.names_of_members
            here, there = self.hosts[near], self.hosts[far]
            if not is_line or not here.is_up or not there.is_up:
                continue
            if far not in self.process(near).lines and self.network.is_free(here, there):
                here.later(self.world.between(*DELAY_SECONDS), partial(self._join, near, far))
        self.world.later(DIAL_SECONDS, self._dial)

    def _join(self, near: str, far: str) -> None:
        here, there = self.hosts[near], self.hosts[far]
        if not there.is_up or far in self.process(near).lines:
            return
        if not self.network.is_free(here, there):
            return
        lines = Line(self.process(near), far), Line(self.process(far), near)
        connection = self.network.connect(*lines)
        for side, line in enumerate(lines):
            line.joined(connection, side)
        self.process(far).soon(lambda: self._accepts(far, lines[1]))
        self.process(near).connect(lines[0])

    def _accepts(self, far: str, line: Line) -> None:
        assert line.connection is not None
        if not line.connection.is_told[1]:
            line.heard_at = line.host.clock
            self.process(far).connect(line)

    # --- faults -------------------------------------------------------------------------------

    def strike(self, fault: Fault) -> None:
        others = {"isolated": (*self.names, *self.beyond), "no-voters": self.names_of_voters}
        if fault.kind in others:
            self.world.tell(f"fault: {fault}")
            far = [each for each in others[fault.kind] if each != fault.host]
            self._block(fault.host, far, self.world.now + fault.seconds)
        else:
            super().strike(fault)

    def _block(self, host: str, others: Iterable[str], until: float) -> None:
        for other in others:
            for way in ((host, other), (other, host)):
                self.network.blocked[way] = max(until, self.network.blocked.get(way, 0.0))
