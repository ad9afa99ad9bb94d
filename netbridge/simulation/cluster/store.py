"""What a node has, in memory and on its disk: queues, queues towards other nodes, and marks.

Each change is one record: it is in memory at once, and on the disk when it is synced.  Whoever
serves the node has it, and after a loss of power what was synced.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from shmbroker.netbridge.election.question import Node
from shmbroker.netbridge.simulation.cluster.cast import Settings
from shmbroker.netbridge.simulation.disk import Disk
from shmbroker.netbridge.simulation.kept import Kept, nothing
from shmbroker.netbridge.simulation.world import Step


@dataclass(frozen=True, slots=True)
class Message:
    number: int
    """No two messages have the same."""
    queue: str
    producer: str
    at: Node
    """Where it was published."""
    kind: str
    moves: int = 0
    """How often it was redistributed, or moved by a node that left."""

    def moved(self) -> Message:
        return replace(self, moves=self.moves + 1)


@dataclass(slots=True)
class Ring:
    """A queue towards a node: positions are not used twice."""

    messages: dict[int, Message] = field(default_factory=dict)
    tail: int = 0

    def add(self, message: Message) -> None:
        self.messages[self.tail] = message
        self.tail += 1

    def release(self, end: int) -> None:
        for position in [each for each in self.messages if each < end]:
            del self.messages[position]

    def copied(self) -> Ring:
        return Ring(dict(self.messages), self.tail)


@dataclass(slots=True)
class Content:
    queues: dict[str, dict[int, Message]] = field(default_factory=dict)
    """By number, in their order."""
    settings: dict[str, Settings] = field(default_factory=dict)
    towards: dict[Node, Ring] = field(default_factory=dict)
    marks: dict[bytes, int] = field(default_factory=dict)
    """By origin: below it all came."""
    undeliverable: dict[int, Message] = field(default_factory=dict)

    def copied(self) -> Content:
        return Content(
            {name: dict(each) for name, each in self.queues.items()},
            dict(self.settings),
            {node: each.copied() for node, each in self.towards.items()},
            dict(self.marks),
            dict(self.undeliverable),
        )


class Store(Kept[Content]):
    def __init__(self, disk: Disk) -> None:
        super().__init__(disk, Content(), Content())
        self.has_sent: Step = nothing
        """There is more in a queue towards a node."""

    def empties(self) -> None:
        """All of it is elsewhere; what nobody had a queue for goes with it, and is kept here."""
        self.disk.flush()
        kept = self.memory.undeliverable
        self.memory, self.synced = (Content(undeliverable=dict(kept)) for _ in range(2))

    # --- changes ------------------------------------------------------------------------------

    def declare(self, queue: str, settings: Settings) -> None:
        def change(content: Content) -> None:
            content.queues.setdefault(queue, {})
            content.settings.setdefault(queue, settings)

        self.does(change)

    def delete(self, queue: str) -> None:
        def change(content: Content) -> None:
            del content.queues[queue], content.settings[queue]

        self.does(change)

    def make_way(self, node: Node) -> None:
        if node not in self.memory.towards:
            self.does(lambda content: content.towards.update({node: Ring()}))

    def publish(self, message: Message, then: Step) -> None:
        self.does(lambda content: content.queues[message.queue].update({message.number: message}),
                  then)  # fmt: skip

    def send(self, node: Node, message: Message, then: Step) -> None:
        """Published here, and another node's turn."""

        def sent() -> None:
            then()
            self.has_sent()

        self.does(lambda content: content.towards[node].add(message), sent)

    def acknowledge(self, queue: str, number: int, then: Step) -> None:

        def change(content: Content) -> None:
            del content.queues[queue][number]

        self.does(change, then)

    def move(self, queue: str, messages: list[Message], node: Node) -> None:
        moved = [each.moved() for each in messages]

        def change(content: Content) -> None:
            for each in moved:
                del content.queues[queue][each.number]
                content.towards[node].add(each)

        self.does(change, self.has_sent)

    def pour(self, origin: bytes, messages: list[Message], mark: int, then: Step) -> None:
        """Messages and mark are one record."""

        def change(content: Content) -> None:
            for each in messages:
                content.queues[each.queue][each.number] = each
            content.marks[origin] = mark

        self.does(change, then)

    def release(self, node: Node, end: int) -> None:
        self.does(lambda content: content.towards[node].release(end))

    def set_aside(self, node: Node, position: int, then: Step) -> None:
        """That node has no such queue."""

        def change(content: Content) -> None:
            message = content.towards[node].messages.pop(position, None)
            if message is not None:
                content.undeliverable[message.number] = message

        self.does(change, then)
