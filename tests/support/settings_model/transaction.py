"""A transaction: what it is to acknowledge and to publish, and whether there is room for that."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shmbroker import Error, InvalidArgument, QueueFull
from tests.support.settings_model.message import ID, MessageModel
from tests.support.settings_model.queue import QueueModel


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
        return queue.most_of_all - (len(queue.log) - head)

    def news_in(self, queue: QueueModel) -> int:
        """How many take room from what is there: of last values one for each new key."""
        keys = [message.key for to, message in self.publishes if to is queue]
        if not queue.is_last_value:
            return len(keys)
        new = [key for key in keys if not queue.is_update(key)]
        return new.count(None) + len(set(new) - {None})

    def refusal_by(self, queue: QueueModel) -> type[Error] | None:
        """After what could be done about it."""
        wanted = sum(each is queue for each, _ in self.publishes)
        kept = queue.most_of_all - queue.most
        if not wanted or self.room_in(queue) - kept >= wanted:
            return None
        news = self.news_in(queue)
        if wanted > queue.most_of_all or news > queue.most:
            return InvalidArgument
        while True:
            room = self.room_in(queue)
            if news and room - kept < news:
                is_made = queue.make_room_for(queue.most, news)
            elif room < wanted:
                is_made = queue.make_room_for(queue.most_of_all, wanted)
            else:
                return None
            if not is_made:
                return QueueFull

    def commit(self) -> type[Error] | None:
        """Why not."""
        for queue in dict.fromkeys(self.order):
            refusal = self.refusal_by(queue)
            if refusal is not None:
                return refusal
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
        return None

    def roll_back(self) -> None:
        for queue, message in self.acks:
            queue.give_back(message)
