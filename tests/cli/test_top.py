"""`shmbroker top`, `participants` and `errors`."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from types import SimpleNamespace

import pytest

import shmbroker
from shmbroker.cli.rates import Reading, rows
from tests.cli.command import Shell, eventually

Start = Callable[..., subprocess.Popen[bytes]]

ROW_KEYS = [
    "name", "depth", "slots", "paused", "in_per_second", "out_per_second", "consumers",
    "producers", "open_in", "critical",
]  # fmt: skip


def reading(at: float, published: int, depth: int, identity: int = 1) -> Reading:
    queue = SimpleNamespace(
        name="q", id=identity, depth=depth, slots=8, published=published, consumers=0, producers=0,
        paused=False,
    )  # fmt: skip
    return Reading(at, {"q": queue}, {"q": ["shop[1]"]}, {})


def test_rates_are_differences() -> None:
    (row,) = rows(reading(10.0, 100, 4), reading(12.0, 120, 8))
    assert list(row) == ROW_KEYS
    assert (row["in_per_second"], row["out_per_second"]) == (10.0, 8.0)
    assert row["open_in"] == ["shop[1]"]


def test_a_queue_that_was_made_anew_has_no_rate_yet() -> None:
    (row,) = rows(reading(10.0, 100, 4), reading(12.0, 3, 3, identity=2))
    assert (row["in_per_second"], row["out_per_second"]) == (0.0, 0.0)


@pytest.fixture
def consumer(shell: Shell, start: Start) -> subprocess.Popen[bytes]:
    """Somebody who waits at the queue "orders"."""
    shell.does("queue", "declare", "orders")
    waiting = start("consumer", "--destination", "orders")
    eventually(lambda: "orders" in shell.does("participants").out)
    return waiting


def test_top_once(shell: Shell, consumer: subprocess.Popen[bytes]) -> None:
    answer = shell.does("top", "--once", "--interval", "20ms")
    assert "\x1b" not in answer.out
    assert shell.vhost in answer.lines[0]
    assert answer.lines[2].split() == [
        "QUEUE", "DEPTH", "SLOTS", "IN/S", "OUT/S", "CONSUMERS", "PRODUCERS", "OPEN", "IN",
    ]  # fmt: skip
    assert f"shmbroker consumer[{consumer.pid}]" in answer.lines[3]
    found = shell.does("top", "--once", "--interval", "20ms", "--json").json
    assert list(found) == ["vhost", "seconds", "queues"]
    assert list(found["queues"][0]) == ROW_KEYS


def test_participants(shell: Shell, consumer: subprocess.Popen[bytes]) -> None:
    (found,) = shell.does("participants", "--json").json
    known = ["id", "pid", "name", "state", "connected_at", "bytes", "queues", "remote"]
    assert list(found) == known
    assert found["remote"] is None
    assert found["pid"] == consumer.pid
    assert found["name"] == "shmbroker consumer"
    assert found["state"] == "live"
    assert found["queues"] == ["orders"]
    assert shell.does("participants", "--names").lines == ["shmbroker consumer"]
    header, row = shell.does("participants").lines
    assert header.split()[:2] == ["ID", "PID"]
    assert str(consumer.pid) in row


def test_the_dead_are_not_called_live(shell: Shell, consumer: subprocess.Popen[bytes]) -> None:
    os.kill(consumer.pid, signal.SIGKILL)
    consumer.wait()
    found = shell.does("participants", "--json").json
    assert [p for p in found if p["pid"] == consumer.pid and p["state"] == "live"] == []


def test_a_death_is_seen_until_it_is_repaired_and_told_afterwards(
    shell: Shell, start: Start, consumer: subprocess.Popen[bytes]
) -> None:
    second = start("consumer", "--destination", "orders")
    eventually(lambda: len(shell.does("participants", "--names").lines) == 2)
    assert shell.does("check", "vhost").out.startswith("VHOST OK")
    for process in (consumer, second):
        process.send_signal(signal.SIGSTOP)  # else the second repairs after the first
    for process in (consumer, second):
        process.kill()
        process.wait()
    # whoever only looks repairs nothing
    dead = [p for p in shell.does("participants", "--json").json if p["state"] == "dead"]
    assert {p["pid"] for p in dead} == {consumer.pid, second.pid}
    answer = shell("check", "vhost")
    assert answer.code == 1
    assert "2 of 2 participants are dead" in answer.out
    with shmbroker.connect(f"shm://{shell.vhost}") as broker:
        broker.repair()
    assert shell.does("participants", "--json").json == []
    (error,) = [e for e in shell.does("errors", "--json").json if str(second.pid) in e["text"]]
    assert list(error) == ["text", "count", "first_at", "last_at"]
    assert error["count"] == 1
    assert error["text"] in shell.does("errors").out
    answer = shell("check", "vhost")
    assert answer.code == 1
    assert "died" in answer.out
    shell.does("check", "vhost", "--errors-within", "0s")


def test_errors(shell: Shell) -> None:
    assert shell.does("errors", "--json").json == []
    assert shell.does("errors").lines[0].split() == ["COUNT", "FIRST", "LAST", "ERROR"]
