"""What a program on another host has said to a node that leaves, and has no answer to yet."""

from __future__ import annotations

import pytest

import shmbroker
from shmbroker.ipc.sink.sink import ORIGIN_BYTES, Sink
from shmbroker.netbridge.clustered import remote_programs, streams
from shmbroker.netbridge.clustered.rows import made, pages
from shmbroker.netbridge.serving.commit import MARK, MARKS, mark_of, marks
from tests.netbridge.clustered.test_inherited import Nodes, node
from tests.netbridge.clustered.test_scale_down import bodies
from tests.support.records import chunk, record

__all__ = ["node"]


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


def test_a_stream_that_goes_on_at_the_other_node_already_is_told_once_more(node: Nodes) -> None:
    west, east = node(), node()
    identity = b"e" * ORIGIN_BYTES
    for broker in (west, east):
        broker.declare_queue("orders", slots=64)
    with Sink(west, identity) as sink:
        sink.to_queue(west.queue("orders"))
        sink.pour(one(0) + one(1))
    told = [*pages(streams.rows(west, [west.queue("orders")]))]
    assert [made(east, page) for page in told] == [""]
    with Sink(east, identity) as there:
        assert there.to_queue(east.queue("orders")) == 2
        there.pour(one(2))
        assert [made(east, page) for page in told] == [""]
        assert there.position() == 3


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
