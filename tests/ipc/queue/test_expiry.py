"""A message is not delivered after its time, wherever it waits."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import shmbroker
from shmbroker import Broker, Empty, InvalidArgument, Message, Queue, QueueFull, aio
from shmbroker.core import layout
from shmbroker.ipc._native import lib
from tests.conftest import SHM
from tests.support.host import PATIENCE, journaling
from tests.support.killed import KILLS
from tests.support.tracer import Stepped
from tests.support.victim import Confirm, dying

SOON = 0.002
LONG = 3600.0


def over(seconds: float = SOON) -> None:
    """Let that time pass."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() <= ends_at:
        pass


def bodies(queue: Queue) -> list[bytes]:
    return [message.body for message in queue.browse()]


def taken_in_time(queue: Queue) -> Message:
    """A message with a time to live, taken before its time, however often we are too late."""
    while True:
        queue.publish(b"x", ttl=SOON)
        with suppress(Empty):
            return queue.get_nowait()


def test_one_that_cannot_be_rejected_expires_when_there_is_need_of_room(broker: Broker) -> None:
    dead = broker.declare_queue("dead", slots=8)
    dead.publish_many([b"before"] * 8)
    orders = broker.declare_queue("orders", slots=8, dead_letter="dead", max_deliveries=None)
    message = taken_in_time(orders)
    over()
    lib.sb_expire(orders._queue)  # it is in our hand: nothing is to be looked for
    with pytest.raises(QueueFull):
        message.reject()
    orders.publish_many([b"new"] * 7)
    orders.publish(b"last", timeout=0)
    assert bodies(orders) == [b"new"] * 7 + [b"last"]


def test_it_is_not_delivered_after_its_time(broker: Broker) -> None:
    orders = broker.declare_queue("orders")
    orders.publish(b"late", ttl=SOON)
    orders.publish(b"good", ttl=LONG)
    orders.publish(b"for ever")
    over()
    assert [orders.receive(timeout=0), orders.receive(timeout=0)] == [b"good", b"for ever"]
    numbers = orders.statistics()
    assert (numbers.expired, numbers.acked, numbers.dead_lettered) == (1, 2, 0)


def test_nor_in_a_batch(broker: Broker) -> None:
    orders = broker.declare_queue("orders")
    for body in (b"a", b"late", b"b", b"late"):
        orders.publish(body, ttl=SOON if body == b"late" else LONG)
    over()
    assert orders.receive_many(8) == [b"a", b"b"]
    for body in (b"late", b"c"):
        orders.publish(body, ttl=SOON if body == b"late" else LONG)
    over()
    (message,) = orders.get_many(8)
    with message:
        assert message.body == b"c"
    orders.publish(b"late", ttl=SOON)
    over()
    with pytest.raises(Empty):
        orders.get_many(8, timeout=0)
    with pytest.raises(Empty):
        orders.receive_many(8, timeout=0)


def test_it_goes_to_the_expiry_queue(broker: Broker) -> None:
    orders = broker.declare_queue("orders", expiry_queue="late", dead_letter="dead")
    orders.publish(b"x", ttl=SOON, properties={"n": 1})
    over()
    with pytest.raises(Empty):
        orders.get_nowait()
    (letter,) = broker.queue("late").browse()
    assert letter.properties["n"] == 1
    assert letter.properties["dead.reason"] == "expired"
    assert letter.properties["dead.deliveries"] == 0
    assert bodies(broker.queue("dead")) == []


def test_behind_others_it_leaves_as_well(broker: Broker) -> None:
    orders = broker.declare_queue("orders", expiry_queue="late")
    orders.publish(b"first")
    orders.publish(b"late", ttl=SOON)
    orders.publish(b"last", ttl=LONG)
    over()
    assert orders.expire() == 1
    assert (bodies(orders), bodies(broker.queue("late"))) == ([b"first", b"last"], [b"late"])
    assert orders.expire() == 0


def test_one_that_comes_back_expires_too(broker: Broker) -> None:
    orders = broker.declare_queue("orders")
    message = taken_in_time(orders)
    over()
    assert orders.expire() == 0  # it is in our hand
    message.give_back()
    assert orders.expire() == 1


