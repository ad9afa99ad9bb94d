"""A queue that is shipped over one connection, read behind a cursor: `carrier/source.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from shmbroker.netbridge.link.held import Held
from shmbroker.netbridge.link.origin import origin_of
from shmbroker.netbridge.link.outflow import Batch, Outlet
from shmbroker.netbridge.simulation.peers.store import Ring, Store
from shmbroker.netbridge.wire.words import Level, TargetKind

RingChange: TypeAlias = Callable[[Ring], None]


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where the queue is, and how it is changed."""

    name: str
    memory: Callable[[], Ring]
    end: Callable[[], int]
    """Positions below it may be shipped."""
    does: Callable[[RingChange], None]
    level: Level


def durable(store: Store, name: str) -> Shelf:
    return Shelf(
        name,
        lambda: store.memory.rings[name],
        lambda: store.synced.rings[name].tail,
        lambda change: store.does(lambda content: change(content.rings[name])),
        Level.DISK,
    )


def volatile(name: str, ring: Ring, held: Held) -> Shelf:
    def end() -> int:
        return ring.tail if held.limit is None else held.limit

    return Shelf(name, lambda: ring, end, lambda change: change(ring), Level.SHM)


class Source:
    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self._cursor = shelf.memory().gate

    def outlet(self, node: str, link: str, target: str, kind: TargetKind) -> Outlet:
        memory, end = self.shelf.memory(), self.shelf.end()
        return Outlet(
            target=0, kind=kind, name=target,
            origin=origin_of(node.encode(), link, self.shelf.name.encode(), 0),
            level=self.shelf.level, confirmed=memory.gate, released=memory.gate, sent=end, end=end,
        )  # fmt: skip

    def seek(self, position: int) -> None:
        self._cursor = position

    def read(self, most: int, size: int) -> Batch | None:
        """What may be shipped: at least one message, if there is one."""
        read: list[bytes] = []
        first = end = self._cursor
        tail, left = self.shelf.end(), size
        for position, message in self.shelf.memory().messages.items():
            if not self._cursor <= position < tail:
                continue
            record = message.record(position)
            if read and (len(read) >= most or len(record) > left):
                break
            first = first if read else position
            read.append(record)
            end, left = position + 1, left - len(record)
        if not read:
            return None
        self._cursor = end
        return Batch(first, end, len(read), b"".join(read))

    def retire(self, end: int) -> None:
        self.shelf.does(lambda ring: ring.release(end))

    def drop(self, position: int) -> None:
        self.shelf.does(lambda ring: ring.drop(position))
