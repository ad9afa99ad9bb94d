"""A broker as a process: it follows queues of others, and others follow its queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.queue_replica.told import Chain, Hop
from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.host import Host
from shmbroker.netbridge.simulation.network import Message
from shmbroker.netbridge.simulation.queue_replicas.confirming import Confirming
from shmbroker.netbridge.simulation.queue_replicas.copy import Copy
from shmbroker.netbridge.simulation.queue_replicas.feeder import (
    Feeder,
    OfOriginals,
    OfReplicas,
    Shipped,
)
from shmbroker.netbridge.simulation.queue_replicas.follower import Follower
from shmbroker.netbridge.simulation.queue_replicas.memory import Memory
from shmbroker.netbridge.simulation.queue_replicas.queue import PART, SLOTS
from shmbroker.netbridge.simulation.replication.process import Process

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.queue_replicas.watch import Watch

NODES: Final = {"a": b"A" * 16, "b": b"B" * 16, "c": b"C" * 16}
NEVER: Final = float("inf")


class Killed(Exception):
    """The process ends here."""


class Broker(Process):
    def __init__(
        self, host: Host, disk: Disk, memory: Memory, watch: Watch, room: int, slots: dict[str, int]
    ) -> None:
        """`room`: of a read, in records; `slots`: of replicas that have fewer than others."""
        super().__init__(host, disk)
        self.memory, self.watch = memory, watch
        self.node = NODES[host.name]
        self.is_on = True
        self.room = room
        self._slots = slots
        self.confirming = Confirming(self)
        self.followers: dict[str, Follower] = {}
        """By whom they follow."""
        self.feeders: dict[str, Feeder] = {}
        self._stores = NEVER
        """So many words are stored yet before it is killed."""

    def begin(self) -> None:
        super().begin()
        for queue in list(self.memory.queues.values()):
            if queue.follows is not None:
                self.follower(queue.follows.plan).go_on(queue, queue.follows.identity)

    def follower(self, of: str) -> Follower:
        if of not in self.followers:
            self.followers[of] = Follower(self, of)
            if of in self.lines:
                self.followers[of].came()
        return self.followers[of]

    def where(self, name: str) -> Follower | None:
        """Whom this queue follows."""
        return next((each for each in self.followers.values() if name in each.members), None)

    def slots_of(self, name: str) -> int:
        return self._slots.get(name, SLOTS)

    def chain(self, name: str) -> Chain:
        """As those are told that follow this queue."""
        known = self.where(name)
        above = () if known is None else known.members[name].machine.chain
        return (Hop(self.node, self.name), *above)

    def chained(self, name: str) -> None:
        for each in self.feeders.values():
            each.chained(name)

    def tells(self, text: str) -> None:
        self.host.world.tell(f"{self.name}: {text}")

    # --- showing ------------------------------------------------------------------------------

    def dies_after(self, stores: int) -> None:
        self._stores = stores

    def _storing(self) -> None:
        self._stores -= 1
        if self._stores < 0:
            raise Killed

    def shows(self, copy: Copy, version: int | None) -> None:
        """`version`: that its original had; None: the moment is not of this queue."""
        before = copy.queue.version
        copy.queue.version = PART
        if copy.show(self._storing):
            copy.queue.version = before if version is None else version
        elif not copy.is_stale:
            copy.queue.version = before  # there is no room, and it stays as it was

    # --- what happens to it -------------------------------------------------------------------

    def connected(self, other: str) -> None:
        self.feeders[other] = Feeder(self, other)
        if other in self.followers:
            self.followers[other].came()

    def disconnected(self, other: str, *, is_closed: bool) -> None:
        feeder = self.feeders.pop(other, None)
        if feeder is not None:
            feeder.close()
        if other in self.followers:
            self.followers[other].gone()

    def heard(self, other: str, message: Message) -> None:
        try:
            if isinstance(message, OfReplicas):
                self.feeders[other].heard(message.said)
            elif other in self.followers and isinstance(message, (Shipped, OfOriginals)):
                self.followers[other].take(message)
        except Killed:
            self._is_killed()

    def looks(self) -> None:
        """Something may be on disk."""
        if self.followers:
            self.host.later(0.0, self._looks)

    def _looks(self) -> None:
        try:
            for each in self.followers.values():
                each.look()
        except Killed:
            self._is_killed()

    def _is_killed(self) -> None:
        """While it showed a moment."""
        for follower in self.followers.values():
            for copy in follower.copies.values():
                copy.queue.version = PART
        self.memory.changed()
        self.watch.kills(self)

    def tick(self) -> None:
        self.confirming.tick()
        for each in self.followers.values():
            each.tick()
        dues = (m.machine.due for each in self.followers.values() for m in each.members.values())
        self.wake(min(dues, default=NEVER))
