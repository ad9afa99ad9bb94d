"""Each example does what it says, and the demo loses nothing."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import shmbroker
from tests.support.compiler import compile_program

EXAMPLES = Path(__file__).parents[2] / "examples"
COUNT = 500


@pytest.fixture
def broker(broker: shmbroker.Broker) -> shmbroker.Broker:
    """With the exchange that the producer wants."""
    broker.declare_exchange("demo", "topic")
    broker.declare_queue("q", slots=64)
    broker.bind("demo", "q", "demo.*")
    return broker


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


def test_fan_out_loses_nothing() -> None:
    command = [sys.executable, str(EXAMPLES / "fan_out.py"), "--messages", "50000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("nothing is lost\n")
    assert len(re.findall(r"^(?:numba|python|asyncio) +50,000 .* 0 ", done.stdout, re.M)) == 3
    assert re.search(r"was killed [1-9] times", done.stdout)


def test_the_demo_loses_nothing() -> None:
    command = [sys.executable, str(EXAMPLES / "demo.py"), "--seconds", "0.3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("nothing is lost\n")
    found = re.search(r"^confirmed ([\d,]+)   lost 0   duplicated 0$", done.stdout, re.M)
    assert found
    assert int(found[1].replace(",", "")) > 10
    told = re.findall(r"^ *[\d.]+ s  ([KBRL]) ", done.stdout, re.M)
    assert told == ["K", "B", "R", "L"]
    assert len(re.findall("│", done.stdout)) == 14


def test_the_replicated_demo_loses_nothing() -> None:
    command = [sys.executable, str(EXAMPLES / "demo_replicated.py"), "--seconds", "0.5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("nothing is lost\n")
    assert re.search(r"^confirmed [\d,]+   lost 0   twice without a flag 0 ", done.stdout, re.M)
    assert len(re.findall(r"^ *[\d.]+ s  ", done.stdout, re.M)) == 10
    link = r"the console of (\w+), while this runs: http://[\d.:]+/#link=\S+"
    links = re.findall(link, done.stdout)
    assert links == ["live", "backup"]


def test_what_the_demo_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    picture = importlib.import_module("picture")
    took = [(0.5, 200_000), (0.5, 200_000), (0.5, 50_000_000), (9.5, 100_000)]
    lines = picture.draw(took, {"K": 5.0}, 10.0)
    drawn = [line[9:].ljust(picture.COLUMNS) for line in lines]
    bars = ["".join(row[column] for row in drawn[:-2]).strip() for column in (3, 36, 68)]
    assert [bar.replace("░", "w").replace("█", "m") for bar in bars] == [
        "w" * 9 + "m" * 4,
        "",
        "mm",
    ]
    assert drawn[-2][36] == "K"
    assert lines[0].strip(" │") == ""
