"""asyncio: what a confirm is of, and a level that a queue cannot have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from shmbroker import Empty, InvalidArgument, Unconfirmed, aio
from shmbroker.ipc._native import ffi
from tests.ipc.aio.loop import run
from tests.ipc.queue.test_balanced import balanced
from tests.support.host import PATIENCE, journaling


@pytest.mark.parametrize("here", [0, 1])
def test_what_went_to_another_node_is_confirmed_as_well(
    url: str, vhost: str, tmp_path: Path, here: int
) -> None:
    """`here`: so many are in the queue itself."""
    folder = tmp_path / "journal"

    async def main() -> None:
        async with aio.connect(url) as broker:
            orders = await broker.declare_queue("orders", durable=True)
            way = await broker.declare_queue("way", durable=True)
            other = await broker.declare_queue("other")
            with journaling(vhost, folder):
                for _ in range(here):
                    await orders.publish(b"here", timeout=PATIENCE)
            balanced(orders._sync, way._sync, eligible=0b10)
            with pytest.raises(Unconfirmed):
                await orders.publish_many([b"there"], timeout=0.05)
            with pytest.raises(Unconfirmed):
                await orders.confirm(timeout=0.05)
            with pytest.raises(Empty):  # and those that wait beside it wait on
                await other.get(timeout=0.05)
            with journaling(vhost, folder, 2):
                assert await orders.confirm(timeout=PATIENCE) == "disk"
            assert way._sync.confirmed == 1

    run(main())


def test_nothing_is_published_at_a_level_that_the_queue_cannot_have(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q", durable=True, replicate="none")
            for publish in (queue.publish, queue.producer("p").publish):
                with pytest.raises(InvalidArgument, match="replicate"):
                    await publish(b"x", confirm="replicated", timeout=PATIENCE)
            with pytest.raises(InvalidArgument, match="replicate"):
                await queue.publish_many([b"x"], confirm="replicated", timeout=PATIENCE)
            assert queue._sync.published == 0

    run(main())


def test_what_is_published_later_is_not_waited_for(url: str, vhost: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q", durable=True)
            queue._sync.publish(b"now", confirm="shm")
            confirming = asyncio.create_task(queue.confirm(timeout=5))
            await asyncio.sleep(0)
            with journaling(vhost, tmp_path / "journal"):
                queue._sync.confirm(timeout=PATIENCE)
            queue._sync.publish(b"later", confirm="shm")
            assert await confirming == "disk"

    run(main())


def test_nothing_is_confirmed_at_the_level_of_the_queue(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q", durable=True)
            assert await queue.confirm() == "disk"
            with pytest.raises(InvalidArgument, match="not durable"):
                await (await broker.declare_queue("other")).confirm()

    run(main())


def test_who_waits_again_by_the_error_waits_for_all_that_was_published(
    url: str, vhost: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    confirm_at = aio.Queue._confirm_at

    def looks(self: aio.Queue, ring: Any, *rest: Any, **named: Any) -> Awaitable[int]:
        looked.append(int(ffi.cast("intptr_t", ring)))
        return confirm_at(self, ring, *rest, **named)

    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("q", durable=True)
            await queue.publish(b"now", confirm="shm")
            await queue.publish(b"later", deliver_after=3600, confirm="shm")
            with pytest.raises(Unconfirmed) as late:
                await queue.confirm(timeout=0.05)
            monkeypatch.setattr(aio.Queue, "_confirm_at", looks)
            with journaling(vhost, tmp_path / "journal"):
                assert await late.value.confirm(PATIENCE) == "disk"

    run(main())
    assert len(set(looked)) == 2
