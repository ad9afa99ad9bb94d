"""Numbers that a remote producer leaves out stay open until they are retried or given up."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, Empty, Queue, TooMany, Unconfirmed
from shmbroker.core.codes import DUPLICATE, INVALID, TOO_MANY_OPEN
from shmbroker.core.layout import OPEN_NUMBERS_MAX
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.paging.pager import Pager
from shmbroker.ipc.sink.sink import Sink
from shmbroker.perf.machine.process import Process
from tests.ipc.paging.test_paging import eventually
from tests.support.host import PATIENCE, after_the_host_died, journaling
from tests.support.killed import KILLS
from tests.support.records import chunk, record, stream
from tests.support.streams import forget_streams

ORIGIN = bytes(range(16))
SMALL = 64 << 10
FEW_KILLS = max(15, KILLS // 4)
LIFE_MS_MAX = 30
SHUFFLED = 8
"""So many records that follow each other come in any order."""
MANY = 1 << 16


@pytest.fixture
def sink(broker: Broker) -> Iterator[Sink]:
    with Sink(broker, ORIGIN, counts=True) as opened:
        yield opened


def taken(queue: Queue) -> list[bytes]:
    got: list[bytes] = []
    with suppress(Empty):
        while True:
            got += [bytes(body) for body in queue.receive_many(1 << 14, timeout=0)]
    return got


def one(position: int, size: int = 0) -> bytes:
    return record(position, chunk(b"%d" % position + bytes(size)))


def test_what_was_left_out_is_retried_in_any_order(broker: Broker, sink: Sink) -> None:
    queue = broker.declare_queue("q", slots=64)
    sink.to_queue(queue)
    assert sink.pour(one(2) + one(3) + one(6)).answers == [0, 1, 2]
    assert (sink.position(), sink.open_positions()) == (7, [0, 1, 4, 5])
    told = sink.pour(one(5) + one(5) + one(3) + one(0) + one(7))
    assert told.answers == [3, DUPLICATE, DUPLICATE, 4, 5]
    assert sink.open_positions() == [1, 4]
    assert taken(queue) == [b"2", b"3", b"6", b"5", b"0", b"7"]


def test_the_next_who_pours_knows_what_is_open(broker: Broker, other: Broker) -> None:
    queue = broker.declare_queue("q", slots=64)
    with Sink(broker, ORIGIN, counts=True) as first:
        first.to_queue(queue)
        first.pour(one(3) + one(1))
    with Sink(other, ORIGIN, counts=True) as second:
        assert second.to_queue(other.queue("q")) == 4
        assert second.open_positions() == [0, 2]
        assert second.pour(stream([b"a", b"b", b"c", b"d", b"e"])).seen == 2
        assert second.open_positions() == []


def test_too_many_are_open(broker: Broker, sink: Sink) -> None:
    queue = broker.declare_queue("q", slots=2048)
    sink.to_queue(queue)
    last = OPEN_NUMBERS_MAX
    assert sink.pour(one(last + 1)).answers == [TOO_MANY_OPEN]
    assert (sink.position(), sink.open_positions()) == (0, [])
    assert sink.pour(one(last)).answers == [0]
    assert sink.open_positions() == list(range(last))
    assert sink.pour(one(last + 2) + one(last + 1)).answers == [TOO_MANY_OPEN, 1]
    assert sink.pour(one(7) + one(last + 3)).answers == [2, 3]  # one is retried, another is open
    assert sink.pour(one(last + 5)).answers == [TOO_MANY_OPEN]
    sink.give_up(0, 7)
    assert sink.pour(one(last + 5) + one(3)).answers == [4, DUPLICATE]
    assert sink.open_positions() == [*range(8, last), last + 2, last + 4]


def test_what_is_given_up_is_known(broker: Broker, sink: Sink) -> None:
    sink.to_queue(broker.declare_queue("q", slots=64))
    sink.give_up(2, 1_000_000)  # of an origin that was forgotten, the first two may still come
    assert (sink.position(), sink.open_positions()) == (1_000_000, [0, 1])
    assert sink.pour(one(5) + one(1) + one(1_000_000)).answers == [DUPLICATE, 0, 1]
    sink.give_up(0, 1)
    assert sink.pour(one(0)).answers == [DUPLICATE]
    with pytest.raises(InvalidArgument, match="no positions"):
        sink.give_up(3, 3)


def test_a_message_that_is_refused_is_open_no_more(broker: Broker, sink: Sink) -> None:
    sink.to_queue(broker.declare_queue("q", slots=64))
    sink.pour(one(2))
    assert sink.pour(record(0, b"none at all") + record(4, b"none")).answers == [INVALID, INVALID]
    assert (sink.position(), sink.open_positions()) == (5, [1, 3])


def test_a_gap_whose_message_finds_no_room_is_none(broker: Broker, sink: Sink) -> None:
    queue = broker.declare_queue("q", slots=4)
    sink.to_queue(queue)
    sink.pour(stream([b"x"] * 4))
    assert sink.pour(one(9)).is_full
    assert (sink.position(), sink.open_positions()) == (4, [])
    taken(queue)
    assert sink.pour(one(6) + one(4)).answers == [4, 5]
    assert sink.open_positions() == [5]


@pytest.mark.parametrize(
    "settings",
    [{"last_value": True}, {"groups": 8}, {"priorities": 4}, {"max_messages": 60}],
    ids=lambda each: next(iter(each)),
)
def test_retries_of_other_kinds_of_queues(
    broker: Broker, sink: Sink, settings: dict[str, int]
) -> None:
    queue = broker.declare_queue("q", slots=64, **settings)
    sink.to_queue(queue)
    assert sink.pour(one(1) + one(0) + one(0) + one(2)).answers == [0, 1, DUPLICATE, 2]


def test_ids_are_compared_beside_numbers(broker: Broker) -> None:
    queue = broker.declare_queue("q", slots=64)
    with Sink(broker, ORIGIN, counts=True, checks=True) as sink:
        sink.to_queue(queue)
        named = [record(each, chunk(b"x", properties={"JMSMessageID": "a"})) for each in (1, 0)]
        assert sink.pour(named[0] + named[1] + one(3) + one(2)).answers == [0, DUPLICATE, 1, 2]
        assert sink.open_positions() == []


def test_a_link_has_none(broker: Broker, sink: Sink) -> None:
    queue = broker.declare_queue("q", slots=64)
    with Sink(broker, bytes(16)) as link:
        link.to_queue(queue)
        assert link.pour(one(5) + one(2)).answers == [0, DUPLICATE]
        with pytest.raises(InvalidArgument, match="may have gaps"):
            link.open_positions()
    with Sink(broker, bytes(16), counts=True) as other, pytest.raises(InvalidArgument):
        other.to_queue(queue)


def test_with_a_stream_its_open_numbers_are_forgotten(broker: Broker) -> None:
    queue = broker.declare_queue("q", slots=64)
    for forgets in (True, False):
        sink = Sink(broker, ORIGIN, counts=True, retention=0)
        assert sink.to_queue(queue) == 0
        sink.pour(one(40))
        sink.close(forgets=forgets)
    assert forget_streams(queue) == 1 + 40
    with Sink(broker, ORIGIN, counts=True) as sink:
        assert sink.to_queue(queue) == 0
        assert sink.open_positions() == []


def test_an_origin_keeps_its_own_retention(broker: Broker) -> None:
    """Who needs room forgets what its own asker wants no longer, and nothing else."""
    queue = broker.declare_queue("q", slots=64)
    for name, retention in ((b"a", 3600.0), (b"b", None), (b"c", 0.0)):
        with Sink(broker, name * 16, retention=retention) as sink:
            sink.to_queue(queue)
    for number in range(200):
        with Sink(broker, number.to_bytes(16, "big"), retention=0) as sink:
            sink.to_queue(queue)
    assert forget_streams(queue) > 0
    assert {each.identity for each in queue.origins()} == {(b"a" * 16).hex(), (b"b" * 16).hex()}


def several(queue: Queue, count: int) -> list[int]:
    got: list[int] = []
    while len(got) < count:
        got += [int(body) for body in queue.receive_many(count - len(got), timeout=PATIENCE)]
    return got


@pytest.fixture
def paging(url: str, tmp_path: Path) -> Iterator[Pager]:
    with shmbroker.connect(url, name="pager") as broker, Pager(broker, tmp_path / "pages") as pager:
        yield pager


@pytest.mark.usefixtures("paging")
def test_a_queue_that_pages_has_two_tables(broker: Broker) -> None:
    """A retry goes to ring or inbox, whichever it is the turn of, and both know it then."""
    queue = broker.declare_queue("q", slots=4, when_full="page")
    with Sink(broker, ORIGIN, counts=True) as sink:
        sink.to_queue(queue)
        sink.pour(one(0) + one(2) + one(4) + one(6) + one(7) + one(10))  # two in the inbox
        assert (sink.position(), sink.open_positions()) == (11, [1, 3, 5, 8, 9])
        assert sink.pour(one(3) + one(8) + one(3) + one(6)).seen == 2
        assert several(queue, 8) == [0, 2, 4, 6, 7, 10, 3, 8]
        eventually(lambda: queue.statistics().paged == 0)
        assert sink.pour(one(3) + one(8) + one(10)).seen == 3
    with Sink(broker, ORIGIN, counts=True) as sink:
        assert (sink.to_queue(queue), sink.open_positions()) == (11, [1, 5, 9])
        assert sink.pour(one(9) + one(12) + one(5) + one(8) + one(9)).seen == 2
        assert sink.open_positions() == [1, 11]
        sink.give_up(1, 2)
        assert sink.pour(one(1) + one(11)).answers[0] == DUPLICATE
    assert several(queue, 4) == [9, 12, 5, 11]


# --- deaths ---------------------------------------------------------------------------------------


def shuffled(first: int, seed: int) -> list[int]:
    """The positions of a group, in an order that only the seed says."""
    group = list(range(first, first + SHUFFLED))
    Random(seed * MANY + first).shuffle(group)
    return group


def opened(broker: Broker, sink: Sink, target: str) -> int:
    if target == "t":
        return sink.to_exchange(broker.exchange(target))
    return sink.to_queue(broker.queue(target))


def retry_on(url: str, target: str, seed: int, begun: int) -> int:
    """Pour what is not there, groups in any order, for ever."""
    with (
        shmbroker.connect(url, name="pourer") as broker,
        Sink(broker, ORIGIN, counts=True) as sink,
    ):
        position = opened(broker, sink, target)
        os.write(begun, b"!")
        first = max(0, position // SHUFFLED - 3) * SHUFFLED
        for each in sink.open_positions():
            with suppress(Unconfirmed):  # some queues of a route may have it
                sink.pour(one(each), timeout=PATIENCE)
        while True:
            order = shuffled(first, seed)
            for each in (*order, order[0]):
                with suppress(Unconfirmed):
                    sink.pour(one(each), timeout=PATIENCE)
            first += SHUFFLED


KINDS: dict[str, dict[str, Any]] = {
    "plain": {"slots": 64},
    "limited": {"slots": 64, "max_messages": 50},
    "page": {"slots": 16, "when_full": "page"},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("paging")
def test_each_message_is_there_once_whoever_is_killed(
    broker: Broker, url: str, tmp_path: Path, kind: str
) -> None:
    queue = broker.declare_queue("q", **KINDS[kind])
    random, got = Random(5), []
    for kill in range(KILLS):
        begun, say = os.pipe()
        process = Process(partial(retry_on, url, "q", kill, say), tmp_path / "errors")
        os.close(say)
        assert os.read(begun, 1), process.errors.read_text()
        end = time.monotonic() + random.uniform(0, LIFE_MS_MAX / 1000)
        while time.monotonic() < end:
            got += taken(queue)
        assert process.kill() == -9, process.errors.read_text()
        os.close(begun)
    with Sink(broker, ORIGIN, counts=True) as sink:
        position = sink.to_queue(queue)
        got += taken(queue)
        expected = set(range(position)) - set(sink.open_positions())
    eventually(lambda: queue.statistics().paged == 0 or got.extend(taken(queue)))
    got += taken(queue)
    assert sorted(map(int, got)) == sorted(expected)
    assert position > KILLS


@pytest.mark.usefixtures("paging")
def test_each_queue_of_a_route_has_each_message_once_whoever_is_killed(
    broker: Broker, url: str, tmp_path: Path
) -> None:
    queues = [
        broker.declare_queue("a", slots=64),
        broker.declare_queue("b", slots=16, when_full="page"),
    ]
    broker.declare_exchange("t", "topic")
    for queue in queues:
        broker.bind("t", queue.name, "#")
    random = Random(6)
    got: list[list[bytes]] = [[], []]

    def take() -> None:
        for queue, into in zip(queues, got, strict=True):
            into += taken(queue)

    for kill in range(FEW_KILLS):
        begun, say = os.pipe()
        process = Process(partial(retry_on, url, "t", kill, say), tmp_path / "errors")
        os.close(say)
        assert os.read(begun, 1), process.errors.read_text()
        end = time.monotonic() + random.uniform(0, LIFE_MS_MAX / 1000)
        while time.monotonic() < end:
            take()
        assert process.kill() == -9, process.errors.read_text()
        os.close(begun)
    with Sink(broker, ORIGIN, counts=True) as sink:
        position, left = opened(broker, sink, "t"), sink.open_positions()
    eventually(lambda: take() or queues[1].statistics().paged == 0)
    take()
    for bodies in got:
        positions = [int(body) for body in bodies]
        assert len(positions) == len(set(positions))
        assert set(range(position)) - set(positions) <= set(left)
    assert position > FEW_KILLS


def test_a_number_that_some_queues_may_have_is_in_doubt(broker: Broker, sink: Sink) -> None:
    """One of two queues had no room for it, and its publisher went on with a later one."""
    queues = [broker.declare_queue("a", slots=64), broker.declare_queue("b", slots=4)]
    broker.declare_exchange("t", "topic")
    for queue in queues:
        broker.bind("t", queue.name, "#")
    sink.to_exchange(broker.exchange("t"))
    assert sink.pour(stream([b"x"] * 5)).is_full
    taken(queues[1])
    assert sink.pour(one(6)).answers == [2]
    assert sink.open_positions() == [4, 5]
    assert sink.pour(one(5)).answers == [2]
    with pytest.raises(Unconfirmed, match="number 5 through exchange 't'"):
        sink.pour(one(4))
    sink.give_up(4, 5)
    assert sink.pour(one(4) + one(5)).answers == [DUPLICATE, DUPLICATE]
    with pytest.raises(TooMany):
        sink.pour(one(5000))
    assert [len(taken(queue)) for queue in queues] == [7, 2]


def test_a_retry_that_finds_a_queue_full_tells_which(broker: Broker, sink: Sink) -> None:
    """Whoever retries waits for its room."""
    queue = broker.declare_queue("q", slots=4)
    broker.declare_exchange("t", "topic")
    broker.bind("t", "q", "#")
    sink.to_exchange(broker.exchange("t"))
    assert sink.pour(one(0) + one(2)).answers == [1, 1]
    queue.publish_many([b"in the way"] * 2)
    assert sink.pour(one(1)).is_full
    assert sink.full == queue._queue
    assert taken(queue) == [b"0", b"2", b"in the way", b"in the way"]
    assert sink.pour(one(1)).answers == [1]
    assert taken(queue) == [b"1"]


# --- and the journal ------------------------------------------------------------------------------


def poured(broker: Broker, *positions: int, size: int = 0) -> list[int]:
    """Pour, and wait until it is on disk."""
    queue = broker.queue("q")
    with Sink(broker, ORIGIN, counts=True) as sink:
        sink.to_queue(queue)
        told = sink.pour(b"".join(one(each, size) for each in positions), timeout=PATIENCE)
        queue.confirm(max(told.answers), timeout=PATIENCE)
        return told.answers


def open_of(broker: Broker) -> tuple[int, list[int]]:
    with Sink(broker, ORIGIN, counts=True) as sink:
        return sink.to_queue(broker.queue("q")), sink.open_positions()


def test_open_numbers_are_open_after_the_host_died(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path):
        broker.declare_queue("q", slots=64, durable=True)
        poured(broker, 2, 5, 9)
        poured(broker, 4, 7)
    with after_the_host_died(vhost, tmp_path, 2) as broker:
        assert open_of(broker) == (10, [0, 1, 3, 6, 8])
        assert poured(broker, 4, 3, 12)[0] == DUPLICATE
    with after_the_host_died(vhost, tmp_path, 3) as broker:
        assert open_of(broker) == (13, [0, 1, 6, 8, 10, 11])
        assert sorted(map(int, taken(broker.queue("q")))) == [2, 3, 4, 5, 7, 9, 12]


def test_what_was_given_up_is_given_up_after_the_host_died(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path):
        queue = broker.declare_queue("q", slots=64, durable=True)
        with Sink(broker, ORIGIN, counts=True) as sink:
            sink.to_queue(queue)
            sink.give_up(0, 5000)
            sink.pour(one(5005))
            sink.give_up(5001, 5003)
        for _ in range(3):
            queue.publish(b"behind", timeout=PATIENCE)
    with after_the_host_died(vhost, tmp_path, 2) as broker:
        assert open_of(broker) == (5006, [5000, 5003, 5004])


def test_they_are_open_when_the_segments_of_later_messages_are_gone(
    vhost: str, tmp_path: Path
) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q", slots=64, durable=True)
        with journaling(vhost, tmp_path, 1, SMALL) as journaler:
            for each in range(3, 400, 20):
                poured(broker, *range(each, each + 19), size=2000)
                poured(broker, each - 1) if each % 3 else None
                taken(queue)
            known = open_of(broker)
            queue.publish_many([bytes(1000)] * 50)
            taken(queue)
            assert journaler.statistics().segments < 8
    assert len(known[1]) > 3
    with after_the_host_died(vhost, tmp_path, 2, SMALL) as broker:
        assert open_of(broker) == known


@pytest.mark.parametrize("deaths", range(3))
def test_the_broker_dies_before_it_has_written_a_retry(
    vhost: str, tmp_path: Path, deaths: int
) -> None:
    """Another broker goes on with what is in the ring; what none has written is not known."""
    epoch = 1
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q", slots=256, durable=True)
        for epoch in range(1, 2 + deaths):
            with journaling(vhost, tmp_path, epoch):
                poured(broker, 10 * epoch - 5, 10 * epoch)
            with Sink(broker, ORIGIN, counts=True) as sink:  # nobody writes this yet
                sink.to_queue(queue)
                sink.pour(one(10 * epoch - 7) + one(10 * epoch + 3) + one(10 * epoch + 1))
    kept = {10 * each - 5 for each in range(1, epoch + 1)} | {
        10 * each for each in range(1, epoch + 1)
    }
    for each in range(1, epoch):
        kept |= {10 * each - 7, 10 * each + 3, 10 * each + 1}
    with after_the_host_died(vhost, tmp_path, epoch + 1) as broker:
        position, left = open_of(broker)
        assert position == max(kept) + 1
        assert set(range(position)) - set(left) == kept
