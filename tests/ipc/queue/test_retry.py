"""Dead letters that go back to where they come from."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import msgpack
import pytest

import shmbroker
from shmbroker import ArenaFull, Broker, Queue, aio
from shmbroker.ipc.message.properties import Packed
from tests.conftest import vhost_for_a_while
from tests.support.host import PATIENCE, after_the_host_died, journaling
from tests.support.killed import KILLS
from tests.support.overwriting import BROKEN, ODD, overwrite
from tests.support.victim import Confirm, dying

LARGER: Any = Packed(msgpack.Packer(use_single_float=True).pack({"a": [0.5] * 12_000}))
"""Of a program in C: Python would pack them as more than a message may have."""
LARGER_SAYS = "properties take 108038 bytes, and may have 65535"


def die(queue: Queue, *bodies: bytes) -> None:
    for body in bodies:
        queue.publish(body, key="k", properties={"n": 1}, priority=7)
        queue.get_nowait().reject()


def bodies(queue: Queue) -> list[bytes]:
    return [message.body for message in queue.browse()]


def test_they_go_back_and_the_next_death_counts_on(broker: Broker) -> None:
    orders = broker.declare_queue("orders", dead_letter="dead")
    dead = broker.queue("dead")
    die(orders, b"a", b"b")
    (first, _) = (letter.properties["dead.first"] for letter in dead.browse())
    done = dead.retry()
    assert (done.sent, done.stayed) == (2, {})
    assert (bodies(orders), bodies(dead)) == ([b"a", b"b"], [])
    message = orders.get_nowait()
    assert (message.key, message.deliveries) == ("k", 0)
    assert message.properties == {"n": 1, "dead.count": 1, "dead.first": first}
    message.reject()
    (letter,) = dead.browse()
    assert (letter.properties["dead.count"], letter.properties["dead.first"]) == (2, first)
    assert letter.priority == 7


@pytest.mark.parametrize("durable", [False, True])
def test_a_newer_last_value_is_not_replaced(
    broker: Broker, vhost: str, tmp_path: Path, durable: bool
) -> None:
    """Whether it waits, is held, or was acknowledged: as if the older one were given back."""
    with journaling(vhost, tmp_path):
        prices = broker.declare_queue(
            "prices", slots=64, last_value=True, durable=durable, max_deliveries=1,
            dead_letter="dead",
        )  # fmt: skip
        dead = broker.queue("dead")

        def dies(body: bytes) -> None:
            prices.publish(body, key="eur")
            prices.get(timeout=PATIENCE).give_back()

        def retried() -> bytes | None:
            if durable:
                dead.confirm(timeout=PATIENCE)
            assert (dead.retry(), bodies(dead)) == (shmbroker.Retried(1, {}), [])
            value = prices.value("eur")
            return None if value is None else bytes(value.body)

        dies(b"old")
        prices.publish(b"new", key="eur")
        assert retried() == b"new"
        held = prices.get(timeout=PATIENCE)
        assert (held.body, prices.statistics().replaced) == (b"new", 1)
        held.reject()
        assert retried() == b"new", "nothing is newer than it"
        dies_held = prices.get(timeout=PATIENCE)
        prices.publish(b"newer", key="eur")
        dies_held.reject()
        newer = prices.get(timeout=PATIENCE)
        assert retried() == b"newer"
        assert prices.statistics().depth == 1
        newer.ack()
        dies(b"first")
        assert retried() == b"first"
        prices.publish(b"last", key="eur", timeout=PATIENCE)
        assert prices.receive(timeout=PATIENCE) == b"last"
        assert prices.statistics().depth == 0


def test_of_older_values_of_one_key_the_last_stays_also_when_it_is_carried(broker: Broker) -> None:
    prices = broker.declare_queue("prices", slots=16, last_value=True, dead_letter="dead")
    for body in (b"a", b"b"):
        prices.publish(body, key="eur")
        prices.get_nowait().reject()
    dead = broker.queue("dead")
    assert dead.retry().sent == 2
    assert bodies(prices) == [b"b"]
    for _ in range(64):
        prices.publish(b"x", key="gbp")
    assert prices.statistics().carried > 0
    assert sorted(bodies(prices)) == [b"b", b"x"]
    prices.publish(b"c", key="eur")
    assert sorted(bodies(prices)) == [b"c", b"x"]


def test_no_more_than_the_limit(broker: Broker) -> None:
    orders = broker.declare_queue("orders", dead_letter="dead")
    die(orders, b"a", b"b", b"c")
    assert broker.queue("dead").retry(2).sent == 2
    assert (bodies(orders), bodies(broker.queue("dead"))) == ([b"a", b"b"], [b"c"])


def test_who_sends_them_back_is_no_active_consumer_afterwards(
    broker: Broker, other: Broker
) -> None:
    dead = broker.declare_queue("dead", single_active=True)
    orders = broker.declare_queue("orders", dead_letter="dead")
    die(orders, b"a")
    assert dead.retry().sent == 1
    die(orders, b"a")
    assert [letter.body for letter in other.queue("dead").consume(timeout=0)] == [b"a"]


def test_what_cannot_go_back_stays_and_is_reported(broker: Broker) -> None:
    die(broker.declare_queue("gone", dead_letter="dead"), b"a")
    die(broker.declare_queue("full", slots=2, dead_letter="dead"), b"b")
    die(broker.declare_queue("good", dead_letter="dead"), b"c")
    broker.delete_queue("gone")
    broker.queue("full").publish_many([b"x", b"x"])
    dead = broker.queue("dead")
    dead.publish(b"stranger")
    done = dead.retry()
    assert done.sent == 1
    assert done.stayed == {
        "there is no queue 'gone'": 1,
        "queue 'full' is full": 1,
        "it does not say where it comes from": 1,
    }
    assert bodies(dead) == [b"a", b"b", b"stranger"]
    assert bodies(broker.queue("good")) == [b"c"]


def test_what_cannot_go_back_was_not_delivered(broker: Broker, vhost: str, tmp_path: Path) -> None:
    """However often it is tried."""
    with journaling(vhost, tmp_path):
        dead = broker.declare_queue("dead", durable=True, max_deliveries=2)
        gone = broker.declare_queue("gone", dead_letter="dead")
        full = broker.declare_queue("full", slots=2, dead_letter="dead")
        safe = broker.declare_queue("safe", slots=2, durable=True, dead_letter="dead")
        for queue in (gone, full, safe):
            queue.publish(queue.name.encode(), timeout=PATIENCE)
            queue.get(timeout=PATIENCE).reject()
        dead.confirm(timeout=PATIENCE)
        gone.delete()
        full.publish_many([b"x", b"x"])
        safe.publish_many([b"x", b"x"], timeout=PATIENCE)
        for _ in range(3):
            done = dead.retry()
            assert (done.sent, sum(done.stayed.values())) == (0, 3)
        assert [(each.body, each.deliveries) for each in dead.browse()] == [
            (b"gone", 0), (b"full", 0), (b"safe", 0)
        ]  # fmt: skip
        assert [each.body for each in dead.consume(timeout=0)] == [b"gone", b"full", b"safe"]


def test_properties_that_cannot_be_read_hold_up_no_others(broker: Broker) -> None:
    orders = broker.declare_queue("orders", dead_letter="dead")
    of_a_c_program: Any = Packed(b"\x81\xa1\xff\x00")
    orders.publish(b"bad", properties=of_a_c_program)
    orders.get_nowait().reject()
    die(orders, b"good")
    dead = broker.queue("dead")
    done = dead.retry()
    assert (done.sent, done.stayed) == (1, {"its properties cannot be read": 1})
    assert (bodies(orders), bodies(dead)) == ([b"good"], [b"bad"])


@pytest.mark.parametrize("broken", BROKEN)
def test_properties_that_are_no_map_hold_up_no_others(
    broker: Broker, vhost: str, broken: bytes
) -> None:
    orders = broker.declare_queue("orders", dead_letter="dead")
    dead = broker.queue("dead")
    dead.publish(b"bad", properties=ODD)
    overwrite(vhost, broken)
    die(orders, b"good")
    done = dead.retry()
    assert (done.sent, done.stayed) == (1, {"its properties cannot be read": 1})
    assert (bodies(orders), bodies(dead)) == ([b"good"], [b"bad"])


def test_what_a_queue_refuses_holds_up_no_others(broker: Broker) -> None:
    orders, other = (broker.declare_queue(name, dead_letter="dead") for name in ("orders", "other"))
    orders.publish(b"odd", properties=LARGER)
    orders.get_nowait().reject()
    die(orders, bytes(10_000))
    die(other, b"good")
    broker.delete_queue("orders", force=True)
    broker.declare_queue("orders", max_bytes=4096, dead_letter="dead")
    done = broker.queue("dead").retry()
    assert (done.sent, bodies(other)) == (1, [b"good"])
    properties, size = sorted(done.stayed)
    assert properties == LARGER_SAYS
    assert "holds at most 4096 bytes" in size
    assert bodies(broker.queue("dead")) == [b"odd", bytes(10_000)]


@pytest.mark.parametrize("origin", ["", "a/b", "a\0b", "x" * 300])
def test_an_origin_that_no_queue_can_have_holds_up_no_others(broker: Broker, origin: str) -> None:
    orders = broker.declare_queue("orders", dead_letter="dead")
    dead = broker.queue("dead")
    dead.publish(b"bad", properties={"dead.origin": origin})
    die(orders, b"good")
    done = dead.retry()
    (why,) = done.stayed
    assert (done.sent, done.stayed[why]) == (1, 1)
    assert "name" in why
    assert (bodies(orders), bodies(dead)) == ([b"good"], [b"bad"])


def test_what_the_arena_has_no_room_for_stays_and_is_reported() -> None:
    with (
        vhost_for_a_while() as vhost,
        shmbroker.connect(f"shm://{vhost}", create=True, arena_bytes=1 << 20) as broker,
    ):
        orders = broker.declare_queue("orders", dead_letter="dead")
        die(orders, b"small", bytes(100_000))
        filling = broker.declare_queue("filling")
        with pytest.raises(ArenaFull):
            while True:
                filling.publish(bytes(100_000), timeout=0)
        done = broker.queue("dead").retry()
        assert (done.sent, list(done.stayed.values())) == (1, [1])
        assert (bodies(orders), bodies(broker.queue("dead"))) == ([b"small"], [bytes(100_000)])


def test_asyncio(vhost: str) -> None:
    async def session() -> None:
        async with aio.connect(f"shm://{vhost}") as broker:
            orders = await broker.declare_queue("orders", dead_letter="dead")
            await orders.publish(b"x")
            (await orders.get()).reject()
            assert (await (await broker.queue("dead")).retry()).sent == 1
            assert await orders.receive(timeout=0) == b"x"

    asyncio.run(session())


def test_nothing_is_lost_whenever_one_is_killed(broker: Broker, vhost: str, tmp_path: Path) -> None:
    orders = broker.declare_queue("orders", slots=64, max_deliveries=None, dead_letter="dead")
    dead = broker.queue("dead")
    random = Random(3)
    names = [b"%d" % number for number in range(32)]
    die(orders, *names)

    def work(theirs: Broker, confirm: Confirm) -> None:
        theirs.queue("dead").retry()

    for _ in range(KILLS):
        with dying(vhost, work, tmp_path, random):
            pass
        broker.repair()
        there = Counter(bodies(orders)) + Counter(bodies(dead))
        assert set(there) == set(names)
        twice = there.total() - len(names)
        assert twice <= 1
        seen: set[bytes] = set(bodies(dead))
        for message in orders.consume(timeout=0):
            message.ack() if message.body in seen else message.reject()
            seen.add(message.body)


def test_of_durable_queues_they_are_back_on_disk_in_one_frame(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    orders = broker.declare_queue("orders", slots=4, durable=True, dead_letter="dead")
    dead = broker.queue("dead")
    assert dead.explain()["durable"].value
    with journaling(vhost, tmp_path):
        for body in (b"a", b"b", b"c"):
            orders.publish(body, key="k", properties={"n": 1}, priority=7, timeout=PATIENCE)
            orders.get(timeout=PATIENCE).reject()
        dead.confirm(timeout=PATIENCE)
        orders.publish_many([b"x", b"x"], timeout=PATIENCE)
        odd = broker.declare_queue("odd", durable=True, dead_letter="dead")
        odd.publish(b"odd", properties=LARGER, timeout=PATIENCE)
        odd.get(timeout=PATIENCE).reject()
        dead.confirm(timeout=PATIENCE)
        done = dead.retry()
        orders.confirm(timeout=PATIENCE)
        dead.confirm(timeout=PATIENCE)
    assert done.sent == 2
    assert sorted(done.stayed) == [LARGER_SAYS, "queue 'orders' is full"]
    with after_the_host_died(vhost, tmp_path) as again:
        assert bodies(again.queue("orders")) == [b"x", b"x", b"a", b"b"]
        assert bodies(again.queue("dead")) == [b"c", b"odd"]
        last = list(again.queue("orders").browse())[-1]
        assert (last.key, last.priority, last.properties["n"]) == ("k", 7, 1)
        assert last.properties["dead.count"] == 1
