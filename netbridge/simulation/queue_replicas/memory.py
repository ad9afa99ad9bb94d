"""What a broker's host has in shared memory, and of durable queues on its disk.

Memory outlives a process that is killed.  When the power goes, durable queues are what was synced
last: the same queues, without what came after, and with what was acknowledged after.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Final

from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.queue_replicas.queue import Queue
from shmbroker.netbridge.simulation.world import World

SYNC_SECONDS: Final = 0.03, 0.2
ID_BYTES: Final = 16


def kept(queue: Queue) -> Queue:
    made = copy(queue)
    made.bodies, made.done = dict(queue.bodies), set(queue.done)
    return made


class Memory:
    def __init__(self, world: World, disk: Disk, changed: Callable[[], None]) -> None:
        """`changed`: a queue is not as it was."""
        self.world, self.disk, self.changed = world, disk, changed
        self.queues: dict[str, Queue] = {}
        self.life = 1
        """Of the memory: it ends with the power."""
        self.under_way = 0
        """Transactions that have begun to change queues."""
        self.committed = 0
        """Transactions, and moments of replicas that were shown: counted before they change
        anything."""
        self._synced: dict[str, Queue] = {}
        self._synced_commits = 0
        self.older: dict[str, Queue] = {}
        """A copy of the store that somebody has made."""
        self.has_lost: set[bytes] = set()
        """Identities of queues that were put back to what was on disk."""
        self.lapsed_until = 0.0
        """The lease of its broker: nothing durable is delivered before."""

    def declare(self, name: str, *, is_durable: bool = False) -> Queue:
        made = Queue(name, self.world.random.randbytes(ID_BYTES), is_durable)
        self.queues[name] = made
        return made

    # --- what readers ask ---------------------------------------------------------------------

    def end(self, queue: Queue) -> int:
        """Of a durable queue what is confirmed."""
        if not queue.is_durable:
            return queue.tail
        synced = self._synced.get(queue.name)
        is_it = synced is not None and synced.identity == queue.identity
        return min(synced.tail, queue.tail) if synced is not None and is_it else queue.head

    def content(self, queue: Queue) -> dict[int, int]:
        """That readers may have: of a durable queue what is confirmed."""
        end = self.end(queue)
        return {at: number for at, number in queue.content.items() if at < end}

    def is_delivered(self, queue: Queue) -> bool:
        """Programs get its messages now."""
        return not queue.is_durable or self.world.now >= self.lapsed_until

    @property
    def is_between(self) -> bool:
        """No transaction stands half way, in memory or on disk."""
        return not self.under_way and self.has_synced_all

    @property
    def has_synced_all(self) -> bool:
        is_durable = any(each.is_durable for each in self.queues.values())
        return not is_durable or self._synced_commits == self.committed

    # --- the disk -----------------------------------------------------------------------------

    def sync(self) -> None:
        """Now and again, between transactions."""
        self.world.later(self.world.between(*SYNC_SECONDS), self.sync)
        if not self.under_way:
            found = {name: kept(each) for name, each in self.queues.items() if each.is_durable}
            committed, life = self.committed, self.life
            self.disk.write(lambda: self._has_synced(life, found, committed))

    def _has_synced(self, life: int, found: dict[str, Queue], committed: int) -> None:
        if life == self.life:
            self._synced, self._synced_commits = found, committed
            self.changed()

    def loses_power(self) -> None:
        self.disk.loses_power()
        self._restores(self._synced)

    def copies_the_store(self) -> None:
        self.older = {name: kept(each) for name, each in self._synced.items()}

    def restores_the_copy(self) -> None:
        """Somebody puts it in place of what was on disk."""
        self.disk.loses_power()
        self._restores(self.older)

    def _restores(self, found: dict[str, Queue]) -> None:
        self.life += 1
        self.has_lost |= {each.identity for each in found.values()}
        self._synced = {name: kept(each) for name, each in found.items()}
        self.queues = {name: kept(each) for name, each in found.items()}
        self.under_way = 0
        self._synced_commits = self.committed
        self.changed()
