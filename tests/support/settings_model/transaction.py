"""A transaction: what it is to acknowledge and to publish, and whether there is room for that."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.support.settings_model.message import ID, MessageModel
from tests.support.settings_model.queue import CARRIED_PART, QueueModel


@dataclass(eq=False)
class TransactionModel:
    who: int
    real: Any
    acks: list[tuple[QueueModel, MessageModel]] = field(default_factory=list)
    publishes: list[tuple[QueueModel, MessageModel]] = field(default_factory=list)
    schedules: list[tuple[QueueModel, MessageModel]] = field(default_factory=list)
    order: list[QueueModel] = field(default_factory=list)

    def room_in(self, queue: QueueModel) -> int:
        """With what it acknowledges itself."""
        ours = {message for _, message in self.acks}
        head = queue.head
        while head < len(queue.log) and (
            queue.log[head].state == "done" or queue.log[head] in ours
        ):
            head += 1
        most = queue.part(CARRIED_PART) if queue.is_last_value else queue.most
        return most - (len(queue.log) - head)

    def is_too_large(self) -> bool:
        return any(
            sum(to is queue for to, _ in self.publishes)
            > (queue.slots if queue.is_last_value else queue.most)
            for queue in self.order
        )

    def commit(self) -> bool:
        for queue in dict.fromkeys(self.order):
            wanted = sum(each is queue for each, _ in self.publishes)
            room = self.room_in(queue)
            while room < wanted and queue.make_room(None):
                before, room = room, self.room_in(queue)
                if room <= before:
                    break
            if wanted and room < wanted:
                return False
        for queue, message in self.acks:
            queue.done(message, "acked")
        for queue, message in self.publishes:
            if queue.once.knows(message.properties.get(ID), None):
                queue.append(message)
                message.state = "done"
                queue.counts.update(["duplicates", "withdrawn"])
            else:
                queue.place(message)
        for queue, message in self.schedules:
            queue.scheduled.append(message)
        return True

    def roll_back(self) -> None:
        for queue, message in self.acks:
            queue.give_back(message)
