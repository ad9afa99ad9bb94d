"""Consuming with a selector: what matches is taken, the rest is left to others in its order."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path
from random import Random

import pytest

import shmbroker
from shmbroker import aio
from shmbroker.perf.machine.process import Process
from tests.ipc.aio.loop import run
from tests.support.host import PATIENCE
from tests.support.killed import KILLS
from tests.support.victim import Confirm, dying


@pytest.fixture
def queue(broker: shmbroker.Broker) -> shmbroker.Queue:
    return broker.declare_queue("q", slots=64)


def publish(queue: shmbroker.Queue, *numbers: int) -> None:
    for number in numbers:
        queue.publish(str(number).encode(), properties={"n": number, "odd": number % 2 == 1})


def taken(queue: shmbroker.Queue, selector: str | None) -> list[int]:
    return [int(message.body) for message in queue.consume(selector=selector, timeout=0)]


def test_the_rest_is_left_in_its_order(queue: shmbroker.Queue) -> None:
    publish(queue, 1, 2, 3, 4, 5)
    assert taken(queue, "odd = TRUE AND n > 1") == [3, 5]
    assert taken(queue, None) == [1, 2, 4]


def test_a_text_selects_one_message(queue: shmbroker.Queue) -> None:
    publish(queue, 1, 2, 3)
    for selector in ("n > 1", shmbroker.Selector("n > 1")):
        for take in (queue.select, queue.get):
            with take(selector, timeout=0) as message:
                assert message.body == b"2"
                message.give_back()
    with pytest.raises(shmbroker.Empty):
        queue.get(selector="n > 3", timeout=0.01)
    with pytest.raises(shmbroker.SelectorError):
        queue.get("n > ", timeout=0)
    assert taken(queue, None) == [1, 2, 3]


def test_a_text_selects_one_message_with_asyncio(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q")
            waiting = asyncio.create_task(queue.get("n > 1"))
            await asyncio.sleep(0.02)
            for number in (b"1", b"2", b"3"):
                await queue.publish(number, properties={"n": int(number)})
            (await waiting).give_back()
            for take in (queue.select, queue.get):
                async with take("n > 1", timeout=0) as message:  # no await: it enters by itself
                    assert message.body == b"2"
                    message.give_back()
            with pytest.raises(shmbroker.Empty):
                await queue.get(selector="n > 3", timeout=0.01)

    run(main())


def test_what_nobody_matches_blocks_nobody(queue: shmbroker.Queue) -> None:
    publish(queue, 1)
    for lap in range(3):
        publish(queue, *(10 * lap + 2 for _ in range(8)))
        assert len(taken(queue, "n <> 1")) == 8
    assert taken(queue, None) == [1]


def test_one_that_is_given_back_is_found_again(queue: shmbroker.Queue) -> None:
    publish(queue, 1, 2, 3)
    odd = queue.consume(selector="odd = TRUE", timeout=0)
    first = next(odd)
    first.give_back()
    again = next(odd)
    assert (again.body, again.deliveries) == (b"1", 1)
    assert [message.body for message in odd] == [b"3"]


def test_one_that_another_gives_back_wakes_us(queue: shmbroker.Queue) -> None:
    publish(queue, 1, 2)
    held = queue.get(timeout=0)
    found: list[bytes] = []

    def consume() -> None:
        for message in queue.consume(selector="n = 1", timeout=PATIENCE):
            found.append(message.body)
            message.ack()
            break

    thread = threading.Thread(target=consume)
    thread.start()
    held.give_back()
    thread.join()
    assert found == [b"1"]
    assert taken(queue, None) == [2]


def test_all_who_select_are_woken(queue: shmbroker.Queue) -> None:
    found: dict[int, list[bytes]] = {}

    def consume(number: int) -> None:
        selected = queue.consume(selector=f"n = {number}", timeout=5)
        found[number] = [next(selected).body]

    threads = [threading.Thread(target=consume, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    publish(queue, 3, 2, 1, 0)
    for thread in threads:
        thread.join()
    assert found == {number: [str(number).encode()] for number in range(4)}


def test_the_highest_that_matches_goes_first(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("p", slots=64, priorities=True)
    for number in range(20):
        queue.publish(str(number).encode(), priority=number % 10, properties={"n": number})
    assert taken(queue, "n < 15 AND $priority >= 3") == [9, 8, 7, 6, 5, 4, 14, 3, 13]
    assert taken(queue, None) == [19, 18, 17, 16, 15, 2, 12, 1, 11, 0, 10]


def test_what_is_above_the_highest_level_is_no_higher(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("two", slots=16, priorities=2)
    for number, priority in ((1, 0), (2, 1), (3, 9)):
        queue.publish(str(number).encode(), properties={"n": number}, priority=priority)
    assert taken(queue, "n > 0") == [2, 3, 1]


def test_an_expired_one_is_passed_over(queue: shmbroker.Queue) -> None:
    queue.publish(b"1", properties={"n": 1}, ttl=1e-9)
    publish(queue, 1)
    assert taken(queue, "n = 1") == [1]
    assert queue.statistics().expired == 1


def test_nothing_is_selected_while_it_is_paused(queue: shmbroker.Queue) -> None:
    publish(queue, 1, 2)
    odd = queue.consume(selector="odd = TRUE", timeout=0)
    queue.pause()
    assert list(odd) == []
    odd = queue.consume(selector="odd = TRUE", timeout=5)
    threading.Timer(0.01, queue.resume).start()
    assert next(odd).body == b"1"


def test_a_selector_that_does_not_parse(queue: shmbroker.Queue) -> None:
    with pytest.raises(shmbroker.SelectorError, match="="):
        next(queue.consume(selector="n = ", timeout=0))


def test_asyncio(vhost: str) -> None:
    async def main() -> list[bytes]:
        async with aio.connect(f"shm://{vhost}") as broker:
            queue = await broker.declare_queue("q")
            await queue.publish(b"kept", properties={"n": 0})
            held = await queue.get()
            loop = asyncio.get_running_loop()
            loop.call_later(0.01, held.give_back)
            loop.call_later(0.02, lambda: queue.publish_nowait(b"new", properties={"n": 0}))
            found = []
            async for message in queue.consume(selector="n = 0", timeout=5):
                found.append(message.body)
                if len(found) == 2:
                    break
            return found

    assert asyncio.run(main()) == [b"kept", b"new"]


def test_who_looks_again_and_again_gets_what_was_scheduled(
    queue: shmbroker.Queue, url: str, tmp_path: Path
) -> None:
    """By a program that has ended, and nobody else is there."""

    def schedules() -> None:
        with shmbroker.connect(url) as broker:
            broker.queue("q").publish(b"7", properties={"odd": True}, deliver_after=0.01)
            os._exit(0)

    assert Process(schedules, tmp_path / "errors").has_ended(PATIENCE)
    ends_at = time.monotonic() + PATIENCE
    found: list[int] = []
    while not found and time.monotonic() < ends_at:
        found = taken(queue, "odd = TRUE")
    assert found == [7]


def test_nothing_is_lost_or_passed_over_whenever_one_is_killed(
    queue: shmbroker.Queue, broker: shmbroker.Broker, vhost: str, tmp_path: Path
) -> None:
    random = Random(8)

    def work(theirs: shmbroker.Broker, confirm: Confirm) -> None:
        for message in theirs.queue("q").consume(selector="odd = TRUE"):
            confirm(int(message.body))  # before the ack: it may come once more

    for _ in range(KILLS):
        publish(queue, *range(32))
        with dying(vhost, work, tmp_path, random) as confirmed:
            pass
        broker.repair()
        odd = taken(queue, "odd = TRUE")
        assert odd == sorted(odd)
        assert set(odd) | set(confirmed) == set(range(1, 32, 2))
        assert taken(queue, None) == list(range(0, 32, 2))
        assert queue.statistics().depth == 0
