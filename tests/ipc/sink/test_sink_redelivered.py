"""What may have been delivered at another node says so where it is delivered."""

from __future__ import annotations

import pytest

from shmbroker import Broker
from shmbroker.core import layout as at
from shmbroker.ipc.queue.moving import pass_over
from shmbroker.ipc.sink.sink import Sink
from shmbroker.ipc.sink.target import target_of
from tests.ipc.sink.test_sink_node import ORIGIN, read
from tests.support.records import chunk, record, stream

MARK_AT = at.RECORD_HEAD_BYTES + at.CHUNK_MARK_AT


def marked(position: int, body: bytes, deliveries: int, **more: float) -> bytes:
    found = bytearray(record(position, chunk(body, **more)))
    found[MARK_AT] |= deliveries
    return bytes(found)


def told(broker: Broker, name: str) -> list[tuple[bytes, int]]:
    return [(bytes(each.body), each.deliveries) for each in broker.queue(name).browse()]


@pytest.mark.parametrize("ttl", [None, 100.0], ids=["all at once", "one by one"])
def test_once_is_what_others_count(broker: Broker, ttl: float | None) -> None:
    queue = broker.declare_queue("orders", slots=64)
    more = {} if ttl is None else {"ttl": ttl}
    with Sink(broker, ORIGIN) as sink:
        sink.to_queue(queue)
        sink.pour(marked(0, b"new", 0, **more) + marked(1, b"twice", 2, **more))
        sink.pour(stream([b"in doubt"], 2, **more), doubts=True)
        sink.pour(stream([b"later"], 3, **more))
    assert told(broker, "orders") == [(b"new", 0), (b"twice", 1), (b"in doubt", 1), (b"later", 0)]


def test_it_goes_with_what_another_node_fetches(broker: Broker) -> None:
    queue = broker.declare_queue("orders", slots=64)
    ring = broker.declare_queue("$link.n.fetch", slots=64)
    for body in (b"first", b"second"):
        queue.publish(body)
    queue.get_nowait().give_back()
    assert told(broker, "orders") == [(b"first", 1), (b"second", 0)]
    pass_over(queue, ring, 64, None, 0, copies=False, towards=target_of("orders"))
    with Sink(broker, ORIGIN, stops_at_refused=True, travels=True) as sink:
        sink.to_node()
        sink.pour(read(broker, ring))
    assert told(broker, "orders") == [(b"first", 1), (b"second", 0)]


def test_who_moves_it_by_hand_begins_anew(broker: Broker) -> None:
    """Else what is retried from where the dead are would die at once."""
    queue, other = (broker.declare_queue(name, slots=64) for name in ("orders", "other"))
    queue.publish(b"first")
    queue.get_nowait().give_back()
    queue.move_to(other)
    assert told(broker, "other") == [(b"first", 0)]
