"""A queue that keeps the last value: of the messages of a key the newest stays."""

from __future__ import annotations

import asyncio
import mmap
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, Damaged, InvalidArgument, Queue, QueueFull, aio
from shmbroker.core.layout import RING_SLOTS_START, SLOT_BYTES, SLOT_CHAIN_AT
from shmbroker.perf.machine.process import Process
from tests.cli.command import eventually
from tests.support.killed import KILLS
from tests.support.victim import Confirm, dying


@pytest.fixture
def prices(broker: Broker) -> Queue:
    return broker.declare_queue("prices", slots=16, last_value=True)


def bodies(queue: Queue) -> list[bytes]:
    return [message.body for message in queue.browse()]


def value_of(queue: Queue, key: str) -> bytes | None:
    value = queue.value(key)
    return None if value is None else value.body


def test_the_newest_replaces_the_older_and_has_its_own_place(prices: Queue) -> None:
    for body, key in ((b"1", "eur"), (b"2", "usd"), (b"3", "eur"), (b"4", "gbp"), (b"5", "usd")):
        prices.publish(body, key=key)
    assert bodies(prices) == [b"3", b"4", b"5"]
    assert [prices.receive(timeout=0) for _ in range(3)] == [b"3", b"4", b"5"]
    numbers = prices.statistics()
    assert (numbers.replaced, numbers.acked, numbers.dropped, numbers.depth) == (2, 3, 0, 0)


def test_messages_without_a_key_are_plain(prices: Queue) -> None:
    prices.publish(b"a")
    prices.publish_many([b"b", b"c"])
    prices.publish(b"d", key="")
    assert bodies(prices) == [b"a", b"b", b"c", b"d"]


def test_keys_of_one_chain_are_told_apart(broker: Broker) -> None:
    prices = broker.declare_queue("prices", slots=2048, last_value=True, max_messages=1500)
    for turn in range(2):
        for number in range(1200):
            prices.publish(b"%d.%d" % (number, turn), key=f"k{number}")
    assert bodies(prices) == [b"%d.1" % number for number in range(1200)]
    for number in range(1200):
        assert value_of(prices, f"k{number}") == b"%d.1" % number


def test_what_is_in_hand_is_not_replaced(prices: Queue) -> None:
    prices.publish(b"old", key="eur")
    with prices.get(timeout=0) as held:
        prices.publish(b"new", key="eur")
        assert held.body == b"old"
    assert prices.statistics().acked == 1
    assert prices.receive(timeout=0) == b"new"


def test_what_is_given_back_makes_way_for_a_newer_one(prices: Queue) -> None:
    prices.publish(b"old", key="eur")
    held = prices.get(timeout=0)
    prices.publish(b"new", key="eur")
    held.give_back()
    assert bodies(prices) == [b"new"]
    assert prices.statistics().replaced == 1


def test_and_stays_if_the_newer_one_is_gone(prices: Queue) -> None:
    prices.publish(b"old", key="eur")
    held = prices.get(timeout=0)
    prices.publish(b"new", key="eur")
    assert prices.receive(timeout=0) == b"new"
    held.give_back()
    assert bodies(prices) == [b"old"]


def test_what_a_closed_connection_held_makes_way_too(vhost: str, prices: Queue) -> None:
    prices.publish(b"old", key="eur")
    with shmbroker.connect(f"shm://{vhost}") as other:
        held = other.queue("prices").get(timeout=0)
        prices.publish(b"new", key="eur")
    assert bodies(prices) == [b"new"]
    del held


def by_loan(broker: Broker, queue: Queue) -> None:
    with queue.loan(3, key="eur") as loan:
        loan.view[:] = b"new"


def by_transaction(broker: Broker, queue: Queue) -> None:
    with broker.transaction() as transaction:
        transaction.publish(queue, b"new", key="eur")


def by_exchange(broker: Broker, queue: Queue) -> None:
    broker.declare_exchange("rates", "direct")
    broker.bind("rates", "prices", "eur")
    broker.exchange("rates").publish(b"new", key="eur")


def by_moving(broker: Broker, queue: Queue) -> None:
    other = broker.declare_queue("other")
    other.publish(b"new", key="eur")
    assert other.move_to(queue) == 1


def by_properties(broker: Broker, queue: Queue) -> None:
    queue.publish(b"new", key="eur", properties={"n": 1}, ttl=60.0, priority=7)


def with_an_id(broker: Broker, queue: Queue) -> None:
    for body in (b"older", b"new"):  # not looked at: what comes last is the value
        queue.publish(body, key="eur", message_id="7")


def by_a_schedule(broker: Broker, queue: Queue) -> None:
    queue.publish(b"new", key="eur", deliver_after=0.01)
    eventually(lambda: bodies(queue) == [b"new"])


