"""Every verb that reads works on a broker that is live, passive, stopped (SIGSTOP) or dead, and
changes no role: SEMANTICS 13.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.cli.command import PATIENCE_SECONDS, Shell
from tests.support.stopped import stop

OF_MEMORY = (
    "queue list", "queue stat orders", "queue explain orders", "queue groups orders",
    "queue scheduled orders", "queue latency orders", "queue browse orders", "exchange list",
    "exchange bindings", "subscription list", "settings list", "participants", "errors",
    "top --once --interval 1ms", "link list", "mta list", "vhost list",
)  # fmt: skip
"""By the vhost."""
OF_THE_FOLDER = ("status", "check alive", "check ready", "check standby", "user list",
                 "config explain")  # fmt: skip


def made(shell: Shell, folder: Path) -> None:
    shell.does(
        "create", str(folder), "--vhost", shell.vhost, "--role", folder.name, "--store",
        str(folder.parent / "store"), "--set", "store.segment=1MiB",
    )  # fmt: skip


def reads_memory(shell: Shell) -> None:
    for verb in OF_MEMORY:
        answer = shell(*verb.split(), "--json")
        assert answer.code == 0, (verb, answer)
        answer.json  # noqa: B018  # it is JSON
    assert [each["name"] for each in shell("queue", "list", "--json").json] == ["orders"]
    for check in (("queue", "orders"), ("vhost",)):
        assert shell("check", *check).code in (0, 1, 2), check


def reads_folder(shell: Shell, folder: Path, state: str, process: int | None) -> None:
    for verb in OF_THE_FOLDER:
        shell(*verb.split(), str(folder), "--json").json  # noqa: B018  # it is JSON
    told = shell("status", str(folder), "--json").json
    assert (told["state"], told["process"]) == (state, process)


def test_what_is_read_of_a_broker_in_every_state(
    shell: Shell, start: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    live, backup = tmp_path / "live", tmp_path / "backup"
    processes = {}
    for folder, state in ((live, "live"), (backup, "passive")):
        made(shell, folder)
        processes[folder] = start("run", str(folder), stderr=subprocess.DEVNULL)
        shell.does("status", str(folder), "--wait", state, "--timeout", "60s")
    shell.does("queue", "declare", "orders", "--durable")
    shell.does("pub", "orders", "one coffee")
    reads_memory(shell)
    reads_folder(shell, live, "live", processes[live].pid)
    reads_folder(shell, backup, "passive", processes[backup].pid)
    shell.does("stop", str(backup), "--timeout", "60s")
    reads_folder(shell, backup, "stopped", None)
    stop(processes[live].pid)
    reads_memory(shell)
    reads_folder(shell, live, "live", processes[live].pid)
    processes[live].kill()
    processes[live].wait(PATIENCE_SECONDS)
    reads_memory(shell)
    reads_folder(shell, live, "not running", None)
