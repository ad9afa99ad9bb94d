"""A broker of a pair as a process, and the applications that connect to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shmbroker.netbridge.pair.machine import (
    Accepted,
    Action,
    Became,
    CloseApplications,
    Pair,
    PairOptions,
    Tell,
)
from shmbroker.netbridge.pair.told import State
from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.network import Message
from shmbroker.netbridge.simulation.replication.process import Process

VHOST = "/"


class PairProcess(Process):
    def __init__(
        self, host: Host, disk: Disk, options: PairOptions, changed: Callable[[str, str], None]
    ) -> None:
        super().__init__(host, disk)
        self.machine = Pair(options, self.life, host.clock)
        self.applications: set[str] = set()
        self._changed = changed

    def begin(self) -> None:
        super().begin()
        self.wake(self.machine.deadline)

    @property
    def is_active(self) -> bool:
        return self.machine.state is State.ACTIVE

    def accepts(self, application: str) -> bool:
        answer, actions = self.machine.application(VHOST, self.host.clock)
        self.does(actions)
        if isinstance(answer, Accepted):
            self.applications.add(application)
        return application in self.applications

    def connected(self, other: str) -> None:
        self.does(self.machine.linked(self.host.clock))

    def disconnected(self, other: str, *, is_closed: bool) -> None:
        """Only silence counts."""

    def heard(self, other: str, message: Message) -> None:
        self.does(self.machine.heard(message, self.host.clock))

    def tick(self) -> None:
        self.does(self.machine.tick(self.host.clock))

    def does(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, Tell):
                for other in list(self.lines):
                    self.say(other, action.what)
            elif isinstance(action, CloseApplications):
                self.applications.clear()
            elif isinstance(action, Became):
                self._changed(self.name, action.why)
        self.wake(self.machine.deadline)