@pytest.mark.parametrize(
    "way",
    [by_loan, by_transaction, by_exchange, by_moving, by_properties, with_an_id, by_a_schedule],
)
def test_however_it_is_published(
    way: Callable[[Broker, Queue], None], broker: Broker, prices: Queue
) -> None:
    prices.publish(b"old", key="eur")
    way(broker, prices)
    assert bodies(prices) == [b"new"]
    assert value_of(prices, "eur") == b"new"


def test_a_key_without_news_does_not_fill_the_ring(prices: Queue) -> None:
    prices.publish(b"quiet", key="quiet", properties={"n": 1}, ttl=3600.0, priority=7)
    (before,) = prices.browse()
    for number in range(500):
        prices.publish(b"%d" % number, key="busy", timeout=0)
    quiet, busy = prices.browse()
    assert (quiet.body, busy.body) == (b"quiet", b"499")
    assert (quiet.key, quiet.properties, quiet.priority) == ("quiet", {"n": 1}, 7)
    assert (quiet.expires_ns, quiet.published_at) == (before.expires_ns, before.published_at)
    numbers = prices.statistics()
    assert (numbers.published, numbers.replaced, numbers.acked) == (501, 499, 0)
    assert numbers.carried > 0


def test_a_full_queue_takes_scheduled_news(prices: Queue) -> None:
    for number in range(14):
        prices.publish(b"-", key=f"k{number}", timeout=0)
    for turn in range(20):
        prices.publish(b"%d" % turn, key="k3", deliver_after=0.001)
    eventually(lambda: value_of(prices, "k3") == b"19")
    assert prices.statistics().depth == 14


def test_a_full_queue_takes_news_and_no_new_keys(prices: Queue) -> None:
    for number in range(14):
        prices.publish(b"-", key=f"k{number}", timeout=0)
    with pytest.raises(QueueFull):
        prices.publish(b"-", key="one more", timeout=0)
    for turn in range(20):
        for number in range(14):
            prices.publish(b"%d" % turn, key=f"k{number}", timeout=0)
    assert bodies(prices) == [b"19"] * 14


def test_a_message_in_hand_and_a_plain_one_hold_the_ring(prices: Queue) -> None:
    prices.publish(b"plain")
    with pytest.raises(QueueFull):
        for number in range(100):
            prices.publish(b"%d" % number, key="eur", timeout=0)
    assert prices.receive(timeout=0) == b"plain"
    assert prices.publish(b"on", key="eur", timeout=0) > 0


def test_the_value_of_a_key(prices: Queue) -> None:
    assert prices.value("eur") is None
    prices.publish(b"1", key="eur", properties={"n": 1})
    prices.publish(b"2", key="usd")
    value = prices.value("eur")
    assert value is not None
    assert (value.body, value.key, value.properties, value.is_taken) == (
        b"1",
        "eur",
        {"n": 1},
        False,
    )
    with prices.get(timeout=0):
        held = prices.value("eur")
        assert held is not None
        assert held.is_taken
    assert prices.value("eur") is None
    large = bytes(100_000)
    prices.publish(large, key="usd")
    assert value_of(prices, "usd") == large


def test_an_expired_value_is_none(prices: Queue) -> None:
    prices.publish(b"1", key="eur", ttl=1e-9)
    assert prices.value("eur") is None
    assert prices.expire() == 1
    assert prices.statistics().expired == 1


def test_there_is_no_value_of_a_plain_queue(broker: Broker, prices: Queue) -> None:
    with pytest.raises(InvalidArgument, match="declare it with last_value"):
        broker.declare_queue("orders").value("eur")
    with pytest.raises(InvalidArgument, match="has a key"):
        prices.value("")
    with pytest.raises(InvalidArgument, match="a key is text"):
        prices.value(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["last_value", "non_destructive"])
@pytest.mark.parametrize(
    ("name", "value", "without"),
    [
        ("groups", True, False),
        ("single_active", True, False),
        ("redelivery_delay", 1.0, None),
        ("duplicate_ids", 20_000, 0),
    ],
)
def test_what_neither_kind_can_have(
    broker: Broker, kind: Any, name: Any, value: Any, without: Any
) -> None:
    with pytest.raises(InvalidArgument, match=f"a {kind} queue has no {name}: "):
        broker.declare_queue("kept", **{kind: True, name: value})
    broker.settings("#", **{name: value})
    with pytest.raises(InvalidArgument, match=f"a {kind} queue has no {name}: "):
        broker.declare_queue("kept", **{kind: True})
    kept = broker.declare_queue("kept", **{kind: True, name: without})
    assert kept.explain()["duplicate_ids"].value == 0


def test_named_producers_have_no_part_in_it(prices: Queue) -> None:
    with pytest.raises(InvalidArgument, match="'prices' keeps the last values: it has no named"):
        prices.producer("ecb").publish(b"1.07", key="eur")


