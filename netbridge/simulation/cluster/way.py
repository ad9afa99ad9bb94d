"""The link that ships a queue towards a node, exactly once, as `netbridge/link/` does it.

near  Opens                                      far   Opened(mark): below it all has come
near  Ships(first positions and messages)        far   Confirms(end): synced below it
                                                 far   Refuses(position): no such queue is there
near  Dealt: it is set aside, and what is behind it comes again
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.simulation.cluster.store import Message

if TYPE_CHECKING:
    from shmbroker.netbridge.simulation.cluster.broker import Broker

WINDOW: Final = 8
TOGETHER: Final = 4


@dataclass(frozen=True, slots=True)
class Opens:
    origin: bytes


@dataclass(frozen=True, slots=True)
class Opened:
    mark: int
    confirmed: int


@dataclass(frozen=True, slots=True)
class Ships:
    messages: tuple[tuple[int, Message], ...]


@dataclass(frozen=True, slots=True)
class Confirms:
    end: int


@dataclass(frozen=True, slots=True)
class Refuses:
    position: int


@dataclass(frozen=True, slots=True)
class Dealt:
    """With what was refused last."""


FromNear = Opens | Ships | Dealt
FromFar = Opened | Confirms | Refuses


class Near:
    """Ships what is synced, behind a cursor."""

    def __init__(self, broker: Broker, node: Node, line: str) -> None:
        self._broker, self.node, self._line = broker, node, line
        self.is_up = False
        self._cursor = self._confirmed = 0
        broker.say(line, Opens(broker.node.origin))

    def heard(self, said: FromFar) -> None:
        if isinstance(said, Opened):
            self.is_up = True
            self._cursor = said.mark
            self._release(said.confirmed)
            self._broker.carrying.changed()
        elif isinstance(said, Confirms):
            self._release(said.end)
        else:
            dealt = partial(self._broker.soon, partial(self._goes_on, said.position))
            self._broker.host.world.tell(f"{self._line}: no queue for {said.position}")
            self._broker.store.set_aside(self.node, said.position, dealt)
        self.ships()

    def _goes_on(self, position: int) -> None:
        self._cursor = position + 1
        if self.is_there:
            self._broker.say(self._line, Dealt())
            self.ships()

    @property
    def is_there(self) -> bool:
        """Its line was not made again since."""
        return self._broker.nears.get(self._line) is self

    def _release(self, end: int) -> None:
        self._confirmed = max(self._confirmed, end)
        ring = self._broker.store.memory.towards[self.node]
        if any(position < end for position in ring.messages):
            self._broker.store.release(self.node, end)

    def ships(self) -> None:
        """As much as the window allows."""
        if not self.is_up:
            return
        ring = self._broker.store.synced.towards.get(self.node)
        first = next(iter(ring.messages), 0) if ring is not None else 0
        begin = max(self._confirmed, first)  # one that has left and is back confirms from 0 on
        wanted = [] if ring is None else [
            (position, message) for position, message in ring.messages.items()
            if self._cursor <= position < begin + WINDOW
        ]  # fmt: skip
        for at in range(0, len(wanted), TOGETHER):
            some = tuple(wanted[at : at + TOGETHER])
            self._cursor = some[-1][0] + 1
            self._broker.say(self._line, Ships(some))


class Far:
    """Takes in what comes."""

    def __init__(self, broker: Broker, line: str) -> None:
        self._broker, self._line = broker, line
        self._origin = b""
        self._is_refusing = False

    def heard(self, said: FromNear) -> None:
        if self._broker.takes_no_more:
            return
        if isinstance(said, Dealt):
            self._is_refusing = False
        elif isinstance(said, Ships):
            if not self._is_refusing:
                self._pours(said)
        else:
            self._origin, store = said.origin, self._broker.store
            mark, synced = (each.marks.get(said.origin, 0) for each in (store.memory, store.synced))
            self._broker.say(self._line, Opened(mark, synced))
            if synced < mark:
                store.when_synced(partial(self._broker.soon, partial(self._confirms, mark)))

    def _pours(self, said: Ships) -> None:
        store = self._broker.store
        mark = store.memory.marks.get(self._origin, 0)
        taken: list[Message] = []
        end = mark
        for position, message in said.messages:
            if position >= mark and message.queue not in store.memory.queues:
                self._is_refusing = True
                self._broker.say(self._line, Refuses(position))
                break
            if position >= mark:
                taken.append(message)
                end = position + 1
        if taken:
            self._broker.watch.arrives(self._broker, taken)
            confirmed = partial(self._broker.soon, partial(self._confirms, end))
            store.pour(self._origin, taken, end, confirmed)
        elif end:
            self._confirms(store.synced.marks.get(self._origin, 0))

    def _confirms(self, end: int) -> None:
        if self._broker.fars.get(self._line) is self:
            self._broker.say(self._line, Confirms(end))
