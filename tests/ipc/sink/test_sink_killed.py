"""Whoever pours is killed with -9 at random moments, and another goes on: each message is there
once, in order."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, Empty, Queue
from shmbroker.ipc.base.errors import InUse
from shmbroker.ipc.paging.pager import Pager
from shmbroker.ipc.sink.sink import Sink
from shmbroker.perf.machine.process import Process
from tests.support.killed import KILLS
from tests.support.records import chunk, record
from tests.support.repairing import in_repair

ORIGIN = bytes(range(16))
LIFE_MS_MAX = 6
COUNT = 4096
"""Records in the buffer that is poured again and again, at higher positions."""
PATIENCE = 60.0
KEYS = 50
EXCHANGE = "prices"


KINDS: dict[str, dict[str, Any]] = {
    "plain": {"slots": 512},
    "limited": {"slots": 512, "max_messages": 300},
    "page": {"slots": 64, "when_full": "page"},
}


def buffer_from(first: int) -> bytes:
    """The records from this position on."""
    return b"".join(
        record(position, chunk(position.to_bytes(8, "little"), b"k%d" % (position % KEYS)))
        for position in range(first, first + COUNT)
    )


def pour_on(url: str, target: str, begun: int) -> int:
    """Pour from where the last one was, for ever."""
    with shmbroker.connect(url, name="pourer") as broker, Sink(broker, ORIGIN) as sink:
        if target == EXCHANGE:
            position = sink.to_exchange(broker.exchange(target))
        else:
            position = sink.to_queue(broker.queue(target))
        poured = buffer_from(max(0, position - 3))  # some of it is there already
        os.write(begun, b"!")
        at = 0
        while at < len(poured):
            at += sink.pour(memoryview(poured)[at:], timeout=PATIENCE).bytes
        return 0


class Pourers:
    def __init__(self, url: str, target: str, errors: Path, seed: int) -> None:
        self._url, self._target, self._errors = url, target, errors
        self._random = Random(seed)

    def __iter__(self) -> Iterator[None]:
        """One after the other, each killed before the next begins."""
        for _ in range(KILLS):
            begun, say = os.pipe()
            process = Process(partial(pour_on, self._url, self._target, say), self._errors)
            os.close(say)
            try:
                assert os.read(begun, 1), process.errors.read_text()
                yield None
                os.sched_yield()
                time.sleep(self._random.uniform(0, LIFE_MS_MAX / 1000))
                status = process.kill()
                assert status in (-9, 0), process.errors.read_text()
            finally:
                process.kill()
                os.close(begun)


def end_of(broker: Broker, target: Queue) -> int:
    with Sink(broker, ORIGIN) as sink:
        return sink.to_queue(target)


def take_all(queue: Queue, got: list[int]) -> None:
    with suppress(Empty):
        while True:
            for body in queue.receive_many(1 << 14, timeout=0):
                got.append(int.from_bytes(body[:8], "little"))


def drained(queue: Queue, got: list[int], end: int) -> list[int]:
    while len(got) < end:
        for body in queue.receive_many(1 << 14, timeout=PATIENCE):
            got.append(int.from_bytes(body[:8], "little"))
    return got


@pytest.mark.parametrize("kind", KINDS)
def test_each_message_is_there_once_and_in_order(
    broker: Broker, url: str, tmp_path: Path, kind: str
) -> None:
    got: list[int] = []
    with shmbroker.connect(url, name="pager") as theirs, Pager(theirs, tmp_path / "pages"):
        queue = broker.declare_queue("q", **KINDS[kind])
        for _ in Pourers(url, "q", tmp_path / "errors", seed=1):
            take_all(queue, got)
        end = end_of(broker, queue)
        drained(queue, got, end)
    assert got == list(range(end))
    assert end > KILLS


def test_last_values(broker: Broker, url: str, tmp_path: Path) -> None:
    """Of each key the last is there, and none comes twice or after a newer one."""
    queue = broker.declare_queue("q", slots=512, last_value=True)
    got: list[int] = []
    for _ in Pourers(url, "q", tmp_path / "errors", seed=2):
        take_all(queue, got)
    end = end_of(broker, queue)
    take_all(queue, got)
    for key in range(KEYS):
        values = [position for position in got if position % KEYS == key]
        assert sorted(set(values)) == values
        assert values[-1] == max(range(key, end, KEYS))


def test_through_a_topic_exchange(broker: Broker, url: str, tmp_path: Path) -> None:
    """Each queue of the route has each message once, in order."""
    broker.declare_exchange(EXCHANGE, "topic")
    wanted = {"all": lambda _: True, "ones": lambda key: key == 1, "twos": lambda key: key == 2}
    queues = {name: broker.declare_queue(name, slots=256) for name in wanted}
    for name, pattern in {"all": "#", "ones": "k1", "twos": "k2"}.items():
        broker.bind(EXCHANGE, name, pattern)
    got: dict[str, list[int]] = {name: [] for name in queues}
    for _ in Pourers(url, EXCHANGE, tmp_path / "errors", seed=3):
        for name, queue in queues.items():
            take_all(queue, got[name])
    for name, queue in queues.items():
        take_all(queue, got[name])
    with Sink(broker, ORIGIN) as sink:
        end = sink.to_exchange(broker.exchange(EXCHANGE))
    assert end > KILLS
    for name, is_wanted in wanted.items():
        last = got[name][-1] if got[name] else -1
        assert got[name] == [each for each in range(last + 1) if is_wanted(each % KEYS)], name
        assert all(each <= last for each in range(end) if is_wanted(each % KEYS)), name


def test_who_goes_on_waits_until_a_repair_is_done(
    broker: Broker, other: Broker, url: str, vhost: str, tmp_path: Path
) -> None:
    """Another repairs at the moment, and has not come to our queue."""
    broker.declare_queue("q", slots=512)
    begun, say = os.pipe()
    process = Process(partial(pour_on, url, "q", say), tmp_path / "errors")
    assert os.read(begun, 1)
    (pourer,) = (each.id for each in broker.participants() if each.name == "pourer")
    process.stop()
    with Sink(other, ORIGIN) as sink, pytest.raises(InUse):
        sink.to_queue(other.queue("q"))
    process.kill()
    positions: list[int] = []
    with in_repair(vhost, pourer):
        waits = Thread(target=lambda: positions.append(end_of(other, other.queue("q"))))
        waits.start()
        waits.join(0.1)
        assert waits.is_alive()
    waits.join(PATIENCE)
    assert positions  # it went on
