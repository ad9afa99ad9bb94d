"""Outside of asyncio there is one error that says so."""

from __future__ import annotations

import pytest

import shmbroker
from shmbroker import aio


def test_trio_gets_one_clear_error(url: str) -> None:
    trio = pytest.importorskip("trio")

    async def main() -> None:
        async with aio.connect(url):
            pass

    with pytest.raises(shmbroker.NotAsyncio, match=r"needs a loop of asyncio.*backend='asyncio'"):
        trio.run(main)


def test_so_does_whatever_else_drives_coroutines(url: str) -> None:
    with pytest.raises(RuntimeError, match="trio is not supported"):
        aio.connect(url).__await__().send(None)
