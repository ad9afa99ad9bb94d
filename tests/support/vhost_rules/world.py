"""What all rules act on: three participants of one vhost, what they hold, and its model."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize

import shmbroker
from shmbroker.ipc.vhost import vhost as vhosts
from tests.conftest import vhost_for_a_while
from tests.support.model import MessageModel, QueueModel, VhostModel

PARTICIPANTS = 3
LARGE = 70_000  # more than a receiver has room for at first

who = st.integers(0, PARTICIPANTS - 1)
queue_names = st.sampled_from(["a", "b", "c"])
exchange_names = st.sampled_from(["w", "x", "y", "z"])
kinds = st.sampled_from(["direct", "topic", "fanout", "headers"])
sizes = st.sampled_from([0, 1, 2, 63, 64, 5000, LARGE])
keys = st.sampled_from(["", "a", "a.b", "b", "a.b.a", "ü"])
patterns = st.sampled_from(["", "a", "#", "*", "a.*", "#.b", "a.#.a", "*.b", "ü"])
properties = st.sampled_from([{}, {"n": 1}, {"n": 1, "t": "x"}, {"t": "y"}, {"n": {"deep": [1]}}])
arguments = st.sampled_from([{}, {"n": 1}, {"t": "x"}, {"n": None}, {"n": 1, "t": "x"}, {"x-m": 1}])
anything = st.integers(0, 1000)


def body_of(size: int, tag: int = 0) -> bytes:
    return bytes([size % 251 ^ tag]) * size


class Held:
    """A message in somebody's hand."""

    def __init__(self, who: int, queue: QueueModel, model: MessageModel, real: Any) -> None:
        self.who, self.queue, self.model, self.real = who, queue, model, real


class Watch:
    """A subscription."""

    def __init__(self, who: int, queue: QueueModel, number: int, lossy: bool, real: Any) -> None:
        self.who, self.queue, self.number, self.lossy, self.real = who, queue, number, lossy, real
        self.position, self.missed, self.unreleased = real.position, 0, 0


class Lent:
    """A loan."""

    def __init__(self, who: int, queue: QueueModel, real: Any, content: tuple[Any, ...]) -> None:
        self.who, self.queue, self.real, self.content = who, queue, real, content


class World(RuleBasedStateMachine):
    """Three participants, what they hold, and the model of their vhost."""

    @initialize()
    def start(self) -> None:
        self.stack = ExitStack()
        self.vhost = self.stack.enter_context(vhost_for_a_while())
        vhosts.create(self.vhost, arena_bytes=32 << 20)
        self.model = VhostModel()
        self.brokers = [self.connect(each) for each in range(PARTICIPANTS)]
        self.held: list[Held] = []
        self.watches: list[Watch] = []
        self.loans: list[Lent] = []
        self.numbers = 0

    def connect(self, who: int) -> shmbroker.Broker:
        return shmbroker.connect(f"shm://{self.vhost}", name=f"p{who}")

    def teardown(self) -> None:
        if not hasattr(self, "stack"):
            return
        try:
            self.look_at_everything()
            for broker in self.brokers:
                broker.close()
            vhosts.delete(self.vhost)
            left = [name for name in os.listdir("/dev/shm") if self.vhost in name]  # noqa: PTH208
            assert left == []
        finally:
            for broker in self.brokers:
                broker.close()
            self.stack.close()

    def look_at_everything(self) -> None:
        """At the end; LookRules does."""
        raise NotImplementedError

    def drop_uses(self, is_gone: Any, error: type[Exception]) -> None:
        """What is in somebody's hand of a queue or connection that is no more says so."""
        for held in [each for each in self.held if is_gone(each)]:
            self.held.remove(held)
            with pytest.raises(error):
                held.real.ack()
        for watch in [each for each in self.watches if is_gone(each)]:
            self.watches.remove(watch)
            watch.queue.gates.pop(watch.number, None)
            with pytest.raises(error):
                watch.real.get(timeout=1)
            watch.real.close()
        for lent in [each for each in self.loans if is_gone(each)]:
            self.loans.remove(lent)
            with pytest.raises(error):
                lent.real.publish(timeout=0)

    def some_queue(self, number: int) -> QueueModel:
        queues = list(self.model.queues.values())
        return queues[number % len(queues)]

    def has_queues(self) -> bool:
        return bool(self.model.queues)

    def use(self, who: int, queue: QueueModel, *, as_: str = "") -> shmbroker.Queue:
        queue.users.add(who)
        if as_:
            (queue.consumers if as_ == "consumer" else queue.producers).add(who)
        return self.brokers[who].queue(queue.name)
