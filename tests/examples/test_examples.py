"""Each example does what it says, and the demo loses nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import shmbroker
from shmbroker import vhost
from tests.compiler import compile_program

EXAMPLES = Path(__file__).parents[2] / "examples"
COUNT = 500


@pytest.fixture
def broker() -> Iterator[shmbroker.Broker]:
    """In a vhost of our own, with the exchange that the producer wants; removed afterwards."""
    name = f"test-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    try:
        with shmbroker.connect(f"shm://{name}", create=True, arena_bytes=8 << 20) as connected:
            connected.declare_exchange("demo", "topic")
            connected.declare_queue("q", slots=64)
            connected.bind("demo", "q", "demo.*")
            yield connected
    finally:
        vhost.delete(name, force=True)


def words(path: Path) -> memoryview:
    return memoryview(path.read_bytes()).cast("q")


@pytest.mark.parametrize("kind", ["python", "asyncio", "numba"])
def test_a_consumer_gets_what_the_producer_sends(
    broker: shmbroker.Broker, tmp_path: Path, kind: str
) -> None:
    producer = compile_program(EXAMPLES / "c_producer.c", tmp_path / "c_producer")
    tally = tmp_path / "tally"
    tally.write_bytes(bytes(8 * COUNT))
    script = EXAMPLES / f"{kind}_consumer.py"
    command = [sys.executable, str(script), f"shm://{broker.vhost}", "q", str(tally)]
    consumer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        sent = subprocess.check_output([producer, broker.vhost, "demo", str(COUNT)], text=True)
        assert sent == f"{COUNT} messages sent, {COUNT} delivered to queues\n"
        broker.queue("q").publish(b"")
        out, _ = consumer.communicate(timeout=120)
    finally:
        consumer.kill()
        consumer.wait()
    assert (consumer.returncode, out) == (0, f"ready\n{COUNT} messages\n")
    assert all(took_ns > 0 for took_ns in words(tally))
    assert broker.queue("q").statistics().depth == 0


def test_a_producer_says_what_is_wrong(broker: shmbroker.Broker, tmp_path: Path) -> None:
    producer = compile_program(EXAMPLES / "c_producer.c", tmp_path / "c_producer")
    for arguments, text in (
        ([broker.vhost, "nowhere", "1"], "there is no exchange 'nowhere'"),
        (["no-such-vhost", "demo", "1"], "there is no vhost 'no-such-vhost'"),
    ):
        done = subprocess.run([producer, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert text in done.stderr


def test_the_demo_loses_nothing() -> None:
    command = [sys.executable, str(EXAMPLES / "demo.py"), "--messages", "50000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("nothing is lost\n")
    assert len(re.findall(r"^(?:numba|python|asyncio) +50,000 .* 0 ", done.stdout, re.M)) == 3
    assert re.search(r"was killed [1-9] times", done.stdout)