def test_too_many_slots(broker: Broker) -> None:
    with pytest.raises(InvalidArgument, match="at most 1048576 slots, not 2097152"):
        broker.declare_queue("prices", slots=1 << 21, last_value=True)


def test_it_can_be_awaited(vhost: str, prices: Queue) -> None:
    async def awaited() -> bytes | None:
        async with aio.connect(f"shm://{vhost}") as broker:
            queue = await broker.queue("prices")
            await queue.publish(b"1", key="eur")
            await queue.publish(b"2", key="eur")
            value = await queue.value("eur")
            return value and value.body

    assert asyncio.run(awaited()) == b"2"


def test_a_consumer_never_gets_older_news(vhost: str, broker: Broker) -> None:
    """Several producers, each with keys of its own, and a consumer that is slower than they."""
    prices = broker.declare_queue("prices", slots=64, last_value=True)
    news, keys = 3000, 6

    def produce(who: int) -> None:
        with shmbroker.connect(f"shm://{vhost}") as theirs:
            queue = theirs.queue("prices")
            for number in range(news):
                queue.publish(b"%d" % number, key=f"{who}.{number % keys}")

    producers = [threading.Thread(target=produce, args=(who,)) for who in range(3)]
    for each in producers:
        each.start()
    last: dict[str | None, int] = {}
    finals = 0
    while finals < 3 * keys:
        with prices.get(timeout=30) as message:
            number = int(message.body)
            assert number > last.get(message.key, -1)
            last[message.key] = number
            finals += number >= news - keys
    for each in producers:
        each.join()
    assert prices.statistics().depth == 0


def test_of_several_producers_of_one_key_one_message_is_left(vhost: str, broker: Broker) -> None:
    prices = broker.declare_queue("prices", slots=16, last_value=True)

    def produce() -> None:
        with shmbroker.connect(f"shm://{vhost}") as theirs:
            queue = theirs.queue("prices")
            for number in range(2000):
                queue.publish(b"%d" % number, key=f"{number % 3}")

    producers = [threading.Thread(target=produce) for _ in range(3)]
    for each in producers:
        each.start()
    for each in producers:
        each.join()
    assert sorted(message.key or "" for message in prices.browse()) == ["0", "1", "2"]


def test_producers_that_come_at_once_do_not_fill_what_is_kept_for_carrying(
    broker: Broker, vhost: str, prices: Queue, tmp_path: Path
) -> None:
    """Nobody consumes: if the ring were full to the last slot, nobody could ever go on."""
    prices.publish(b"quiet", key="quiet")

    def produce(who: int) -> int:
        with shmbroker.connect(f"shm://{vhost}") as theirs:
            queue = theirs.queue("prices")
            for number in range(3000):
                queue.publish(b"%d" % number, key=f"{who}.{number % 3}", timeout=30)
        return 0

    producers = [Process(partial(produce, who), tmp_path / f"{who}") for who in range(4)]
    try:
        for each in producers:
            assert each.has_ended(60)
            assert each.status == 0, each.errors.read_text()
    finally:
        for each in producers:
            each.kill()
    assert prices.statistics().depth == 13


def test_chains_that_others_have_overwritten(broker: Broker, vhost: str, prices: Queue) -> None:
    """Whatever is in them, no call hangs or crashes, and what is there can be taken."""
    random = Random(5)
    (ring,) = Path("/dev/shm").glob(f"shmbroker.{vhost}.queue-*")
    file = os.open(ring, os.O_RDWR)
    with mmap.mmap(file, 0) as memory:
        for _ in range(300):
            at = RING_SLOTS_START + random.randrange(16) * SLOT_BYTES + SLOT_CHAIN_AT
            at += 8 * random.randrange(2)
            word = random.choice([random.randrange(64), random.getrandbits(62), 0])
            memory[at : at + 8] = word.to_bytes(8, "little")
            key = f"k{random.randrange(4)}"
            try:
                prices.publish(b"x", key=key, timeout=0)
                prices.value(key)
            except (QueueFull, Damaged):
                prices.receive_many(16, timeout=0)
    os.close(file)
    left = prices.statistics().depth
    assert len(list(prices.consume(timeout=0))) == left


