"""Pouring through an exchange."""

from __future__ import annotations

import pytest

from shmbroker import Broker, Empty, Queue
from shmbroker.core.codes import DUPLICATE, FULL, INVALID
from shmbroker.ipc.exchange.own_binding import OwnBinding, bind_own
from shmbroker.ipc.follower.follower import Follower
from shmbroker.ipc.sink.sink import Sink
from shmbroker.ipc.sink.target import target_of, target_of_exchange
from tests.support.records import chunk, record

ORIGIN = bytes(range(16))


def taken(queue: Queue) -> list[int]:
    got: list[int] = []
    try:
        while True:
            got += [int(body) for body in queue.receive_many(1 << 14, timeout=0)]
    except Empty:
        return got


def numbered(first: int, last: int, keys: tuple[str, ...]) -> bytes:
    return b"".join(
        record(each, chunk(b"%d" % each, key=keys[each % len(keys)].encode()))
        for each in range(first, last)
    )


@pytest.fixture
def queues(broker: Broker) -> dict[str, Queue]:
    broker.declare_exchange("prices", "topic")
    made = {name: broker.declare_queue(name, slots=64) for name in ("eu", "us", "all")}
    broker.bind("prices", "eu", "eu.*")
    broker.bind("prices", "us", "us.*")
    broker.bind("prices", "all", "#")
    broker.unbind("prices", "all", "#")
    broker.bind("prices", "all", "*.x")
    return made


def test_each_queue_of_the_route_has_it_once(broker: Broker, queues: dict[str, Queue]) -> None:
    keys = ("eu.x", "us.x", "eu.y", "nobody")
    for _ in range(2):
        with Sink(broker, ORIGIN) as sink:
            begun = sink.to_exchange(broker.exchange("prices"))
            told = sink.pour(numbered(0, 12, keys))
            assert told.answers == ([2, 2, 1, 0] * 3 if begun == 0 else [DUPLICATE] * 12)
            assert sink.position() == 12
    assert taken(queues["eu"]) == [0, 2, 4, 6, 8, 10]
    assert taken(queues["us"]) == [1, 5, 9]
    assert taken(queues["all"]) == [0, 1, 4, 5, 8, 9]


def test_properties_that_are_no_map_are_refused_by_an_exchange(
    broker: Broker, queues: dict[str, Queue]
) -> None:
    bad = record(0, chunk(b"0", b"eu.x", properties=b"\x81\xa1a\xd9\xff"))
    with Sink(broker, ORIGIN) as sink:
        sink.to_exchange(broker.exchange("prices"))
        assert sink.pour(bad + record(1, chunk(b"1", b"eu.y"))).answers == [INVALID, 1]
    assert taken(queues["eu"]) == [1]
    assert taken(queues["all"]) == []


def test_one_full_queue_holds_the_mark_and_no_other_gets_it_twice(
    broker: Broker, queues: dict[str, Queue]
) -> None:
    broker.declare_queue("small", slots=2)
    broker.bind("prices", "small", "eu.x")
    with Sink(broker, ORIGIN) as sink:
        sink.to_exchange(broker.exchange("prices"))
        told = sink.pour(numbered(0, 5, ("eu.x",)))
        assert (told.code, sink.position()) == (FULL, 2)
        small = taken(broker.queue("small"))
        told = sink.pour(numbered(2, 5, ("eu.x",)))
        small += taken(broker.queue("small"))
        told = sink.pour(numbered(sink.position(), 5, ("eu.x",)))
        assert (told.code, sink.position()) == (0, 5)
    assert small + taken(broker.queue("small")) == [0, 1, 2, 3, 4]
    assert taken(queues["eu"]) == [0, 1, 2, 3, 4]


def test_a_broken_record_is_refused_alone(broker: Broker, queues: dict[str, Queue]) -> None:
    with Sink(broker, ORIGIN) as sink:
        sink.to_exchange(broker.exchange("prices"))
        poured = numbered(0, 2, ("eu.y",)) + record(2, b"broken") + numbered(3, 5, ("eu.y",))
        assert sink.pour(poured).answers == [1, 1, INVALID, 1, 1]
    assert taken(queues["eu"]) == [0, 1, 3, 4]


