"""What is not on disk is seen by nobody: consumers, subscribers, browsers, copies."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker, Empty, Queue, Unconfirmed, aio
from shmbroker.core.codes import EMPTY
from shmbroker.ipc._native import ffi, lib
from shmbroker.perf.machine.process import Process
from tests.support.host import PATIENCE, after_the_host_died, journaling


@contextmanager
def live(vhost: str, folder: Path) -> Iterator[Process]:
    """A process that writes the journal, until it is killed."""

    def work() -> int:
        with journaling(vhost, folder):
            signal.pause()
        return 0

    process = Process(work, folder.with_suffix(".errors"))
    try:
        yield process
    finally:
        process.kill()


def bodies(queue: Queue, *, unconfirmed: bool = False) -> list[bytes]:
    return [each.body for each in queue.browse(unconfirmed=unconfirmed)]


def test_with_the_live_stopped_nobody_sees_what_would_be_gone_after_a_cold_start(
    vhost: str, tmp_path: Path
) -> None:
    folder = tmp_path / "journal"
    with live(vhost, folder) as process, shmbroker.connect(f"shm://{vhost}") as broker:
        orders = broker.declare_queue("orders", durable=True)
        copies = broker.declare_queue("copies")
        orders.publish(b"safe", timeout=PATIENCE)
        gating = broker.subscribe("orders", start="earliest")
        lossy = broker.subscribe("orders", start="earliest", lossy=True)
        assert [each.get(timeout=0).body for each in (gating, lossy)] == [b"safe"] * 2
        process.stop()
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)  # all of its threads
        with pytest.raises(Unconfirmed):
            orders.publish(b"lost", timeout=0.1)
        held = orders.get(timeout=0)
        assert held.body == b"safe"
        for look in (orders.get, gating.get, lossy.get):
            with pytest.raises(Empty):
                look(timeout=0.05)
        assert bodies(orders) == [b"safe"]
        assert (orders.copy_to(copies), bodies(copies)) == (0, [])
        told = [(each.body, each.is_confirmed) for each in orders.browse(unconfirmed=True)]
        assert told == [(b"safe", True), (b"lost", False)]
        process.kill()
    with after_the_host_died(vhost, folder) as broker:
        assert bodies(broker.queue("orders"), unconfirmed=True) == [b"safe"]


def test_subscribers_that_wait_are_woken_when_it_is_on_disk(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    orders = broker.declare_queue("orders", durable=True)
    seen: list[bytes] = []

    def follow(lossy: bool) -> None:
        with broker.subscribe("orders", start="earliest", lossy=lossy) as subscription:
            seen.append(subscription.get(timeout=PATIENCE).body)

    threads = [threading.Thread(target=follow, args=(lossy,)) for lossy in (False, True)]
    orders.publish(b"x", confirm="shm")
    for thread in threads:
        thread.start()
    assert seen == []
    with journaling(vhost, tmp_path / "journal"):
        for thread in threads:
            thread.join(PATIENCE)
    assert seen == [b"x"] * 2


def test_in_asyncio(vhost: str, tmp_path: Path) -> None:
    async def session() -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            orders = await broker.declare_queue("orders", durable=True)
            async with broker.subscribe("orders", start="earliest") as subscription:
                orders.publish_nowait(b"x")
                with pytest.raises(Empty):
                    await subscription.get(timeout=0.01)
                assert [each async for each in orders.browse()] == []
                (message,) = [each async for each in orders.browse(unconfirmed=True)]
                assert not message.is_confirmed
                waits = asyncio.create_task(subscription.get(timeout=PATIENCE))
                await asyncio.sleep(0)
                with journaling(vhost, tmp_path / "journal"):
                    assert (await waits).body == b"x"

    asyncio.run(session())


def test_in_c(broker: Broker) -> None:
    orders = broker.declare_queue("orders", durable=True)
    orders.publish(b"x", confirm="shm")
    message, room = ffi.new("sb_message *"), ffi.new("char[4096]")
    queue = orders._queue
    assert lib.sb_browse(queue, 0, message, room, len(room)) == EMPTY
    assert lib.sb_browse_ahead(queue, 0, message, room, len(room)) > 0
    assert message.length == 1
    assert lib.sb_is_confirmed(queue, 0) == 0


def test_compiled_loops_and_whoever_looks_through_a_port(broker: Broker) -> None:
    orders = broker.declare_queue("orders", durable=True)
    orders.publish(b"x", confirm="shm")
    port = orders.port()
    gating = port.subscribe(from_now=False)
    lossy = port.subscribe_lossy(from_now=False)
    assert (gating.next(spins=0), lossy.next(spins=0), port.peek(0)) == (None, None, None)
    gating.close()
    port.close()


def test_a_value_says_that_it_is_not_on_disk(broker: Broker) -> None:
    rates = broker.declare_queue("rates", durable=True, slots=16, last_value=True)
    rates.publish(b"1.07", key="eur", confirm="shm")
    value = rates.value("eur")
    assert value is not None
    assert (value.body, value.is_confirmed) == (b"1.07", False)
    assert bodies(rates) == []
