"""The columns of all queues say what each queue says of itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.cli.metrics import rings
from shmbroker.cli.metrics.queues import Queues

FIGURES = {
    "depth": "depth", "taken": "taken", "slots": "slots", "published": "published",
    "delivered": "delivered", "acked": "acked", "redelivered": "redelivered",
    "expired": "expired", "dead_lettered": "dead_lettered", "dropped": "dropped",
    "replaced": "replaced", "duplicates": "duplicates", "set_aside": "set_aside",
    "scheduled": "scheduled", "paged": "paged", "paged_bytes": "paged_bytes",
    "paused": "is_paused", "consumers": "consumers", "producers": "producers",
    "slow_consumers": "slow_consumers",
}  # fmt: skip


@pytest.fixture
def broker(vhost_name: str) -> Iterator[Broker]:
    with shmbroker.connect(f"shm://{vhost_name}", create=True) as made:
        yield made


def check(broker: Broker, **expected: dict[str, int]) -> Queues:
    """As `statistics` of each queue, and what the test says of some."""
    queues = Queues(broker)
    for row, name in enumerate(queues.names):
        told = broker.queue(name).statistics()
        figures = {figure: getattr(told, of) for figure, of in FIGURES.items()}
        assert {figure: queues.figures[figure][row] for figure in FIGURES} == figures, name
        assert expected.get(name, {}).items() <= figures.items(), name
    assert set(expected) <= set(queues.names)
    return queues


def test_what_happens_to_messages(broker: Broker) -> None:
    broker.declare_queue("dead", slots=2)
    orders = broker.declare_queue("orders", slots=16, max_deliveries=1, dead_letter="dead")
    for body in (b"a", b"b", b"c", b"d", b"e", b"f"):
        orders.publish(body)
    taken = [orders.get(timeout=0) for _ in range(5)]
    taken[0].ack()
    for each in taken[1:3]:
        each.reject()
    taken[3].give_back()  # it was delivered too often, and there is no room where it goes
    orders.publish(b"soon over", ttl=0.001)
    orders.publish(b"later", deliver_after=3600)
    orders.pause()
    expected = {"acked": 1, "taken": 1, "set_aside": 1, "scheduled": 1, "paused": 1}
    check(broker, orders=expected, dead={"depth": 2})


def test_a_ring_that_goes_round(broker: Broker) -> None:
    small = broker.declare_queue("small", slots=4)
    for _ in range(9):
        small.publish(b"x")
        small.get(timeout=0).ack()
    for _ in range(4):
        small.publish(b"y")
    check(broker, small={"depth": 4, "published": 13, "acked": 9})


def test_queues_that_drop_keep_the_last_value_and_know_duplicates(broker: Broker) -> None:
    newest = broker.declare_queue("newest", slots=4, when_full="drop-oldest")
    values = broker.declare_queue("values", slots=16, last_value=True)
    once = broker.declare_queue("once", duplicate_ids=100)
    for number in range(7):
        newest.publish(b"x")
        values.publish(b"x", key=str(number % 2))
        once.publish(b"x", message_id=str(number % 3))
    check(broker, newest={"dropped": 3}, values={"replaced": 5}, once={"duplicates": 4})


def test_what_is_carried_to_the_end_is_published_once(broker: Broker) -> None:
    values = broker.declare_queue("values", slots=4, last_value=True)
    values.publish(b"x", key="old")
    for _ in range(20):
        values.publish(b"x", key="new")
    assert values.statistics().carried > 0
    check(broker, values={"depth": 2, "published": 21, "replaced": 19})


def test_who_uses_more_queues_than_its_list_has_places_for(broker: Broker) -> None:
    queues = [broker.declare_queue(f"queue-{number}") for number in range(130)]
    for each in queues:
        each.publish(b"x")
        each.get(timeout=0).ack()
    found = check(broker)
    assert found.figures["consumers"].sum() == found.figures["producers"].sum() == 130


def test_the_slots_are_read_in_pieces(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rings, "READ_SLOTS_MAX", 3)
    monkeypatch.setattr(rings, "BATCH_BYTES", 100)
    queue = broker.declare_queue("queue", slots=16)
    for _ in range(20):
        queue.publish(b"x")
        queue.get(timeout=0).ack()
    for _ in range(16):
        queue.publish(b"x")
    check(broker, queue={"depth": 16, "published": 36})


def test_the_oldest_message(broker: Broker) -> None:
    queue = broker.declare_queue("queue")
    assert Queues(broker).figures["oldest_ns"].tolist() == [0]
    queue.publish(b"first")
    before = Queues(broker).figures["oldest_ns"][0]
    queue.publish(b"second")
    first = queue.get(timeout=0)
    assert Queues(broker).figures["oldest_ns"][0] > before > 0
    older = Queues(broker).figures["oldest_ns"][0]
    first.ack()
    assert 0 < Queues(broker).figures["oldest_ns"][0] < older + 60e9
    queue.get(timeout=0).ack()
    assert Queues(broker).figures["oldest_ns"].tolist() == [0]


def test_a_queue_that_was_deleted_is_not_there(broker: Broker) -> None:
    broker.declare_queue("one")
    broker.declare_queue("two")
    broker.delete_queue("one")
    broker.declare_queue("three")
    assert sorted(Queues(broker).names) == ["three", "two"]
    check(broker)
