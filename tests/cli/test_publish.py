"""`shmbroker pub` and `sub`: bodies come and go as they are."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path

import click
import pytest

import shmbroker
from shmbroker.cli.publisher import QueuePublisher
from tests.cli.command import COMMAND, Shell, eventually, line_of


@pytest.fixture
def orders(shell: Shell) -> Shell:
    shell.does("queue", "declare", "orders", "--slots", "16")
    return shell


def test_what_is_due_at_once_waits_for_all_that_was_published(shell: Shell) -> None:
    """What publish answers is no position."""
    with shmbroker.connect(f"shm://{shell.vhost}") as broker, click.Context(click.Command("pub")):
        broker.declare_queue("due").publish(b"before")
        publish = QueuePublisher(broker, "due", None, None, {"deliver_after": 0.0})
        publish(b"x")
        assert publish._position is None


def test_an_argument(orders: Shell) -> None:
    answer = orders.does("pub", "orders", "one coffee", "--key", "k")
    assert answer.out == ""
    assert "1 message to queue 'orders'" in answer.said
    (found,) = orders.does("queue", "browse", "orders", "--json").json
    assert (found["body"], found["key"], found["properties"]) == ("one coffee", "k", {})


def test_properties_are_what_they_look_like(orders: Shell) -> None:
    typed = ["n=1", "x=1.5", "urgent=true", "none=null", "region=eu", 'code="007"', "eq=a=b"]
    orders.does("pub", "orders", "x", *(f"--property={property}" for property in typed))
    (found,) = orders.does("queue", "browse", "orders", "--json").json
    assert found["properties"] == {
        "n": 1, "x": 1.5, "urgent": True, "none": None, "region": "eu", "code": "007", "eq": "a=b",
    }  # fmt: skip


def test_what_json_has_no_number_for(orders: Shell) -> None:
    orders.does("pub", "orders", "x", "--property", "n=NaN", "--property", "m=-1e400")
    with shmbroker.connect(f"shm://{orders.vhost}") as broker:
        broker.queue("orders").publish(b"y", properties={"n": math.nan, "m": math.inf, "k": 0.5})
    typed, sent = json.loads(
        orders.does("queue", "browse", "orders", "--json").out, parse_constant=pytest.fail
    )
    assert typed["properties"] == {"n": "NaN", "m": "-1e400"}
    assert sent["properties"] == {"n": None, "m": None, "k": 0.5}


def test_stdin_whole_and_by_lines(orders: Shell) -> None:
    orders.does("pub", "orders", stdin=b"a\nb\n")
    orders.does("pub", "orders", "--lines", stdin=b"c\n\nd")
    assert orders.bodies("orders") == ["a\nb\n", "c", "", "d"]


def test_a_file(orders: Shell, tmp_path: Path) -> None:
    body = bytes(range(256))
    file = tmp_path / "body"
    file.write_bytes(body)
    orders.does("pub", "orders", "--file", str(file))
    done = orders.start(
        "sub", "orders", "--from", "earliest", "--count", "1",
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.communicate(timeout=60)[0] == body + b"\n"
    answer = orders("pub", "orders", "--file", str(tmp_path / "none"))
    assert answer.code == 2
    assert "No such file" in answer.said


def test_an_argument_and_a_file_are_one_too_many(orders: Shell) -> None:
    assert orders("pub", "orders", "x", "--file", "-").code == 2


def test_a_full_queue_is_told_when_the_time_is_up(shell: Shell) -> None:
    shell.does("queue", "declare", "small", "--slots", "2")
    answer = shell("pub", "small", "--lines", "--timeout", "20ms", stdin=b"a\nb\nc\n")
    assert answer.code == 1
    assert "2 messages" in answer.said
    assert "full" in answer.said
    assert shell.bodies("small") == ["a", "b"]


def test_sub_takes_nothing(orders: Shell) -> None:
    orders.does("pub", "orders", "--lines", stdin=b"a\nb\nc\n")
    for _ in range(2):
        answer = orders.does("sub", "orders", "--from", "earliest", "--count", "2")
        assert answer.out == "a\nb\n"
        assert "2 messages" in answer.said
    assert orders.bodies("orders") == ["a", "b", "c"]


def test_sub_sees_what_comes_at_once(
    orders: Shell, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    orders.does("pub", "orders", "before")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    watching = start("sub", "orders", "--json", **pipes)
    assert b"subscribed" in line_of(watching.stderr)
    orders.does("pub", "orders", "one", "--property", "n=1")
    message = json.loads(line_of(watching.stdout))  # it does not wait for a second one
    assert list(message) == [
        "position", "key", "properties", "published_at", "body", "body_encoding", "bytes",
    ]  # fmt: skip
    assert (message["body"], message["properties"]) == ("one", {"n": 1})


@pytest.mark.parametrize("lossy", [[], ["--lossy"]], ids=["gating", "lossy"])
def test_sub_ends_when_nothing_comes(orders: Shell, lossy: list[str]) -> None:
    orders.does("pub", "orders", "a")
    arguments = ["sub", "orders", "--from", "earliest", "--timeout", "50ms", *lossy]
    answer = orders.does(*arguments)
    assert answer.out == "a\n"
    answer = orders(*arguments, "--count", "2")
    assert answer.code == 1
    assert answer.out == "a\n"
    assert "1 of 2 messages" in answer.said


def test_a_closed_pipe_ends_us_quietly(
    orders: Shell, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    orders.does("pub", "orders", "--lines", stdin=b"a\nb\n")
    watching = start(
        "sub", "orders", "--from", "earliest", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert line_of(watching.stdout) == b"a\n"
    assert watching.stdout is not None
    watching.stdout.close()

    def ended() -> bool:
        orders.does("pub", "orders", "another", "--timeout", "10ms")
        return watching.poll() is not None

    eventually(ended)
    assert watching.returncode == 141
    assert watching.stderr is not None
    said = watching.stderr.read()
    assert b"Traceback" not in said
    assert b"Broken" not in said


def test_head_reads_one_line_of_a_long_list(orders: Shell) -> None:
    for name in ("a", "b"):
        orders.does("queue", "declare", name)
    line = "set -o pipefail; for i in 1 2 3; do shmbroker queue list --names | head -1; done"
    path = f"{Path(COMMAND).parent}:{orders.environment['PATH']}"
    done = subprocess.run(
        ["bash", "-c", line], env={**orders.environment, "PATH": path}, capture_output=True
    )
    assert done.stdout.count(b"\n") == 3
    assert done.stderr == b""


def test_an_id_is_published_once(orders: Shell) -> None:
    orders.does("pub", "orders", "x", "--id", "order-17")
    answer = orders.does("pub", "orders", "x", "--id", "order-17")
    assert "nothing to queue 'orders': a message with this id was published before" in answer.said
    (found,) = orders.does("queue", "browse", "orders", "--json").json
    assert found["properties"] == {"JMSMessageID": "order-17"}
    assert orders.does("queue", "stat", "orders", "--json").json["duplicates"] == 1
    refused = orders("pub", "orders", "--lines", "--id", "a", stdin=b"a\nb\n")
    assert refused.code == 2
    assert "an id is one message's" in refused.said
    for when in ("--deliver-after=1h", "--deliver-at=2126-11-22T08:00"):
        refused = orders("pub", "orders", "x", "--id", "a", when)
        assert refused.code == 2
        assert "what is scheduled has no id" in refused.said
