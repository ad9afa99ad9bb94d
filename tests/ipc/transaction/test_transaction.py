"""Transactions: all of it or nothing, for everybody, and an error that says which."""

from __future__ import annotations

import asyncio
import doctest
import os
import threading
from pathlib import Path

import pytest

import shmbroker
from shmbroker.core import layout

DOCUMENT = Path(__file__).parents[3] / "docs" / "transactions.md"


def bodies(queue: shmbroker.Queue) -> list[bytes]:
    """All that can be taken."""
    found = []
    while True:
        try:
            found.append(queue.receive(timeout=0))
        except shmbroker.Empty:
            return found


def test_nothing_is_visible_before_the_commit(
    broker: shmbroker.Broker, other: shmbroker.Broker
) -> None:
    orders, invoices = broker.declare_queue("orders"), broker.declare_queue("invoices")
    orders.publish(b"order")
    with broker.transaction() as tx:
        message = orders.get(timeout=0)
        tx.ack(message)
        assert not message.is_in_hand
        tx.publish(invoices, b"first", key="k", properties={"p": 1})
        tx.publish(invoices, bytearray(b"second"))
        assert len(tx) == 3
        assert bodies(other.queue("invoices")) == []
        assert orders.statistics().taken == 1
    with other.queue("invoices").get(timeout=0) as seen:
        assert (seen.body, seen.key, seen.properties) == (b"first", "k", {"p": 1})
        assert seen.published_at > 0
    assert bodies(other.queue("invoices")) == [b"second"]
    assert orders.statistics().depth == 0


def test_a_rollback_gives_back_in_place(broker: shmbroker.Broker, other: shmbroker.Broker) -> None:
    orders, invoices = broker.declare_queue("orders"), broker.declare_queue("invoices")
    orders.publish_many([b"a", b"b"])
    with pytest.raises(ZeroDivisionError), broker.transaction() as tx:
        tx.ack(orders.get(timeout=0))
        tx.publish(invoices, b"never")
        raise ZeroDivisionError
    with other.queue("orders").get(timeout=0) as message:
        assert (message.body, message.deliveries) == (b"a", 1)
    assert bodies(other.queue("orders")) == [b"b"]
    assert bodies(invoices) == []


