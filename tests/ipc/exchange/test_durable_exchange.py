"""Publishing through exchanges to durable queues: done when it is on disk in all of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from shmbroker import Broker, InvalidArgument, Unconfirmed, aio
from tests.support.host import PATIENCE, after_the_host_died, journaling


@pytest.fixture
def broker(broker: Broker) -> Broker:
    for name in ("one", "two"):
        broker.declare_queue(name, durable=True)
    broker.declare_queue("passing")
    broker.declare_exchange("events", kind="fanout")
    for name in ("one", "passing", "two"):
        broker.bind("events", name)
    return broker


def test_it_is_on_disk_in_every_durable_queue_when_publish_returns(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    events = broker.exchange("events")
    assert events.publish(b"not waited for") == 3
    with journaling(vhost, tmp_path):
        assert events.publish(b"x", confirm="disk", timeout=PATIENCE) == 2
        assert [broker.queue(name).confirmed for name in ("one", "two")] == [2, 2]
        assert broker.exchange("").publish(b"y", key="one", confirm="disk", timeout=PATIENCE) == 1
        assert broker.exchange("").publish(b"y", key="passing", confirm="disk", timeout=0) == 0
        assert events.publish(b"z", confirm="shm") == 3
    with after_the_host_died(vhost, tmp_path) as after:
        assert [each.body for each in after.queue("two").browse()][:2] == [b"not waited for", b"x"]


def test_who_was_not_told_can_ask_again(broker: Broker, vhost: str, tmp_path: Path) -> None:
    events = broker.exchange("events")
    with pytest.raises(Unconfirmed, match="is a broker running") as told:
        events.publish(b"x", message_id="a", confirm="disk", timeout=0.01)
    assert told.value.pending == (("one", 0), ("two", 0))
    with pytest.raises(Unconfirmed) as again:
        told.value.confirm(timeout=0)
    assert again.value.pending == told.value.pending
    with pytest.raises(Unconfirmed):  # a duplicate is not on disk either
        events.publish(b"x", message_id="a", confirm="disk", timeout=0)
    with journaling(vhost, tmp_path):
        told.value.confirm(timeout=PATIENCE)
        assert events.publish(b"x", message_id="a", confirm="disk", timeout=PATIENCE) == 2
        assert broker.queue("one").published == 1
    broker.queue("one").publish(b"y", confirm="shm")
    with pytest.raises(Unconfirmed) as alone:
        broker.queue("one").publish(b"z", timeout=0)
    assert alone.value.pending == (("one", 2),)


def test_a_queue_that_is_deleted_meanwhile_is_not_waited_for(
    broker: Broker, vhost: str, tmp_path: Path
) -> None:
    with pytest.raises(Unconfirmed) as told:
        broker.exchange("events").publish(b"x", confirm="disk", timeout=0)
    broker.delete_queue("one")
    with journaling(vhost, tmp_path):
        told.value.confirm(timeout=PATIENCE)


def test_only_two_words_are_known(broker: Broker) -> None:
    with pytest.raises(InvalidArgument, match="'paper'"):
        broker.exchange("events").publish(b"x", confirm="paper")  # type: ignore[arg-type]


def test_with_asyncio(broker: Broker, vhost: str, tmp_path: Path) -> None:
    async def session() -> None:
        async with await aio.connect(f"shm://{vhost}") as connected:
            events = await connected.exchange("events")
            with pytest.raises(Unconfirmed) as told:
                await events.publish(b"x", confirm="disk", timeout=0.01)
            assert told.value.pending == (("one", 0), ("two", 0))
            waits = asyncio.create_task(events.publish(b"y", confirm="disk"))
            await asyncio.sleep(0)
            with journaling(vhost, tmp_path):
                assert await asyncio.wait_for(waits, PATIENCE) == 2

    asyncio.run(session())
