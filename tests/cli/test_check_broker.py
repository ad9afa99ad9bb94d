"""`shmbroker check alive` and `check ready`: of a live, a backup, one that is stopped, or dead."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from shmbroker.ipc.instance import process
from shmbroker.ipc.instance.status import Sign, Status
from tests.cli.command import Shell, eventually
from tests.support.stopped import stop


def codes(shell: Shell, folder: Path) -> tuple[int, int, int]:
    alive, ready, standby = (
        shell("check", question, str(folder)).code for question in ("alive", "ready", "standby")
    )
    return alive, ready, standby


def test_the_three_questions(
    shell: Shell, start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    live, backup = tmp_path / "live", tmp_path / "backup"
    for folder in (live, backup):
        shell.does(
            "create", str(folder), "--vhost", shell.vhost, "--role", folder.name, "--store",
            str(tmp_path / "store"), "--set", "store.segment=1MiB",
        )  # fmt: skip
        assert codes(shell, folder)[:2] == (2, 2)
        start("run", str(folder))
        state = "live" if folder == live else "passive"
        shell.does("status", str(folder), "--wait", state, "--timeout", "60s")
    assert codes(shell, live) == (0, 0, 0)
    assert eventually(lambda: codes(shell, backup) == (0, 2, 0))
    assert "do not restart it for that" in shell("check", "ready", str(backup)).out
    pid = shell.does("status", str(live), "--json").json["process"]
    stop(pid)
    try:
        assert eventually(lambda: codes(shell, live)[:2] == (2, 2))
        hangs = eventually(
            lambda: "stood still" in (said := shell("check", "alive", str(live), "--hangs-after",
                                                    "100ms").out) and said
        )  # fmt: skip
        assert "its process is stopped" in hangs
    finally:
        os.kill(pid, signal.SIGCONT)
    assert eventually(lambda: codes(shell, live)[:2] == (0, 0))


def test_who_is_stopped_or_dead_could_not_take_over(shell: Shell, tmp_path: Path) -> None:
    """Whatever it has said last of itself."""
    folder = tmp_path / "backup"
    shell.does("create", str(folder), "--vhost", shell.vhost, "--role", "backup")
    with subprocess.Popen(["sleep", "60s"]) as other:
        pid = other.pid
        sign = Sign(folder)
        of = process.Process(pid, process.started(pid), process.boot(), process.namespace())
        sign.show(Status("passive", is_announced=True, process=of))
        try:
            assert shell("check", "standby", str(folder)).code == 0
            stop(pid)
            stopped = shell("check", "standby", str(folder))
            assert (stopped.code, "its process is stopped" in stopped.out) == (2, True)
        finally:
            other.kill()
    sign.close()
    dead = shell("check", "standby", str(folder))
    assert (dead.code, "it is not running" in dead.out) == (2, True)


def test_no_folder_and_usage_are_unknown(shell: Shell, tmp_path: Path) -> None:
    for question in ("alive", "ready"):
        assert shell("check", question, str(tmp_path / "nowhere")).code == 3
        assert shell("check", question).code == 3
