"""Pouring into one queue: each record once, whatever the queue's settings, and how far it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import msgpack
import pytest

import shmbroker
from shmbroker import Broker, Empty, Queue, QueueFull
from shmbroker.core.codes import DUPLICATE, FULL, INVALID
from shmbroker.core.layout import ORIGIN_BYTES, SEQUENCE_MASK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import InUse, InvalidArgument, NotFound
from shmbroker.ipc.journal import records
from shmbroker.ipc.sink.sink import Sink
from tests.support.records import chunk, record, stream
from tests.support.streams import forget_streams

ORIGIN = bytes(range(16))
OTHER = bytes(range(16, 32))


@pytest.fixture
def sink(broker: Broker) -> Iterator[Sink]:
    with Sink(broker, ORIGIN) as opened:
        yield opened


def bodies(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


def taken(queue: Queue) -> list[bytes]:
    try:
        return [bytes(body) for body in queue.receive_many(1 << 14, timeout=0)]
    except Empty:
        return []


def test_what_is_poured_is_there_once_and_in_order(broker: Broker, sink: Sink) -> None:
    queue = broker.declare_queue("q", slots=64)
    assert sink.to_queue(queue) == 0
    told = sink.pour(stream(bodies(0, 20)))
    assert (told.appended, told.seen, told.refused) == (20, 0, 0)
    assert told.answers == list(range(20))
    assert sink.position() == 20
    again = sink.pour(stream(bodies(10, 30), first=10))
    assert (again.appended, again.seen) == (10, 10)
    assert again.answers == [DUPLICATE] * 10 + list(range(20, 30))
    assert taken(queue) == bodies(0, 30)


def test_positions_may_have_gaps_and_records_of_other_kinds_between(
    broker: Broker, sink: Sink
) -> None:
    queue = broker.declare_queue("q", slots=64)
    sink.to_queue(queue)
    poured = b"".join(
        (
            record(3, chunk(b"a")),
            record(9, b"", kind=records.RETIRED),
            record(7, chunk(b"b")),
            record(7, chunk(b"b")),
            record(5, chunk(b"late")),
        )
    )
    told = sink.pour(poured)
    assert told.bytes == len(poured)
    assert told.answers == [0, 1, DUPLICATE, DUPLICATE]
    assert sink.position() == 8
    assert taken(queue) == [b"a", b"b"]


def test_the_next_goes_on_where_the_last_one_was(broker: Broker, other: Broker) -> None:
    queue = broker.declare_queue("q", slots=64)
    with Sink(broker, ORIGIN) as first:
        first.to_queue(queue)
        first.pour(stream(bodies(0, 5)))
        with Sink(other, ORIGIN) as second, pytest.raises(InUse, match="another participant"):
            second.to_queue(other.queue("q"))
    with Sink(other, ORIGIN) as second, Sink(broker, OTHER) as stranger:
        assert second.to_queue(other.queue("q")) == 5
        assert stranger.to_queue(queue) == 0


def test_a_stream_that_has_ended_is_forgotten(broker: Broker) -> None:
    queue = broker.declare_queue("q", slots=64)
    for forgets, known in ((False, 5), (True, 0)):
        sink = Sink(broker, ORIGIN)
        sink.to_queue(queue)
        sink.pour(stream(bodies(0, 5)))
        sink.close(forgets=forgets)
        with Sink(broker, ORIGIN) as again:
            assert again.to_queue(queue) == known


def test_key_properties_and_priority_travel(broker: Broker, sink: Sink) -> None:
    queue = broker.declare_queue("q", slots=64, priorities=10)
    sink.to_queue(queue)
    sink.pour(
        record(0, chunk(b"low", b"k", {"JMSMessageID": "me", "n": 1}, priority=1))
        + record(1, chunk(b"high", priority=9))
    )
    first, second = queue.get(timeout=1), queue.get(timeout=1)
    assert (bytes(first.body), bytes(second.body)) == (b"high", b"low")
    assert (second.key, second.properties["n"], second.message_id) == ("k", 1, "me")
    assert second.deliveries == 0
    second.ack()
    first.ack()


def test_a_message_id_is_not_compared(broker: Broker, sink: Sink) -> None:
    """A message may come back to where it was published."""
    queue = broker.declare_queue("q", slots=64)
    queue.publish(b"here", message_id="same")
    sink.to_queue(queue)
    assert sink.pour(record(0, chunk(b"there", properties={"JMSMessageID": "same"}))).appended == 1
    assert taken(queue) == [b"here", b"there"]


def test_a_message_id_of_a_remote_publisher_is_compared(broker: Broker) -> None:
    queue = broker.declare_queue("q", slots=64)
    queue.publish(b"here", message_id="same")
    with Sink(broker, ORIGIN, checks=True) as sink:
        sink.to_queue(queue)
        told = sink.pour(
            record(0, chunk(b"there", properties={"JMSMessageID": "same"}))
            + record(1, chunk(b"new", properties={"JMSMessageID": "new"}))
            + record(2, chunk(b"without"))
            + record(3, chunk(b"again", properties={"JMSMessageID": "new"}))
        )
        assert told.answers == [DUPLICATE, 1, 2, DUPLICATE]
        assert (told.appended, told.seen, sink.position()) == (2, 2, 4)
    assert queue.publish(b"late", message_id="new") is None
    with Sink(broker, ORIGIN, checks=True) as sink:
        assert sink.to_queue(queue) == 4
    assert taken(queue) == [b"here", b"new", b"without"]


def test_what_is_left_of_a_time_to_live_counts_on(broker: Broker, sink: Sink) -> None:
    queue = broker.declare_queue("q", slots=64)
    sink.to_queue(queue)
    sink.pour(record(0, chunk(b"short", ttl=0.02)) + record(1, chunk(b"long", ttl=60)))
    time.sleep(0.05)
    assert taken(queue) == [b"long"]


@pytest.mark.parametrize("limit", [{}, {"max_messages": 8}, {"max_bytes": 8 * 200}])
def test_no_room_is_told_and_it_goes_on(broker: Broker, sink: Sink, limit: dict[str, int]) -> None:
    queue = broker.declare_queue("q", slots=8, **limit)
    sink.to_queue(queue)
    poured = stream(bodies(0, 20))
    told = sink.pour(poured)
    assert told.is_full
    assert 0 < told.appended <= 8
    got: list[bytes] = []
    at = told.bytes
    while at < len(poured):
        got += taken(queue)
        told = sink.pour(poured[at:])
        at += told.bytes
    assert got + taken(queue) == bodies(0, 20)


def test_a_queue_that_fails_refuses_and_the_stream_goes_on(broker: Broker, sink: Sink) -> None:
    queue = broker.declare_queue("q", slots=4, when_full="fail")
    sink.to_queue(queue)
    told = sink.pour(stream(bodies(0, 6)))
    assert (told.appended, told.refused) == (4, 2)
    assert told.answers[4:] == [FULL, FULL]
    assert taken(queue) == bodies(0, 4)
    assert sink.pour(stream(bodies(4, 7), first=4)).answers == [DUPLICATE, DUPLICATE, 4]


def test_a_queue_that_drops_its_oldest(broker: Broker, sink: Sink) -> None:
    queue = broker.declare_queue("q", slots=4, when_full="drop-oldest")
    sink.to_queue(queue)
    assert sink.pour(stream(bodies(0, 10))).appended == 10
    assert taken(queue) == bodies(6, 10)


def test_last_values_and_groups(broker: Broker, sink: Sink) -> None:
    latest = broker.declare_queue("latest", slots=64, last_value=True)
    sink.to_queue(latest)
    poured = b"".join(
        record(number, chunk(b"%d" % number, key=b"k%d" % (number % 3))) for number in range(200)
    )
    told = sink.pour(poured)
    assert told.appended == 200
    assert sink.pour(poured).seen == 200
    assert sorted(taken(latest)) == [b"197", b"198", b"199"]


def test_groups_go_to_one_consumer(broker: Broker, other: Broker, sink: Sink) -> None:
    queue = broker.declare_queue("q", slots=64, groups=8)
    theirs = other.queue("q")
    sink.to_queue(queue)
    sink.pour(stream(bodies(0, 4), properties={"JMSXGroupID": "g"}))
    held = queue.get(timeout=1)
    with pytest.raises(Empty):
        theirs.get(timeout=0)
    held.ack()


def test_what_contradicts_itself_is_refused(broker: Broker, sink: Sink) -> None:
    queue = broker.declare_queue("q", slots=64)
    sink.to_queue(queue)
    broken = bytearray(chunk(b"xx"))
    broken[4] += 1  # the body's length
    told = sink.pour(record(0, bytes(broken)) + record(1, chunk(b"good")))
    assert told.answers == [INVALID, 0]
    assert sink.position() == 2
    with pytest.raises(InvalidArgument, match="cut off"):
        sink.pour(record(2, chunk(b"x")) + b"1234")
    assert taken(queue) == [b"good", b"x"]


NO_MAPS = [
    packed[:length]
    for packed in [msgpack.packb({"JMSReplyTo": "abc", "JMSCorrelationID": "i" * 40, "n": [1, {}]})]
    for length in range(1, len(packed))
] + [b"\x81\xa1a\xd9\xff", b"\x81\x01\x01", b"\x80\x80", b"\x90"]


@pytest.mark.parametrize("checks", [False, True])
def test_properties_that_are_no_map_are_refused(broker: Broker, checks: bool) -> None:
    """Whoever looks for one of them believes the lengths that are in them."""
    queue = broker.declare_queue("q", slots=64)
    with Sink(broker, ORIGIN, checks=checks) as sink:
        sink.to_queue(queue)
        bad = (record(each, chunk(b"", properties=packed)) for each, packed in enumerate(NO_MAPS))
        count = len(NO_MAPS)
        good = record(count, chunk(b"good", b"key", properties={"a": 1}))
        told = sink.pour(b"".join(bad) + good)
        assert told.answers == [INVALID] * count + [0]
        assert sink.position() == count + 1
    assert taken(queue) == [b"good"]


def test_whoever_stops_before_such_properties_is_told_why(broker: Broker) -> None:
    queue = broker.declare_queue("q", slots=64)
    with Sink(broker, ORIGIN, checks=True, counts=True, stops_at_refused=True) as sink:
        sink.to_queue(queue)
        told = sink.pour(record(0, chunk(b"bad", properties=NO_MAPS[0])))
        assert (told.has_stopped, told.code) == (True, INVALID)
        assert "properties are a MessagePack map" in sink.why(told.code)


@pytest.mark.parametrize("checks", [False, True])
def test_no_message_has_a_number_beyond_the_last(broker: Broker, checks: bool) -> None:
    """It would count up the generation of the stream's entry, and be 0 itself."""
    queue = broker.declare_queue("q", slots=64)
    with Sink(broker, ORIGIN, checks=checks) as sink:
        sink.to_queue(queue)
        with pytest.raises(InvalidArgument, match="position"):
            sink.pour(record(0, chunk(b"first")) + record(SEQUENCE_MASK, chunk(b"bad")))
        assert sink.position() == 1
        sink.pour(record(SEQUENCE_MASK - 1, chunk(b"last")))
        assert sink.position() == SEQUENCE_MASK
    assert taken(queue) == [b"first", b"last"]


