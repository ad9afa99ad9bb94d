"""Queues that are made when they are asked for, and deleted when nobody uses them."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path
from random import Random

import pytest

import shmbroker
from shmbroker import Broker, Empty, InvalidArgument, NotFound, Unroutable, aio
from shmbroker.core import layout as at
from tests.conftest import SHM
from tests.crash.leaks import blocks, live_queues, names
from tests.ipc.transaction.test_commit_stopped import series_held
from tests.support.killed import KILLS
from tests.support.tracer import Stepped
from tests.support.victim import Confirm, dying

SOON = 0.01


def queues(broker: Broker) -> list[str]:
    return [queue.name for queue in broker.queues()]


def gone(broker: Broker, name: str) -> None:
    """Wait for it, repairing."""
    ends_at = time.monotonic() + 30
    while name in queues(broker):
        assert time.monotonic() < ends_at, f"{name} is still there"
        broker.repair_for(timeout=0)


def test_a_queue_is_made_when_it_is_asked_for(broker: Broker) -> None:
    broker.settings("auto.#", auto_create=True, max_deliveries=2)
    made = broker.queue("auto.eu")
    assert made.explain()["max_deliveries"].source == "pattern 'auto.#'"
    assert made.slots == 1024
    assert broker.queue("auto.eu") is made
    broker.declare_queue("auto.eu")  # the same
    with pytest.raises(NotFound, match="there is no queue 'other'"):
        broker.queue("other")
    broker.settings("auto.not", auto_create=False)
    with pytest.raises(NotFound):
        broker.queue("auto.not")
    assert queues(broker) == ["auto.eu"]


def test_publishing_through_the_default_exchange_makes_it_too(broker: Broker) -> None:
    exchange = broker.exchange("")
    with pytest.raises(Unroutable):
        exchange.publish(b"x", key="auto.eu", mandatory=True)
    broker.settings("auto.#", auto_create=True)
    assert exchange.publish(b"x", key="auto.eu", mandatory=True) == 1
    assert broker.queue("auto.eu").receive(timeout=0) == b"x"
    for key in ("", "a/b", "x" * 300, "auto.\n"):
        assert exchange.publish(b"x", key=key) == 0
    broker.delete_queue("auto.eu")
    assert exchange.publish(b"y", key="auto.eu") == 1


def test_publishing_says_why_it_cannot_be_made(broker: Broker) -> None:
    exchange = broker.exchange("")
    broker.settings("auto.#", auto_create=True, when_full="page")
    why = "nobody writes pages"
    with pytest.raises(InvalidArgument, match=why):
        broker.queue("auto.eu")
    for mandatory in (False, True):
        with pytest.raises(InvalidArgument, match=why):
            exchange.publish(b"x", key="auto.eu", mandatory=mandatory)
    with broker.transaction() as transaction, pytest.raises(InvalidArgument, match=why):
        transaction.publish(exchange, b"x", key="auto.eu")
    assert queues(broker) == []


def test_who_only_looks_makes_none(broker: Broker) -> None:
    broker.settings("#", auto_create=True)
    with pytest.raises(NotFound, match="there is no queue 'auto'"):
        broker._queue_there("auto")
    assert broker._catalog.depth_of("auto") is None  # as of one that was deleted meanwhile
    assert queues(broker) == []


def test_who_only_observes_makes_none(broker: Broker, vhost: str) -> None:
    broker.settings("#", auto_create=True)
    with shmbroker.connect(f"shm://{vhost}", observe=True) as observer, pytest.raises(NotFound):
        observer.queue("auto")


def test_it_is_deleted_when_nobody_uses_it(broker: Broker, vhost: str) -> None:
    broker.settings("auto.#", auto_create=True, auto_delete=True, auto_delete_delay=SOON)
    with shmbroker.connect(f"shm://{vhost}") as other:
        other.queue("auto.eu").publish(b"x")
        assert broker.queue("auto.eu").receive(timeout=0) == b"x"
        gone(broker, "auto.eu")
        with pytest.raises(NotFound):
            other.queue("kept")
    assert names(vhost) == {"catalog", "arena", "participants", "transactions"} | live_queues(vhost)
    assert not blocks(vhost)


def test_not_while_there_is_a_message_or_somebody_waits(broker: Broker, vhost: str) -> None:
    queue = broker.declare_queue("q", auto_delete=True, auto_delete_delay=SOON)
    queue.publish(b"x")
    held = queue.get_nowait()
    time.sleep(2 * SOON)  # nothing is to happen meanwhile
    broker.repair_for(timeout=0)
    held.give_back()
    time.sleep(2 * SOON)
    broker.repair_for(timeout=0)
    assert queue.receive(timeout=0) == b"x"
    patient = broker.declare_queue("patient", auto_delete=True, auto_delete_delay=3.0)
    got: list[bytes] = []
    thread = threading.Thread(target=lambda: got.append(patient.receive(timeout=30)))
    thread.start()
    with shmbroker.connect(f"shm://{vhost}") as other:
        ends_at = time.monotonic() + 4.0
        while time.monotonic() < ends_at:
            other.repair_for(timeout=0.05)
        other.queue("patient").publish(b"y")
    thread.join()
    assert got == [b"y"]


def test_somebody_who_waits_elsewhere_deletes_it(broker: Broker) -> None:
    broker.declare_queue("q", auto_delete=True, auto_delete_delay=SOON)
    with pytest.raises(Empty):
        broker.declare_queue("other").get(timeout=0.5)
    assert queues(broker) == ["other"]


def test_asyncio(vhost: str) -> None:
    async def session() -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            await broker.settings("auto.#", auto_create=True, auto_delete=True,
                                  auto_delete_delay=0.5)  # fmt: skip
            queue = await broker.queue("auto.eu")
            with pytest.raises(Empty):
                await queue.get(timeout=1)  # it is in use all the while
            await queue.publish(b"x", timeout=0)
            await queue.receive(timeout=0)
            other = await broker.declare_queue("other")
            with pytest.raises(Empty):
                await other.get(timeout=1.5)
            assert [each.name for each in await broker.queues()] == ["other"]

    asyncio.run(session())


def test_it_goes_although_its_users_were_killed(broker: Broker, vhost: str, tmp_path: Path) -> None:
    broker.settings("#", auto_create=True, auto_delete=True, auto_delete_delay=SOON)

    def work(theirs: Broker, confirm: Confirm) -> None:
        queue = theirs.queue("q")
        queue.publish(b"x")
        queue.receive()
        confirm(1)
        queue.get()

    with dying(vhost, work, tmp_path, Random(1)):
        while "q" not in queues(broker):
            pass
    broker.repair()
    for message in broker.queue("q").consume(timeout=0):
        message.ack()
    gone(broker, "q")


def test_the_mark_of_one_who_died_before_he_deleted_it_is_taken_off(
    broker: Broker, vhost: str
) -> None:
    queue = broker.declare_queue("q", auto_delete=True)
    (ring,) = SHM.glob(f"shmbroker.{vhost}.queue-*")
    with ring.open("r+b", buffering=0) as file:
        file.seek(at.RING_DOOMED_AT)
        file.write((1).to_bytes(8, "little"))
        assert queue.publish(b"x") == 0
        file.seek(at.RING_DOOMED_AT)
        assert file.read(8) == bytes(8)
    assert queue.receive(timeout=0) == b"x"


def test_no_confirmed_message_is_deleted_whoever_is_killed(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    """Others delete it all the time, and are killed doing so; we publish, and what is confirmed is
    there until we take it."""
    broker.settings("#", auto_create=True, auto_delete=True, auto_delete_delay=1e-9)
    exchange = broker.exchange("")
    random = Random(11)

    def work(theirs: Broker, confirm: Confirm) -> None:
        while True:
            theirs.repair_for(timeout=0)

    published = 0
    for _ in range(KILLS):
        with dying(vhost, work, tmp_path, random):
            for number in range(20):
                try:
                    if number % 2:
                        assert exchange.publish(b"x", key="q", mandatory=True) == 1
                    else:
                        broker.queue("q").publish(b"x")
                except NotFound:  # it was deleted just then, and says so
                    continue
                published += 1
                assert broker.queue("q").receive(timeout=0) == b"x"
        broker.repair()
    assert published > KILLS


def test_a_transaction_that_schedules_there_keeps_it(
    broker: Broker, url: str, vhost: str
) -> None:
    broker.declare_queue("late", slots=16, auto_delete=True, auto_delete_delay=SOON)

    def commits() -> None:
        with shmbroker.connect(url, name="committer") as program:
            transaction = program.transaction()
            transaction.publish("late", b"x", deliver_after=3600)
            os.kill(os.getpid(), signal.SIGSTOP)
            transaction.commit()
            os.kill(os.getpid(), signal.SIGSTOP)

    with Stepped(commits) as commit:
        while series_held(vhost) == 0:
            assert commit.step(500), "it had happened before"
        ends_at = time.monotonic() + 20 * SOON
        while time.monotonic() < ends_at:
            broker.repair_for(timeout=0)
            assert "late" in queues(broker)
        commit.run_to_stop()
        commit.finish()
    assert broker.queue("late").statistics().scheduled == 1


def long_after(broker: Broker) -> None:
    """Repairs for several times as long as an unused queue stays."""
    ends_at = time.monotonic() + 10 * SOON
    while time.monotonic() < ends_at:
        broker.repair_for(timeout=0)


@pytest.mark.parametrize("ends", ["commit", "rollback", "close"])
@pytest.mark.parametrize("how", ["by name", "through the exchange", "later"])
def test_not_while_a_transaction_is_open_that_publishes_there(
    broker: Broker, url: str, how: str, ends: str
) -> None:
    broker.settings("auto.#", auto_create=True, auto_delete=True, auto_delete_delay=SOON)
    with shmbroker.connect(url) as other:
        transaction = other.transaction()
        if how == "through the exchange":
            transaction.publish(other.exchange(""), b"x", key="auto.eu")
        else:
            delay = 10 * SOON if how == "later" else None
            transaction.publish("auto.eu", b"x", deliver_after=delay)
        long_after(broker)
        assert queues(broker) == ["auto.eu"]
        if ends == "commit":
            transaction.commit(timeout=0)
            assert broker.queue("auto.eu").receive(timeout=30) == b"x"
        elif ends == "rollback":
            transaction.rollback()
        else:
            other.close()
        gone(broker, "auto.eu")


def test_a_transaction_promises_nothing_in_the_name_of_an_observer(
    broker: Broker, vhost: str
) -> None:
    broker.declare_queue("auto", auto_delete=True, auto_delete_delay=60)

    def nobody() -> bytes:
        participants = (SHM / f"shmbroker.{vhost}.participants").read_bytes()
        return participants[at.PARTICIPANTS_AT :][: at.PARTICIPANT_BYTES]

    with (
        shmbroker.connect(f"shm://{vhost}", observe=True) as observer,
        broker.transaction() as transaction,
        pytest.raises(InvalidArgument, match="another connection"),
    ):
        transaction.publish(observer.queue("auto"), b"x")
    assert not any(nobody()), "who has no number uses nothing"


def test_nor_any_of_very_many_of_one_transaction(broker: Broker, url: str) -> None:
    """More than the list of a participant holds; and they go as soon as that is over."""
    broker.settings("auto.#", auto_create=True, auto_delete=True, auto_delete_delay=SOON)
    many = {f"auto.{number}" for number in range(at.PARTICIPANT_LIST + 3)}
    with shmbroker.connect(url) as other:
        for _ in range(2):
            transaction = other.transaction()
            for _ in range(2):
                for name in many:
                    transaction.publish(name, b"x")
            long_after(broker)
            assert set(queues(broker)) == many
            transaction.rollback()
            for name in many:
                gone(broker, name)


def test_it_goes_although_who_had_a_transaction_was_killed(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    broker.settings("#", auto_create=True, auto_delete=True, auto_delete_delay=SOON)

    def work(theirs: Broker, confirm: Confirm) -> None:
        transaction = theirs.transaction()
        transaction.publish("q", b"x")
        confirm(1)
        threading.Event().wait()

    with dying(vhost, work, tmp_path, Random(1)):
        while "q" not in queues(broker):
            pass
    broker.repair()
    gone(broker, "q")


def test_no_commit_finds_it_deleted(broker: Broker, url: str) -> None:
    """Others delete it all the time; who has published there in a transaction is sure of it."""
    broker.settings("#", auto_create=True, auto_delete=True, auto_delete_delay=1e-9)
    is_over, looked = threading.Event(), [0]

    def deletes() -> None:
        with shmbroker.connect(url) as other:
            while not is_over.is_set():
                other.repair_for(timeout=0)
                looked[0] += 1

    thread = threading.Thread(target=deletes)
    thread.start()
    committed = 0
    try:
        while committed < 200:
            transaction = broker.transaction()
            try:
                transaction.publish("q", b"x")
            except NotFound:  # it was deleted just then, and says so
                continue
            until = looked[0] + 3 * (committed % 2)  # at once, or when others have looked
            while looked[0] < until:
                time.sleep(0)
            transaction.commit(timeout=0)
            committed += 1
            assert broker.queue("q").receive(timeout=0) == b"x"
    finally:
        is_over.set()
        thread.join()


def test_looking_for_slow_consumers_is_no_use_of_it(broker: Broker, vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as other:
        broker.declare_queue(
            "q", auto_delete=True, auto_delete_delay=10 * SOON, slow_consumer_threshold=1.0
        )
        ends_at = time.monotonic() + 30
        while "q" in queues(broker):
            assert time.monotonic() < ends_at
            other.repair_for(timeout=SOON)
