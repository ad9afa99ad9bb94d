"""A timedelta wherever seconds are meant."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

import shmbroker
from shmbroker import aio
from tests.ipc.aio.loop import run

SHORT = timedelta(milliseconds=50)


def test_timeouts(url: str) -> None:
    with shmbroker.connect(url, spin=timedelta(microseconds=5)) as broker:
        queue = broker.declare_queue("orders", slots=2)
        begun = time.monotonic()
        for wait in (queue.get, queue.receive, queue.receive_many):
            with pytest.raises(shmbroker.Empty):
                wait(timeout=SHORT)
        assert list(queue.consume(timeout=SHORT)) == []
        queue.publish_many([b"a", b"b"], timeout=SHORT)
        with pytest.raises(shmbroker.QueueFull):
            queue.publish(b"c", timeout=SHORT)
        assert time.monotonic() - begun > 4 * SHORT.total_seconds()
        with pytest.raises(shmbroker.QueueFull), broker.transaction(timeout=SHORT) as transaction:
            transaction.publish(queue, b"c")
        for wrong in (timedelta(-1), "1"):
            with pytest.raises(shmbroker.InvalidArgument, match="timedelta"):
                queue.get(timeout=wrong)  # type: ignore[arg-type]
        queue.latency(True, lowest=timedelta(microseconds=1), highest=timedelta(seconds=1))


def test_times_of_messages_and_settings(broker: shmbroker.Broker) -> None:
    queue = broker.declare_queue("orders", ttl=timedelta(minutes=2))
    assert queue.explain()["ttl"].value == 120
    assert broker.declare_queue("orders", ttl=120) is queue
    queue.publish(b"a", ttl=timedelta(minutes=1))
    with queue.get() as message:
        assert message.expires_at is not None
        assert message.expires_at - datetime.now(UTC) < timedelta(minutes=1)
    queue.publish(b"b", deliver_after=timedelta(hours=1))
    queue.publish(b"c", deliver_at=datetime.now(UTC) + timedelta(hours=1))
    wanted = datetime.now(UTC) + timedelta(hours=1)
    for each in queue.scheduled():
        assert abs(each.deliver_at - wanted) < timedelta(seconds=10)
    for name in ("ttl", "deliver_after"):
        with pytest.raises(shmbroker.InvalidArgument, match="timedelta"):
            queue.publish(b"x", **{name: timedelta(-1)})  # type: ignore[call-overload]


def test_asyncio(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("orders", slots=2)
            for timeout in (SHORT, timedelta(0)):
                with pytest.raises(shmbroker.Empty):
                    await queue.get(timeout=timeout)
            assert [each async for each in queue.consume(timeout=SHORT)] == []
            with pytest.raises(shmbroker.NoReply):
                await queue.request(b"?", timeout=SHORT)
            await queue.purge()
            await queue.publish_many([b"a", b"b"])
            with pytest.raises(shmbroker.QueueFull):
                async with broker.transaction(timeout=SHORT) as transaction:
                    transaction.publish(queue, b"c")
            await queue.purge()
            other = await broker.declare_queue("other")
            assert await queue.move_to(other, timeout=timedelta(0)) == 0

    run(main())
