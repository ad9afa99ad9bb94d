"""`shmbroker producer` and `consumer`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

import shmbroker
from tests.cli.command import Shell, eventually

KEYS = [
    "destination", "messages", "bytes", "seconds", "messages_per_second", "bytes_per_second",
]  # fmt: skip


@pytest.fixture
def ha_queue(shell: Shell) -> Shell:
    shell.does("queue", "declare", "haQueue", "--slots", "128")
    return shell


def test_as_artemis_does_it(ha_queue: Shell) -> None:
    produced = ha_queue.does(
        "producer", "--message-count", "10", "--message-size", "1KiB",
        "--destination", "queue://haQueue",
    )  # fmt: skip
    assert "produced 10 messages, 10 KiB, to queue://haQueue in " in produced.out
    assert produced.said == ""  # no progress where there is no terminal
    assert [len(body) for body in ha_queue.bodies("haQueue")] == [1024] * 10
    assert len(set(ha_queue.bodies("haQueue"))) == 10
    consumed = ha_queue.does("consumer", "--message-count", "10", "--destination", "haQueue")
    assert "consumed 10 messages, 10 KiB, from queue://haQueue in " in consumed.out
    assert ha_queue.bodies("haQueue") == []


def test_json(ha_queue: Shell) -> None:
    destination = ["--message-count", "10", "--destination", "queue://haQueue", "--json"]
    for verb in ("producer", "consumer"):
        found = ha_queue.does(verb, *destination).json
        assert list(found) == KEYS
        assert (found["messages"], found["bytes"]) == (10, 10240)
        assert found["destination"] == "queue://haQueue"


@pytest.mark.parametrize("size", ["0", "1", "20", "33", "64KiB"])
def test_sizes(ha_queue: Shell, size: str) -> None:
    arguments = ["--message-count", "3", "--destination", "haQueue"]
    produced = ha_queue.does("producer", *arguments, "--message-size", size, "--json").json
    assert ha_queue.does("consumer", *arguments, "--json").json["bytes"] == produced["bytes"]


def test_fewer_than_asked_for_ends_with_1(ha_queue: Shell) -> None:
    ha_queue.does("producer", "--message-count", "2", "--destination", "haQueue")
    answer = ha_queue(
        "consumer", "--message-count", "3", "--destination", "haQueue", "--timeout", "50ms"
    )
    assert answer.code == 1
    assert "consumed 2 messages" in answer.out
    assert "2 of 3 messages" in answer.said


def test_a_full_queue_ends_with_what_was_done(shell: Shell) -> None:
    shell.does("queue", "declare", "small", "--slots", "2")
    answer = shell("producer", "--destination", "small", "--timeout", "20ms")
    assert answer.code == 1
    assert "produced 2 messages" in answer.out
    assert "full" in answer.said


def test_an_exchange(shell: Shell, start: Callable[..., subprocess.Popen[bytes]]) -> None:
    shell.does("exchange", "declare", "prices", "topic")
    consumer = start(
        "consumer", "--destination", "exchange://prices/eu.#", "--message-count", "3",
        stdout=subprocess.PIPE,
    )  # fmt: skip
    eventually(lambda: shell.does("exchange", "bindings", "prices", "--json").json)
    shell.does("producer", "--destination", "exchange://prices/us.fx", "--message-count", "5")
    shell.does("producer", "--destination", "exchange://prices/eu.de.fx", "--message-count", "3")
    out, _ = consumer.communicate(timeout=60)
    assert consumer.returncode == 0
    assert b"consumed 3 messages" in out
    assert shell.does("queue", "list", "--names").lines == []
    assert shell.does("exchange", "bindings", "prices", "--json").json == []


def test_a_consumer_that_is_ended_leaves_no_queue_at_its_exchange(
    shell: Shell, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    shell.does("exchange", "declare", "prices", "topic")
    consumer = start("consumer", "--destination", "exchange://prices/eu.#")
    eventually(lambda: shell.does("exchange", "bindings", "prices", "--json").json)
    consumer.terminate()
    assert consumer.wait(60) != 0
    with shmbroker.connect(f"shm://{shell.vhost}") as broker:
        broker.repair()
    assert shell.does("queue", "list", "--names").lines == []
    assert shell.does("exchange", "bindings", "prices", "--json").json == []
