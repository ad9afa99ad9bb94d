"""Replicas' gates in the barrier of a durable queue: levels of confirms, joining, dropping, deaths.

A replica is pretended: a process that owns its gate, and moves it some time after each publish.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker, Empty, InvalidArgument, Queue, Unconfirmed, aio
from shmbroker.core import layout
from shmbroker.core.codes import INVALID
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import Error, InUse, NotFound
from shmbroker.ipc.follower.follower import Follower
from shmbroker.ipc.follower.gates import findings
from shmbroker.ipc.follower.replica import ReplicaGate, drop
from shmbroker.perf.machine.process import Process
from tests.cli.command import eventually
from tests.support.host import PATIENCE, journaling

FAR_S = 0.02
"""How long the pretended replica takes."""


@pytest.fixture
def orders(broker: Broker, vhost: str, tmp_path: Path) -> Iterator[Queue]:
    queue = broker.declare_queue("orders", durable=True)
    with journaling(vhost, tmp_path / "journal"):
        yield queue


@contextmanager
def replica(url: str, folder: Path, name: str = "far") -> Iterator[Process]:
    """One that is in sync, and has each message 20 ms later."""
    begun, say = os.pipe()

    def live() -> int:
        with (
            shmbroker.connect(url, name=name) as broker,
            Follower(broker, name, kind="replica", lasting=True) as follower,
        ):
            queue = broker.queue("orders")
            number = follower.add(queue)
            gate = next(each for each in queue.gates() if each.name == name)
            assert lib.sb_barrier_join(queue._queue, gate.index) >= 0
            os.write(say, b"!")
            while True:
                follower.wait()
                for record in follower.read() or ():
                    time.sleep(FAR_S)
                    follower.release(number, record.position + 1)

    process = Process(live, folder / f"errors of {name}")
    os.close(say)
    try:
        assert os.read(begun, 1), process.errors.read_text()
        yield process
    finally:
        process.kill()
        os.close(begun)


# --- levels -------------------------------------------------------------------------------------


def test_a_confirm_comes_when_the_replica_has_it_and_in_order(
    orders: Queue, vhost: str, tmp_path: Path
) -> None:
    assert orders.level == "disk"
    with replica(f"shm://{vhost}", tmp_path):
        assert orders.level == "disk+replicated"
        began = time.monotonic()
        for each in range(5):
            position = orders.publish(b"%d" % each, confirm="replicated", timeout=PATIENCE)
            assert time.monotonic() - began >= (each + 1) * FAR_S
            assert orders.confirm(position, timeout=PATIENCE) == "disk+replicated"
            assert orders.confirmed == each + 1
        orders.publish(b"5", confirm="disk", timeout=PATIENCE)
        assert orders.confirm(5, level="shm") in ("disk", "disk+replicated")
        orders.publish(b"6", timeout=PATIENCE)
        assert orders.confirm(6, timeout=0) == "disk+replicated"
        assert [orders.receive(timeout=PATIENCE) for _ in range(7)] == [b"%d" % n for n in range(7)]


def test_nothing_is_delivered_before_all_replicas_have_it(orders: Queue) -> None:
    with ReplicaGate(orders, "one") as one, ReplicaGate(orders, "two") as two:
        assert (one.join(), two.join()) == (0, 0)
        assert orders.publish(b"x", confirm="disk", timeout=PATIENCE) == 0
        assert orders.confirm(0, level="disk") == "disk"
        one.move(1)
        with pytest.raises(Unconfirmed, match="a replica has not confirmed it"):
            orders.confirm(0, level="replicated", timeout=0.01)
        with pytest.raises(Unconfirmed, match="a replica has not confirmed it"):
            orders.confirm(0, timeout=0.01)
        with pytest.raises(Empty):
            orders.get(timeout=0.01)
        two.move(1)
        assert orders.confirm(0, level="replicated", timeout=0) == "disk+replicated"
        assert orders.receive(timeout=0) == b"x"


def test_replicated_does_not_wait_for_the_disk(broker: Broker) -> None:
    orders = broker.declare_queue("orders", durable=True)  # and nobody writes its journal
    with ReplicaGate(orders, "one") as one:
        one.join()
        assert orders.publish(b"x", confirm="shm") == 0
        one.move(1)
        assert orders.confirm(0, level="replicated", timeout=0) == "replicated"
        with pytest.raises(Unconfirmed, match="is a broker running"):
            orders.confirm(0, level="disk+replicated", timeout=0)


def test_a_demand_that_nobody_can_meet_ends_at_its_time(orders: Queue) -> None:
    with pytest.raises(Unconfirmed, match="no replica is in sync") as told:
        orders.publish(b"x", confirm="replicated", timeout=0.05)
    assert told.value.pending == (("orders", 0),)
    with ReplicaGate(orders, "one", from_now=True) as one:
        one.join()
        told.value.confirm(timeout=0)
        one.close(leaves=True)
    with pytest.raises(Unconfirmed, match="no replica is in sync"):
        told.value.confirm(timeout=0)
    assert orders.receive(timeout=PATIENCE) == b"x"


def test_a_level_that_there_is_not_is_refused_before_anything_is_published(
    broker: Broker, orders: Queue
) -> None:
    wrong = "dsik"
    with pytest.raises(InvalidArgument, match="\"disk\\+replicated\", not 'dsik'"):
        orders.publish(b"x", confirm=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument):
        orders.publish_many([b"x"], confirm=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument):
        orders.producer("p").publish(b"x", confirm=wrong)  # type: ignore[arg-type]
    assert orders.published == 0
    plain = broker.declare_queue("plain")
    assert plain.level == "shm"
    with pytest.raises(InvalidArgument, match="is not durable"):
        plain.publish(b"x", confirm="replicated")
    assert lib.sb_confirm(orders._queue, 0, 4, 0) == INVALID


def test_levels_are_awaitable(orders: Queue, vhost: str) -> None:
    async def main(gate: ReplicaGate) -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            queue = await broker.queue("orders")
            assert await queue.publish(b"x", confirm="disk", timeout=PATIENCE) == 0
            assert await queue.confirm(0, level="disk", timeout=0) == "disk"
            waits = asyncio.create_task(queue.publish(b"y", confirm="replicated"))
            with pytest.raises(Unconfirmed):
                await queue.confirm(0, level="replicated", timeout=0.05)
            gate.move(2)
            assert await asyncio.wait_for(waits, PATIENCE) == 1
            assert await queue.confirm(timeout=PATIENCE) == "disk+replicated"
            assert queue.level == "disk+replicated"

    with ReplicaGate(orders, "one") as one:
        one.join()
        asyncio.run(main(one))


def test_through_an_exchange(broker: Broker, orders: Queue) -> None:
    exchange = broker.declare_exchange("all", "fanout")
    broker.bind("all", "orders")
    with ReplicaGate(orders, "one") as one:
        one.join()
        assert exchange.publish(b"x", confirm="disk", timeout=PATIENCE) == 1
        with pytest.raises(Unconfirmed) as told:
            exchange.publish(b"y", confirm="replicated", timeout=0.05)
        one.move(2)
        told.value.confirm(timeout=PATIENCE)


# --- the set ------------------------------------------------------------------------------------


def test_who_waits_for_a_dead_replica_is_released_when_it_is_dropped(
    orders: Queue, vhost: str, tmp_path: Path
) -> None:
    with replica(f"shm://{vhost}", tmp_path) as far, ThreadPoolExecutor(3) as pool:
        orders.publish(b"0", timeout=PATIENCE)
        assert orders.receive(timeout=PATIENCE) == b"0"
        far.kill()
        waits = pool.submit(orders.publish, b"1", timeout=PATIENCE)
        takes = pool.submit(orders.receive, timeout=PATIENCE)
        eventually(lambda: orders.published == 2)
        orders.confirm(1, level="disk", timeout=PATIENCE)
        with pytest.raises(FutureTimeout):  # while it is repaired what the dead has left
            waits.result(timeout=0.3)
        assert not takes.done()
        demands = pool.submit(orders.publish, b"2", confirm="replicated", timeout=2)
        eventually(lambda: orders.published == 3)
        drop(orders, "far")
        assert waits.result(timeout=PATIENCE) == 1
        assert takes.result(timeout=PATIENCE) == b"1"
        with pytest.raises(Unconfirmed, match="no replica is in sync"):
            demands.result(timeout=PATIENCE)
        assert orders.level == "disk"
    with pytest.raises(NotFound):
        drop(orders, "other")


def test_a_replica_comes_back_where_its_gate_was(orders: Queue, vhost: str, tmp_path: Path) -> None:
    with replica(f"shm://{vhost}", tmp_path) as far:
        orders.publish(b"0", timeout=PATIENCE)
        far.kill()
    orders.publish(b"1", confirm="disk", timeout=PATIENCE)
    with replica(f"shm://{vhost}", tmp_path):
        assert orders.confirm(1, timeout=PATIENCE) == "disk+replicated"


def test_what_is_confirmed_stays_so_when_a_newcomer_is_behind(orders: Queue) -> None:
    with ReplicaGate(orders, "one") as one:
        assert orders.publish(b"0", timeout=PATIENCE) == 0
        assert one.join() == 1
        assert one.position == 0
        assert orders.confirm(0, timeout=0) == "disk"
        assert orders.publish(b"1", confirm="disk", timeout=PATIENCE) == 1
        with pytest.raises(Unconfirmed):
            orders.confirm(1, timeout=0.01)
        one.move(2)
        assert orders.confirm(1, timeout=0) == "disk+replicated"
        assert orders.confirm(0, timeout=0) == "disk+replicated"


def test_a_gate_is_its_owners_and_leaves_the_set_before_it_goes(
    broker: Broker, orders: Queue
) -> None:
    one = ReplicaGate(orders, "one")
    with pytest.raises(InUse):
        ReplicaGate(orders, "one")
    with pytest.raises(InvalidArgument, match="nothing was published"):
        one.move(1)
    one.join()
    port = ffi.new("sb_port **")
    assert lib.sb_queue_port(orders._queue, port) == 0
    assert lib.sb_port_gate_leave(port[0], one._gate) == INVALID
    fleeting = lib.sb_port_gate_join(port[0], layout.GATE_FLEETING)
    assert lib.sb_port_barrier_join(port[0], fleeting) == INVALID
    assert lib.sb_port_barrier_leave(port[0], 0) == INVALID  # the journal's
    assert lib.sb_port_gate_leave(port[0], fleeting) == 0
    lib.sb_queue_port_return(orders._queue, port[0])
    one.close(leaves=True)
    assert [each.kind for each in orders.gates()] == ["journal"]
    assert lib.sb_barrier_join(orders._queue, one._gate) < 0
    plain = broker.declare_queue("plain")
    with ReplicaGate(plain, "one") as other, pytest.raises(Error):
        other.join()


def test_a_mover_that_dies_before_the_barrier_is_made_up_for(orders: Queue) -> None:
    with ReplicaGate(orders, "one") as one:
        one.join()
        orders.publish(b"x", confirm="disk", timeout=PATIENCE)
        port = ffi.new("sb_port **")
        assert lib.sb_queue_port(orders._queue, port) == 0
        assert lib.sb_port_gate_move(port[0], one._gate, 1) == 1  # and nothing else
        assert orders.confirmed == 0
        assert orders.confirm(0, timeout=PATIENCE) == "disk+replicated"
        lib.sb_queue_port_return(orders._queue, port[0])


def test_people_see_what_the_barrier_waits_for(broker: Broker, orders: Queue) -> None:
    with ReplicaGate(orders, "one") as one:
        assert [each.confirms for each in orders.gates()] == [True, False]
        one.join()
        orders.publish(b"x", confirm="disk", timeout=PATIENCE)
        journal, far = orders.gates()
        assert (journal.confirms, journal.holds_barrier) == (True, False)
        assert (far.confirms, far.holds_barrier) == (True, True)
        assert str(far).endswith("holds the barrier back")
        assert ", in the barrier" in str(journal)
        assert not [each for each in findings(broker) if "replica" in each.problem]
    found = [each for each in findings(broker) if "replica" in each.problem]
    assert [each.severity for each in found] == ["error"]
    assert "nothing is confirmed" in found[0].problem
    drop(orders, "one")
    assert not [each for each in findings(broker) if each.severity == "error"]
