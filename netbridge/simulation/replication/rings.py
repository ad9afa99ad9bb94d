"""The rings of a member that serves: what its journal's frames make of its queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shmbroker.netbridge.history.event import Queue
from shmbroker.netbridge.simulation.replication.log import Frame, Made, Moved, Op, Put, Taken


@dataclass(slots=True)
class Message:
    number: int
    """Of its frame: when that is confirmed, the message may be delivered."""
    name: str
    was_delivered: bool
    """Or may have been: by whoever was live before."""
    is_in_hand: bool = False


class Rings:
    def __init__(self, frames: Sequence[Frame]) -> None:
        """At a takeover: what is there may have been delivered by the former live."""
        self.queues: dict[Queue, dict[str, Message]] = {}
        self.outgoing: dict[tuple[Queue, str], int] = {}
        """What goes to another node, by the frame that says so: sent when that is confirmed."""
        self.made: dict[str, Queue] = {}
        self.produced: dict[tuple[Queue, str], int] = {}
        """By queue and producer: the highest number, and in which frame it came."""
        self.frame_of: dict[tuple[Queue, str], int] = {}
        for frame in frames:
            self.apply(frame, is_old=True)

    def apply(self, frame: Frame, *, is_old: bool = False) -> None:
        for op in frame.ops:
            self._apply(op, frame.number, is_old)

    def _apply(self, op: Op, number: int, is_old: bool) -> None:
        if isinstance(op, Made):
            former = self.made.get(op.queue.name)
            if former is not None:
                self.queues.pop(former, None)
            self.made[op.queue.name] = op.queue
            self.queues[op.queue] = {}
        elif isinstance(op, Put):
            self.produced[op.queue, op.producer] = op.number
            self.frame_of[op.queue, op.message] = number
            if op.queue in self.queues:
                self.queues[op.queue][op.message] = Message(number, op.message, is_old)
        else:
            self.queues.get(op.queue, {}).pop(op.message, None)
            self.outgoing.pop((op.queue, op.message), None)
            if isinstance(op, Moved):
                self.outgoing[op.queue, op.message] = number

    def seen(self, put: Put) -> int:
        """The frame that has it, or a later one of its producer; 0: it is new."""
        if self.produced.get((put.queue, put.producer), 0) < put.number:
            return 0
        return self.frame_of.get((put.queue, put.message), 1)

    def has(self, taken: Taken) -> bool:
        return taken.message in self.queues.get(taken.queue, {})

    def next(self, name: str, confirmed: int) -> tuple[Queue, Message] | None:
        """To be delivered: the first that nobody has in hand, if it is confirmed."""
        queue = self.made.get(name)
        if queue is None:
            return None
        for message in self.queues[queue].values():
            if not message.is_in_hand:
                return (queue, message) if message.number <= confirmed else None
        return None
