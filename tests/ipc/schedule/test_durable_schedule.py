"""What is scheduled for a durable queue, and its last values: there after the machine was started
anew, due at the same time of day, and never twice, whoever dies while they are moved.
"""

from __future__ import annotations

import asyncio
import json
import time
from base64 import b64decode, b64encode
from pathlib import Path
from struct import Struct

import pytest

import shmbroker
from shmbroker import Broker, Empty, Queue, Unconfirmed, aio
from shmbroker.core import layout
from shmbroker.ipc.base.errors import JournalDamaged
from shmbroker.ipc.journal import records
from shmbroker.ipc.journal.export import compacted, exported, imported, verified
from shmbroker.ipc.journal.replay import Replay
from tests.support.host import PATIENCE, after_the_host_died, journaling

SOON = 0.01
WEEK = 7 * 86400.0
HOUR = 3600.0
WORD = Struct("<q")


def waiting(queue: Queue) -> list[bytes]:
    return [message.body for message in queue.scheduled()]


def bodies(queue: Queue) -> list[bytes]:
    return [message.body for message in queue.browse()]


# --- confirms -----------------------------------------------------------------------------------


def test_it_is_confirmed_when_its_place_in_the_schedule_is_on_disk(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    orders = broker.declare_queue("orders", durable=True)
    with pytest.raises(Unconfirmed, match="is a broker running") as told:
        orders.publish(b"x", deliver_after=WEEK, timeout=SOON)
    (found,) = orders.scheduled()
    assert told.value.pending == (("orders", found.id),)
    number = orders.publish(b"y", deliver_after=WEEK, confirm="shm")
    orders.publish(b"z", deliver_after=SOON, confirm="shm")
    with pytest.raises(Unconfirmed):
        orders.confirm(timeout=0)
    with pytest.raises(Empty):  # it is due, and nobody has said that it is on disk
        orders.get(timeout=4 * SOON)
    assert orders.statistics().scheduled == 3
    with journaling(vhost, tmp_path):
        told.value.confirm(timeout=PATIENCE)
        orders.confirm(timeout=PATIENCE)
        assert orders.receive(timeout=PATIENCE) == b"z"
        assert orders.publish(b"w", deliver_after=WEEK, timeout=PATIENCE) == number + 2
    with after_the_host_died(vhost, tmp_path) as after:
        assert waiting(after.queue("orders")) == [b"x", b"y", b"w"]


def test_through_an_exchange_and_in_a_transaction(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    broker.declare_queue("orders", durable=True)
    broker.declare_queue("passing")
    exchange = broker.declare_exchange("news", kind="fanout")
    for name in ("orders", "passing"):
        broker.bind("news", name)
    with pytest.raises(Unconfirmed):
        exchange.publish(b"x", deliver_after=WEEK, confirm="disk", timeout=SOON)
    with journaling(vhost, tmp_path):
        assert exchange.publish(b"y", deliver_after=WEEK, confirm="disk", timeout=PATIENCE) == 1
        with broker.transaction(timeout=PATIENCE) as tx:
            tx.publish(broker.queue("orders"), b"z", deliver_after=WEEK)
            tx.publish(broker.queue("orders"), b"now")
    with after_the_host_died(vhost, tmp_path) as after:
        assert waiting(after.queue("orders")) == [b"x", b"y", b"z"]
        assert after.queue("orders").receive(timeout=0) == b"now"


def test_with_asyncio(broker: Broker, vhost: str, tmp_path: Path) -> None:
    async def session() -> None:
        async with await aio.connect(f"shm://{vhost}") as mine:
            orders = await mine.declare_queue("orders", durable=True)
            exchange = await mine.declare_exchange("news", kind="fanout")
            await mine.bind("news", "orders")
            with pytest.raises(Unconfirmed):
                await orders.publish(b"x", deliver_after=WEEK, timeout=SOON)
            with pytest.raises(Unconfirmed):
                await exchange.publish(b"y", deliver_after=WEEK, confirm="disk", timeout=SOON)
            with pytest.raises(Unconfirmed):
                await orders.confirm(timeout=0)
            with journaling(vhost, tmp_path):
                await orders.confirm(timeout=PATIENCE)
                await orders.publish(b"z", deliver_after=WEEK, timeout=PATIENCE)
                await exchange.publish(b"0", deliver_after=WEEK, confirm="disk", timeout=PATIENCE)

    asyncio.run(session())
    with after_the_host_died(vhost, tmp_path) as after:
        assert waiting(after.queue("orders")) == [b"x", b"y", b"z", b"0"]


# --- after the host died ------------------------------------------------------------------------


def test_what_is_scheduled_is_there_again(vhost: str, tmp_path: Path) -> None:
    at = time.time() + WEEK
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path):
        orders = broker.declare_queue("orders", durable=True, max_scheduled=50)
        broker.declare_queue("passing").publish(b"x", deliver_after=WEEK)
        for number in range(5):
            orders.publish(b"%d" % number, deliver_after=HOUR * (5 - number), timeout=PATIENCE)
        first = orders.publish(
            b"at", key="k", properties={"n": 1}, priority=9, ttl=60, deliver_at=at, timeout=PATIENCE
        )
        before = orders.scheduled()
        cancelled = before[0].id
        assert orders.cancel_scheduled(cancelled)
    for epoch in (2, 3):
        with after_the_host_died(vhost, tmp_path, epoch) as broker:
            orders = broker.queue("orders")
            assert [queue.name for queue in broker.queues()] == ["orders"]
            found = orders.scheduled()
            assert [each.body for each in found] == [b"3", b"2", b"1", b"0", b"at"]
            assert [each.id for each in found] == [each.id for each in before[1:]]
            for one, other in zip(found, before[1:], strict=True):
                assert abs((one.deliver_at - other.deliver_at).total_seconds()) < 1
            assert (found[-1].key, found[-1].properties, found[-1].priority) == ("k", {"n": 1}, 9)
            assert {each.deliveries for each in found} == {0}
            assert abs((found[-1].expires_ns - before[-1].expires_ns) / 1e9) < 1
            if epoch == 3:  # no id is given twice, whatever has become of its message
                assert orders.publish(b"new", deliver_after=SOON, timeout=PATIENCE) == first + 1
                assert orders.receive(timeout=PATIENCE) == b"new"
                assert orders.statistics().scheduled == 5
                assert orders.cancel_scheduled(first)
                for _ in range(45):
                    orders.publish(b"x", deliver_after=WEEK, timeout=PATIENCE)


def test_what_became_due_in_between_is_delivered(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path):
        orders = broker.declare_queue("orders", durable=True)
        end = time.monotonic() + 1
        orders.publish(b"later", deliver_after=end - time.monotonic(), confirm="shm")
        orders.publish(b"sooner", deliver_after=end - 0.1 - time.monotonic(), confirm="shm")
        orders.confirm(timeout=PATIENCE)
    time.sleep(max(0.0, end - time.monotonic()))
    with after_the_host_died(vhost, tmp_path) as broker:
        orders = broker.queue("orders")
        assert [orders.receive(timeout=PATIENCE) for _ in range(2)] == [b"sooner", b"later"]
    with after_the_host_died(vhost, tmp_path, 3) as broker:
        assert bodies(broker.queue("orders")) == waiting(broker.queue("orders")) == []


def test_an_id_of_before_is_not_given_again(vhost: str, tmp_path: Path) -> None:
    """Also if nothing is left of its message, and of its segment."""
    with shmbroker.connect(f"shm://{vhost}") as broker:
        orders = broker.declare_queue("orders", durable=True)
        with journaling(vhost, tmp_path, segment=64 << 10):
            last = max(
                orders.publish(bytes(9000), deliver_after=1e-9, timeout=PATIENCE) for _ in range(20)
            )
            for _ in range(20):
                orders.receive(timeout=PATIENCE)
        with journaling(vhost, tmp_path, 2, 64 << 10):
            orders.publish(b"now", timeout=PATIENCE)
    with after_the_host_died(vhost, tmp_path, 3) as broker:
        assert broker.queue("orders").publish(b"x", deliver_after=WEEK, timeout=PATIENCE) > last


def test_a_deleted_queue_takes_its_schedule_along(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path) as journaler:
        for _ in range(2):
            orders = broker.declare_queue("orders", durable=True)
            orders.publish(b"x", deliver_after=WEEK, timeout=PATIENCE)
            broker.delete_queue("orders")
        broker.declare_queue("orders", durable=True).publish(b"y", timeout=PATIENCE)
        assert journaler.statistics().live_bytes < 4096
    with after_the_host_died(vhost, tmp_path) as broker:
        assert waiting(broker.queue("orders")) == []
        assert bodies(broker.queue("orders")) == [b"y"]


def test_what_is_redelivered_later_keeps_its_number_of_deliveries(
    vhost: str, tmp_path: Path
) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path):
        orders = broker.declare_queue(
            "orders", durable=True, redelivery_delay=HOUR, max_deliveries=3, dead_letter="dead"
        )
        quick = broker.declare_queue(
            "quick", durable=True, redelivery_delay=SOON, max_deliveries=4, dead_letter="dead"
        )
        orders.publish(b"slow", key="k", timeout=PATIENCE)
        orders.get(timeout=PATIENCE).give_back()
        quick.publish(b"x", timeout=PATIENCE)
        for each in range(2):
            with quick.get(timeout=PATIENCE) as message:
                assert message.deliveries == each
                message.give_back()
        quick.confirm(timeout=PATIENCE)
    with after_the_host_died(vhost, tmp_path) as broker:
        (found,) = broker.queue("orders").scheduled()
        assert (found.body, found.key, found.deliveries) == (b"slow", "k", 1)
        with broker.queue("quick").get(timeout=PATIENCE) as message:
            known = message.deliveries
            # it was back in the queue when the host died: that may have been one more
            assert (message.body, known) in ((b"x", 2), (b"x", 3))
            message.give_back()
        if known == 2:
            broker.queue("quick").get(timeout=PATIENCE).give_back()
        assert broker.queue("dead").receive(timeout=PATIENCE) == b"x"


