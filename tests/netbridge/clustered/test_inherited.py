"""What a node that leaves has published is known at its successor: each id, each number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import msgpack
import pytest

import shmbroker
from shmbroker import Broker, InvalidArgument
from shmbroker.core.layout import INHERITED_NODES
from shmbroker.ipc.queue.inherited import INHERITED, identity_of, table_of
from shmbroker.netbridge.clustered import inherited
from shmbroker.netbridge.clustered.inherited import OF, IdsTold, remember
from shmbroker.netbridge.clustered.rows import made, pages
from tests.conftest import vhost_for_a_while
from tests.support.host import journaling

SEGMENT = 1 << 20


@dataclass
class Nodes:
    folder: Path
    opened: ExitStack

    def __call__(self) -> Broker:
        """With a journal."""
        vhost = self.opened.enter_context(vhost_for_a_while())
        broker = shmbroker.connect(f"shm://{vhost}", name="node", create=True)
        self.opened.enter_context(broker)
        self.opened.enter_context(journaling(vhost, self.folder / vhost, 1, SEGMENT))
        return broker


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Nodes]:
    with ExitStack() as opened:
        yield Nodes(tmp_path, opened)


def goes(here: Broker, there: Broker, *names: str, told: IdsTold | None = None) -> int:
    """What these queues know, in pages, as from one broker to the other: how many rows."""
    told = told or IdsTold(here)
    rows = list(told.rows([here.queue(name) for name in names]))
    for page in pages(rows):
        assert made(there, page) == ""
    return len(rows)


def test_an_id_that_was_published_there_is_dropped_here(node: Nodes) -> None:
    west, east = node(), node()
    for broker in (west, east):
        broker.declare_queue("orders", slots=64)
        broker.declare_exchange("news", "fanout")
        broker.bind("news", "orders")
    source, queue = west.queue("orders"), east.queue("orders")
    source.publish(b"1", message_id="a")
    with source.get(timeout=1) as message:
        message.ack()  # long gone
    queue.publish(b"own", message_id="b")
    assert goes(west, east, "orders") == 1
    assert queue.publish(b"1", message_id="a") is None
    assert queue.publish(b"1", message_id=b"a") is None
    assert queue.publish(b"own", message_id="b") is None
    exchange = east.exchange("news")
    exchange.publish(b"1", message_id="a")
    with east.transaction() as work:
        work.queue("orders").publish(b"1", message_id="a")
        work.queue("orders").publish(b"2", message_id="c")
    loan = queue.loan(1, message_id="a")
    loan.view[:] = b"1"
    assert loan.publish() is None
    assert queue.publish(b"1") is not None
    assert [bytes(each.body) for each in queue.browse()] == [b"own", b"2", b"1"]
    assert queue.publish(b"2", message_id="c") is None
    assert queue.statistics().duplicates >= 6


def test_what_a_queue_has_inherited_is_not_told_when_it_is_gone(node: Nodes) -> None:
    west, east = node(), node()
    for broker in (west, east):
        broker.declare_queue("orders", slots=64)
    west.queue("orders").publish(b"1", message_id="a")
    goes(west, east, "orders")
    queue = east.queue("orders")
    east.delete_queue("orders")
    assert not list(IdsTold(east).rows([queue]))


def test_a_named_producer_goes_on_where_it_was(node: Nodes) -> None:
    west, east = node(), node()
    source, queue = (each.declare_queue("lines", slots=64) for each in (west, east))
    for number in (1, 2, 7):
        source.producer("meter").publish(b"%d" % number, sequence=number)
    queue.producer("clock").publish(b"own", sequence=9)
    goes(west, east, "lines")
    meter = queue.producer("meter")
    assert meter.last_sequence == 7
    assert meter.publish(b"7", sequence=7) is None
    assert meter.publish(b"8") is not None
    assert queue.producer("clock").last_sequence == 9
    assert [bytes(each.body) for each in queue.browse()] == [b"own", b"8"]


def test_a_large_table_goes_in_pieces_and_what_is_known_not_again(node: Nodes) -> None:
    west, east = node(), node()
    many = 30_000
    source = west.declare_queue("orders", slots=1 << 15, duplicate_ids=many)
    queue = east.declare_queue("orders", slots=64)
    for number in range(many + 100):
        source.publish(b"", message_id=f"id {number}")
        if number % 1000 == 0:
            source.purge()
    told = IdsTold(west)
    first = goes(west, east, "orders", told=told)
    assert first > 100
    source.publish(b"", message_id="last")
    assert 0 < goes(west, east, "orders", told=told) <= 2  # the oldest was forgotten
    assert goes(west, east, "orders", told=told) == 0
    for number in (101, 150, 15_000, many, many + 99):
        assert queue.publish(b"", message_id=f"id {number}") is None, number
    assert queue.publish(b"", message_id="last") is None
    assert queue.publish(b"", message_id="id 99") is not None
    bits, table = table_of(source)
    assert sum(map(len, table.values())) == 16 * many
    assert len(table) == 1 << bits


def test_what_was_inherited_goes_on_to_the_next_one(node: Nodes) -> None:
    west, east, north = node(), node(), node()
    for each in (west, east, north):
        each.declare_queue("orders", slots=64)
    west.queue("orders").publish(b"1", message_id="a")
    west.queue("orders").producer("meter").publish(b"2", sequence=5)
    east.queue("orders").publish(b"3", message_id="b")
    goes(west, east, "orders")
    goes(east, north, "orders")
    queue = north.queue("orders")
    assert queue.publish(b"1", message_id="a") is None
    assert queue.publish(b"3", message_id="b") is None
    assert queue.producer("meter").last_sequence == 5
    assert queue.publish(b"4", message_id="d") is not None


def test_a_queue_that_is_made_anew_knows_nothing(node: Nodes) -> None:
    west, east = node(), node()
    for each in (west, east):
        each.declare_queue("orders", slots=64)
    west.queue("orders").publish(b"1", message_id="a")
    west.queue("orders").producer("meter").publish(b"2", sequence=5)
    goes(west, east, "orders")
    assert east.queue("orders").publish(b"1", message_id="a") is None
    east.delete_queue("orders", force=True)
    queue = east.declare_queue("orders", slots=64)
    assert queue.publish(b"1", message_id="a") is not None
    assert queue.producer("meter").last_sequence == 0


def test_only_so_many_nodes_are_ids_and_room_is_made(node: Nodes) -> None:
    east = node()
    queue = east.declare_queue("orders", slots=64)
    last = None
    for number in range(INHERITED_NODES + 1):
        west = node()
        west.declare_queue("orders", slots=64).publish(b"", message_id=f"id {number}")
        goes(west, east, "orders")
        last = west
    assert last is not None
    assert queue.publish(b"", message_id=f"id {INHERITED_NODES}") is None
    assert queue.publish(b"", message_id="id 1") is None
    assert queue.publish(b"", message_id="id 0") is not None
    rows = east.queue(INHERITED)
    rows.publish(b"", key="junk", confirm="shm")  # by a program
    full = rows.slots - rows.slots // 8
    filler = bytes(16)
    node_id = identity_of(last.queue("orders"))
    for number in range(full - len(rows)):
        rows.publish(filler, key=f"other\x01{filler.hex()}\x01{number:x}", confirm="shm")
    # the row of all its ids is that of one in four million by so many bits
    remember(east, [{OF: "orders", "of": node_id, "bits": 22, "part": "3", "row": filler}])
    assert queue.publish(b"", message_id=f"id {INHERITED_NODES}") is not None, "by other bits"
    assert len(rows) < full


def test_rows_of_nonsense_are_refused(node: Nodes) -> None:
    east = node()
    east.declare_queue("orders", slots=64)
    good = {OF: "orders", "of": bytes(16), "bits": 3, "part": "1", "row": bytes(16)}
    remember(east, [good])
    for wrong in (
        {"of": bytes(15)}, {"of": 3}, {"bits": -1}, {"bits": 99}, {"bits": "x"}, {"part": "zz"},
        {"part": 7}, {"row": bytes(15)}, {"row": bytes(8192)}, {"row": None}, {OF: "nowhere"},
        {OF: 5},
    ):  # fmt: skip
        assert made(east, msgpack.packb([{**good, **wrong}])) != "", wrong
    with pytest.raises(InvalidArgument):
        inherited.remember(east, [{**good, "bits": 23}])
