"""The network: connections in which frames keep their order, and all that may happen to them.

cut           both ends are told, what was on its way is gone
half-open     the near end is told; the far end is not, and gets old frames late
one way       frames of one direction wait, as TCP repeats them, until the way is free again
dropped       a frame is gone and nobody is told, as a ROUTER does it
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.world import World

Message: TypeAlias = Any
"""Frames as bytes, or what the machines of members say to each other."""
DELAY_SECONDS = 0.0002, 0.01
LATE_SECONDS = 0.05, 1.5


class Ear(Protocol):
    """An end of a connection."""

    host: Host

    def arrived(self, message: Message) -> None: ...
    def lost(self) -> None: ...


class Connection:
    def __init__(self, network: Network, ends: tuple[Ear, Ear]) -> None:
        self.network = network
        self.ends = ends
        self.lives = [end.host.life for end in ends]
        self.is_told = [False, False]
        """That it is closed; who is told hears and says nothing more."""
        self.closed_by: int | None = None
        """The end whose host closed it; None: it was cut, or fell silent."""
        self.arrives = [0.0, 0.0]
        self.is_late = False
        self._held: list[list[Message]] = [[], []]
        """By side: what waits until its way is free."""

    def send(self, side: int, message: Message) -> None:
        network = self.network
        if self.is_told[side]:
            return
        mine, other = self.ends[side].host.name, self.ends[1 - side].host.name
        if network.drops.pop((mine, other), None):
            return
        bounds = LATE_SECONDS if self.is_late else DELAY_SECONDS
        time = network.world.now + network.world.between(*bounds)
        self.arrives[side] = max(time, self.arrives[side])
        self._arrive(side, message, self.arrives[side])

    def _arrive(self, side: int, message: Message, time: float) -> None:
        self.network.world.at(time, lambda: self._came(side, message))

    def _came(self, side: int, message: Message) -> None:
        if self._held[side] or self._free_at(side) > self.network.world.now:
            if not self._held[side]:
                self.network.world.at(self._free_at(side), lambda: self._goes_on(side))
            self._held[side].append(message)
        else:
            self._comes(side, message)

    def _free_at(self, side: int) -> float:
        names = [end.host.name for end in self.ends]
        return self.network.free_at(names[side], names[1 - side])

    def _goes_on(self, side: int) -> None:
        """What has waited for its way comes in order, however often the way was blocked again."""
        if self._free_at(side) > self.network.world.now:
            self.network.world.at(self._free_at(side), lambda: self._goes_on(side))
            return
        held, self._held[side] = self._held[side], []
        for message in held:
            self._comes(side, message)

    def _comes(self, side: int, message: Message) -> None:
        to = self.ends[1 - side]
        if self.is_told[1 - side]:
            return
        if to.host.life == self.lives[1 - side]:
            to.host.at(self.network.world.now, lambda: self._heard(1 - side, message))
        elif to.host.is_up:
            self.tell(side)  # nobody has this connection any more

    def _heard(self, side: int, message: Message) -> None:
        if not self.is_told[side]:
            self.ends[side].arrived(message)

    def close(self, side: int) -> None:
        """One end closes; the other one is told behind the last frame."""
        if not self.is_told[side]:
            self.is_told[side] = True
            self.closed_by = side
            self.arrives[side] = max(self.arrives[side], self.network.world.now + DELAY_SECONDS[1])
            self._say_closed(side, self.arrives[side])

    def _say_closed(self, side: int, time: float) -> None:
        def said() -> None:
            free = self._free_at(side)
            if free > self.network.world.now:
                self._say_closed(side, free)
            else:
                self.tell(1 - side)

        self.network.world.at(time, said)

    def tell(self, side: int) -> None:
        """This end learns that the connection is gone."""
        end = self.ends[side]
        if self.is_told[side] or end.host.life != self.lives[side]:
            return
        self.is_told[side] = True
        end.host.at(self.network.world.now, end.lost)


class Network:
    def __init__(self, world: World) -> None:
        self.world = world
        self.connections: list[Connection] = []
        self.blocked: dict[tuple[str, str], float] = {}
        self.drops: dict[tuple[str, str], bool] = {}

    def free_at(self, here: str, there: str) -> float:
        return self.blocked.get((here, there), 0.0)

    def is_free(self, here: Host, there: Host) -> bool:
        ways = (here.name, there.name), (there.name, here.name)
        return all(self.free_at(*way) <= self.world.now for way in ways)

    def connect(self, near: Ear, far: Ear) -> Connection:
        made = Connection(self, (near, far))
        self.connections = [each for each in self.connections if not all(each.is_told)]
        self.connections.append(made)
        return made

    def cut(self) -> None:
        for each in self.connections:
            each.tell(0)
            each.tell(1)

    def half_open(self) -> None:
        """What was sent to the far end still comes, late, and beside the next connection."""
        for each in self.connections:
            each.is_late = True
            each.tell(0)

    def killed(self, host: Host) -> None:
        """Its kernel closes what the process had."""
        for each in self.connections:
            for side in (0, 1):
                if each.ends[side].host is host:
                    each.close(side)
