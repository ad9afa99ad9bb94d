"""`shmbroker check`: one line, and the exit codes of Nagios."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import shmbroker
from tests.cli.command import Shell

LINE = re.compile(r"(VHOST|QUEUE|CLUSTER) (OK|WARNING|CRITICAL|UNKNOWN) - [^|\n]+( \| [^|\n]+)?\n")
CODES = {"OK": 0, "WARNING": 1, "CRITICAL": 2, "UNKNOWN": 3}


@pytest.fixture
def orders(shell: Shell) -> Shell:
    shell.does("queue", "declare", "orders", "--slots", "16")
    shell.does("pub", "orders", "--lines", stdin=b"a\nb\nc\n")
    return shell


def line(shell: Shell, *arguments: str) -> tuple[str, str]:
    """The word and the line, which agree with the exit code."""
    answer = shell("check", *arguments)
    match = LINE.fullmatch(answer.out)
    assert match, answer
    assert answer.code == CODES[match[2]]
    return match[2], answer.out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "OK"),
        (["--depth-warning", "3"], "OK"),
        (["--depth-warning", "2"], "WARNING"),
        (["--depth-warning", "1", "--depth-critical", "3"], "WARNING"),
        (["--depth-warning", "1", "--depth-critical", "2"], "CRITICAL"),
        (["--depth-critical", "0"], "CRITICAL"),
        (["--consumers-min", "0"], "OK"),
        (["--consumers-min", "1"], "CRITICAL"),
        (["--depth-warning", "2", "--consumers-min", "1"], "CRITICAL"),
    ],
    ids=" ".join,
)
def test_queue(orders: Shell, arguments: list[str], word: str) -> None:
    found, text = line(orders, "queue", "orders", *arguments)
    assert found == word
    assert "depth=3" in text
    assert "consumers=0" in text


def test_performance_data_carries_the_limits(orders: Shell) -> None:
    arguments = ["--depth-warning", "5", "--depth-critical", "9", "--consumers-min", "0"]
    _, text = line(orders, "queue", "orders", *arguments)
    assert text.endswith(" | depth=3;5;9;0 consumers=0;;;0 set_aside=0\n")


def test_a_paused_queue_is_a_warning(orders: Shell) -> None:
    orders.does("queue", "pause", "orders")
    found, text = line(orders, "queue", "orders")
    assert found == "WARNING"
    assert "paused" in text


def test_what_is_missing_is_critical(orders: Shell) -> None:
    found, text = line(orders, "queue", "order")
    assert found == "CRITICAL"
    assert "Did you mean 'orders'?" in text
    assert line(orders, "queue", "orders", "--vhost", "nobody-has-this")[0] == "CRITICAL"


def test_vhost(orders: Shell) -> None:
    found, text = line(orders, "vhost")
    assert found == "OK"
    assert "1 queue" in text
    assert "depth=3" in text
    assert line(orders, "vhost", "--vhost", "nobody-has-this")[0] == "CRITICAL"
    assert line(orders, "vhost", "--free-warning", "1000TiB")[0] == "WARNING"
    assert line(orders, "vhost", "--free-critical", "1000TiB")[0] == "CRITICAL"


def test_what_is_set_aside_is_a_warning_and_doctor_says_what_to_do(shell: Shell) -> None:
    shell.does("queue", "declare", "dead", "--slots", "2")
    shell.does("pub", "dead", "--lines", stdin=b"a\nb\n")
    shell.does("queue", "declare", "orders", "--max-deliveries", "1", "--dead-letter", "dead")
    shell.does("pub", "orders", stdin=b"poison")
    with shmbroker.connect(f"shm://{shell.vhost}") as broker:
        broker.queue("orders").get(timeout=0).give_back()
    problem = "1 message is set aside: no room in 'dead'"
    for what in (("queue", "orders"), ("vhost", "--errors-within", "0s")):
        found, text = line(shell, *what)
        assert found == "WARNING"
        assert problem in text
        assert "set_aside=1" in text
    assert shell.does("queue", "stat", "orders", "--json").json["set_aside"] == 1
    answer = shell("doctor", "--json")
    assert answer.code == 1
    subject = f"queue 'orders' of vhost '{shell.vhost}'"
    (finding,) = [each for each in answer.json if each["subject"] == subject]
    assert (finding["severity"], finding["problem"]) == ("warning", problem)
    assert "queue://dead" in finding["remedy"]


def test_json(orders: Shell) -> None:
    arguments = ["check", "queue", "orders", "--depth-warning", "1", "--json"]
    answer = orders(*arguments)
    assert answer.code == 1
    assert list(answer.json) == ["level", "stage", "text", "numbers"]
    assert (answer.json["level"], answer.json["stage"]) == ("warning", "depth")
    assert answer.json["numbers"] == {"depth": 3, "consumers": 0, "set_aside": 0}


@pytest.mark.parametrize(
    "arguments", [[], ["queue"], ["queue", "orders", "--depth", "x"], ["bogus"]], ids=" ".join
)
def test_a_wrong_usage_is_unknown_and_not_critical(shell: Shell, arguments: list[str]) -> None:
    answer = shell("check", *arguments)
    assert answer.code == 3
    assert "--help" in answer.said


def test_what_cannot_be_looked_at_is_unknown(orders: Shell, tmp_path: Path) -> None:
    folder, damaged = tmp_path / "plain", tmp_path / "damaged"
    orders.does("create", str(folder), "--vhost", orders.vhost)
    shutil.copytree(folder, damaged)
    (damaged / "shmbroker.toml").write_text("[instance")
    for arguments, says in (
        (["cluster", str(folder)], "[cluster"),
        (["queue", "orders", "--context", "nowhere"], "nowhere"),
        (["queue", "orders", "--broker", str(damaged)], "shmbroker.toml"),
        (["vhost", "--broker", str(damaged)], "shmbroker.toml"),
        (["queue", "orders", "--url", "tcp://127.0.0.1:1", "--password-file", "none"], "none"),
    ):
        found, text = line(orders, *arguments)
        assert found == "UNKNOWN"
        assert says in text


NASTY = "a\x1b[31m\nVHOST OK - fine"
DIES = """
import os, sys, shmbroker
_ = shmbroker.connect(sys.argv[1], name=sys.argv[2])
os._exit(0)
"""


def test_a_name_that_is_no_text_stays_on_its_line(shell: Shell) -> None:
    url = f"shm://{shell.vhost}"
    with shmbroker.connect(url, name=NASTY) as broker:
        assert shell.does("participants", "--names").lines == ["a\\x1b[31m\\nVHOST OK - fine"]
        told = shell.does("disconnect", str(broker.participant), "--timeout", "1ms").said
        assert told.startswith("a\\x1b[31m\\nVHOST OK - fine is told to leave")
    subprocess.run([sys.executable, "-c", DIES, url, NASTY], check=True)
    with shmbroker.connect(url):  # it repairs what the dead one has left
        found, text = line(shell, "vhost")
    assert found == "WARNING"
    assert "\\nVHOST OK - fine" in text
    assert "a\\x1b[31m" in shell("disconnect", NASTY).said