def test_it_goes_by_the_time_of_day_in_another_boot(vhost: str, tmp_path: Path) -> None:
    """Whose monotonic clock began an hour later: so what is monotonic means another moment."""
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path / "one"):
        orders = broker.declare_queue("orders", durable=True)
        orders.publish(b"x", key="k", deliver_after=2 * HOUR, timeout=PATIENCE)
        orders.publish(b"mortal", key="k", ttl=2 * HOUR, timeout=PATIENCE)
        expires_at = next(orders.browse()).expires_ns

    def of_another_boot(line: str) -> str:
        fields = json.loads(line)
        body = bytearray(b64decode(fields["body"]))
        places = {"queue": [40], "message": [32, 48]}.get(fields["kind"], [])
        for at in places:  # the moment of a declaration; when a message expires, and is due
            (moment,) = WORD.unpack_from(body, at)
            if moment:
                WORD.pack_into(body, at, moment + int(HOUR * 1e9))
        return json.dumps(fields | {"body": b64encode(body).decode()})

    lines = list(exported(tmp_path / "one", print))
    imported(tmp_path / "other", [of_another_boot(line) for line in lines])
    with after_the_host_died(vhost, tmp_path / "other") as broker:
        orders = broker.queue("orders")
        (found,) = orders.scheduled()
        assert abs(found.deliver_at.timestamp() - time.time() - 2 * HOUR) < 60
        assert abs(next(orders.browse()).expires_ns - expires_at) < 60e9


