"""Queues that keep the last value, against a plain model: any steps in any order, by two.

The model knows no positions: what is carried changes those.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import shmbroker
from shmbroker import Message, Queue, QueueFull

STEPS = 5000
SLOTS = 16
KEYS = 6


@dataclass
class Model:
    ready: dict[bytes, str | None] = field(default_factory=dict)
    """Body and key of what nobody has."""
    held: list[tuple[Message, bytes, str | None]] = field(default_factory=list)
    replaced: int = 0

    def is_there(self, key: str) -> list[bytes]:
        return [body for body, each in self.ready.items() if each == key]

    def publish(self, body: bytes, key: str | None) -> None:
        if key is not None:
            for older in self.is_there(key):
                del self.ready[older]
                self.replaced += 1
        self.ready[body] = key

    def give_back(self, body: bytes, key: str | None) -> None:
        """It makes way for a newer one, which may be in another hand."""
        newest = self.value(key) if key is not None else None
        if newest is not None and int(newest) > int(body):
            self.replaced += 1
            return
        for older in self.is_there(key) if key is not None else []:
            del self.ready[older]
            self.replaced += 1
        self.ready[body] = key

    def value(self, key: str) -> bytes | None:
        there = self.is_there(key) + [body for _, body, each in self.held if each == key]
        return max(there, key=int, default=None)

    def may_be_full(self) -> bool:
        """What is in a hand, or has no key, is not carried."""
        live = len(self.ready) + len(self.held)
        return live >= SLOTS - 2 or bool(self.held) or None in self.ready.values()


def step(random: Random, queues: list[Queue], model: Model, number: int) -> None:
    queue = random.choice(queues)
    chance = random.random()
    if chance < 0.5:
        body = b"%d" % number
        key = None if random.random() < 0.02 else f"k{random.randrange(KEYS)}"
        priority = random.choice([None, 1, 8])
        try:
            queue.publish(body, key=key, priority=priority, timeout=0)
        except QueueFull:
            assert model.may_be_full()
        else:
            model.publish(body, key)
    elif chance < 0.7 and model.ready:
        message = queue.get(timeout=0)
        body = message.body
        model.held.append((message, body, model.ready.pop(body)))
    elif chance < 0.85 and model.held:
        message, body, key = model.held.pop(random.randrange(len(model.held)))
        if random.random() < 0.5:
            message.ack()
        else:
            message.give_back()
            model.give_back(body, key)
    elif chance < 0.87:
        assert queue.purge() == len(model.ready)
        model.ready.clear()
    elif chance < 0.95:
        key = f"k{random.randrange(KEYS)}"
        found = queue.value(key)
        assert (None if found is None else found.body) == model.value(key)
    else:
        there = {each.body for each in queue.browse() if not each.is_taken}
        assert there == set(model.ready)
        numbers = queue.statistics()
        assert numbers.depth == len(model.ready) + len(model.held)
        assert numbers.replaced == model.replaced


def explore(vhost: str, seed: int, priorities: int) -> None:
    random = Random(seed)
    url = f"shm://{vhost}"
    with shmbroker.connect(url, create=True) as ours, shmbroker.connect(url) as theirs:
        queue = ours.declare_queue(
            "q", slots=SLOTS, last_value=True, priorities=priorities, max_deliveries=None
        )
        model = Model()
        queues = [queue, theirs.queue("q")]
        for number in range(STEPS):
            step(random, queues, model, number)
        assert queue.statistics().carried > 0
        for message, _, _ in model.held:
            message.ack()
        assert {each.body for each in queue.consume(timeout=0)} == set(model.ready)


def test_any_steps_in_any_order(vhost: str) -> None:
    explore(vhost, 1, 0)


def test_with_priorities(vhost: str) -> None:
    explore(vhost, 2, 10)
