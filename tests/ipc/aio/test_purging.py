"""asyncio: the pager purges what a queue has in page files, and the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

import shmbroker
from shmbroker import aio
from shmbroker.ipc.paging.paged import Paged
from shmbroker.ipc.paging.pager import Pager
from tests.ipc.aio.loop import run

PATIENCE = 60.0


def test_others_go_on_while_pages_are_purged(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_asked, may_go_on = threading.Event(), threading.Event()
    purge = Paged._purge

    def late(paged: Paged) -> bool:
        if paged._purge_below[0] > paged._next:
            is_asked.set()
            may_go_on.wait(PATIENCE)
        return purge(paged)

    async def main() -> None:
        async with aio.connect(url) as broker:
            orders = await broker.declare_queue("orders", slots=16, when_full="page")
            await orders.publish_many([b"x"] * 25)
            purging = asyncio.create_task(orders.purge())
            await asyncio.to_thread(is_asked.wait, PATIENCE)
            assert not purging.done()
            may_go_on.set()
            assert await purging == 25

    monkeypatch.setattr(Paged, "_purge", late)
    with shmbroker.connect(url) as theirs, Pager(theirs, tmp_path / "pages"):
        try:
            run(main())
        finally:
            may_go_on.set()
