"""Brokers as a person runs them: the shared-store demo of AMQ 7, and what the verbs say."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.command import PATIENCE_SECONDS, Shell

Start = Callable[..., subprocess.Popen[bytes]]


def becomes(shell: Shell, folder: Path, state: str) -> Any:
    return shell.does("status", str(folder), "--wait", state, "--timeout", "60s", "--json").json


def create(shell: Shell, folder: Path, role: str, *settings: str) -> Path:
    shell.does(
        "create", str(folder), "--vhost", shell.vhost, "--role", role,
        "--store", str(folder.parent / "store"), "--set", "store.segment=1MiB",
        *(word for each in settings for word in ("--set", each)),
    )  # fmt: skip
    return folder


def browsed(shell: Shell) -> int:
    return len(shell.bodies("haQueue"))


def test_the_demo_of_a_pair_on_a_shared_store(shell: Shell, start: Start, tmp_path: Path) -> None:
    live = create(shell, tmp_path / "live", "live", "ha.failover-on-shutdown=true")
    backup = create(shell, tmp_path / "backup", "backup", "ha.failover-on-shutdown=true")
    start("run", str(live))
    becomes(shell, live, "live")
    start("run", str(backup))
    becomes(shell, backup, "passive")
    shell.does("queue", "declare", "haQueue", "--durable")
    produced = shell.does("producer", "--message-count", "10", "--destination", "queue://haQueue")
    assert "10 messages" in produced.out
    assert browsed(shell) == 10
    said = shell.does("status", str(backup)).out
    assert "passive" in said
    assert "haQueue" not in said
    assert "haQueue" in shell.does("status", str(live)).out

    shell.does("stop", str(live), "--timeout", "60s")
    told = becomes(shell, backup, "live")
    assert told["queues"] == [{"name": "haQueue", "depth": 10}]
    assert browsed(shell) == 10

    start("run", str(live))
    becomes(shell, live, "live")
    assert becomes(shell, backup, "passive")["queues"] == []
    assert browsed(shell) == 10


def test_killed_and_stopped(shell: Shell, start: Start, tmp_path: Path) -> None:
    folder = create(shell, tmp_path / "one", "live")
    process = start("run", str(folder))
    becomes(shell, folder, "live")
    shell.does("kill", str(folder), "--timeout", "60s")
    assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    answer = shell("status", str(folder))
    assert answer.code == 1
    assert "not running" in answer.out
    process = start("run", str(folder))
    becomes(shell, folder, "live")
    shell.does("stop", str(folder), "--timeout", "60s")
    assert process.wait(PATIENCE_SECONDS) == 0
    assert "stopped" in shell("status", str(folder)).out
    lines = (folder / "log" / "shmbroker.log").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines][-3:] == ["live", "handing over", "stopped"]


def test_what_is_not_there_is_said(shell: Shell, tmp_path: Path) -> None:
    answer = shell("run", str(tmp_path / "nowhere"))
    assert answer.code == 1
    assert f"shmbroker create {tmp_path / 'nowhere'}" in answer.said
    folder = create(shell, tmp_path / "one", "live")
    answer = shell("stop", str(folder))
    assert answer.code == 1
    assert "does not run" in answer.said
    answer = shell("create", str(folder))
    assert answer.code == 1
    assert "is an instance already" in answer.said


def test_an_option_that_does_not_exist_makes_nothing(shell: Shell, tmp_path: Path) -> None:
    answer = shell("create", str(tmp_path / "one"), "--set", "ha.rolle=backup")
    assert answer.code == 1
    assert "did you mean ha.role?" in answer.said
    assert not (tmp_path / "one").exists()


def test_nobody_else_may_read_an_instance(shell: Shell, tmp_path: Path) -> None:
    folder = create(shell, tmp_path / "one", "live")
    assert folder.stat().st_mode & 0o077 == 0
    assert (folder / "shmbroker.toml").stat().st_mode & 0o077 == 0


def test_a_unit_runs_just_this_instance(shell: Shell, tmp_path: Path) -> None:
    folder = create(shell, tmp_path / "one", "live")
    unit = shell.does("unit", str(folder)).out
    assert f"run {folder}\n" in unit
    assert "Type=notify" in unit
    assert f"RequiresMountsFor={tmp_path / 'store'}" in unit
