"""The logger `shmbroker`: what a connection repairs and finds, also while it waits."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys

import pytest

import shmbroker
from shmbroker import aio

VICTIM = """
import os, sys, shmbroker
broker = shmbroker.connect(sys.argv[1], name="victim")
os.kill(os.getpid(), 9)
"""


def die(url: str) -> None:
    subprocess.run([sys.executable, "-c", VICTIM, url], check=False)


def test_repair_tells_who_died(
    broker: shmbroker.Broker, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    die(url)
    broker.repair()
    broker.repair()
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("shmbroker", logging.WARNING)
    assert broker.vhost in record.getMessage()
    assert "participant victim" in record.getMessage()
    assert "died without closing" in record.getMessage()


def test_so_does_a_wait_and_only_of_the_connection_that_repaired(
    broker: shmbroker.Broker, other: shmbroker.Broker, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    queue = broker.declare_queue("orders")
    die(url)
    with pytest.raises(shmbroker.Empty):
        queue.get(timeout=2)
    assert [each.getMessage().count("victim") for each in caplog.records] == [1]
    other.close()
    assert len(caplog.records) == 1


def test_and_one_of_asyncio(url: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with aio.connect(url) as broker:
            queue = await broker.declare_queue("orders")
            await asyncio.to_thread(die, url)
            with pytest.raises(shmbroker.Empty):
                await queue.get(timeout=2)
            assert len(caplog.records) == 1

    asyncio.run(main())


def test_it_says_nothing_where_nobody_asked(url: str) -> None:
    program = VICTIM.replace('name="victim"', "").replace(
        "os.kill(os.getpid(), 9)", "broker.repair()"
    )
    die(url)
    done = subprocess.run([sys.executable, "-c", program, url], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