def test_the_tools_know_it(vhost: str, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    other.mkdir()
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, one, segment=64 << 10):
        orders = broker.declare_queue("orders", durable=True)
        orders.publish(b"stays", deliver_after=WEEK, timeout=PATIENCE)
        for _ in range(40):
            orders.publish(bytes(9000), deliver_after=1e-9, timeout=PATIENCE)
            orders.receive(timeout=PATIENCE)
        orders.publish(b"last", deliver_after=WEEK, timeout=PATIENCE)
    with Replay(one) as replay:
        assert {r.kind_name for r in replay} >= {"queue", "message", "retired"}
    assert imported(other, exported(one, print)) > 0
    before, after = compacted(one, print, 64 << 10)
    assert after <= before
    for epoch, folder in enumerate((one, other), start=2):
        assert verified(folder, print).damages == 0
        with after_the_host_died(vhost, folder, epoch) as broker:
            assert waiting(broker.queue("orders")) == [b"stays", b"last"]
            assert broker.queue("orders").statistics().depth == 0


@pytest.mark.parametrize("what", ["queue", "message"])
def test_a_journal_that_contradicts_itself(vhost: str, tmp_path: Path, what: str) -> None:
    """A queue with two schedules, and a scheduled message that does not say when it is due."""
    one, other = tmp_path / "one", tmp_path / "other"
    other.mkdir()
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, one):
        orders = broker.declare_queue("orders", durable=True)
        orders.publish(b"x", deliver_after=WEEK, timeout=PATIENCE)
    lines = [json.loads(line) for line in exported(one, print)]
    schedule = next(line["queue"] for line in lines if line["kind"] == "message")
    for line in [line for line in lines if line["queue"] == schedule and line["kind"] == what]:
        if what == "queue":
            lines.append(line | {"queue": schedule ^ 1})
        else:
            plain = len(b64decode(line["body"])) - layout.SCHEDULED_BYTES - 1
            assert plain == 64
            chunk = bytearray(b64decode(line["body"])[:64] + b"short")
            shape = 5 << layout.SHAPE_BODY_SHIFT
            WORD.pack_into(chunk, layout.CHUNK_SHAPE_AT, shape)
            lines.append(line | {"position": 1, "body": b64encode(chunk).decode()})
    imported(other, [json.dumps(line) for line in lines])
    wrong = "has two schedules" if what == "queue" else "message 1 of .* contradicts itself"
    with (
        pytest.raises(JournalDamaged, match=wrong),
        after_the_host_died(vhost, other),
    ):
        pass


