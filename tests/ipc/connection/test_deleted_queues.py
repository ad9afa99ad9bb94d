"""Deleted queues are let go of: a process that meets many of them stays as it is."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from time import monotonic, sleep

import pytest

import shmbroker
from shmbroker import Broker, aio
from shmbroker.core.codes import CLOSED, NOT_FOUND, OK
from shmbroker.core.layout import REFERENCE_INDEX_MASK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.instance.lock.ofd import try_lock, unlock
from tests.crash.leaks import blocks
from tests.support.compiler import NATIVE, compile_program

MANY = 1000
LOCKED_S = 5
"""Others wait so long for the catalog's lock."""


def mapped(vhost: str) -> int:
    """How many rings of queues of the vhost this process has mapped that have no name any more."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return sum(f".{vhost}.queue-" in line and "(deleted)" in line for line in lines)


def mappings() -> int:
    return len(Path("/proc/self/maps").read_text().splitlines())


def test_queues_that_come_and_go(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:

        def one_more(number: int) -> None:
            queue = broker.declare_queue(f"q{number % 5}", slots=8)
            queue.publish(b"here")
            queue.get(timeout=0).ack()
            broker.delete_queue(queue.name)

        one_more(0)
        before = mappings()
        for number in range(MANY):
            one_more(number)
        assert mappings() <= before + 2
        assert not mapped(vhost)
        assert not blocks(vhost)


def test_temporary_queues_that_come_and_go(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        for _ in range(MANY):
            queue = broker.temporary_queue(slots=8)
            queue.publish(b"here")
            assert queue.receive(timeout=0) == b"here"
            broker.delete_queue(queue.name)
        assert not mapped(vhost)
        assert not blocks(vhost)


def test_subscriptions_by_name_that_come_and_go(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        exchange = broker.declare_exchange("news", "fanout")
        for _ in range(MANY):
            with broker.subscription("reader", exchange="news", slots=8) as subscription:
                exchange.publish(b"read")
                assert subscription.receive(timeout=0) == b"read"
        assert not mapped(vhost)


def test_queues_with_schedules_that_come_and_go(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        for _ in range(50):
            queue = broker.declare_queue("later", slots=8)
            queue.publish(b"late", deliver_after=60)
            assert len(queue.scheduled()) == 1
            broker.delete_queue("later")
        for _ in range(5000):  # the thread that serves schedules lets go when it was told
            broker.declare_queue("other", slots=8)
            if not mapped(vhost):
                break
            sleep(0.001)
        assert not mapped(vhost)


def test_a_queue_that_others_delete_and_make_again(vhost: str) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        shmbroker.connect(f"shm://{vhost}") as other,
    ):
        for _ in range(MANY):
            other.declare_queue("again", slots=8)
            queue = broker.queue("again")
            queue.publish(b"here")
            message = queue.get(timeout=0)
            other.delete_queue("again", force=True)
            with pytest.raises(shmbroker.NotFound):
                message.ack()
            with pytest.raises(shmbroker.NotFound):
                queue.publish(b"there")
        broker.declare_queue("last", slots=8)
        assert mapped(vhost) <= 1
        assert len(other.queues()) == 1


def test_routes_to_queues_that_come_and_go(vhost: str) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        shmbroker.connect(f"shm://{vhost}") as other,
    ):
        exchange = broker.declare_exchange("news", "fanout")
        for _ in range(100):
            queue = other.declare_queue("reader", slots=8)
            other.bind("news", "reader")
            assert exchange.publish(b"read") == 1
            assert queue.receive(timeout=0) == b"read"
            other.delete_queue("reader", force=True)
            assert exchange.publish(b"unread") == 0
        broker.declare_queue("last", slots=8)
        assert not mapped(vhost)


def test_requesters_that_come_and_go(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as server:
        queue = server.declare_queue("service", slots=8)
        for _ in range(30):
            with shmbroker.connect(f"shm://{vhost}") as client:
                service = client.queue("service")
                asked = ffi.new("sb_asked *")
                outgoing = ffi.new("sb_outgoing *")
                assert lib.sb_ask(service._queue, outgoing, asked, 0) == OK
                with queue.get(timeout=0) as request:
                    request.reply(b"reply")
                assert lib.sb_await_reply(asked, 0) == OK
                assert lib.sb_asked_end(asked) == OK
        assert mapped(vhost) <= 2  # the last one is noticed when the next shows up


# --- what is still held --------------------------------------------------------------------------


def test_a_message_in_hand_is_there_to_be_read_and_then_its_memory_is_free(vhost: str) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        shmbroker.connect(f"shm://{vhost}") as other,
    ):
        queue = other.declare_queue("q", slots=8)
        queue.publish(b"1" * 3000)
        queue.publish(b"2" * 3000)
        taken = broker.queue("q")
        first, second = taken.get(timeout=0), taken.get(timeout=0)
        other.delete_queue("q", force=True)
        for number in range(20):  # its row and its memory are nobody else's meanwhile
            made = broker.declare_queue(f"more{number}", slots=8)
            made.publish(b"x" * 30000)
        assert first.body == b"1" * 3000
        with pytest.raises(shmbroker.NotFound):
            first.ack()
        assert second.body == b"2" * 3000
        assert not mapped(vhost)
        row = lib.sb_queue_reference(taken._queue) & REFERENCE_INDEX_MASK
        assert row in {queue for _state, _owner, queue in blocks(vhost)}
        del second
        assert row not in {queue for _state, _owner, queue in blocks(vhost)}
        for number in range(20):
            broker.delete_queue(f"more{number}")
        assert not blocks(vhost)


def test_a_handle_that_was_never_used_lets_go_of_nothing_of_the_next_queue(vhost: str) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        shmbroker.connect(f"shm://{vhost}") as other,
    ):
        for number in range(200):  # so that it takes a while to look at all rows
            other.declare_queue(f"before{number}", slots=8)
        other.declare_queue("unused", slots=8)
        unused = broker.queue("unused")
        row = lib.sb_queue_reference(unused._queue) & REFERENCE_INDEX_MASK
        other.delete_queue("unused", force=True)
        other.declare_queue("next", slots=8).publish(b"here")
        message = broker.queue("next").get(timeout=0)
        assert lib.sb_queue_reference(message._source) & REFERENCE_INDEX_MASK == row
        other.delete_queue("next", force=True)
        del unused
        assert row in {queue for _state, _owner, queue in blocks(vhost)}
        assert message.body == b"here"
        del message
        assert row not in {queue for _state, _owner, queue in blocks(vhost)}


def test_a_loan_is_filled_after_its_queue_was_deleted(vhost: str) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        shmbroker.connect(f"shm://{vhost}") as other,
    ):
        broker.declare_queue("q", slots=8)
        loan = broker.queue("q").loan(1000)
        other.delete_queue("q", force=True)
        broker.declare_queue("more", slots=8)
        loan.view[:] = bytes(1000)
        assert mapped(vhost) == 1
        with pytest.raises(shmbroker.NotFound):
            loan.publish()
        assert not loan.is_open
        assert not mapped(vhost)


def test_a_subscriber_finds_its_queue_deleted(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q", slots=8)
        subscription = broker.subscribe("q", start="earliest")
        queue.publish(b"seen")
        assert subscription.get(timeout=0).body == b"seen"
        broker.delete_queue("q")
        with pytest.raises(shmbroker.NotFound):
            subscription.get(timeout=0)
        assert mapped(vhost) == 1
        subscription.close()
        assert not mapped(vhost)


def test_nobody_publishes_later_because_another_keeps_the_lock(vhost: str) -> None:
    """Handles of deleted queues are let go of by a later message."""
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        shmbroker.connect(f"shm://{vhost}") as other,
        Path(f"/dev/shm/shmbroker.{vhost}.catalog").open("r+b") as catalog,
    ):
        exchange = broker.declare_exchange("x", "fanout")
        exchange.publish(b"nowhere", timeout=0)
        broker.declare_queue("q", slots=8).publish(b"seen")
        other.delete_queue("q", force=True)
        assert try_lock(catalog.fileno(), 0)
        begun = monotonic()
        exchange.publish(b"nowhere", timeout=0)
        assert monotonic() - begun < LOCKED_S / 2
        assert mapped(vhost) == 1
        unlock(catalog.fileno(), 0)
        exchange.publish(b"nowhere", timeout=0)
        assert not mapped(vhost)


def test_a_transaction_finds_its_queue_deleted(vhost: str) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}") as broker,
        shmbroker.connect(f"shm://{vhost}") as other,
    ):
        broker.declare_queue("q", slots=8).publish(b"in hand")
        transaction = broker.transaction()
        transaction.ack(broker.queue("q").get(timeout=0))
        transaction.publish(broker.queue("q"), b"not there yet")
        other.delete_queue("q", force=True)
        broker.declare_queue("more", slots=8)
        with pytest.raises(shmbroker.NotFound):
            transaction.commit(timeout=0)
        transaction.rollback()
        broker.declare_queue("more", slots=8)
        assert not mapped(vhost)
        assert not blocks(vhost)


@pytest.mark.parametrize("deletes_itself", [True, False])
def test_coroutines_that_wait_find_their_queue_deleted(vhost: str, deletes_itself: bool) -> None:
    async def wait() -> None:
        async with await aio.connect(f"shm://{vhost}") as broker:
            with shmbroker.connect(f"shm://{vhost}") as other:
                for _ in range(5):
                    queue = await broker.declare_queue("q", slots=8)
                    waiting = asyncio.create_task(queue.get())
                    await asyncio.sleep(0)
                    if deletes_itself:
                        await broker.delete_queue("q")
                    else:
                        other.delete_queue("q", force=True)
                    with pytest.raises(shmbroker.NotFound):
                        await asyncio.wait_for(waiting, 20)
                    del queue, waiting

    asyncio.run(wait())


def test_what_a_deleted_queue_answers(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q", slots=8)
        queue.publish(b"here")
        broker.delete_queue("q")
        assert not mapped(vhost)
        for call in (
            lambda: queue.publish(b""),
            lambda: queue.publish(b"", key="k"),
            lambda: queue.publish(b"", deliver_after=1),
            lambda: queue.publish_many([b""]),
            lambda: queue.get(timeout=0),
            lambda: queue.receive(timeout=0),
            lambda: queue.get_many(2, timeout=0),
            lambda: next(queue.browse()),
            lambda: queue.statistics(),
            lambda: queue.histograms(),
            lambda: queue.published,
            lambda: queue.explain(),
            lambda: queue.purge(),
            lambda: queue.expire(),
            lambda: queue.scheduled(),
            lambda: queue.cancel_scheduled(1),
            lambda: queue.groups(),
            lambda: queue.pause(),
            lambda: queue.latency(True),
            lambda: queue.loan(1),
            lambda: queue.port(),
            lambda: queue.producer("p"),
            lambda: broker.subscribe("q"),
            lambda: queue.request(b"", timeout=0),
            lambda: next(queue.consume(timeout=0)),
            lambda: broker.transaction().publish(queue, b""),
            lambda: queue.move_to(broker.declare_queue("other", slots=8)),
        ):
            with pytest.raises(shmbroker.NotFound):
                call()
        assert queue.slots == 8
        assert "q" in repr(queue)


# --- ports for compiled loops --------------------------------------------------------------------


def publish(address: int) -> int:
    """As a compiled loop does, which has nothing but the address."""
    return int(lib.sb_port_publish(ffi.cast("sb_port *", address), b"compiled", 8))


def take(address: int) -> int:
    return int(lib.sb_port_take(ffi.cast("sb_port *", address), ffi.new("sb_message *")))


def test_a_port_that_was_closed_publishes_nothing(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q", slots=8)
        port = queue.port()
        address = port.address
        assert publish(address) == 0
        port.close()
        assert publish(address) == CLOSED
        assert take(address) == CLOSED
        queue.publish(b"by others")  # whose lane it is not
        assert publish(address) == CLOSED
        assert len(list(queue.browse())) == 2
        for call in (
            lambda: port.publish(b"x"),
            lambda: port.take(),
            lambda: port.receive(),
            lambda: port.receive_many(),
            lambda: port.publish_many([b"x"]),
            lambda: port.publish_buffer(bytearray(1)),
            lambda: port.loan(5),
        ):
            with pytest.raises(shmbroker.ConnectionClosed):
                call()
        port.close()


def test_a_port_of_a_closed_connection_publishes_nothing(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.declare_queue("q", slots=8)
        port = queue.port()
        address = port.address
        assert publish(address) == 0
    assert publish(address) == CLOSED
    with pytest.raises(shmbroker.ConnectionClosed):
        port.publish(b"x")


def test_a_port_of_a_closed_ring_publishes_nothing(ring_name: str) -> None:
    with shmbroker.Ring.create(ring_name, slots=16) as ring:
        port = ring.port(1)
        address = port.address
        port.close()
        assert publish(address) == CLOSED


def test_a_port_keeps_its_ring_until_it_is_closed(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        port = broker.declare_queue("q", slots=8).port()
        broker.delete_queue("q")
        assert publish(port.address) == 0
        assert mapped(vhost) == 1
        port.close()
        assert not mapped(vhost)
        assert not blocks(vhost)


# --- C -------------------------------------------------------------------------------------------


def open_in_c(broker: Broker, name: str) -> object:
    opened = ffi.new("sb_queue **")
    assert lib.sb_open_queue(broker._connection, name.encode(), opened) == OK
    return opened[0]


def test_a_handle_answers_until_it_is_closed_as_often_as_it_was_opened(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        broker.declare_queue("q", slots=8)
        first, second = open_in_c(broker, "q"), open_in_c(broker, "q")
        assert first == second
        broker.delete_queue("q")
        assert not mapped(vhost)
        assert lib.sb_close_queue(first) == OK
        assert lib.sb_publish(second, b"x", 1, 0) == NOT_FOUND
        assert lib.sb_share_queue(second) == OK
        assert lib.sb_close_queue(second) == OK
        assert ffi.string(lib.sb_queue_name(second)) == b"q"
        assert lib.sb_close_queue(second) == OK


def test_threads_that_call_in_while_another_process_deletes(tmp_path: Path, vhost: str) -> None:
    program = compile_program(NATIVE / "deleting.c", tmp_path / "deleting")
    ran = subprocess.run(
        [program, vhost, "300", "4"], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
