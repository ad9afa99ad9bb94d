"""Pouring into a node: each record says which queue it is for."""

from __future__ import annotations

import pytest

from shmbroker import Broker, Empty, Queue
from shmbroker.core.codes import FULL
from shmbroker.core.layout import BINDING_HERE
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.exchange.own_binding import OwnBinding, bind_own
from shmbroker.ipc.follower.follower import Follower
from shmbroker.ipc.sink.sink import Sink
from shmbroker.ipc.sink.target import target_of, target_of_exchange, target_of_reply

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


def put(
    queue: Queue,
    name: str,
    body: bytes,
    key: bytes = b"",
    *,
    exchange: bool = False,
    reply: bool = False,
) -> None:
    """Towards the queue, exchange or requester of this name at another node."""
    outgoing = ffi.new("sb_outgoing *")
    kept = ffi.from_buffer(body), ffi.from_buffer(key)
    outgoing.body, outgoing.length = kept[0], len(body)
    outgoing.key, outgoing.key_length = kept[1], len(key)
    of = target_of_exchange if exchange else target_of_reply if reply else target_of
    outgoing.target = of(name)
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


def test_one_that_passes_through_stays_for_its_queue(broker: Broker, towards: Queue) -> None:
    one, further = broker.declare_queue("one"), broker.declare_queue("$sf.c.further", slots=64)
    plain = broker.declare_queue("plain", slots=64)
    put(towards, "one", b"1", b"key")
    put(towards, "one", b"2")
    for between in (further, plain):
        with Sink(broker, ORIGIN[::-1]) as sink:
            sink.to_queue(between)
            assert sink.pour(read(broker, towards)).appended == 2
    with poured(broker) as sink:
        assert sink.pour(read(broker, further)).appended == 2
    assert taken(one) == [b"1", b"2"]
    with Sink(broker, bytes(16), stops_at_refused=True) as sink:
        sink.to_node()
        told = sink.pour(read(broker, plain))
        assert (told.appended, told.has_stopped) == (0, True), "those had arrived"


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


