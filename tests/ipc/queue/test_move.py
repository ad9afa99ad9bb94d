"""Moving and copying between queues: in order, whole, and never lost."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, Queue, aio
from tests.support.killed import KILLS, victims


@pytest.fixture
def source(broker: Broker) -> Queue:
    return broker.declare_queue("source", slots=64)


@pytest.fixture
def target(broker: Broker) -> Queue:
    return broker.declare_queue("target", slots=64)


def bodies(queue: Queue) -> list[bytes]:
    return [message.body for message in queue.browse()]


def test_moving_keeps_order_and_everything_else(source: Queue, target: Queue) -> None:
    for number in range(5):
        source.publish(
            b"%d" % number, key=f"k{number}", properties={"n": number}, priority=number, ttl=60
        )
    assert source.move_to(target) == 5
    assert bodies(source) == []
    for number, message in enumerate(target.consume(timeout=0)):
        assert (message.body, message.key, message.properties) == (
            b"%d" % number, f"k{number}", {"n": number},
        )  # fmt: skip
        assert message.deliveries == 0
        assert (message._message.mark >> 24) & 0xFF == number + 1
        assert message._message.mark >> 32 & 1, "it has a time to live"


def test_copying_leaves_them_where_they_are(source: Queue, target: Queue) -> None:
    large = bytes(range(256)) * 1024
    source.publish(b"1", key="k", properties={"n": 1})
    source.publish(large)
    assert source.copy_to(target) == 2
    assert bodies(source) == bodies(target) == [b"1", large]
    copied = next(iter(target.browse()))
    assert (copied.key, copied.properties) == ("k", {"n": 1})


def test_what_is_left_to_live_is_kept(source: Queue, target: Queue) -> None:
    source.publish(b"short", ttl=0.5)
    source.publish(b"long", ttl=60)
    assert source.copy_to(target) == 2
    time.sleep(0.5)
    assert target.receive(timeout=0) == b"long"
    assert source.move_to(target) == 1, "what is expired is not moved"


def test_so_many(source: Queue, target: Queue) -> None:
    source.publish_many([b"1", b"2", b"3"])
    assert source.copy_to(target, 1) == 1
    assert source.move_to(target, limit=2) == 2
    assert bodies(source) == [b"3"]
    assert bodies(target) == [b"1", b"1", b"2"]


def test_what_is_selected(source: Queue, target: Queue) -> None:
    for number in range(6):
        source.publish(b"%d" % number, properties={"n": number})
    assert source.copy_to(target, selector="n < 2") == 2
    assert source.move_to(target, 1, "n > 3") == 1
    assert bodies(target) == [b"0", b"1", b"4"]
    assert bodies(source) == [b"0", b"1", b"2", b"3", b"5"]
    with pytest.raises(shmbroker.SelectorError):
        source.move_to(target, selector="n >")


def test_a_full_queue_ends_it(broker: Broker, source: Queue) -> None:
    small = broker.declare_queue("small", slots=2)
    source.publish_many([b"1", b"2", b"3"])
    assert source.move_to(small) == 2
    assert source.move_to(small) == 0
    with source.get(timeout=0) as message:
        assert (message.body, message.deliveries) == (b"3", 0), "it was not even taken"
        message.give_back()
    assert source.copy_to(small, timeout=0.01) == 0
    assert small.receive(timeout=0) == b"1"
    assert source.copy_to(small) == 1


def test_a_copy_that_anything_else_ends_says_how_far_it_came(
    broker: Broker, source: Queue, target: Queue
) -> None:
    source.publish_many([bytes(1 << 20)] * 40)  # of an arena of 64 MiB
    with pytest.raises(shmbroker.ArenaFull) as raised:
        source.copy_to(target)
    assert 0 < raised.value.published == len(target) < 40


def test_it_may_wait_for_room(broker: Broker, source: Queue) -> None:
    small = broker.declare_queue("small", slots=2)
    source.publish_many([b"%d" % number for number in range(20)])
    received: list[bytes] = []

    def consume() -> None:
        while len(received) < 20:
            received.append(small.receive(timeout=30))

    thread = threading.Thread(target=consume)
    thread.start()
    assert source.move_to(small, timeout=30) == 20
    thread.join()
    assert received == [b"%d" % number for number in range(20)]


def test_it_may_wait_for_bytes(broker: Broker, source: Queue) -> None:
    small = broker.declare_queue("small", max_bytes="64KiB")
    source.publish_many([b"x" * 8000] * 20)
    moved = source.move_to(small)
    assert 0 < moved < 20
    assert source.move_to(small, timeout=0.01) == 0
    room = threading.Timer(0.1, small.receive_many, (moved,))
    room.start()
    assert source.move_to(small, 1, timeout=30) == 1
    room.join()
    assert source.get_nowait().deliveries == 0


def test_one_that_drops_the_oldest_takes_all(broker: Broker, source: Queue) -> None:
    small = broker.declare_queue("small", slots=2, when_full="drop-oldest")
    source.publish_many([b"1", b"2", b"3"])
    assert source.move_to(small) == 3
    assert bodies(small) == [b"2", b"3"]


def test_what_finds_no_room_is_not_touched(broker: Broker, source: Queue) -> None:
    ring = broker.declare_queue("ring", slots=8, max_messages=1, when_full="drop-oldest")
    ring.publish(b"in a hand")
    held = ring.get_nowait()
    source.publish(b"1")
    assert source.move_to(ring) == 0
    assert source.get_nowait().deliveries == 0
    held.ack()


def test_what_was_replaced_makes_room(broker: Broker, source: Queue) -> None:
    latest = broker.declare_queue("latest", slots=8, last_value=True)
    latest.publish(b"old", key="a")
    for number in range(6):
        latest.publish(b"%d" % number, key="b")
    source.publish(b"new", key="c")
    assert source.move_to(latest) == 1
    assert bodies(latest) == [b"5", b"old", b"new"]


def test_what_somebody_has_stays(source: Queue, target: Queue) -> None:
    source.publish_many([b"1", b"2"])
    with source.get(timeout=0):
        assert source.copy_to(target) == 1
        assert source.move_to(target) == 1
    assert bodies(target) == [b"2", b"2"]


def test_to_another_vhost(source: Queue, broker: Broker) -> None:
    name = f"{broker.vhost}-2"
    try:
        with shmbroker.connect(f"shm://{name}", create=True, arena_bytes=1 << 20) as elsewhere:
            other = elsewhere.declare_queue("source", slots=8)
            source.publish(b"far")
            assert source.move_to(other) == 1
            assert other.receive(timeout=0) == b"far"
    finally:
        shmbroker.vhost.delete(name, force=True)


@pytest.mark.parametrize("limit", [0, -1, "1", 1.5, True])
def test_what_is_no_limit(source: Queue, target: Queue, limit: Any) -> None:
    with pytest.raises(shmbroker.InvalidArgument, match="limit is a number of messages or None"):
        source.move_to(target, limit)


def test_where_nothing_goes(broker: Broker, source: Queue, target: Queue) -> None:
    source.publish(b"1")
    with pytest.raises(shmbroker.InvalidArgument, match=r"'source' cannot be moved .* to itself"):
        source.move_to(source)
    with pytest.raises(shmbroker.InvalidArgument, match="go to another queue, not to str"):
        source.copy_to("target")  # type: ignore[arg-type]
    broker.delete_queue("target")
    with pytest.raises(shmbroker.NotFound, match="queue 'target' was deleted"):
        source.move_to(target)
    assert bodies(source) == [b"1"]


def test_for_asyncio(vhost: str) -> None:
    async def main() -> None:
        async with aio.connect(f"shm://{vhost}") as connected:
            one, other = [await connected.declare_queue(name, slots=8) for name in ("a", "b")]
            await one.publish(b"1")
            assert await one.copy_to(other) == 1
            assert await one.move_to(other) == 1
            assert (await other.statistics()).depth == 2

    asyncio.run(main())


def move_there_and_back(broker: Broker) -> None:
    here, there = broker.queue("source"), broker.queue("target")
    here.move_to(there)
    there.move_to(here)


def test_whoever_is_killed_no_message_is_lost(
    vhost: str, broker: Broker, source: Queue, target: Queue, tmp_path: Path
) -> None:
    expected = {b"%d" % number for number in range(8)}
    source.publish_many(sorted(expected))
    doubled = 0
    for _number, _victim in victims(f"shm://{vhost}", tmp_path, move_there_and_back, 4):
        broker.repair()
        here, there = bodies(source), bodies(target)
        assert set(here) | set(there) == expected
        assert len(here) + len(there) <= len(expected) + 1
        doubled += len(here) + len(there) - len(expected)
        target.move_to(source)
        seen: set[bytes] = set()
        for message in source.get_many(20, timeout=0):  # one of each is left
            with message:
                seen.add(message.body)
        source.publish_many(sorted(seen))
    assert set(bodies(source)) == expected
    assert doubled < KILLS


def test_what_finds_no_memory_is_not_touched(broker: Broker) -> None:
    """To who tries again and again it would be set aside after some tries."""
    source = broker.declare_queue("large", slots=64)
    target = broker.declare_queue("small", slots=64)
    source.publish(bytes(4 << 20))
    fills = broker.declare_queue("fills", slots=1 << 14, when_full="fail")
    size = 8 << 20
    while size > 1 << 18:
        try:
            fills.publish(bytes(size))
        except shmbroker.ArenaFull:
            size //= 2
    for _ in range(20):
        with pytest.raises(shmbroker.ArenaFull):
            source.move_to(target)
    assert [each.deliveries for each in source.browse()] == [0]
    broker.delete_queue("fills", force=True)
    assert source.move_to(target) == 1
    assert [len(each.body) for each in target.browse()] == [4 << 20]