def test_it_stops_before_what_one_queue_refuses_and_the_others_have_it(
    broker: Broker, queues: dict[str, Queue]
) -> None:
    broker.declare_queue("picky", slots=2, when_full="fail")
    broker.bind("prices", "picky", "eu.x")
    poured = numbered(0, 3, ("eu.x",)) + record(3, b"broken") + numbered(4, 5, ("eu.x",))
    with Sink(broker, ORIGIN, stops_at_refused=True) as sink:
        sink.to_exchange(broker.exchange("prices"))
        told = sink.pour(poured)
        assert (told.has_stopped, told.code, sink.position()) == (True, FULL, 2)
        assert len(queues["eu"]) == 3
        sink.skip(3)
        told = sink.pour(numbered(2, 3, ("eu.x",)) + record(3, b"broken"))
        assert (told.has_stopped, told.code, sink.position()) == (True, INVALID, 3)
        sink.skip(4)
        taken(broker.queue("picky"))
        assert sink.pour(numbered(4, 5, ("eu.x",))).answers == [3]
        assert {each.name for each in broker.queues() if each.depth} == {"eu", "all", "picky"}
        assert len(sink.queues()) == 3
    assert taken(queues["eu"]) == [0, 1, 2, 4]


def test_one_that_is_full_comes_before_one_that_refuses(
    broker: Broker, queues: dict[str, Queue]
) -> None:
    """Else what is set aside at its source would be lost for the one that had no room."""
    for name, when in (("picky", "fail"), ("small", "block")):
        broker.declare_queue(name, slots=2, when_full=when)
        broker.bind("prices", name, "eu.x")
    with Sink(broker, ORIGIN, stops_at_refused=True) as sink:
        sink.to_exchange(broker.exchange("prices"))
        told = sink.pour(numbered(0, 3, ("eu.x",)))
        assert (told.is_full, sink.position()) == (True, 2)
        assert sink.full is not None
        taken(broker.queue("small"))
        told = sink.pour(numbered(2, 3, ("eu.x",)))
        assert (told.has_stopped, sink.position()) == (True, 2)
    assert taken(broker.queue("small")) == [2]


def test_a_stream_is_told_apart_by_exchange(broker: Broker, queues: dict[str, Queue]) -> None:
    broker.declare_exchange("other", "fanout")
    with Sink(broker, ORIGIN) as sink:
        sink.to_exchange(broker.exchange("prices"), 1)
        assert sink.to_exchange(broker.exchange("other"), 2) == 0
        sink.pour(b"".join(record(each, chunk(b"1", key=b"eu.y"), queue=1) for each in range(3)))
        assert (sink.position(1), sink.position(2)) == (3, 0)


def test_settings_by_pattern_leave_the_marks_alone(broker: Broker) -> None:
    broker.declare_exchange("prices", "topic")
    broker.settings("#", when_full="page")  # which needs a broker
    with Sink(broker, ORIGIN) as sink:
        assert sink.to_exchange(broker.exchange("prices")) == 0


def test_towards_another_node_it_goes_once_with_each_target(
    broker: Broker, queues: dict[str, Queue]
) -> None:
    """As what programs at other hosts and bridges bring; at that node it arrives."""
    way = broker.declare_queue("$sf.c.n", slots=64)
    for target in (target_of_exchange("there"), target_of("single")):
        bind_own(broker, OwnBinding("prices", way.name, "eu.*", b"", False, target))
    records = numbered(0, 4, ("eu.x", "us.x"))
    for _ in range(2):
        with Sink(broker, ORIGIN) as sink:
            sink.to_exchange(broker.exchange("prices"))
            sink.pour(records)
            assert sink.position() == 4
    assert way.statistics().depth == 4
    assert taken(queues["eu"]) == [0, 2]
    broker.declare_exchange("there", "fanout")
    arrived = [broker.declare_queue(name) for name in ("first", "second", "single")]
    for each in arrived[:2]:
        broker.bind("there", each)
    with Follower(broker, "test") as follower:
        follower.seek(follower.add(way), 0)
        batch = follower.read_some(100, 1 << 16)
        assert batch is not None
        with Sink(broker, bytes(16), stops_at_refused=True) as sink:
            sink.to_node()
            assert not sink.pour(bytes(batch.memory)).has_stopped
    assert [taken(each) for each in arrived] == [[0, 2]] * 3


def test_queues_that_come_and_go_are_not_kept(broker: Broker, queues: dict[str, Queue]) -> None:
    with Sink(broker, ORIGIN) as sink:
        sink.to_exchange(broker.exchange("prices"))
        for each in range(20):
            broker.declare_queue("passing")
            broker.bind("prices", "passing", "eu.y")
            assert sink.pour(numbered(each, each + 1, ("eu.y",))).answers == [2]
            broker.delete_queue("passing")
        assert len(sink.queues()) == 2, "the one that stays, and the last"
    assert taken(queues["eu"]) == list(range(20))
