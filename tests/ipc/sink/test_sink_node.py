"""Pouring into a node: each record says which queue it is for."""

from __future__ import annotations

import pytest

from shmbroker import Broker, Empty, Queue
from shmbroker.core.codes import FULL
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.follower.follower import Follower
from shmbroker.ipc.sink.sink import Sink
from shmbroker.ipc.sink.target import target_of

ORIGIN = bytes(range(16))


def taken(queue: Queue) -> list[bytes]:
    found = []
    try:
        while True:
            with queue.get(timeout=0) as message:
                found.append(bytes(message.body))
                message.ack()
    except Empty:
        return found


def put(queue: Queue, name: str, body: bytes, key: bytes = b"") -> None:
    """Towards the queue of this name at another node."""
    outgoing = ffi.new("sb_outgoing *")
    kept = ffi.from_buffer(body), ffi.from_buffer(key)
    outgoing.body, outgoing.length = kept[0], len(body)
    outgoing.key, outgoing.key_length = kept[1], len(key)
    outgoing.target = target_of(name)
    assert lib.sb_publish_message(queue._queue, outgoing, 0) >= 0


@pytest.fixture
def towards(broker: Broker) -> Queue:
    return broker.declare_queue("$sf.c.n", slots=64)


def read(broker: Broker, queue: Queue, first: int = 0) -> bytes:
    with Follower(broker, "test") as follower:
        number = follower.add(queue)
        follower.seek(number, first)
        batch = follower.read_some(100, 1 << 16)
        return bytes(batch.memory) if batch is not None else b""


def poured(broker: Broker) -> Sink:
    sink = Sink(broker, ORIGIN, stops_at_refused=True)
    sink.to_node()
    return sink


def test_each_goes_to_its_queue_once_and_says_no_more_which(broker: Broker, towards: Queue) -> None:
    one, two = broker.declare_queue("one"), broker.declare_queue("two")
    for number in range(6):
        put(towards, ("one", "two")[number % 2], b"%d" % number, b"k")
    records = read(broker, towards)
    for _ in range(2):
        with poured(broker) as sink:
            told = sink.pour(records)
            assert not told.has_stopped
            assert sink.position() == 6
    [first, *_] = one.browse()
    assert first.key == "k"
    assert taken(one) == [b"0", b"2", b"4"]
    assert taken(two) == [b"1", b"3", b"5"]


def test_what_arrived_has_no_target_of_its_own(broker: Broker, towards: Queue) -> None:
    one, other = broker.declare_queue("one"), broker.declare_queue("other")
    put(towards, "one", b"coffee")
    with poured(broker) as sink:
        sink.pour(read(broker, towards))
    with Sink(broker, bytes(16), stops_at_refused=True) as sink:
        sink.to_node()
        assert sink.pour(read(broker, one)).has_stopped, "it goes nowhere from there"
    assert taken(other) == []


def test_a_target_that_is_not_there_is_refused_alone(broker: Broker, towards: Queue) -> None:
    one = broker.declare_queue("one")
    for name in ("one", "gone", "one"):
        put(towards, name, name.encode())
    records = read(broker, towards)
    with poured(broker) as sink:
        told = sink.pour(records)
        assert told.has_stopped
        assert sink.position() == 1
        assert "not there any more" in sink.why(told.code)
        sink.skip(2)
        assert not sink.pour(memoryview(records)[told.bytes :]).has_stopped
        assert sink.position() == 3
    assert taken(one) == [b"one", b"one"]


def test_a_queue_that_is_made_again_has_the_same_target(broker: Broker, towards: Queue) -> None:
    broker.declare_queue("one")
    for body in (b"1", b"2"):
        put(towards, "one", body)
    with poured(broker) as sink:
        sink.pour(read(broker, towards)[:0])
        put(towards, "one", b"3")
        records = read(broker, towards)
        length = len(records) // 3
        sink.pour(records[:length])
        broker.delete_queue("one", force=True)
        made = broker.declare_queue("one")
        assert not sink.pour(records[length:]).has_stopped
        assert taken(made) == [b"2", b"3"]


def test_one_without_room_holds_what_is_behind_it(broker: Broker, towards: Queue) -> None:
    small, other = broker.declare_queue("small", slots=2), broker.declare_queue("other")
    for name in ("small", "small", "small", "other"):
        put(towards, name, name.encode())
    records = read(broker, towards)
    with poured(broker) as sink:
        told = sink.pour(records)
        assert (told.code, sink.position(), told.is_full) == (FULL, 2, True)
        assert taken(small) == [b"small"] * 2
        sink.pour(memoryview(records)[told.bytes :])
        assert sink.position() == 4
    assert (taken(small), taken(other)) == ([b"small"], [b"other"])


def test_the_brokers_own_queues_are_no_target(broker: Broker, towards: Queue) -> None:
    put(towards, "$sf.c.n", b"round and round")
    with poured(broker) as sink:
        assert sink.pour(read(broker, towards)).has_stopped


def test_who_does_not_stop_at_what_is_refused_would_lose_it(broker: Broker) -> None:
    with Sink(broker, ORIGIN) as sink, pytest.raises(InvalidArgument, match="stops at"):
        sink.to_node()


def test_targets_are_what_they_were() -> None:
    """They are in journals."""
    assert target_of("orders") == 6_546_424_741_852_204_659
    assert len({target_of(f"queue-{each}") for each in range(10_000)}) == 10_000