def test_one_that_a_dead_process_had_expires_too(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    orders = broker.declare_queue("orders")

    def work(theirs: Broker, confirm: Confirm) -> None:
        message = theirs.queue("orders").get()
        confirm(message.deliveries)
        theirs.declare_queue("nothing").get()

    with dying(vhost, work, tmp_path, Random(1)):
        orders.publish(b"x", ttl=0.5)
        while not orders.statistics().taken:
            if orders.expire():  # they were too late: once more
                orders.publish(b"x", ttl=0.5)
        over(0.5)
        assert orders.expire() == 0
    broker.repair()
    assert orders.expire() == 1


def test_a_queue_that_is_full_of_what_is_expired_has_room(broker: Broker) -> None:
    orders = broker.declare_queue("orders", slots=4)
    for _ in range(4):
        orders.publish(b"late", ttl=SOON)
    over()
    orders.publish(b"new", timeout=0)
    assert orders.receive() == b"new"
    for _ in range(4):
        orders.publish(b"late", ttl=SOON)
    over()
    assert orders.publish_many([b"a", b"b", b"c"], timeout=0) == 3
    assert bodies(orders) == [b"a", b"b", b"c"]


def test_the_ttl_of_the_queue_is_for_messages_that_name_none(broker: Broker) -> None:
    orders = broker.declare_queue("orders", ttl=SOON)
    orders.publish(b"late")
    orders.publish(b"late", priority=1)
    orders.publish_many([b"late", b"late"])
    with orders.loan(4) as loan:
        loan.view[:] = b"late"
    orders.publish(b"good", ttl=LONG)
    over()
    assert orders.expire() == 5
    assert bodies(orders) == [b"good"]


def test_ttl_min_and_ttl_max(broker: Broker) -> None:
    least = broker.declare_queue("least", ttl_min=LONG)
    least.publish(b"x", ttl=1e-9)
    least.publish(b"no ttl")
    assert len(bodies(least)) == 2
    assert least.get_nowait().body == b"x"
    most = broker.declare_queue("most", ttl_max=SOON)
    most.publish(b"x", ttl=LONG)
    most.publish(b"for ever")
    over()
    assert most.expire() == 2


def test_a_full_expiry_queue_keeps_it_where_it_is(broker: Broker) -> None:
    orders = broker.declare_queue("orders", slots=2, expiry_queue="late")
    late = broker.queue("late")
    late.publish_many([b"old", b"old"])
    orders.publish(b"x", ttl=SOON)
    over()
    with pytest.raises(Empty):
        orders.get(timeout=0)
    assert orders.expire() == 0
    assert bodies(orders) == [b"x"]
    late.receive()
    assert orders.expire() == 1
    assert bodies(late) == [b"old", b"x"]


def test_somebody_who_waits_expires_what_is_behind(broker: Broker) -> None:
    """A waiting call does so by itself, and so does whoever repairs the vhost."""
    orders = broker.declare_queue("orders", expiry_queue="late")
    other = broker.declare_queue("other", expiry_queue="late")
    orders.publish(b"late", ttl=0.02)
    orders.pause()
    with pytest.raises(Empty):
        orders.get(timeout=0.3)
    assert bodies(orders) == [b"late"]  # nothing leaves a queue that is paused
    assert orders.expire() == 0
    orders.resume()
    held = orders.get_many(1, timeout=0) if orders.statistics().taken else []
    assert held == []
    other.publish(b"late", ttl=SOON)
    over()
    broker.repair_for(timeout=0)
    assert bodies(other) == []


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), float("inf"), "5", [1]])
def test_a_ttl_is_a_number_of_seconds(broker: Broker, wrong: object) -> None:
    text = "a ttl is a number of seconds above 0 or a timedelta, at most 1e[+]09, not"
    orders = broker.declare_queue("orders")
    with pytest.raises(InvalidArgument, match=text):
        orders.publish(b"x", ttl=wrong)  # type: ignore[arg-type]
    for name in ("ttl", "ttl_min", "ttl_max"):
        with pytest.raises(InvalidArgument, match=f"{name}: {text}"):
            broker.declare_queue("other", **{name: wrong})  # type: ignore[arg-type]


def test_ttl_min_above_ttl_max(broker: Broker) -> None:
    with pytest.raises(InvalidArgument, match="ttl_min is longer than ttl_max"):
        broker.declare_queue("orders", ttl_min=2, ttl_max=1)
    with pytest.raises(InvalidArgument, match="expiry_queue 'orders' of queue 'orders' leads back"):
        broker.declare_queue("orders", expiry_queue="orders")


def test_asyncio(vhost: str) -> None:
    async def session() -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            await broker.declare_queue("late", slots=8)
            orders = await broker.declare_queue("orders", slots=2, expiry_queue="late")
            await orders.publish(b"late", ttl=SOON)
            await orders.publish(b"good")
            over()
            assert await orders.expire() == 1
            assert await orders.receive() == b"good"
            ends_at = time.monotonic() + 0.02
            for _ in range(2):  # both at the same time
                await orders.publish(b"late", ttl=max(1e-6, ends_at - time.monotonic()))
            # nobody takes any: only the expiry makes room for it
            await orders.publish(b"more", timeout=10)
            assert await orders.receive() == b"more"
            exchange = await broker.exchange("")
            await exchange.publish(b"late", key="orders", ttl=SOON)
            over()
            with pytest.raises(Empty):
                await orders.get(timeout=0.01)
            assert (await (await broker.queue("late")).statistics()).depth == 4

    asyncio.run(session())