def test_records_are_numbered_up_to_the_last() -> None:
    poured = bytearray(stream([b"a", b"b"]))
    for first, count in ((SEQUENCE_MASK - 2, 2), (SEQUENCE_MASK - 1, INVALID)):
        assert lib.sb_records_number(ffi.from_buffer(poured), len(poured), first) == count


def test_random_bytes_do_no_harm(broker: Broker, sink: Sink) -> None:
    queue = broker.declare_queue("q", slots=64)
    sink.to_queue(queue)
    random = Random(1)
    good = stream(bodies(0, 8), properties={"a": "b"})
    for _ in range(300):
        bad = bytearray(good)
        for _ in range(random.randrange(1, 6)):
            bad[random.randrange(len(bad))] = random.randrange(256)
        with suppress(shmbroker.Error):
            sink.pour(bytes(bad))
        queue.purge()
    assert queue.publish(b"still") >= 0


def test_records_of_several_queues_go_to_several(broker: Broker, sink: Sink) -> None:
    red, blue = (broker.declare_queue(name, slots=64) for name in ("red", "blue"))
    sink.to_queue(red, 1)
    sink.to_queue(blue, 2)
    poured = b"".join(
        record(number, chunk(b"%d" % number), queue=1 + number % 2) for number in range(10)
    )
    assert sink.pour(poured).appended == 10
    assert (sink.position(1), sink.position(2)) == (9, 10)
    assert taken(red) == [b"0", b"2", b"4", b"6", b"8"]
    with pytest.raises(NotFound, match="go nowhere"):
        sink.pour(record(99, chunk(b"x"), queue=3))