def test_a_transaction_that_is_dropped_is_rolled_back(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q")
    queue.publish(b"a")
    tx = broker.transaction()
    tx.ack(queue.get(timeout=0))
    del tx
    assert bodies(queue) == [b"a"]


def test_messages_of_one_transaction_keep_their_order(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q")
    for start in range(0, 3000, 300):  # several laps of the ring
        with broker.transaction() as tx:
            for number in range(300):
                tx.publish(queue, b"%d" % (start + number))
        assert bodies(queue) == [b"%d" % (start + number) for number in range(300)]


def test_an_exchange_routes_when_called(broker: shmbroker.Broker) -> None:
    europe, germany = broker.declare_queue("europe"), broker.declare_queue("germany")
    exchange = broker.declare_exchange("orders", "topic")
    broker.bind("orders", "europe", "eu.#")
    broker.bind("orders", "germany", "eu.de")
    with broker.transaction() as tx:
        tx.publish(exchange, b"both", key="eu.de")
        tx.publish(exchange, b"nobody", key="us.ny")
        assert len(tx) == 2
        broker.unbind("orders", "germany", "eu.de")
        with pytest.raises(shmbroker.Unroutable):
            tx.publish(exchange, b"nobody", key="us.ny", mandatory=True)
    assert (bodies(europe), bodies(germany)) == ([b"both"], [b"both"])


def test_a_full_queue_fails_the_whole_commit(broker: shmbroker.Broker) -> None:
    full, free = broker.declare_queue("full", slots=2), broker.declare_queue("free")
    source = broker.declare_queue("source")
    source.publish(b"s")
    full.publish(b"x")
    tx = broker.transaction()
    tx.ack(source.get(timeout=0))
    tx.publish(free, b"a")
    tx.publish(full, b"b")
    tx.publish(full, b"c")
    for timeout in (0, 0.05):
        with pytest.raises(shmbroker.QueueFull, match="'full' is full"):
            tx.commit(timeout=timeout)
    assert bodies(free) == []
    assert source.statistics().taken == 1
    assert bodies(full) == [b"x"]
    tx.commit(timeout=0)
    assert (bodies(free), bodies(full)) == ([b"a"], [b"b", b"c"])
    assert source.statistics().depth == 0


def test_the_first_full_queue_that_fails_ends_the_wait_for_others(
    broker: shmbroker.Broker, other: shmbroker.Broker
) -> None:
    waits = broker.declare_queue("waits", slots=2)
    fails = broker.declare_queue("fails", slots=2, when_full="fail")
    for each in (waits, fails):
        each.publish_many([b"x", b"y"])
    tx = broker.transaction()
    for each in (waits, fails):
        tx.publish(each, b"a")
    taker = threading.Thread(target=lambda: other.queue("waits").receive(timeout=5))
    taker.start()
    with pytest.raises(shmbroker.QueueFull, match="'fails' is full"):
        tx.commit()
    taker.join()
    assert bodies(waits) == [b"y"]
    assert fails.receive(timeout=0) == b"x"
    tx.publish(waits, b"b")
    tx.commit()
    assert (bodies(waits), bodies(fails)) == ([b"a", b"b"], [b"y", b"a"])


@pytest.mark.parametrize("names", [("waits", "fails"), ("fails", "waits")])
def test_whatever_the_order_of_full_queues_one_that_fails_is_not_waited_for(
    broker: shmbroker.Broker, names: tuple[str, str]
) -> None:
    source = broker.declare_queue("source")
    source.publish(b"given back")
    declared = {
        "waits": broker.declare_queue("waits", slots=2),
        "fails": broker.declare_queue("fails", slots=2, when_full="fail"),
    }
    tx = broker.transaction()
    for name in names:
        declared[name].publish_many([b"x", b"y"])
        tx.publish(declared[name], b"a")
    tx.ack(source.get())
    with pytest.raises(shmbroker.QueueFull, match="'fails' is full"):
        tx.commit(timeout=5)
    for name in names:
        assert declared[name].receive(timeout=0) == b"x"
    tx.commit()
    assert [bodies(declared[name]) for name in names] == [[b"y", b"a"]] * 2
    assert source.statistics().depth == 0


def test_a_queue_that_fails_when_it_is_full_is_not_full_because_many_commit_to_it(
    broker: shmbroker.Broker,
) -> None:
    """That ends by itself."""
    queue = broker.declare_queue("q", when_full="fail")
    tx = broker.transaction()
    tx.publish(queue, b"x")
    [ring] = Path("/dev/shm").glob(f"shmbroker.{broker.vhost}.queue-*")
    with ring.open("r+b") as file:  # 63 of others
        for each in range(1, layout.PRODUCERS):
            file.seek(layout.RING_PRODUCERS_AT + each * layout.PRODUCER_BYTES)
            file.write((1000 + each).to_bytes(8, "little"))
    with pytest.raises(shmbroker.QueueFull, match="that many others commit to queue 'q' now"):
        tx.commit(timeout=0.01)
    assert not tx._is_refused


def test_a_commit_waits_for_room(broker: shmbroker.Broker, other: shmbroker.Broker) -> None:
    full = broker.declare_queue("full", slots=2)
    full.publish_many([b"x", b"y"])

    def drain() -> None:
        queue = other.queue("full")
        for _ in range(2):
            threading.Event().wait(0.1)
            queue.receive(timeout=5)

    drainer = threading.Thread(target=drain)
    drainer.start()
    with broker.transaction(timeout=10) as tx:
        tx.publish(full, b"a")
        tx.publish(full, b"b")
    drainer.join()
    assert bodies(full) == [b"a", b"b"]


def test_the_room_that_it_makes_itself_counts(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q", slots=2)
    queue.publish_many([b"a", b"b"])
    for _ in range(5):
        with broker.transaction(timeout=0) as tx:
            for message in queue.get_many(2, timeout=0):
                tx.publish(queue, message.body + b"!")
                tx.ack(message)
    assert bodies(queue) == [b"a!!!!!", b"b!!!!!"]


def test_more_than_a_queue_has_slots(broker: shmbroker.Broker) -> None:
    small = broker.declare_queue("small", slots=2)
    tx = broker.transaction()
    for _ in range(3):
        tx.publish(small, b"x")
    with pytest.raises(shmbroker.InvalidArgument, match=r"publishes 3 messages.* holds 2 at most"):
        tx.commit()
    tx.rollback()
    assert bodies(small) == []


def test_twice(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q")
    queue.publish(b"a")
    message = queue.get(timeout=0)
    for end in ("commit", "rollback"):
        tx = broker.transaction()
        getattr(tx, end)()
        for again in (
            tx.commit,
            tx.rollback,
            lambda tx=tx: tx.ack(message),
            lambda tx=tx: tx.publish(queue, b"b"),
            lambda tx=tx: tx.publish(broker.exchange(""), b"b", key="q"),
        ):
            with pytest.raises(shmbroker.TransactionEnded):
                again()
    message.ack()
    with broker.transaction() as tx:
        tx.publish(queue, b"c")
        tx.commit()
    assert bodies(queue) == [b"c"]


def test_messages_that_are_not_in_hand(broker: shmbroker.Broker, other: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q")
    queue.publish_many([b"a", b"b", b"c"])
    message = queue.get(timeout=0)
    message.ack()
    stranger = other.queue("q").get(timeout=0)
    with broker.transaction() as tx:
        with pytest.raises(shmbroker.DeliveryRevoked):
            tx.ack(message)
        with pytest.raises(shmbroker.InvalidArgument, match="another connection"):
            tx.ack(stranger)
        with pytest.raises(shmbroker.InvalidArgument):
            tx.ack(b"no message")  # type: ignore[arg-type]
        kept = queue.get(timeout=0)
        tx.ack(kept)
        with pytest.raises(shmbroker.DeliveryRevoked):
            tx.ack(kept)
    assert stranger.is_in_hand
    stranger.ack()


def test_a_message_that_was_revoked_before_the_commit(broker: shmbroker.Broker, vhost: str) -> None:
    queue, target = broker.declare_queue("q"), broker.declare_queue("target")
    queue.publish(b"a")
    tx = broker.transaction()
    tx.publish(target, b"b")
    tx.ack(queue.get(timeout=0))
    # what a repair does when the lease is over
    path = Path(f"/dev/shm/shmbroker.{vhost}.queue-0-1")
    with path.open("r+b") as ring:
        ring.seek(layout.RING_SLOTS_START)
        word = int.from_bytes(ring.read(8), "little")
        ring.seek(layout.RING_SLOTS_START)
        ring.write((word + (1 << layout.DELIVERIES_SHIFT)).to_bytes(8, "little"))
    with pytest.raises(shmbroker.DeliveryRevoked, match="no longer ours"):
        tx.commit()
    assert bodies(target) == []
    tx.rollback()


def test_a_queue_that_is_deleted_before_the_commit(
    broker: shmbroker.Broker, other: shmbroker.Broker
) -> None:
    kept, deleted = broker.declare_queue("kept"), broker.declare_queue("deleted")
    tx = broker.transaction()
    tx.publish(kept, b"a")
    tx.publish(deleted, b"b")
    other.delete_queue("deleted", force=True)
    with pytest.raises(shmbroker.NotFound, match="'deleted'"):
        tx.commit()
    assert bodies(kept) == []
    tx.rollback()


def test_too_many_operations(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q", slots=1024)
    with broker.transaction() as tx:
        for number in range(layout.TRANSACTION_OPERATIONS):
            tx.publish(queue, b"%d" % number)
        with pytest.raises(shmbroker.TooMany, match="1000 operations"):
            tx.publish(queue, b"one more")
    assert len(bodies(queue)) == layout.TRANSACTION_OPERATIONS


def test_large_messages(broker: shmbroker.Broker) -> None:
    """More of them than a port can lend: it takes another lane."""
    queue = broker.declare_queue("q", slots=256)
    body = os.urandom(100_000)
    for _ in range(3):
        with broker.transaction() as tx:
            for _ in range(150):
                tx.publish(queue, body)
        assert bodies(queue) == [body] * 150


def test_the_arena_is_full(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q")
    exchange = broker.declare_exchange("e", "fanout")
    for name in ("a", "b", "c", "d", "e"):
        broker.declare_queue(name)
        broker.bind("e", name)
    with broker.transaction() as tx:
        tx.publish(queue, b"small")
        with pytest.raises(shmbroker.ArenaFull):
            tx.publish(exchange, bytes(15 << 20))
        assert len(tx) == 1  # none of the five
        for name in ("a", "b"):
            tx.publish(broker.queue(name), bytes(10 << 20))
    assert bodies(queue) == [b"small"]
    assert bodies(broker.queue("a")) == [bytes(10 << 20)]


def test_a_connection_that_is_closed(vhost: str, other: shmbroker.Broker) -> None:
    broker = shmbroker.connect(f"shm://{vhost}")
    queue = broker.declare_queue("q")
    queue.publish(b"a")
    tx = broker.transaction()
    tx.ack(queue.get(timeout=0))
    tx.publish(queue, b"b")
    broker.close()
    for call in (tx.commit, tx.rollback, lambda: tx.publish(queue, b"c"), broker.transaction):
        with pytest.raises(shmbroker.ConnectionClosed):
            call()
    with pytest.raises(KeyError), tx:
        raise KeyError
    assert bodies(other.queue("q")) == [b"a"]


def test_across_a_fork(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q")
    tx = broker.transaction()
    tx.publish(queue, b"a")
    child = os.fork()
    if child == 0:
        refused = 0
        for call in (tx.commit, tx.rollback, lambda: tx.publish(queue, b"b")):
            try:
                call()
            except shmbroker.ConnectionForked:
                refused += 1
        del tx
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    tx.commit()
    assert bodies(queue) == [b"a"]


def test_an_observer_has_none(vhost: str) -> None:
    with (
        shmbroker.connect(f"shm://{vhost}", observe=True) as observer,
        pytest.raises(shmbroker.InvalidArgument, match="only observes"),
    ):
        observer.transaction()


def test_one_left_open_is_in_nobodys_way(broker: shmbroker.Broker, other: shmbroker.Broker) -> None:
    queue = broker.declare_queue("q", slots=4)
    tx = broker.transaction()
    tx.publish(queue, b"late")
    theirs, ours = other.queue("q"), broker.queue("q")
    for number in range(100):
        (theirs if number % 2 else ours).publish(b"%d" % number, timeout=0)
        assert bodies(theirs) == [b"%d" % number]
        with other.transaction() as quick:
            quick.publish(theirs, b"tx")
        assert bodies(ours) == [b"tx"]
    tx.commit()
    assert bodies(theirs) == [b"late"]


def test_many_threads_commit_at_once(broker: shmbroker.Broker, other: shmbroker.Broker) -> None:
    """Money goes round between accounts; there is always the same amount of it."""
    accounts, coins, rounds = 4, 8, 200
    names = [f"account{each}" for each in range(accounts)]
    for name in names:
        broker.declare_queue(name, slots=64).publish_many([b"coin"] * coins)

    def spend(using: shmbroker.Broker, shift: int) -> None:
        for each in range(rounds):
            source = using.queue(names[(each + shift) % accounts])
            target = using.queue(names[(each * 3 + shift + 1) % accounts])
            try:
                with using.transaction(timeout=5) as tx:
                    tx.ack(source.get(timeout=0))
                    tx.publish(target, b"coin")
            except shmbroker.Empty:
                pass

    threads = [
        threading.Thread(target=spend, args=(using, shift))
        for shift, using in enumerate((broker, other, broker, other))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(len(bodies(broker.queue(name))) for name in names) == accounts * coins


def test_asyncio(vhost: str) -> None:
    async def main() -> None:
        async with shmbroker.aio.connect(f"shm://{vhost}") as broker:
            orders = await broker.declare_queue("orders")
            full = await broker.declare_queue("full", slots=2)
            await orders.publish(b"order")
            with pytest.raises(ZeroDivisionError):
                async with broker.transaction() as tx:
                    tx.ack(await orders.get(timeout=0))
                    tx.publish(full, b"never")
                    raise ZeroDivisionError
            async with broker.transaction() as tx:
                tx.ack(await orders.get(timeout=0))
                tx.publish(full, b"a")
                tx.publish(await broker.exchange(""), b"b", key="full")
            late = broker.transaction()
            late.publish(full, b"c")
            late.publish(full, b"d")
            with pytest.raises(shmbroker.QueueFull):
                await late.commit(timeout=0.02)
            waiting = asyncio.create_task(late.commit(timeout=5))
            await asyncio.sleep(0.02)
            assert [await full.receive(timeout=0) for _ in "ab"] == [b"a", b"b"]
            await waiting
            assert [await full.receive(timeout=1) for _ in "cd"] == [b"c", b"d"]
            with pytest.raises(shmbroker.TransactionEnded):
                await late.commit()
            cancelled = broker.transaction()
            for body in (b"e", b"f"):
                cancelled.publish(full, body)
            await full.publish(b"x")
            waiting = asyncio.create_task(cancelled.commit())
            await asyncio.sleep(0.02)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            cancelled.rollback()
            assert await full.receive(timeout=0) == b"x"
            with pytest.raises(shmbroker.Empty):
                await full.receive(timeout=0)
            assert (await orders.statistics()).depth == 0

    asyncio.run(main())


def test_the_document() -> None:
    failed, tried = doctest.testfile(
        str(DOCUMENT), module_relative=False, optionflags=doctest.IGNORE_EXCEPTION_DETAIL
    )
    assert tried > 5
    assert failed == 0
