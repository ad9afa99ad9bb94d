"""The outline of a vhost: read again when a queue, a consumer or a binding came or went."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import shmbroker
from shmbroker.core.layout import PARTICIPANT_LIST
from shmbroker.ipc.connection.outline import Outline, Outlines, QueueOutline
from shmbroker.ipc.vhost import vhost as vhosts


@pytest.fixture
def outlines(broker: shmbroker.Broker) -> Iterator[Outlines]:
    with Outlines(broker.vhost) as opened:
        yield opened


def consumed(outline: Outline | None) -> dict[str, bool]:
    assert outline is not None
    return {each.name: each.is_consumed for each in outline.queues}


def test_a_look_that_finds_nothing_new_reads_nothing(
    broker: shmbroker.Broker, outlines: Outlines
) -> None:
    assert outlines.look() == Outline((), (), ())
    assert outlines.look() is None
    queue = broker.declare_queue("orders")
    found = outlines.look()
    assert found is not None
    [row] = found.queues
    assert row == QueueOutline("orders", row.reference, False, False, False)
    queue.publish(b"one")
    outlines.look()  # who publishes to it is a use as well
    queue.publish(b"two")
    assert outlines.look() is None


def test_consumers_come_and_go(broker: shmbroker.Broker, outlines: Outlines) -> None:
    broker.declare_queue("orders")
    assert consumed(outlines.look()) == {"orders": False}
    with shmbroker.connect(f"shm://{broker.vhost}") as taker:
        with pytest.raises(shmbroker.Empty):
            taker.queue("orders").get_nowait()
        assert consumed(outlines.look()) == {"orders": True}
    assert consumed(outlines.look()) == {"orders": False}


def test_who_takes_from_more_queues_than_its_list_has_room_for(
    broker: shmbroker.Broker, outlines: Outlines
) -> None:
    names = [f"q{number:03}" for number in range(PARTICIPANT_LIST + 2)]
    queues = [broker.declare_queue(name) for name in names]
    for queue in queues[:-1]:
        with pytest.raises(shmbroker.Empty):
            queue.get_nowait()
    assert consumed(outlines.look()) == dict.fromkeys(names, True) | {names[-1]: False}
    with pytest.raises(shmbroker.Empty):
        queues[-1].get_nowait()
    assert consumed(outlines.look()) == dict.fromkeys(names, True)


def test_bindings(broker: shmbroker.Broker, outlines: Outlines) -> None:
    broker.declare_queue("orders")
    broker.declare_exchange("news", "topic")
    broker.bind("news", "orders", "sports.#")
    found = outlines.look()
    assert found is not None
    [binding] = found.bindings
    assert (binding.exchange, binding.destination, binding.key) == ("news", "orders", "sports.#")


def test_a_vhost_that_was_made_anew(vhost: str) -> None:
    with Outlines(vhost) as outlines:
        assert outlines.is_current
        for each in Path("/dev/shm").glob(f"shmbroker.{vhost}.*"):
            each.unlink()
        assert not outlines.is_current
        vhosts.create(vhost, arena_bytes=64 << 20)
        assert not outlines.is_current
