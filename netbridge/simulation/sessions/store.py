"""A broker's durable queue: shared memory that outlives a process, and a disk that outlives power.

Beside the messages stand the numbers of the producer and the transactions that were committed: one
step with what they came with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from shmbroker.netbridge.remote.numbers import Numbers
from shmbroker.netbridge.simulation.disk import Disk


@dataclass(slots=True)
class State:
    messages: dict[int, int] = field(default_factory=dict)
    """By position: the message."""
    acked: list[int] = field(default_factory=list)
    tail: int = 0
    numbers: Numbers = field(default_factory=Numbers)
    committed: set[int] = field(default_factory=set)

    def copy(self) -> State:
        return replace(
            self,
            messages=dict(self.messages),
            acked=list(self.acked),
            numbers=self.numbers.copy(),
            committed=set(self.committed),
        )


Change = Callable[[State], None]


class Store:
    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.memory = State()
        self.synced = State()
        self.taken: set[int] = set()
        """Positions that the broker's process holds for its sessions."""
        self.changed: Callable[[], None] = lambda: None

    def does(self, change: Change, then: Callable[[], None]) -> None:
        """In memory at once; `then` when it is synced."""
        change(self.memory)

        def effect() -> None:
            change(self.synced)
            then()
            self.changed()

        self.disk.write(effect)

    def take(self) -> int | None:
        """What is synced may be delivered."""
        for position in self.synced.messages:
            if position in self.memory.messages and position not in self.taken:
                self.taken.add(position)
                return position
        return None

    def loses_process(self) -> None:
        self.taken.clear()

    def loses_power(self) -> None:
        self.taken.clear()
        self.memory = self.synced.copy()


def published(message: int) -> Change:
    def change(state: State) -> None:
        state.messages[state.tail] = message
        state.tail += 1

    return change


def acked(position: int) -> Change:
    def change(state: State) -> None:
        message = state.messages.pop(position, None)
        if message is not None:
            state.acked.append(message)

    return change
