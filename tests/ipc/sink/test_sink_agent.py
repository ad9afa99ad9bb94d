"""Messages of an agent say by their properties where they were; not all properties can be."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgpack
import pytest

from shmbroker import Broker, InvalidArgument
from shmbroker.core import layout as at
from shmbroker.ipc._native import lib
from shmbroker.ipc.sink.sink import Sink
from shmbroker.ipc.sink.target import target_of_agent
from tests.support.records import CHUNK, EXTENSION, record

HERE, THERE, FIRST = bytes([1]) * 16, bytes([2]) * 16, bytes([3]) * 16
PUBLISHER = 0x1000
ENTRY = b"\xa4$mta\xc4\x10" + FIRST
WRONG = "wrongly where it was"


def of_agent(properties: bytes, target: int, position: int = 0) -> bytes:
    mark = at.MARK_MAGIC << at.MARK_MAGIC_SHIFT | at.CHUNK_EXTENDED << at.MARK_FLAGS_SHIFT
    middle = properties + bytes(-len(properties) % 16)
    head = CHUNK.pack(len(properties), 0, 0, mark) + EXTENSION.pack(0, 0, 0, target)
    return record(position, head + middle)


@pytest.fixture
def sink(broker: Broker) -> Iterator[Sink]:
    broker.declare_exchange("news", "fanout")
    broker.bind("news", broker.declare_queue("orders"))
    with Sink(broker, bytes(16), agent=(HERE, THERE)) as opened:
        opened.to_exchange(broker.exchange("news"))
        yield opened


def heads() -> Iterator[bytes]:
    """Of maps: as it may begin, whole or cut short."""
    for first in (*range(0x80, 0x90), 0xDE, 0xDF, 0xC0):
        for size in range(5):
            yield bytes([first]) + ENTRY[:size]


@pytest.mark.parametrize("hops", [0, 1, 2, 15, 16, 0x7F, PUBLISHER])
def test_whatever_they_say_it_is_taken_or_refused(sink: Sink, hops: int) -> None:
    ends = (b"", ENTRY, ENTRY[:-1], ENTRY[1:])
    for position, (head, end) in enumerate(itertools.product(heads(), ends)):
        try:
            sink.pour(of_agent(head + end, target_of_agent(8) | hops, position))
        except InvalidArgument as refused:
            assert WRONG in str(refused)  # noqa: PT017  # or it is taken


@pytest.mark.parametrize("head", [b"", b"\xde", b"\xdf", b"\xdf\0\0\0"])
def test_places_that_overlap_what_is_before_them_are_none(sink: Sink, head: bytes) -> None:
    """Such a message is refused, and what comes behind it goes on."""
    poured = sink.pour(of_agent(head + ENTRY, target_of_agent(8) | 1))
    assert (poured.appended, poured.refused) == (0, 1)


def test_nobody_is_told_of_what_overlaps(broker: Broker) -> None:
    for head in heads():
        found = of_agent(head + ENTRY, target_of_agent(8) | PUBLISHER)
        code = lib.sb_record_return(broker._connection, found, len(found), b"news", b"nobody")
        assert code < 0, "nobody has this identity"


def test_a_map_may_say_its_length_in_four_bytes(broker: Broker, sink: Sink) -> None:
    """As C programs do."""
    users = msgpack.packb("n") + msgpack.packb(7)
    poured = sink.pour(of_agent(b"\xdf\0\0\0\x02" + users + ENTRY, target_of_agent(8) | 1))
    assert (poured.appended, poured.refused) == (1, 0)
    assert dict(broker.queue("orders").get(timeout=0).properties) == {"n": 7}
