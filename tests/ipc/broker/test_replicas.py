"""Ends that count: levels of confirms while they answer late, come, go, are dropped, or are left.

A replica is pretended: an end of the journal that answers when the test says so.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from select import select

import pytest

import shmbroker
from shmbroker import Broker, Empty, Queue, Unconfirmed
from shmbroker.ipc._native import lib
from shmbroker.ipc.base.errors import InUse, InvalidArgument, TooMany
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.follower.gates import Gate
from shmbroker.ipc.follower.replica import ReplicaGate
from shmbroker.ipc.journal.end import End
from shmbroker.ipc.paging.pager import Pager
from shmbroker.perf.machine.process import Process
from tests.cli.command import eventually
from tests.support.host import PATIENCE, journaling

SOON = 0.05
NEVER = 1000.0
BOTH = "disk+replicated"


@pytest.fixture
def broker(vhost: str) -> Iterator[Broker]:
    with shmbroker.connect(f"shm://{vhost}") as made:
        yield made


@pytest.fixture
def orders(broker: Broker) -> Queue:
    return broker.declare_queue("orders", durable=True)


@pytest.fixture
def journaler(vhost: str, orders: Queue, tmp_path: Path) -> Iterator[Journaler]:
    with journaling(vhost, tmp_path / "journal") as made:
        yield made


def has_level(queue: Queue, level: str) -> bool:
    """Within a turn of the journaler."""
    ends_at = time.monotonic() + PATIENCE
    while queue.level != level and time.monotonic() < ends_at:
        time.sleep(0.001)
    return queue.level == level


def answer(end: End) -> None:
    """It is done with all that it was told of."""
    while end.read() is not None:
        pass
    end.done(end.state().told)


def answer_until(end: End, over: threading.Event) -> None:
    while not over.is_set():
        if (frame := end.read(SOON)) is not None:
            end.done(frame.number)


def replicas_of(queue: Queue) -> list[Gate]:
    return [each for each in queue.gates() if each.kind == "replica"]


def test_the_disk_confirms_before_a_late_replica(orders: Queue, journaler: Journaler) -> None:
    with End(journaler, "far", timeout=NEVER) as far, ThreadPoolExecutor(3) as pool:
        assert has_level(orders, BOTH)
        demands = pool.submit(orders.publish, b"0", confirm="replicated", timeout=PATIENCE)
        eventually(lambda: orders.published == 1)
        assert orders.publish(b"1", confirm="disk", timeout=PATIENCE) == 1
        plain = pool.submit(orders.publish, b"2", timeout=PATIENCE)
        takes = pool.submit(orders.receive, timeout=PATIENCE)
        orders.confirm(2 if orders.published == 3 else 1, level="disk", timeout=PATIENCE)
        with pytest.raises(Unconfirmed, match="a replica has not confirmed it"):
            orders.confirm(1, level="replicated", timeout=SOON)
        assert orders.confirm(1, level="disk", timeout=0) == "disk"
        assert not demands.done()
        assert not plain.done()
        assert not takes.done()
        assert orders.confirmed == 0
        while not plain.done():
            answer(far)
        assert demands.result(timeout=PATIENCE) == 0
        assert takes.result(timeout=PATIENCE) == b"0"
        assert orders.confirm(timeout=PATIENCE) == BOTH


def test_all_replicas_must_have_it(orders: Queue, journaler: Journaler) -> None:
    with End(journaler, "one", timeout=NEVER) as one, End(journaler, "two", timeout=NEVER) as two:
        orders.publish(b"x", confirm="disk", timeout=PATIENCE)
        answer(one)
        with pytest.raises(Unconfirmed):
            orders.confirm(0, level="replicated", timeout=SOON)
        answer(two)
        assert orders.confirm(0, level="replicated", timeout=PATIENCE) == BOTH
        assert {each.name for each in replicas_of(orders)} == {"one", "two"}


def test_one_that_is_dropped_or_detached_releases_everybody(
    broker: Broker, orders: Queue, journaler: Journaler
) -> None:
    small = broker.declare_queue("small", durable=True, slots=2)
    for how in ("dropped", "detached"):
        end = End(journaler, "deaf", timeout=3.0 if how == "dropped" else NEVER)
        with ThreadPoolExecutor(4) as pool:
            assert has_level(small, BOTH)
            plain = pool.submit(orders.publish, b"x", timeout=PATIENCE)
            takes = pool.submit(orders.receive, timeout=PATIENCE)
            small.publish_many([b"0", b"1"], confirm="disk", timeout=PATIENCE)
            full = pool.submit(small.publish, b"2", timeout=PATIENCE)
            eats = pool.submit(lambda: [small.receive(timeout=PATIENCE) for _ in range(3)])
            if how == "detached":
                with pytest.raises(Unconfirmed):
                    orders.confirm(timeout=SOON)
                end.close()
            assert takes.result(timeout=PATIENCE) == b"x"
            plain.result(timeout=PATIENCE)
            full.result(timeout=PATIENCE)
            assert eats.result(timeout=PATIENCE) == [b"0", b"1", b"2"]
        assert has_level(orders, "disk")
        assert not replicas_of(orders)
        assert not replicas_of(small)
        end.close()


def test_queues_that_come_later_have_gates_too(
    broker: Broker, journaler: Journaler, vhost: str, tmp_path: Path
) -> None:
    """Also the inbox of one that pages, and the ring of a schedule: neither is listed by itself."""
    (tmp_path / "pages").mkdir()
    with (
        shmbroker.connect(f"shm://{vhost}") as theirs,
        Pager(theirs, tmp_path / "pages"),
        End(journaler, "far", timeout=NEVER) as far,
    ):
        paging = broker.declare_queue("paging", durable=True, slots=16, when_full="page")
        later = broker.declare_queue("later", durable=True)
        paging.publish_many([b"x"] * 63, confirm="shm")
        inner = paging.publish(b"x", confirm="shm")
        due = later.publish(b"x", deliver_after=NEVER, confirm="shm")
        for queue, position in ((paging, inner), (later, None), (paging, 0)):
            queue.confirm(position, level="disk", timeout=PATIENCE)
            with pytest.raises(Unconfirmed):
                queue.confirm(position, level="replicated", timeout=SOON)
        assert len(replicas_of(paging)) == len(replicas_of(later)) == 1
        assert due is not None
        answers = threading.Thread(target=answer_until, args=(far, over := threading.Event()))
        answers.start()
        try:
            for queue in (paging, later):
                assert queue.confirm(timeout=PATIENCE) == BOTH
            assert [paging.receive(timeout=PATIENCE) for _ in range(64)] == [b"x"] * 64
        finally:
            over.set()
            answers.join()


def test_a_newcomer_is_in_sync_when_it_says_so(orders: Queue, journaler: Journaler) -> None:
    """Also if nothing is written: its gates stand where it is."""
    orders.publish(b"0", timeout=PATIENCE)
    with End(journaler, "new", timeout=NEVER, counts=False) as new:
        assert orders.publish(b"1", timeout=PATIENCE) == 1
        assert orders.level == "disk"
        new.count()
        assert has_level(orders, BOTH)
        assert orders.confirmed == 2, "what was confirmed stays so"
        assert orders.confirm(0, timeout=0) == "disk"
        answer(new)
        assert orders.confirm(1, level="replicated", timeout=PATIENCE) == BOTH
        orders.publish(b"2", confirm="disk", timeout=PATIENCE)
        with pytest.raises(Unconfirmed):
            orders.confirm(2, timeout=SOON)
        answer(new)
        assert orders.confirm(2, timeout=PATIENCE) == BOTH


def test_names_and_numbers(orders: Queue, journaler: Journaler) -> None:
    ends = [End(journaler, f"end {each}", timeout=NEVER) for each in range(8)]
    with pytest.raises(TooMany, match="at most 8 replicas"):
        End(journaler, "one more", timeout=NEVER)
    with End(journaler, "end 0", timeout=NEVER, counts=False) as same, pytest.raises(InUse):
        same.count()
    assert has_level(orders, BOTH)
    for each in ends:
        each.close()
    assert has_level(orders, "disk"), "their numbers are free then"
    for _ in range(20):  # of one name, one after the other
        with End(journaler, "end 0", timeout=NEVER) as end:
            assert has_level(orders, BOTH)
            orders.publish(b"x", confirm="disk", timeout=PATIENCE)
            answer(end)
            orders.confirm(timeout=PATIENCE)
        assert has_level(orders, "disk")


def test_one_whose_gate_cannot_be_made_is_dropped(orders: Queue, journaler: Journaler) -> None:
    with ReplicaGate(orders, "far"), End(journaler, "far", timeout=NEVER) as far:
        orders.publish(b"x", timeout=PATIENCE)
        with pytest.raises(shmbroker.ConnectionClosed, match="belongs to participant"):
            far.read()


# --- who writes the journal ends ------------------------------------------------------------------


def test_after_a_stop_the_next_one_has_no_replica(
    orders: Queue, vhost: str, tmp_path: Path
) -> None:
    with (
        journaling(vhost, tmp_path) as journaler,
        End(journaler, "far", timeout=PATIENCE) as far,
        ReplicaGate(orders, "kept") as kept,
    ):
        orders.publish(b"x", confirm="disk", timeout=PATIENCE)
        answer(far)
        assert has_level(orders, BOTH)
        journaler.stop()
        (left,) = (each for each in replicas_of(orders) if each.name == "far")
        assert (left.owner, left.confirms) == (None, True)
        with journaling(vhost, tmp_path, 2):
            assert [each.name for each in replicas_of(orders)] == ["kept"], "somebody has it"
            assert has_level(orders, "disk")
        kept.close(leaves=True)


def test_a_killed_one_leaves_gates_and_the_next_one_drops_them(
    broker: Broker, orders: Queue, vhost: str, tmp_path: Path
) -> None:
    other = broker.declare_queue("other", durable=True)
    told, tell = os.pipe()

    def write() -> int:
        (tmp_path / "journal").mkdir()
        with (
            shmbroker.connect(f"shm://{vhost}") as broker,
            Journaler(tmp_path / "journal") as journaler,
            End(journaler, "far", timeout=NEVER),
        ):
            journaler.start(broker, 1)
            os.write(tell, b"x")
            threading.Event().wait()
        return 0

    process = Process(write, tmp_path / "errors")
    with ThreadPoolExecutor(2) as pool:
        try:
            assert select([told], [], [], PATIENCE)[0], process.errors.read_text()
            assert has_level(orders, BOTH)
            orders.publish(b"0", confirm="disk", timeout=PATIENCE)
            transaction = broker.transaction()
            transaction.publish(other, b"1")
            transaction.commit(confirm="disk", timeout=PATIENCE)
        finally:
            process.kill()
            os.close(told)
            os.close(tell)
        takes = pool.submit(orders.receive, timeout=PATIENCE)
        with pytest.raises(Unconfirmed):
            orders.confirm(0, timeout=4 * SOON)
        with pytest.raises(Unconfirmed):
            transaction.confirm(timeout=0)
        assert not takes.done()
        with journaling(vhost, tmp_path / "journal", 2):
            assert orders.confirm(0, timeout=PATIENCE) == "disk"
            assert takes.result(timeout=PATIENCE) == b"0"
            assert transaction.confirm(timeout=PATIENCE) == "disk"
            assert other.receive(timeout=PATIENCE) == b"1"
            assert not replicas_of(orders)
            assert not replicas_of(other)
            assert orders.publish(b"2", timeout=PATIENCE) == 1


# --- transactions ---------------------------------------------------------------------------------


def test_a_commit_waits_for_its_level(broker: Broker, orders: Queue, journaler: Journaler) -> None:
    with End(journaler, "far", timeout=NEVER) as far, ThreadPoolExecutor(1) as pool:
        assert has_level(orders, BOTH)
        first, second = broker.transaction(), broker.transaction()
        first.publish(orders, b"0")
        first.commit(confirm="disk", timeout=PATIENCE)
        assert first.confirm(level="disk", timeout=0) == "disk"
        second.publish(orders, b"1")
        with pytest.raises(Unconfirmed, match="a replica has not confirmed it") as told:
            second.commit(confirm="replicated", timeout=SOON)
        waits = pool.submit(told.value.confirm, PATIENCE)
        with pytest.raises(Unconfirmed):
            first.confirm(timeout=SOON)
        with pytest.raises(Empty):
            orders.receive(timeout=0)
        assert not waits.done()
        answer(far)
        assert first.confirm(timeout=PATIENCE) == BOTH
        waits.result(timeout=PATIENCE)
        assert second.confirm(level="disk+replicated", timeout=PATIENCE) == BOTH
        only = broker.transaction()
        for message in orders.get_many(2, timeout=PATIENCE):
            only.ack(message)
        with pytest.raises(Unconfirmed, match="a replica has not confirmed it"):
            only.commit(timeout=SOON)
        answer(far)
        assert only.confirm(timeout=PATIENCE) == BOTH
    last = broker.transaction()
    last.publish(orders, b"2")
    with pytest.raises(Unconfirmed, match="no replica is in sync"):
        last.commit(confirm="disk+replicated", timeout=4 * SOON)
    assert last.confirm(timeout=PATIENCE) == "disk"
    with pytest.raises(InvalidArgument, match="confirm is one of"):
        last.confirm(level="dsik")  # type: ignore[arg-type]
    assert lib.sb_transaction_confirm(last._transaction, 4, 0) < 0