def test_for_an_exchange_each_queue_gets_a_copy_once(broker: Broker, towards: Queue) -> None:
    broker.declare_exchange("prices", "topic")
    queues = [broker.declare_queue(name) for name in ("one", "two", "other")]
    for queue, key in zip(queues, ("eu.#", "eu.de", "us"), strict=True):
        broker.bind("prices", queue, key)
    for number in range(6):
        put(towards, "prices", b"%d" % number, (b"eu.de", b"eu.fr")[number // 3], exchange=True)
    put(towards, "one", b"to the queue", b"us")
    put(towards, "prices", b"to nobody", b"asia", exchange=True)
    records = read(broker, towards)
    for _ in range(2):
        with poured(broker) as sink:
            assert not sink.pour(records).has_stopped
            assert sink.position() == 8
    assert taken(queues[0]) == [b"0", b"1", b"2", b"3", b"4", b"5", b"to the queue"]
    assert taken(queues[1]) == [b"0", b"1", b"2"]
    assert taken(queues[2]) == []


def test_from_an_exchange_nothing_goes_on(broker: Broker, towards: Queue) -> None:
    """Not to another node, to another exchange, or to what another node has bound."""
    for name in ("alternate", "behind", "prices"):
        alternate = "alternate" if name == "prices" else None
        broker.declare_exchange(name, "fanout", alternate=alternate)
    one, far, own = (broker.declare_queue(name) for name in ("one", "far", "own"))
    broker.bind("behind", far)
    broker.bind("alternate", far)
    broker.bind("prices", "behind", to="exchange")
    bind_own(broker, OwnBinding("prices", towards.name, "", b"", False, target_of("far")))
    bind_own(broker, OwnBinding("prices", own.name, "", b"", False, BINDING_HERE))
    put(towards, "prices", b"to nobody", exchange=True)
    records = read(broker, towards)
    with poured(broker) as sink:
        assert not sink.pour(records).has_stopped
        broker.bind("prices", one)
        put(towards, "prices", b"to one", exchange=True)
        before = towards.statistics().published
        assert not sink.pour(read(broker, towards, 1)).has_stopped
    assert (taken(one), taken(far), taken(own)) == ([b"to one"], [], [])
    assert towards.statistics().published == before


def test_each_goes_to_those_who_are_bound_when_it_comes(broker: Broker, towards: Queue) -> None:
    broker.declare_exchange("prices", "fanout")
    left, came = broker.declare_queue("left"), broker.declare_queue("came")
    broker.bind("prices", left)
    put(towards, "prices", b"1", exchange=True)
    put(towards, "prices", b"2", exchange=True)
    first, second = (read(broker, towards, each) for each in (0, 1))
    with poured(broker) as sink:
        assert not sink.pour(first[: -len(second)]).has_stopped
        broker.unbind("prices", left)
        broker.bind("prices", came)
        assert not sink.pour(second).has_stopped
    assert (taken(left), taken(came)) == ([b"1"], [b"2"])


def test_an_exchange_that_is_not_there_is_refused(broker: Broker, towards: Queue) -> None:
    broker.declare_queue("prices")  # a queue is no exchange
    put(towards, "prices", b"1", exchange=True)
    records = read(broker, towards)
    with poured(broker) as sink:
        told = sink.pour(records)
        assert told.has_stopped
        assert "its exchange is not there any more" in sink.why(told.code)
        one = broker.declare_queue("one")
        broker.declare_exchange("prices", "fanout")
        broker.bind("prices", one)
        assert not sink.pour(records).has_stopped
        broker.delete_exchange("prices", force=True)
        put(towards, "prices", b"2", exchange=True)
        assert sink.pour(read(broker, towards, 1)).has_stopped
        broker.declare_exchange("prices", "fanout")
        broker.bind("prices", one)
        assert not sink.pour(read(broker, towards, 1)).has_stopped
        assert taken(one) == [b"1", b"2"]


def test_a_reply_goes_to_its_requester_or_nowhere(broker: Broker, towards: Queue) -> None:
    replies = broker.temporary_queue(slots=16, max_deliveries=None, when_full="drop-oldest")
    for number in range(40):  # one that is slow keeps nobody else waiting
        put(towards, replies.name, b"%d" % number, reply=True)
    put(towards, "tmp.9.gone", b"to one who has left", reply=True)
    put(towards, replies.name, b"last", reply=True)
    records = read(broker, towards)
    with poured(broker) as sink:
        for _ in range(2):
            assert not sink.pour(records).has_stopped
            assert sink.position() == 42
        assert taken(replies) == [*(b"%d" % number for number in range(25, 40)), b"last"]
        assert broker.queue("$sink.marks").statistics().dropped == 1
        broker.delete_queue(replies.name, force=True)
        put(towards, replies.name, b"to one who has just left", reply=True)
        assert not sink.pour(read(broker, towards, 42)).has_stopped
        assert broker.queue("$sink.marks").statistics().dropped == 2


def test_queues_of_requesters_who_have_left_are_not_kept(broker: Broker, towards: Queue) -> None:
    with poured(broker) as sink:
        for number in range(20):
            replies = broker.temporary_queue()
            put(towards, replies.name, b"%d" % number, reply=True)
            assert not sink.pour(read(broker, towards, number)).has_stopped
            assert taken(replies) == [b"%d" % number]
            broker.delete_queue(replies.name, force=True)
        assert len(sink.queues()) == 1, "but the last one"


def test_who_does_not_stop_at_what_is_refused_would_lose_it(broker: Broker) -> None:
    with Sink(broker, ORIGIN) as sink, pytest.raises(InvalidArgument, match="stops at"):
        sink.to_node()


def test_targets_are_what_they_were() -> None:
    """They are in journals."""
    assert target_of("orders") == 6_546_424_741_852_204_659
    assert target_of_exchange("orders") == -9_107_284_554_280_141_310
    assert target_of_reply("orders") == -4_841_608_783_253_213_047
    names = [f"queue-{each}" for each in range(10_000)]
    kinds = target_of, target_of_exchange, target_of_reply
    assert len({of(each) for each in names for of in kinds}) == 30_000
