"""What the model of the API (test_model.py) cannot show: ends of lives, memory, and the dead."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest

import shmbroker


def test_a_message_that_is_dropped_goes_to_others(vhost: str) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        shmbroker.connect(f"shm://{vhost}") as other,
    ):
        queue = broker.declare_queue("q")
        queue.publish_many([b"a", b"b"])
        queue.get()  # and nobody keeps it
        with other.queue("q").get(timeout=0) as message:
            assert (message.body, message.deliveries) == (b"a", 1)
        kept = queue.get()
        broker.close()
        with other.queue("q").get(timeout=0) as message:
            assert (message.body, message.deliveries) == (b"b", 1)
        with pytest.raises(shmbroker.ConnectionClosed):
            kept.ack()


def test_a_connection_and_its_uses_in_one_garbage_cycle(vhost: str) -> None:
    """The collector finalizes them in any order: none may need one that is gone."""
    program = f"""
import gc, shmbroker
for _ in range(50):
    broker = shmbroker.connect("shm://{vhost}")
    queue = broker.declare_queue("q")
    queue.publish_many([b"a"] * 4)
    cycle = [queue.get(), queue.loan(5), broker.subscribe("q"), queue.consume(), *queue.get_many(2)]
    next(cycle[3])
    cycle += [cycle[0].view, queue.port(), queue.port().loan(3), broker.exchange(""), broker, cycle]
    del broker, queue, cycle
    gc.collect()
    with shmbroker.connect("shm://{vhost}") as broker:
        assert len(broker.participants()) == 1, broker.participants()
        assert broker.queue("q").statistics().taken == 0
        broker.queue("q").purge()
"""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_view_outlives_the_connection(vhost: str) -> None:
    broker = shmbroker.connect(f"shm://{vhost}")
    queue = broker.declare_queue("q")
    queue.publish(b"hello")
    message = queue.get()
    view = message.view
    broker.close()
    del broker, queue, message
    gc.collect()
    assert bytes(view) == b"hello"  # nobody has reused it here


def test_a_program_that_ends_without_closing_leaves_all_the_same(vhost: str) -> None:
    program = f"""
import shmbroker
broker = shmbroker.connect("shm://{vhost}")
queue = broker.declare_queue("q")
queue.publish(b"a")
message = queue.get()
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    with shmbroker.connect(f"shm://{vhost}") as broker:
        assert [each.id for each in broker.participants()] == [broker.participant]
        assert broker.errors() == []
        assert broker.queue("q").get(timeout=0).deliveries == 1


def test_a_killed_one_is_dead_until_somebody_repairs(vhost: str) -> None:
    program = f"""
import os, signal, shmbroker
broker = shmbroker.connect("shm://{vhost}", name="doomed")
queue = broker.declare_queue("q")
queue.publish(b"a")
message = queue.get()
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", program], check=False)
    with shmbroker.connect(f"shm://{vhost}", name="x") as broker:
        # whoever joins first takes the number of the dead, and repairs what it left
        if len(broker.participants()) > 1:
            assert broker.repair() > 0
        with broker.queue("q").get(timeout=0) as message:
            assert message.deliveries == 1
        with pytest.raises(shmbroker.DeliveryRevoked):
            message.ack()


def test_forced_deletion_gives_all_memory_back(vhost: str) -> None:
    """Also what the others had for the queue: when the last of them has left."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        for _ in range(40):  # 3 times as much as the arena has
            with shmbroker.connect(f"shm://{vhost}") as other:
                queue = other.declare_queue("q", slots=4)
                queue.publish_many([bytes(2 << 20)] * 3)
                broker.delete_queue("q", force=True)
                with pytest.raises(shmbroker.NotFound, match="'q' was deleted"):
                    queue.publish(b"")


def test_a_row_is_not_given_to_another_queue_while_somebody_has_the_former(vhost: str) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        shmbroker.connect(f"shm://{vhost}") as other,
    ):
        held = other.declare_queue("old")
        held.publish(b"old")
        message = held.get()
        former = {each.name: each.id for each in broker.queues()}["old"]
        broker.delete_queue("old", force=True)
        broker.declare_queue("new").publish(b"new")
        other.declare_queue("newer").publish(b"newer")
        assert former not in {each.id for each in broker.queues()}
        assert message.body == b"old"
        other.close()
        broker.declare_queue("newest")
        assert former in {each.id for each in broker.queues()}


def test_an_exchange_is_opened_once(vhost: str) -> None:
    """A program may ask for it before each message."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        broker.declare_queue("q", slots=4)

        def resident() -> int:
            with open("/proc/self/statm") as file:  # noqa: PTH123
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def publish(times: int) -> None:
            for _ in range(times):
                broker.exchange("").publish(b"a", key="q")
                broker.queue("q").receive(timeout=0)

        publish(100)
        before = resident()
        publish(2000)
        assert resident() - before < 8 << 20


def test_polling_subscribers_do_not_hold_the_ring_for_ever(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q", slots=64)
        subscription = broker.subscribe("q")
        for _ in range(5):
            queue.publish_many([b"x"] * 64, timeout=0)
            assert len(queue.receive_many()) == 64
            for _ in range(64):
                subscription.get(timeout=0)
            with pytest.raises(shmbroker.Empty):
                subscription.get(timeout=0)
        assert queue.statistics().published == 5 * 64


def test_a_large_message_among_many_is_received_whole(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q")
        bodies = [b"a", b"b" * 200_000, b"c", b"d" * 100_000, b"e" * 300_000]
        queue.publish_many(bodies)
        received: list[bytes] = []
        while len(received) < len(bodies):
            received += queue.receive_many(timeout=0)
        assert received == bodies
        queue.publish(bodies[1])
        assert queue.receive(timeout=0) == bodies[1]
        assert queue.statistics().taken == 0


def test_subscribers_are_neither_consumers_nor_producers(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q")
        with broker.subscribe("q"):
            told = queue.statistics()
            assert (told.consumers, told.producers) == (0, 0)
        with pytest.raises(shmbroker.InUse), shmbroker.connect(f"shm://{vhost}") as other:
            other.delete_queue("q")
