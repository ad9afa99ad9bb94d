"""Temporary queues: they vanish with their owner, whatever its end is."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

import shmbroker
from shmbroker import Broker, aio
from shmbroker.perf.machine.process import Process
from tests.crash.leaks import blocks, live_queues, names
from tests.support.killed import victims


def test_it_is_a_queue_with_a_name_of_its_own(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        one, other = broker.temporary_queue(slots=8), broker.temporary_queue(slots=8)
        assert one.name != other.name
        assert one.name.startswith(f"tmp.{broker.participant}.")
        assert broker.queue(one.name) is one
        one.publish(b"here")
        assert one.receive(timeout=0) == b"here"


def test_it_has_settings(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        queue = broker.temporary_queue(slots=8, max_messages=1, when_full="fail")
        queue.publish(b"1")
        with pytest.raises(shmbroker.QueueFull, match="it holds max_messages, 1"):
            queue.publish(b"2")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"slots": 3}, "power of two"),
        ({"slots": "8"}, "slots is a number of messages, not '8'"),
        ({"when_full": "wait"}, "when_full is"),
    ],
)
def test_what_it_cannot_be(vhost: str, arguments: dict[str, object], says: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        with pytest.raises(shmbroker.InvalidArgument, match=says):
            broker.temporary_queue(**arguments)  # type: ignore[arg-type]
        assert not broker.queues()


def test_it_goes_with_its_owner_and_its_bindings_too(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as other:
        other.declare_exchange("news", "fanout")
        other.declare_queue("stays", slots=8)
        with shmbroker.connect(f"shm://{vhost}") as owner:
            queue = owner.temporary_queue(slots=8)
            owner.bind("news", queue.name)
            other.exchange("news").publish(bytes(5000))
            name = queue.name
        assert [each.name for each in other.queues()] == ["stays"]
        assert not other.bindings()
        with pytest.raises(shmbroker.NotFound):
            other.queue(name)
    assert not blocks(vhost)


def test_what_others_have_open_is_gone_for_them(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as other:
        with shmbroker.connect(f"shm://{vhost}") as owner:
            queue = other.queue(owner.temporary_queue(slots=8).name)
            queue.publish(b"to somebody who leaves")
        with pytest.raises(shmbroker.NotFound, match="was deleted"):
            queue.publish(b"to nobody")


def test_it_may_be_deleted_before(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        broker.delete_queue(broker.temporary_queue(slots=8).name)
        assert not broker.queues()


def test_for_asyncio(vhost: str) -> None:
    async def main() -> str:
        async with aio.connect(f"shm://{vhost}") as broker:
            queue = await broker.temporary_queue(slots=8)
            await queue.publish(b"here")
            assert await queue.receive() == b"here"
            return queue.name

    name = asyncio.run(main())
    with shmbroker.connect(f"shm://{vhost}") as broker:
        assert name not in [each.name for each in broker.queues()]


def test_one_of_a_given_name_is_not_what_another_has_left(vhost: str, tmp_path: Path) -> None:
    """A repair that is late takes nothing away from who is back."""

    def live() -> int:
        with shmbroker.connect(f"shm://{vhost}") as broker:
            broker._temporary_queue("tmp.back", 8, {}).publish(b"of before")
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    with shmbroker.connect(f"shm://{vhost}") as broker:
        died = Process(live, tmp_path / "errors")
        assert died.has_ended(60)
        assert died.status == -signal.SIGKILL
        back = broker._temporary_queue("tmp.back", 8, {})
        broker.repair()
        assert back.statistics().depth == 0
        back.publish(b"of now")
        assert broker.queue("tmp.back").receive(timeout=0) == b"of now"


def fill_temporary_queues(broker: Broker) -> None:
    broker.temporary_queue(slots=8).publish(bytes(3000))
    broker.delete_queue(broker.temporary_queue(slots=8).name)


def test_nothing_is_left_of_those_of_the_dead(vhost: str, tmp_path: Path) -> None:
    with shmbroker.connect(f"shm://{vhost}") as survivor:
        for _number, victim in victims(f"shm://{vhost}", tmp_path, fill_temporary_queues, 1):
            assert victim.status == -9
            survivor.repair()
            assert not survivor.queues()
            survivor.declare_queue(
                "next", slots=8
            )  # taking its lock repairs a change that a death cut short
            survivor.delete_queue("next")
            assert names(vhost) == {
                "catalog",
                "arena",
                "participants",
                "transactions",
            } | live_queues(vhost)
            assert not blocks(vhost)
