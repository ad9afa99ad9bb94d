"""A witness as a process: its ledgers are on its disk."""

from __future__ import annotations

from collections.abc import Iterable

from shmbroker.netbridge.election.ledger import Ledger
from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.election.voter import Action, Keep, Say, Voter
from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.network import Message
from shmbroker.netbridge.simulation.replication.process import Process
from shmbroker.netbridge.simulation.replication.watch import Watch

NODE = b"N" * 16


class VoterProcess(Process):
    def __init__(self, host: Host, disk: Disk, kept: dict[Node, Ledger], watch: Watch) -> None:
        super().__init__(host, disk)
        self.kept = kept
        """On the disk."""
        self.watch = watch
        self.machine = Voter(0.0, kept, host.clock)  # as long as each live wants

    def connected(self, other: str) -> None:
        self.machine.linked(NODE, other)

    def disconnected(self, other: str, *, is_closed: bool) -> None:
        clock = self.host.clock
        self._do(self.machine.unlinked(NODE, other, is_closed=is_closed, now=clock))

    def heard(self, other: str, message: Message) -> None:
        self.watch.asks(self.name, message)
        self._do(self.machine.heard(other, message, self.host.clock))

    def tick(self) -> None:
        self._do(self.machine.tick(self.host.clock))

    def _do(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if isinstance(action, Say):
                self.watch.answers(self.name, action.to, action.what)
                self.say(action.to, action.what)
            else:
                self._keep(action)
        self.wake(self.machine.deadline)

    def _keep(self, keep: Keep) -> None:
        def effect() -> None:
            self.kept[keep.node] = keep.ledger
            self.watch.keeps(self.name, keep.ledger)
            self.soon(lambda: self._do(self.machine.kept(keep.number)))

        self.disk.write(effect)
