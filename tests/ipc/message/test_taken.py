"""What C makes of messages for Python: bodies, and whose they are (ipc/message/taken.c)."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

import shmbroker
from shmbroker.core.layout import COPIED_BYTES

Take = Callable[[shmbroker.Queue], shmbroker.Message]
TAKES: dict[str, Take] = {
    "get": lambda queue: queue.get(),
    "get_many": lambda queue: queue.get_many(1)[0],
    "select": lambda queue: queue.select("colour IS NULL"),
}


@pytest.mark.parametrize("how", TAKES)
def test_a_small_body_is_there_after_the_ack(broker: shmbroker.Broker, how: str) -> None:
    queue = broker.declare_queue("q")
    for length in (0, 1, COPIED_BYTES, COPIED_BYTES + 1):
        body = bytes(range(256)) * 5
        queue.publish(body[:length])
        message = TAKES[how](queue)
        assert message.body == body[:length]
        message.ack()
        if length <= COPIED_BYTES:
            assert message.body == body[:length]
        else:
            with pytest.raises(shmbroker.AlreadyDealtWith):
                _ = message.body
    assert len(queue) == 0


@pytest.mark.parametrize("length", [0, COPIED_BYTES, COPIED_BYTES + 1, 70_000, 1 << 20])
def test_what_is_received_is_acknowledged(broker: shmbroker.Broker, length: int) -> None:
    queue = broker.declare_queue("q")
    queue.publish(b"x" * length)
    assert queue.receive(timeout=0) == b"x" * length
    statistics = queue.statistics()
    assert (statistics.depth, statistics.acked, statistics.redelivered) == (0, 1, 0)


def test_what_was_taken_belongs_to_one_message(broker: shmbroker.Broker) -> None:
    """Those of a batch are dropped one after the other: each goes back by itself, and once."""
    queue = broker.declare_queue("q")
    queue.publish_many([b"1", b"2"])
    first, second = queue.get_many(2)
    del first
    assert queue.statistics().taken == 1
    second.ack()
    assert queue.receive(timeout=0) == b"1"
    assert (queue.statistics().redelivered, len(queue)) == (1, 0)


def test_a_message_that_its_broker_refers_to_is_given_back(
    vhost: str, broker: shmbroker.Broker
) -> None:
    """The collector knows nothing of messages: so none may be part of a cycle."""
    queue = broker.declare_queue("q")
    queue.publish(b"x")
    other = shmbroker.connect(f"shm://{vhost}")
    taken = other.queue("q").get()
    other.of_a_program = [taken]  # type: ignore[attr-defined]
    gone = weakref.ref(other)
    del taken, other
    gc.collect()
    assert gone() is None
    assert queue.get_nowait().redelivered


def test_a_message_outlives_all_that_it_came_from(vhost: str, broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q")
    queue.publish(b"x", key="k")
    message = shmbroker.connect(f"shm://{vhost}").queue("q").get()
    gc.collect()
    assert (message.queue, message.key, message.body) == ("q", "k", b"x")
    message.ack()
    assert len(queue) == 0