def test_nothing_is_lost_whenever_one_is_killed(broker: Broker, vhost: str, tmp_path: Path) -> None:
    orders = broker.declare_queue("orders", slots=32, expiry_queue="late")
    late = broker.queue("late")
    random = Random(6)

    def work(theirs: Broker, confirm: Confirm) -> None:
        queue = theirs.queue("orders")
        for number in range(1 << 20):
            queue.publish(b"%d" % number, ttl=1e-5)
            confirm(number)
            queue.expire()

    for _ in range(KILLS):
        with dying(vhost, work, tmp_path, random) as confirmed:
            drained: list[bytes] = []
            for _ in range(4):  # somebody else takes from there meanwhile
                drained += late.receive_many(64, timeout=0) if late.statistics().depth else []
        broker.repair()
        over(2e-5)
        letters = drained
        letters += [letter.body for letter in late.consume(timeout=0)]
        while orders.expire():
            letters += [letter.body for letter in late.consume(timeout=0)]
        assert orders.statistics().depth == 0  # found although the dead one did not note it
        assert {b"%d" % number for number in confirmed} <= set(letters)
        assert len(letters) - len(set(letters)) <= 1


def test_one_that_waits_on_its_way_to_a_node_leaves_as_well(broker: Broker) -> None:
    """Such a queue is paused all the time, so that nobody takes from it: that keeps none there."""
    way = broker.declare_queue("$sf.town.0f", slots=4, max_deliveries=None, expiry_queue="late")
    way.pause()
    other = broker.declare_queue("orders", slots=4)
    other.pause()
    for queue in (way, other):
        queue.publish(b"x", ttl=SOON)
    time.sleep(2 * SOON)
    broker.repair_for(timeout=0)
    assert [each.statistics().expired for each in (way, other)] == [1, 0]


def test_what_expires_before_it_is_confirmed_is_looked_for_again(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    later = broker.declare_queue("later", durable=True, ttl=SOON, expiry_queue="due")
    for each in range(4):  # nobody writes the journal
        later.publish(b"%d" % each, confirm="shm")
    over()
    broker.repair_for(0)
    assert later.statistics().expired == 0
    with journaling(vhost, tmp_path / "journal"):
        later.confirm(timeout=PATIENCE)
        ends_at = time.monotonic() + PATIENCE
        while later.statistics().expired < 4:
            assert time.monotonic() < ends_at
            broker.repair_for(0.01)
    assert bodies(broker.queue("due")) == [b"0", b"1", b"2", b"3"]


class Ring:
    """What the ring of a queue says, without a look at it by a call."""

    def __init__(self, queue: Queue) -> None:
        reference: int = lib.sb_queue_reference(queue._queue)
        row = reference & layout.REFERENCE_INDEX_MASK
        name = f"queue-{row}-{reference >> layout.REFERENCE_INDEX_BITS}"
        self._file = SHM / f"shmbroker.{queue._broker.vhost}.{name}"

    def _word(self, at: int) -> int:
        with self._file.open("rb", buffering=0) as file:
            return int.from_bytes(os.pread(file.fileno(), 8, at), "little", signed=True)

    @property
    def state(self) -> int:
        """Of the first message."""
        return self._word(layout.RING_SLOTS_START) >> layout.STATE_SHIFT & layout.STATE_MASK

    @property
    def next_expiry(self) -> int:
        return self._word(layout.RING_NEXT_EXPIRY_AT)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions are counted on x86-64")
def test_what_was_taken_and_could_not_be_moved_expires(broker: Broker, url: str) -> None:
    """Just while it was taken, somebody has looked for what is expired, and left it out."""
    source, target = broker.declare_queue("source"), broker.declare_queue("target", slots=2)
    source.publish(b"x", ttl=LONG)
    ring = Ring(source)
    expiry = ring.next_expiry

    def moving() -> None:
        with shmbroker.connect(url) as program:
            ours, theirs = program.queue("source"), program.queue("target")
            os.kill(os.getpid(), signal.SIGSTOP)
            ours.move_to(theirs, timeout=0)
            os.kill(os.getpid(), signal.SIGSTOP)

    with Stepped(moving) as move:
        while ring.state != layout.LEASED:
            assert move.step(50), "it was moved before"
        target.publish_many([b"others were faster"] * 2)
        source.expire()
        assert ring.next_expiry == 0
        move.run_to_stop()
        assert ring.state == layout.READY
        assert ring.next_expiry == expiry
