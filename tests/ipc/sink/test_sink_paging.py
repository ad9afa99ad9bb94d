"""Pouring into a queue that pages: in order by ring, inbox and pages, also after the host died."""

from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker import Broker
from shmbroker.core.layout import IN_INBOX
from shmbroker.ipc.sink.sink import Sink
from tests.ipc.paging.test_paging import eventually, received
from tests.ipc.paging.test_paging_durable import Host, declare
from tests.support.records import stream

ORIGIN = bytes(range(16))
MANY = 3000
PATIENCE = 60.0


@pytest.fixture
def host(vhost: str, tmp_path: Path) -> Host:
    return Host(vhost, tmp_path)


def pour(broker: Broker, first: int, end: int) -> None:
    """And wait until it is on disk."""
    queue = broker.queue("orders")
    poured = stream([number.to_bytes(8, "little") for number in range(first, end)], first)
    at, last = 0, -1
    with Sink(broker, ORIGIN) as sink:
        sink.to_queue(queue)
        while at < len(poured):
            told = sink.pour(memoryview(poured)[at:], timeout=PATIENCE)
            at += told.bytes
            last = told.answers[-1] if told.answers else last
    if last >= 0:
        queue.confirm(last, timeout=PATIENCE)


def position(broker: Broker) -> int:
    with Sink(broker, ORIGIN) as sink:
        return sink.to_queue(broker.queue("orders"))


def test_what_went_to_pages_is_known_after_the_host_died(host: Host) -> None:
    with host.up() as broker:
        queue = declare(broker)
        pour(broker, 0, MANY)
        assert queue.statistics().paged > 0
        assert received(queue, 1000) == list(range(1000))
        eventually(lambda: queue.statistics().acked == 1000)
    host.dies()
    with host.up() as broker:
        queue = broker.queue("orders")
        assert position(broker) == MANY
        pour(broker, MANY - 100, MANY + 500)
        assert received(queue, MANY - 500) == list(range(1000, MANY + 500))
    host.dies()
    with host.up() as broker:
        assert position(broker) == MANY + 500


def test_several_at_once_go_to_the_inbox(host: Host) -> None:
    with host.up() as broker, Sink(broker, ORIGIN) as sink:
        queue = declare(broker)
        sink.to_queue(queue)
        for first in range(0, 400, 40):
            bodies = [number.to_bytes(8, "little") for number in range(first, first + 40)]
            told = sink.pour(stream(bodies, first), timeout=PATIENCE)
            assert (told.code, told.appended) == (0, 40)
        assert sink.pour(stream([b"x"], 399)).seen == 1
        assert sink.pour(stream([(400).to_bytes(8, "little")], 400)).answers[0] & IN_INBOX
        assert received(queue, 401) == list(range(401))


def test_open_numbers_are_open_after_the_host_died(host: Host) -> None:
    """Those of the ring, those that the inbox took over, and a retry that is in the inbox."""

    def counted(broker: Broker, *positions: int) -> tuple[int, list[int]]:
        queue = broker.queue("orders")
        with Sink(broker, ORIGIN, counts=True) as sink:
            sink.to_queue(queue)
            for each in positions:
                told = sink.pour(stream([each.to_bytes(8, "little")], each), timeout=PATIENCE)
                if told.answers[0] >= 0:
                    queue.confirm(told.answers[0], timeout=PATIENCE)
            return sink.position(), sink.open_positions()

    with host.up() as broker:
        queue = declare(broker)
        before = [each for each in range(400) if each % 100 != 7]
        assert counted(broker, 2, *before[2:]) == (400, [0, 1, 7, 107, 207, 307])
        assert queue.statistics().paged > 0
        assert counted(broker, 107, 402) == (403, [0, 1, 7, 207, 307, 400, 401])
    host.dies()
    with host.up() as broker:
        queue = broker.queue("orders")
        assert counted(broker) == (403, [0, 1, 7, 207, 307, 400, 401])
        assert counted(broker, 107, 207) == (403, [0, 1, 7, 307, 400, 401])
        assert received(queue, len(before)) == [*before[2:], 107, 402]
        eventually(lambda: queue.statistics().paged == 0)
        assert counted(broker, 404) == (405, [0, 1, 7, 307, 400, 401, 403])
    host.dies()
    with host.up() as broker:
        assert counted(broker, 7, 107, 207) == (405, [0, 1, 307, 400, 401, 403])
