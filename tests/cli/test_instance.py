"""Brokers as a person runs them: the shared-store demo of AMQ 7, and what the verbs say."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shmbroker.ipc.instance import process
from shmbroker.ipc.instance.config import config
from shmbroker.ipc.instance.config.config import FILE
from shmbroker.ipc.instance.leaving import SOMETHING_STAYED
from shmbroker.ipc.instance.status import Sign, Status
from tests.cli.command import PATIENCE_SECONDS, Shell, line_of

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


def test_the_state_is_shown_where_the_queues_are_not(shell: Shell, tmp_path: Path) -> None:
    """As of a broker that runs in a container."""
    folder = create(shell, tmp_path / "one", "live")
    shell.does("vhost", "delete", shell.vhost, "--yes")
    sign = Sign(folder)
    sign.show(Status("live", epoch=7, process=process.this()))
    try:
        told = shell.does("status", str(folder), "--json").json
    finally:
        sign.close()
    assert (told["state"], told["epoch"], told["queues"]) == ("live", 7, [])


def test_a_broker_restores_a_vhost_for_its_group(
    shell: Shell, start: Start, tmp_path: Path
) -> None:
    shell.does("vhost", "delete", shell.vhost, "--yes")
    folder = create(shell, tmp_path / "one", "live", f'instance.group="{os.getegid()}"')
    home = Path(f"/dev/shm/shmbroker.{shell.vhost}")
    for _ in range(2):
        start("run", str(folder))
        becomes(shell, folder, "live")
        assert home.stat().st_mode & 0o7777 == 0o2770
        shell.does("queue", "declare", "orders", "--durable")
        shell.does("stop", str(folder), "--timeout", "60s")
        shell.does("vhost", "delete", shell.vhost, "--yes")
        assert not home.exists()
    start("run", str(folder))
    becomes(shell, folder, "live")
    assert shell.does("queue", "list", "--names").lines == ["orders"]
    shell.does("stop", str(folder), "--timeout", "60s")


def test_run_says_what_it_is_and_where(shell: Shell, start: Start, tmp_path: Path) -> None:
    folder = create(shell, tmp_path / "one", "live")
    process = start("run", str(folder), stderr=subprocess.PIPE)
    line = line_of(process.stderr).decode()
    assert line.startswith(f"live 'one' of vhost {shell.vhost!r}")
    for said in (f"shm://{shell.vhost}", tmp_path / "store", folder / "log" / "shmbroker.log"):
        assert f"{said}" in line
    becomes(shell, folder, "live")
    assert f"process    {process.pid}\n" in shell.does("status", str(folder)).out


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


def verified(unit: Path) -> str:
    """What systemd says against it."""
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit],
        capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    return f"{done.returncode or ''}{done.stderr}"


def test_a_unit_runs_just_this_instance(shell: Shell, tmp_path: Path) -> None:
    folder = create(shell, tmp_path / "one", "live")
    unit = shell.does("unit", str(folder)).out
    assert f"run {folder}\n" in unit
    assert "Type=notify" in unit
    assert f"RestartPreventExitStatus={SOMETHING_STAYED}\n" in unit
    assert "TimeoutStopSec=infinity" in unit, "a scale-down takes its time"
    assert f"RequiresMountsFor={folder} {tmp_path / 'store'} " in unit
    assert "PrivateTmp=no" in unit, "it lies in /tmp, and would not be found"


def test_systemd_finds_nothing_wrong_with_units(shell: Shell, tmp_path: Path) -> None:
    folder = create(shell, tmp_path / "one two \"'\\$HOME%b", "live")
    command = f"ExecStart={Path(sysconfig.get_path('scripts')) / 'shmbroker'} "
    texts = {
        "one.service": shell.does("unit", str(folder)).out,
        "shmbroker@one.service": shell.does("unit", "--template", "/srv/x", "--user", "root").out,
    }
    for name, text in texts.items():
        path = tmp_path / name
        # where tests run, the command is a warm process
        path.write_text(re.sub(r"ExecStart=\S+ ", command, text).replace(
            "After=network-online.target\n", ""))  # fmt: skip
        assert verified(path) == ""
        path.write_text(text.replace("Type=notify", "Type=notfy"))
        assert "notfy" in verified(path)
    assert r"/one\x20two\x20\x22\x27\x5c$$HOME%%b" + "\n" in texts["one.service"]
    assert "Description=shmbroker one two \"'\\$HOME%%b\n" in texts["one.service"]
    assert "run /srv/x/%i\n" in texts["shmbroker@one.service"]
    assert "User=root\n" in texts["shmbroker@one.service"]


def test_a_unit_has_nothing_that_breaks_shared_memory(shell: Shell) -> None:
    """A vhost of a group is a folder with its set-group-id bit; others look into /proc."""
    said = shell.does("unit", "--template", "/srv").out.splitlines()
    keys = {line.partition("=")[0] for line in said if line and line[0] not in "#["}
    assert keys.isdisjoint(
        {"DynamicUser", "RestrictSUIDSGID", "PrivateUsers", "ProtectProc", "PrivateIPC",
         "MemoryDenyWriteExecute", "PrivatePIDs", "TemporaryFileSystem", "MemoryMax"}
    )  # fmt: skip
    assert "RemoveIPC=no" in said
    assert shell("unit").code == 2


def test_a_secret_on_a_command_line_is_refused(shell: Shell, tmp_path: Path) -> None:
    for setting in ("sql.password=hunter2", "sql.url=postgresql://broker:hunter2@db/broker"):
        answer = shell("create", str(tmp_path / "one"), "--set", setting)
        assert answer.code == 2
        assert "all on this host see a command line" in answer.said
        assert "hunter2" not in answer.said
        assert not (tmp_path / "one").exists()


def test_a_masked_secret_can_be_configured(shell: Shell, tmp_path: Path) -> None:
    folder = create(shell, tmp_path / "one", "live", 'sql.password={ env = "PASSWORD" }')
    answer = shell.does("mask", str(folder), stdin="hünter2\n".encode())
    assert "hünter2" not in answer.out + answer.said
    path = folder / FILE
    path.write_text(path.read_text().replace('{ env = "PASSWORD" }', answer.out.strip()))
    assert config.load(folder).sql.password.revealed("sql.password", folder) == "hünter2"
    assert "hünter2" not in shell("status", str(folder)).out
    for words in (("mask", str(folder)), ("user", "add", str(folder), "olga", "--role", "client")):
        answer = shell(*words, stdin=b"h\xfcnter2\n")
        assert (answer.code, "is UTF-8, and what stdin has is not" in answer.said) == (1, True)