# --- last values --------------------------------------------------------------------------------


def test_only_the_last_value_of_each_key_is_there(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path):
        rates = broker.declare_queue("rates", durable=True, last_value=True, slots=16)
        for number in range(100):
            rates.publish(b"%d" % number, key=f"k{number % 3}", timeout=PATIENCE)
        rates.publish(b"kept", key="quiet", timeout=PATIENCE)
        for number in range(100, 200):
            rates.publish(b"%d" % number, key=f"k{number % 3}", timeout=PATIENCE)
        assert rates.statistics().carried > 0
        expected = sorted(bodies(rates))
        assert expected == [b"197", b"198", b"199", b"kept"]
    for epoch in (2, 3):
        with after_the_host_died(vhost, tmp_path, epoch) as broker:
            rates = broker.queue("rates")
            assert sorted(bodies(rates)) == expected
            for key, value in (("k2", b"197"), ("k0", b"198"), ("k1", b"199"), ("quiet", b"kept")):
                found = rates.value(key)
                assert found is not None
                assert found.body == value
            if epoch == 3:
                rates.publish(b"new", key="k0", timeout=PATIENCE)
                assert sorted(bodies(rates)) == [b"197", b"199", b"kept", b"new"]
                for _ in range(50):  # and there is room
                    rates.publish(b"x", key="k0", timeout=PATIENCE)


def test_a_scheduled_value_replaces_when_it_is_due(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker, journaling(vhost, tmp_path):
        rates = broker.declare_queue("rates", durable=True, last_value=True)
        rates.publish(b"new", key="k", deliver_after=20 * SOON, timeout=PATIENCE)
        rates.publish(b"old", key="k", timeout=PATIENCE)
    with after_the_host_died(vhost, tmp_path) as broker:
        rates = broker.queue("rates")
        while rates.statistics().scheduled or rates.confirmed < rates.published:
            with pytest.raises(Empty):
                broker.declare_queue("idle").get(timeout=SOON)  # whoever waits looks after all
        assert bodies(rates) == [b"new"]
    with Replay(tmp_path) as replay:
        assert sum(record.kind == records.MESSAGE for record in replay) >= 3