def test_whenever_a_producer_is_killed_one_value_of_each_key_is_left(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    """The last one that was confirmed, or the one after that."""
    prices = broker.declare_queue("prices", slots=16, last_value=True)
    prices.publish(b"quiet", key="quiet")  # is carried all the time
    random = Random(6)
    keys = 4

    def work(theirs: Broker, confirm: Confirm) -> None:
        queue = theirs.queue("prices")
        for number in range(1 << 20):
            queue.publish(b"%d" % number, key=f"{number % keys}")
            confirm(number)

    for _ in range(KILLS):
        with dying(vhost, work, tmp_path, random) as confirmed:
            for _ in range(random.randrange(50)):
                prices.publish(b"ours", key="ours")
        broker.repair()
        there = {message.key: message.body for message in prices.browse()}
        assert len(there) == prices.statistics().depth
        assert there.pop("quiet") == b"quiet"
        there.pop("ours", None)
        for number in confirmed[-keys:]:
            key = f"{number % keys}"
            assert there.pop(key) in (b"%d" % number, b"%d" % (number + keys))
        assert all(int(body) < keys for body in there.values())  # its first, not yet confirmed
        for key in range(keys):
            value = prices.value(f"{key}")
            if value is not None:
                assert value.position in {message.position for message in prices.browse()}
        for key in range(keys):  # the next one begins anew
            prices.publish(b"-1", key=f"{key}", ttl=1e-9)
        prices.expire()


def full_of_keys(broker: Broker, **settings: Any) -> Queue:
    """As many as it may have: 896."""
    queue = broker.declare_queue("values", slots=1024, last_value=True, **settings)
    for number in range(896):
        queue.publish(b"0", key=f"k{number}", timeout=0)
    return queue


def commit(broker: Broker, queue: Queue, body: bytes, *keys: str) -> None:
    with broker.transaction(timeout=0) as transaction:
        for key in keys:
            transaction.publish(queue, body, key=key)


@pytest.mark.parametrize("kept", [False, True])
def test_a_transaction_updates_keys_of_a_full_queue_and_no_other_is_dropped(
    broker: Broker, kept: bool
) -> None:
    queue = full_of_keys(broker, non_destructive=kept)
    for number in range(100):
        commit(broker, queue, b"%d" % number, "k500", "k501")
    commit(broker, queue, b"all", *(f"k{number}" for number in range(600, 664)))
    assert all(value_of(queue, f"k{number}") is not None for number in range(896))
    assert (value_of(queue, "k500"), value_of(queue, "k663")) == (b"99", b"all")
    assert queue.statistics().dropped == 0


def test_a_transaction_brings_no_more_keys_than_a_publisher(broker: Broker) -> None:
    queue = full_of_keys(broker)
    for keys in (["new"], ["k1", "new"]):
        with pytest.raises(QueueFull):
            commit(broker, queue, b"1", *keys)
    small = broker.declare_queue("small", slots=1024, last_value=True, max_messages=3)
    commit(broker, small, b"1", "a", "b")
    commit(broker, small, b"2", *"abababcc")
    assert [value_of(small, key) for key in "abc"] == [b"2"] * 3
    with pytest.raises(QueueFull):
        commit(broker, small, b"3", "one more")
    with pytest.raises(InvalidArgument, match="brings 4 keys to queue 'small', which holds 3"):
        commit(broker, small, b"3", *"defg")
    with pytest.raises(InvalidArgument, match="which holds 960 at most"):
        commit(broker, small, b"3", *["a"] * 961)
    commit(broker, small, b"4", "a")
    queue.publish(b"1", key="k1", timeout=0)


def test_a_transaction_makes_room_where_the_oldest_values_are_dropped(broker: Broker) -> None:
    queue = full_of_keys(broker, when_full="drop-oldest")
    commit(broker, queue, b"1", "new", "k895")
    assert (value_of(queue, "k0"), value_of(queue, "k1")) == (None, b"0")
    assert queue.statistics().dropped == 1
    commit(broker, queue, b"2", *(f"k{number}" for number in range(700, 800)))
    assert value_of(queue, "new") == value_of(queue, "k895") == b"1"
    assert value_of(queue, "k799") == b"2"


def test_what_was_taken_only_to_be_put_elsewhere_goes_if_a_newer_one_came(prices: Queue) -> None:
    prices.publish(b"1", key="eur")
    prices.publish(b"2", key="usd")
    eur, usd = prices.get_many(2)
    prices.publish(b"3", key="eur")
    for each in (eur, usd):
        each._untake()
    assert [(each.body, each.deliveries) for each in prices.browse()] == [(b"2", 0), (b"3", 0)]
    assert prices.statistics().replaced == 1


def test_what_there_is_no_memory_to_carry_was_not_delivered(broker: Broker) -> None:
    values = broker.declare_queue(
        "values", slots=16, last_value=True, max_producer_bytes="1MiB", max_deliveries=2
    )
    values.publish(bytes(3000), key="quiet")
    for _ in range(14):
        values.publish(bytes(1500), key="k")
    broker.declare_queue("other").publish(bytes(1 << 20))
    for _ in range(3):
        with pytest.raises(QueueFull):
            values.publish(b"", key="k", timeout=0)
    quiet = values.get(timeout=0)
    assert (quiet.key, quiet.deliveries) == ("quiet", 0)
