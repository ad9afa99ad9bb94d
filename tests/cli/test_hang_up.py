"""A command that waits for messages ends as soon as nobody reads its output any more; a broker goes
on."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from shmbroker.cli import run
from tests.cli.command import Shell, eventually, line_of

Start = Callable[..., subprocess.Popen[bytes]]
BROKEN_PIPE = 141


@pytest.mark.parametrize(
    "arguments",
    [
        ["sub", "orders", "--from", "earliest"],
        ["sub", "--name", "audit", "--exchange", "prices", "--durable"],
        ["queue", "get", "orders", "--count", "2", "--timeout", "60s"],
    ],
    ids=["watching", "consuming", "taking"],
)
def test_the_reader_leaves_while_it_waits(shell: Shell, start: Start, arguments: list[str]) -> None:
    shell.does("exchange", "declare", "prices", "fanout")
    shell.does("queue", "declare", "orders")
    shell.does("pub", "orders", "one")
    process = start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if "audit" in arguments:
        assert b"subscribed" in line_of(process.stderr)
        shell.does("pub", "--exchange", "prices", "one")
    assert line_of(process.stdout) == b"one\n"
    assert process.stdout is not None
    process.stdout.close()  # as head -1 does
    assert process.wait(10) == BROKEN_PIPE
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()
    eventually(lambda: shell.does("participants", "--json").json == [])


def test_a_broker_that_restores_goes_on_without_its_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal, screen = os.openpty()
    os.close(terminal)
    with io.TextIOWrapper(os.fdopen(screen, "wb", buffering=0), write_through=True) as gone:
        with pytest.raises(OSError, match="Input/output"):
            gone.write("x")
        monkeypatch.setattr(sys, "stderr", gone)
        run.show(1, 2)
        run.remark("it is there")
