"""Brokers that work together, made by `create` alone; the walk of a pair: console/test_walk.py."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from shmbroker.cli.console import supervised
from shmbroker.cli.create import create
from shmbroker.ipc.instance.config.config import FILE
from shmbroker.netbridge.config.config import load
from shmbroker.perf.machine.port import free_port
from tests.cli.command import Shell, eventually

MOVED = 7
"""Ports of the second instance on this host."""


@pytest.fixture
def ports() -> list[str]:
    """Of a first instance; a second one has them moved."""
    port = free_port(*(each + moved for each in (0, 2, 3) for moved in (0, MOVED)))
    return ["--port", f"{port}", "--console-port", f"{free_port(MOVED)}"]


@pytest.fixture
def vhosts(shell: Shell) -> Iterator[None]:
    yield
    for name in (shell.vhost, f"{shell.vhost}-backup", f"{shell.vhost}-b"):
        shell("vhost", "delete", name, "--force", "--yes")


def replicated(shell: Shell, live: Path, ports: list[str], *more: str) -> None:
    shell.does(
        "create", str(live), "--replicated", "--vhost", shell.vhost,
        "--on-partition", "continue-alone", *ports, *more,
    )  # fmt: skip


def refused(shell: Shell, *words: str) -> str:
    done = shell("create", *words)
    assert done.code != 0
    assert not (Path(words[0]) / FILE).exists()
    return done.said


def test_nodes_of_a_cluster(shell: Shell, ports: list[str], tmp_path: Path, vhosts: None) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    shell.does("create", str(a), "--clustered", "--vhost", shell.vhost, *ports)
    try:
        shell.does("start", str(a))
        socket.create_connection(("127.0.0.1", int(ports[1]))).close()  # at once
        shell.does(
            "create", str(b), "--join", f"tcp://127.0.0.1:{ports[1]}", "--port-offset", f"{MOVED}",
            *ports, "--message-load-balancing", "strict",
            "--cluster-password-file", str(a / "cluster.password"),
        )  # fmt: skip
        shell.does("start", str(b))
        eventually(lambda: "up" in shell.does("cluster", "list", str(a)).out)
    finally:
        for each in (a, b):
            shell("kill", str(each))
            shell("console", "stop", str(each))


def test_a_node_that_is_a_pair(shell: Shell, ports: list[str], tmp_path: Path) -> None:
    live, backup = tmp_path / "live", tmp_path / "backup"
    shell.does(
        "create", str(live), "--clustered", "--replicated", "--vhost", shell.vhost, *ports,
        "--witness", "tcp://127.0.0.1:61617", "--group-name", "one", "--max-hops", "2",
        "--cluster-user", "town",
    )  # fmt: skip
    shell.does("create", str(backup), "--join", str(live), "--role", "backup",
               "--port-offset", f"{MOVED}", *ports)  # fmt: skip
    (one, at_one), (two, at_two) = load(live), load(backup)
    assert one.members == two.members
    assert [name for name, _ in one.members] == ["live", "backup"]
    assert (one.role, two.role) == ("live", "backup")
    assert one.vhost != two.vhost
    assert one.network_vhost == two.network_vhost == "/"
    assert at_one.replication is not None
    assert at_one.replication == at_two.replication
    assert at_two.cluster is not None
    assert at_two.cluster.hops == 2
    for whose in ("cluster", "programs"):
        files = [each / f"{whose}.password" for each in (live, backup)]
        assert files[0].read_text() == files[1].read_text()
        assert all(each.stat().st_mode & 0o777 == 0o600 for each in files)


def test_the_password_may_be_given(shell: Shell, ports: list[str], tmp_path: Path) -> None:
    (tmp_path / "given").write_text("a password that others know\n")
    shell.does(
        "create", str(tmp_path / "a"), "--clustered", "--vhost", shell.vhost, *ports,
        "--cluster-password-file", str(tmp_path / "given"), "--static-cluster", "tcp://two:61619",
    )  # fmt: skip
    assert (tmp_path / "a/cluster.password").read_text() == "a password that others know\n"
    _, network = load(tmp_path / "a")
    assert network.cluster is not None
    assert [str(each) for each in network.cluster.statics] == ["tcp://two:61619"]
    shell.does(
        "create", str(tmp_path / "b"), "--role", "backup", *ports,
        "--password-file", str(tmp_path / "a/programs.password"),
    )  # fmt: skip
    one, two = ((tmp_path / each / "programs.password").read_text() for each in "ab")
    assert one == two


def test_nothing_is_made_beside_a_password_that_is_left(
    shell: Shell, ports: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "programs.password").write_text("of before")
    said = refused(shell, str(folder), "--clustered", "--vhost", shell.vhost, *ports)
    assert f"{folder}/programs.password is there already" in said
    (folder / "programs.password").unlink()
    shell.does("create", str(folder), "--clustered", "--vhost", shell.vhost, *ports)


def test_lives_of_the_cluster_may_vote_in_the_place_of_a_witness(
    shell: Shell, ports: list[str], tmp_path: Path
) -> None:
    shell.does(
        "create", str(tmp_path / "a"), "--clustered", "--replicated", "--vhost", shell.vhost,
        *ports, "--quorum-size", "2", "--host", "localhost", "--queues", "orders, payments",
        "--message-load-balancing", "strict",
    )  # fmt: skip
    config, network = load(tmp_path / "a")
    assert config.queues == ("orders", "payments")
    assert network.replication is not None
    assert network.replication.quorum_size == 2
    assert {each.uri.host for each in network.acceptors.values()} == {"localhost"}


def test_no_console_is_configured_where_its_packages_are_missing(
    shell: Shell, ports: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in shell.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(supervised, "NEEDED", ("starlette", "no_such_package"))
    for folder, words in (("a", ports[:2]), ("b", ports)):
        done = CliRunner().invoke(create, [str(tmp_path / folder), *words])
        assert done.exit_code == 0, done.output
        assert ("for want of no_such_package" in done.output) == (folder == "a")
        assert ("[console]" in (tmp_path / folder / FILE).read_text()) == (folder == "b")


def test_a_backup_without_a_console_is_told_to_its_live(
    shell: Shell, ports: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in shell.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(supervised, "NEEDED", ("no_such_package",))
    live, backup = str(tmp_path / "live"), str(tmp_path / "backup")
    alone = ["--replicated", "--on-partition", "stop-confirming"]
    for words in ([live, *alone, *ports[:2]], [backup, "--join", live, "--role", "backup"]):
        done = CliRunner().invoke(create, words)
        assert done.exit_code == 0, done.output
    assert load(Path(live))[0].members == load(Path(backup))[0].members
    assert len(load(Path(live))[0].members) == 2


def test_what_the_file_of_a_live_has_no_line_for_is_said(
    shell: Shell, ports: list[str], tmp_path: Path
) -> None:
    live, backup = tmp_path / "live", str(tmp_path / "backup")
    replicated(shell, live, ports)
    file = live / FILE
    file.write_text(re.sub(r"(?m)^others = .*\n", "", file.read_text()))
    done = shell("create", backup, "--join", str(live), "--role", "backup",
                 "--port-offset", f"{MOVED}", *ports)  # fmt: skip
    assert done.code == 1
    assert f"shmbroker: write into [console] of {file}: others = [" in done.said
    assert [name for name, _ in load(live)[0].members] == ["live", "backup"]


def test_what_cannot_be_made_is_refused(shell: Shell, ports: list[str], tmp_path: Path) -> None:
    made, plain, folder = tmp_path / "made", tmp_path / "plain", str(tmp_path / "other")
    said = refused(shell, folder, "--replicated", *ports)
    assert "shmbroker: --on-partition is missing" in said
    for flag in ("stop-confirming", "continue-alone", "--witness tcp://HOST:61617"):
        assert flag in said
    assert "toml" not in said
    for flag, value in (
        ("--witness", "tcp://three:99999"), ("--group-name", ""), ("--port", "65535")
    ):  # fmt: skip
        said = refused(shell, folder, "--replicated", *ports, flag, value)
        assert said.startswith(f"shmbroker: {flag} ")
    for kind, flag, value in (
        ("--clustered", "--witness", "tcp://three:61617"), ("--clustered", "--quorum-size", "2"),
        ("--replicated", "--max-hops", "2"),
        ("--replicated", "--static-cluster", "tcp://two:61619"),
    ):  # fmt: skip
        other = {"--clustered": "--replicated", "--replicated": "--clustered"}[kind]
        assert f"{flag} is for {other}" in refused(shell, folder, kind, *ports, flag, value)
    key = "ha.replication.on-partition=never"
    said = refused(shell, folder, "--replicated", *ports, "--set", key)
    assert "shmbroker.toml: ha.replication.on-partition is" in said
    assert "say --replicated" in refused(shell, folder, "--max-hops", "1")
    replicated(shell, made, ports)
    shell.does("create", str(plain), "--vhost", shell.vhost)
    assert "cannot be joined" in refused(shell, folder, "--join", str(plain), "--role", "backup")
    assert "is in no cluster" in refused(shell, folder, "--join", str(made))
    name = ["--name", "made", "--role", "backup"]
    assert "has a member made already" in refused(shell, folder, "--join", str(made), *name)
    assert "backup" not in (made / FILE).read_text().partition("members")[2].partition("]")[0]