LIVE = 20
COME = 10_000
ENTRIES_OF_LIVE = 128
"""Twice as many as are known at once, in whole pages of the table."""


def memory_of(vhost: str, queue: Queue) -> int:
    """What the segment of the queue's ring takes, without what the kernel keeps beside."""
    (ring,) = Path("/dev/shm").glob(f"shmbroker.{vhost}.queue-*")
    assert queue.name == "q"
    return ring.stat().st_blocks * 512


@pytest.mark.parametrize("ends", ["in good order", "idle for too long"])
def test_ten_thousand_streams_come_and_go(broker: Broker, ends: str) -> None:
    """The table has room for those that are known at once, and no more."""
    queue = broker.declare_queue("q", slots=64)
    live = [Sink(broker, b"live" + bytes(11) + bytes([each])) for each in range(LIVE)]
    for index, each in enumerate(live):
        each.to_queue(queue)
        each.pour(stream([b"x"], first=100 + index))
    before = memory_of(broker.vhost, queue)
    for number in range(COME):
        passing = Sink(broker, number.to_bytes(16, "big"), retention=0)
        assert passing.to_queue(queue) == 0
        passing.pour(stream([b"x"], first=number))
        taken(queue)
        passing.close(forgets=ends == "in good order")
    assert memory_of(broker.vhost, queue) - before <= ENTRIES_OF_LIVE * ORIGIN_BYTES
    forget_streams(queue)
    known = {origin.identity: origin.position for origin in queue.origins()}
    assert sorted(known.values()) == [101 + index for index in range(LIVE)]
    for index, each in enumerate(live):
        assert each.position() == 101 + index
        each.close()
        with Sink(broker, b"live" + bytes(11) + bytes([index])) as again:
            assert again.to_queue(queue) == 101 + index


