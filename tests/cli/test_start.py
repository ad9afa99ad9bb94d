"""`shmbroker start`: in the background, until it is live or passive, or has said why not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from shmbroker.cli.start import of_ended
from shmbroker.ipc.instance.status import Status, could_not_start
from tests.cli.command import Shell

FILE = "shmbroker.toml"


@pytest.fixture
def live(shell: Shell, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "live"
    shell.does("create", str(folder), "--vhost", shell.vhost, "--set", "store.segment=1MiB")
    yield folder
    shell("kill", str(folder), "--timeout", "60s")


def test_it_returns_when_it_is_live(shell: Shell, live: Path) -> None:
    answer = shell.does("start", str(live))
    assert answer.said.startswith(f"live: {live}, process ")
    told = shell.does("status", str(live), "--json").json
    assert told["state"] == "live"
    assert f"process {told['process']};" in answer.said
    assert "programs connect to" in (live / "run" / "output").read_text()
    again = shell("start", str(live))
    assert (again.code, "runs already: it is live" in again.said) == (1, True)
    shell.does("stop", str(live), "--timeout", "60s")
    assert shell.does("start", str(live)).said.startswith("live: ")


def test_it_returns_when_it_is_passive(shell: Shell, live: Path, tmp_path: Path) -> None:
    shell.does("start", str(live))
    backup = tmp_path / "backup"
    store = ("--store", str(live / "data"), "--set", "store.segment=1MiB")
    shell.does("create", str(backup), "--vhost", shell.vhost, "--role", "backup", *store)
    try:
        assert shell.does("start", str(backup)).said.startswith(f"passive: {backup}, process ")
    finally:
        shell("kill", str(backup), "--timeout", "60s")


def test_one_that_is_neither_in_time_goes_on(shell: Shell, live: Path) -> None:
    answer = shell("start", str(live), "--timeout", "1ms")  # Python alone takes longer to begin
    assert answer.code == 1
    assert "after 1 ms, and goes on" in answer.said
    shell.does("status", str(live), "--wait", "live", "--timeout", "60s")


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        ("store.pages=elsewhere", "store.pages is"),
        ("store.journal=elsewhere", "store.journal is"),
        ("instance.vhost=other", "not of 'other'"),
        ("ha.policy=replication", "replication"),
        ("ha.policy=pair", "pair"),
        ("acceptors.out.uri=tcp://127.0.0.1:0?users=nobody", "nobody"),
    ],
)
def test_status_says_why_it_did_not_start(shell: Shell, live: Path, refused: str, why: str) -> None:
    shell.does("start", str(live))
    shell.does("stop", str(live), "--timeout", "60s")
    assert shell("run", str(live), "--set", refused).code == 1
    told = shell("status", str(live), "--json").json
    assert (told["state"], why in told["why"], told["process"]) == ("failed", True, None), told
    assert why in shell("start", str(live), "--set", refused).said
    shell.does("start", str(live))
    told = shell("run", str(live), "--set", refused)
    assert shell.does("status", str(live), "--json").json["state"] == "live"


def test_why_it_failed_before_is_not_why_it_has_ended(tmp_path: Path) -> None:
    could_not_start(tmp_path, "no password")
    assert of_ended(tmp_path, os.getpid()).why == "no password"
    assert of_ended(tmp_path, os.getppid()) == Status()


def test_its_last_words(shell: Shell, live: Path, tmp_path: Path) -> None:
    other = shell("start", str(live), "--set", f"instance.vhost={shell.vhost}-other")
    assert (other.code, f"journal of vhost '{shell.vhost}'" in other.said) == (1, True), other
    held = shell("start", str(live), "--set", "store.segment=yes")
    assert (held.code, "store.segment" in held.said) == (1, True), held
    (live / FILE).write_text("[instance]\nnaem = 'x'\n")
    wrong = shell("start", str(live))
    assert (wrong.code, "did you mean" in wrong.said.lower()) == (1, True), wrong
    nothing = shell("start", str(tmp_path / "nowhere"))
    assert (nothing.code, "nowhere" in nothing.said) == (1, True)
