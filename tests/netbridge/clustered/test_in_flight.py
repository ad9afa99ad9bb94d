"""What a program on another host has said to a node that leaves, and has no answer to yet."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

import shmbroker
from shmbroker import TransactionRolledBack, Unconfirmed, aio
from shmbroker.ipc.sink.sink import ORIGIN_BYTES, Sink
from shmbroker.netbridge.clustered import remote_programs
from shmbroker.netbridge.clustered.rows import made, pages
from shmbroker.netbridge.serving.commit import MARK, MARKS, mark_of, marks
from tests.netbridge.clustered.conftest import PASSWORD, PATIENCE, Cluster
from tests.netbridge.clustered.test_inherited import Nodes, node
from tests.netbridge.clustered.test_scale_down import at, bodies, for_programs, stop
from tests.support.records import chunk, record

__all__ = ["node"]
TOGETHER = 50
"""Calls that are on their way at a time."""
BEFORE = 500
"""So many are answered before the node is stopped, and after it has left."""
LATER = datetime.now(UTC) + timedelta(days=1)


def goes(here: shmbroker.Broker, there: shmbroker.Broker, *names: str) -> None:
    for page in pages(remote_programs.rows(here, [here.queue(name) for name in names])):
        assert made(there, page) == ""


def one(position: int) -> bytes:
    return record(position, chunk(b"%d" % position))


@pytest.mark.parametrize("left_out", [[], [3], [0, 1, 5]])
def test_numbers_of_a_remote_producer_go_with_those_that_it_has_left_out(
    node: Nodes, left_out: list[int]
) -> None:
    west, east = node(), node()
    identity, number = b"p" * ORIGIN_BYTES, 8
    for broker in (west, east):
        broker.declare_queue("orders", slots=64)
    sink = Sink(west, identity, counts=True)
    sink.to_queue(west.queue("orders"))
    for position in range(number):
        if position not in left_out:
            assert sink.pour(one(position)).appended == 1
    sink.close()
    goes(west, east, "orders")
    goes(west, east, "orders")
    with Sink(east, identity, counts=True, stops_at_refused=True) as there:
        assert there.to_queue(east.queue("orders")) == number
        assert there.open_positions() == left_out
        for position in range(number + 1):
            there.pour(one(position))
    wanted = [b"%d" % position for position in [*left_out, number]]
    assert bodies(east.queue("orders")) == wanted


def test_marks_of_commits_go_and_those_that_are_there_stay(node: Nodes) -> None:
    west, east = node(), node()
    session = b"s" * 16
    for broker, transactions in ((west, (1, 2)), (east, (2, 3))):
        for each in transactions:
            value = 10 if broker is west else 20
            marks(broker).publish(MARK.pack(value, 0), key=mark_of(session, each))
    goes(west, east)
    found = {each: east.queue(MARKS).value(mark_of(session, each)) for each in (1, 2, 3)}
    values = {each: MARK.unpack(mark.body)[0] for each, mark in found.items() if mark is not None}
    assert values == {1: 10, 2: 20, 3: 20}


@pytest.mark.parametrize(
    "row",
    [
        {"producer": "orders", "of": b"short", "at": 1, "open": []},
        {"producer": "none", "of": b"p" * ORIGIN_BYTES, "at": 1, "open": []},
        {"producer": "orders", "of": b"p" * ORIGIN_BYTES, "at": "1", "open": []},
        {"producer": "orders", "of": b"p" * ORIGIN_BYTES, "at": 1 << 62, "open": []},
        {"commits": [["k", b"short"]]},
        {"commits": [["", bytes(MARK.size)]]},
        {"commits": 7},
    ],
)
def test_rows_of_nonsense_are_refused(node: Nodes, row: dict[str, object]) -> None:
    east = node()
    east.declare_queue("orders", slots=64)
    (page,) = pages([row])
    assert made(east, page) != ""


# --- of brokers that run --------------------------------------------------------------------------


class Calls:
    """Of one program: some are always on their way."""

    def __init__(self) -> None:
        self.done: set[bytes] = set()
        self.unknown: set[bytes] = set()
        self._is_over = threading.Event()
        self._has_some = threading.Condition()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def begin(self, url: str) -> None:
        self._url = url
        self._thread.start()
        self.until_more()

    def until_more(self) -> None:
        with self._has_some:
            wanted = len(self.done) + BEFORE
            assert self._has_some.wait_for(lambda: len(self.done) >= wanted, PATIENCE)

    def end(self) -> None:
        self._is_over.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    async def _run(self) -> None:
        numbers = iter(range(1 << 30))
        async with await aio.connect(self._url, user="apps", password=PASSWORD) as broker:
            await asyncio.gather(*(self._some(broker, numbers) for _ in range(TOGETHER)))

    async def _some(self, broker: aio.Broker, numbers: Iterator[int]) -> None:
        while not self._is_over.is_set():
            number = next(numbers)
            body = b"%d" % number
            try:
                await calls_of_each_kind(broker, number)
            except TransactionRolledBack:
                continue  # it was not done
            except Unconfirmed:
                self.unknown.add(body)
                continue
            with self._has_some:
                self.done.add(body)
                self._has_some.notify_all()


async def calls_of_each_kind(broker: aio.Broker, number: int) -> None:
    await (publishes, commits, schedules)[number % 3](broker, number)


async def publishes(broker: aio.Broker, number: int) -> None:
    await (await broker.queue("orders")).publish(b"%d" % number)


async def commits(broker: aio.Broker, number: int) -> None:
    async with broker.transaction() as work:
        work.publish("orders", b"%d" % number)


async def schedules(broker: aio.Broker, number: int) -> None:
    await (await broker.queue("orders")).publish(b"%d" % number, deliver_at=LATER)


def test_what_was_not_answered_yet_is_there_once(cluster: Cluster) -> None:
    url = for_programs(cluster)
    with at(cluster, "west") as west:
        west.declare_queue("orders", durable=True, slots=1 << 16)
    calls = Calls()
    calls.begin(url)
    assert stop(cluster)[0] == 0, cluster.story()
    calls.until_more()
    calls.end()
    with at(cluster, "east") as east:
        orders = east.queue("orders")
        found = Counter([*bodies(orders), *(bytes(each.body) for each in orders.scheduled())])
    assert not [each for each, times in found.items() if times > 1]
    assert calls.done <= found.keys() <= calls.done | calls.unknown
