"""Hosts and the network between them, and the faults that strike every world alike."""

from __future__ import annotations

from abc import ABC, abstractmethod

from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.fault import Fault
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.network import Network
from shmbroker.netbridge.simulation.world import World


class Stage(ABC):
    disks: dict[str, Disk]
    """By the name of the host that a fault strikes."""

    names: tuple[str, ...] = ("east", "west")

    def __init__(self, world: World) -> None:
        self.world = world
        self.network = Network(world)
        self.hosts = {name: Host(world, name) for name in self.names}
        self.attempt = 0
        """Of making a connection."""

    @property
    def east(self) -> Host:
        return self.hosts["east"]

    @property
    def west(self) -> Host:
        return self.hosts["west"]

    @property
    @abstractmethod
    def published(self) -> int:
        """How many messages."""

    @abstractmethod
    def ends(self, host: Host, loses_power: bool) -> None:
        """What runs on a host is killed."""

    def suffers(self, faults: list[Fault], busy_seconds: float) -> float:
        """Until everything is healed: when that is."""
        for fault in faults:
            self.world.at(fault.time, lambda fault=fault: self.strike(fault))  # type: ignore[misc]
        healed = max([busy_seconds, *(fault.time + fault.seconds for fault in faults)])
        self.world.run(healed)
        self.network.drops.clear()
        return healed

    def strike(self, fault: Fault) -> None:
        """A kind of fault that this world does not know strikes nothing."""
        world, network = self.world, self.network
        world.tell(f"fault: {fault}")
        host = self.hosts[fault.host]
        others = (each for each in self.hosts.values() if each is not host)
        other = self.hosts[fault.other] if fault.other else next(others)
        until = world.now + fault.seconds
        kind = fault.kind
        if kind == "cut":
            network.cut()
        elif kind == "half-open":
            network.half_open()
        elif kind in ("one-way", "partition"):
            ways = [(host.name, other.name), (other.name, host.name)]
            for way in ways[: 1 if kind == "one-way" else 2]:
                network.blocked[way] = max(until, network.blocked.get(way, 0.0))
        elif kind == "drop":
            network.drops[host.name, other.name] = True
        elif kind in ("kill", "power"):
            self.ends(host, loses_power=kind == "power")
        elif kind == "cut-then-power":
            # a new connection meets what was appended, and has yet to be synced
            self.disks[host.name].slow_until = world.now + 0.5
            world.later(0.1, network.cut)
            world.later(0.25, lambda: self.ends(host, loses_power=True))
        elif kind == "stand-still":
            host.stands_until = max(host.stands_until, until)
        elif kind == "clock":
            host.jumped += fault.seconds
        elif kind == "slow-disk":
            self.disks[host.name].slow_until = until
