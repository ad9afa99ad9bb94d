"""Ctrl-C ends everything that waits, with 130, and nothing is lost by it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import Shell, eventually

Start = Callable[..., subprocess.Popen[bytes]]


def is_connected(shell: Shell, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None
    found = shell.does("participants", "--json").json
    return process.pid in [participant["pid"] for participant in found]


@pytest.mark.parametrize(
    "arguments",
    [
        ["sub", "orders"],
        ["consumer", "--destination", "orders"],
        ["producer", "--destination", "full"],
        ["pub", "full", "x"],
        ["top"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_ctrl_c(shell: Shell, start: Start, arguments: list[str]) -> None:
    shell.does("queue", "declare", "orders")
    shell.does("queue", "declare", "full", "--slots", "2")
    shell.does("pub", "full", "--lines", stdin=b"a\nb\n")
    process = start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if arguments == ["top"]:  # it only looks, so nobody sees it
        assert process.stdout is not None
        assert process.stdout.read(1)
    else:
        eventually(lambda: is_connected(shell, process))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert b"Traceback" not in said
    assert shell.bodies("full") == ["a", "b"]
    assert shell.does("participants", "--json").json == []


def test_an_interrupted_move_leaves_each_message_somewhere(shell: Shell, start: Start) -> None:
    shell.does("queue", "declare", "orders", "--slots", "8")
    shell.does("queue", "declare", "small", "--slots", "2")
    shell.does("pub", "orders", "--lines", stdin=b"a\nb\nc\n")
    process = start("queue", "move", "orders", "small", stderr=subprocess.PIPE)
    eventually(lambda: shell.bodies("small") == ["a", "b"])
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"2 messages" in said
    (left,) = shell.does("queue", "browse", "orders", "--json").json
    assert left["body"] == "c"
    arguments = ["consumer", "--destination", "orders", "--message-count", "1", "--timeout", "5s"]
    shell.does(*arguments)


@pytest.mark.parametrize("arguments", [["copy", "orders", "small"], ["import", "small", "FILE"]])
def test_what_an_interrupted_one_has_published_is_said(
    shell: Shell, start: Start, tmp_path: Path, arguments: list[str]
) -> None:
    shell.does("queue", "declare", "orders", "--slots", "8")
    shell.does("queue", "declare", "small", "--slots", "2")
    shell.does("pub", "orders", "--lines", stdin=b"a\nb\nc\n")
    lines = tmp_path / "lines"
    lines.write_text(shell.does("queue", "export", "orders").out)
    named = [str(lines) if each == "FILE" else each for each in arguments]
    process = start("queue", *named, stderr=subprocess.PIPE)
    eventually(lambda: shell.bodies("small") == ["a", "b"])
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"2 messages" in said