def test_ten_thousand_streams_that_are_kept(broker: Broker) -> None:
    """64 bytes for each, in a table that doubles; all of them are known exactly."""
    queue = broker.declare_queue("q", slots=64)
    before = memory_of(broker.vhost, queue)
    for number in range(COME):
        with Sink(broker, number.to_bytes(16, "big")) as passing:
            passing.to_queue(queue)
            passing.pour(stream([b"x"], first=number))
            taken(queue)
    assert memory_of(broker.vhost, queue) - before <= 2 * COME * ORIGIN_BYTES
    known = {origin.identity: origin.position for origin in queue.origins()}
    assert known == {number.to_bytes(16, "big").hex(): number + 1 for number in range(COME)}


def test_an_observer_pours_nothing(vhost: str, broker: Broker) -> None:
    queue = broker.declare_queue("q", slots=4, when_full="block")
    with Sink(broker, ORIGIN) as sink:
        sink.to_queue(queue)
        assert sink.pour(stream(bodies(0, 9)), timeout=0.05).is_full
    with pytest.raises(QueueFull):
        queue.publish(b"", timeout=0)


def test_an_origin_has_16_bytes(broker: Broker) -> None:
    bad: Any = b"short"
    with pytest.raises(InvalidArgument, match="16 bytes"):
        Sink(broker, bad)


def test_a_sink_may_stop_before_what_is_refused(broker: Broker) -> None:
    queue = broker.declare_queue("q", slots=64, when_full="fail")
    buffer = stream(bodies(0, 70))
    with Sink(broker, ORIGIN, stops_at_refused=True) as opened:
        opened.to_queue(queue)
        told = opened.pour(buffer)
        assert (told.appended, told.has_stopped, told.code) == (64, True, FULL)
        assert not told.is_full
        assert told.bytes == len(buffer) // 70 * 64
        assert "full" in opened.why(told.code)
        assert opened.position() == 64
        opened.skip(65)
        opened.skip(3)
        assert opened.position() == 65
    assert taken(queue) == bodies(0, 64)
    with Sink(broker, ORIGIN, stops_at_refused=True) as opened:
        assert opened.to_queue(queue) == 65
        assert opened.pour(buffer).appended == 5
    assert taken(queue) == bodies(65, 70)
