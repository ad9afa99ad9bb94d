"""Contexts: brokers by name, with where their passwords are."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from shmbroker.perf.machine.port import free_port
from tests.cli.command import Shell

SECRET = "a password that nobody reads"


@pytest.fixture
def home(shell: Shell, tmp_path: Path) -> Path:
    """The file of a person who has none yet."""
    shell.environment["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    return tmp_path / "config/shmbroker/contexts.toml"


@pytest.fixture
def password(tmp_path: Path) -> str:
    file = tmp_path / "market.password"
    file.write_text(SECRET)
    file.chmod(0o600)
    return str(file)


def refused(shell: Shell, *words: str) -> str:
    done = shell(*words)
    assert done.code != 0
    assert SECRET not in done.said
    return done.said


def contexts(shell: Shell) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in shell.does("context", "list", "--json").json}


def test_a_context_says_where_a_password_is_and_never_what(
    shell: Shell, home: Path, password: str
) -> None:
    login = ["--user", "programs", "--password-file", password]
    assert "NAME" in shell.does("context", "list").out
    shell.does("context", "add", "market", "tcp://market:61616", *login)
    shell.does("context", "add", "ann", "failover:(tcp://a,tcp://b)", "--user", "ann",
               "--password-env", "ANN")  # fmt: skip
    assert home.stat().st_mode & 0o777 == 0o600
    assert home.parent.stat().st_mode & 0o777 == 0o700
    assert SECRET not in home.read_text()
    shown = shell.does("context", "list").out
    assert f"file {password}" in shown
    assert "env ANN" in shown
    assert shell.does("context", "list", "--names").lines == ["market", "ann"]
    shell.does("context", "use", "ann")
    assert [name for name, each in contexts(shell).items() if each["current"]] == ["ann"]
    shell.does("context", "remove", "ann")
    assert tomllib.loads(home.read_text()).keys() == {"contexts"}


def test_a_context_may_have_a_name_of_any_characters(
    shell: Shell, home: Path, tmp_path: Path
) -> None:
    shell.does("create", str(tmp_path / "orders \U0001f680"), "--vhost", shell.vhost)
    shell.does("context", "add", "a\x7f", "shm://a")
    assert contexts(shell).keys() == {"orders \U0001f680", "a\x7f"}
    assert "no UTF-8" in refused(shell, "context", "add", os.fsdecode(b"\xff"), "shm://a")
    assert contexts(shell).keys() == {"orders \U0001f680", "a\x7f"}


def test_what_is_no_context_is_refused(shell: Shell, home: Path, password: str) -> None:
    login = ["--user", "programs", "--password-file", password]
    shell.does("context", "add", "market", "tcp://market", *login)
    assert "already" in refused(shell, "context", "add", "market", "tcp://other", *login)
    shell.does("context", "add", "market", "tcp://other", *login, "--replace")
    assert contexts(shell)["market"]["url"] == "tcp://other"
    assert "Did you mean 'market'?" in refused(shell, "context", "use", "markt")
    assert "Did you mean 'market'?" in refused(shell, "queue", "list", "--context", "markt")
    assert "--user" in refused(shell, "context", "add", "a", "tcp://a")
    all_see = ["context", "add", "a", "tcp://me:secret@a", "--user", "me", "--password-env", "A"]
    assert "all on this host" in refused(shell, *all_see)
    assert "character 9" in refused(shell, "context", "add", "a", "tcp://a:-1", *login)
    both = ["--context", "market", "--url", "tcp://market"]
    assert "either --url" in refused(shell, "queue", "list", *both)
    Path(password).chmod(0o644)
    assert "chmod 600" in refused(shell, "context", "add", "b", "tcp://b", *login)


def test_a_file_that_is_wrong_or_read_by_others_is_not_believed(shell: Shell, home: Path) -> None:
    shell.does("context", "add", "trading", "shm://trading")
    home.chmod(0o640)
    assert "chmod 600" in refused(shell, "context", "list")
    home.chmod(0o600)
    for wrong, why in (
        ("current = ", "Invalid value"),
        ("[contexts.a]\nuser = 'a'", "contexts.a has no url"),
        ("[contexts.a]\nurl = 'shm://a'\nhost = 'b'", "'host' is no key of contexts.a"),
        (f"[contexts.a]\nurl = 'tcp://a'\npassword = ['{SECRET}']", "{ env = "),
        ("[context.a]\nurl = 'shm://a'", "'context' is no key of it"),
    ):
        home.write_text(wrong)
        said = refused(shell, "context", "list")
        assert why in said
        assert str(home) in said


def test_commands_at_once_lose_no_context_of_one_another(shell: Shell, home: Path) -> None:
    names = [f"context-{number}" for number in range(8)]
    begun = [shell.start("context", "add", each, f"shm://{each}") for each in names]
    assert [each.wait() for each in begun] == [0] * len(names)
    assert sorted(contexts(shell)) == names


def test_commands_without_a_broker_take_the_one_in_use(shell: Shell, home: Path) -> None:
    shell.does("context", "add", "mine", f"shm://{shell.vhost}")
    shell.does("context", "add", "far", "tcp://127.0.0.1:1", "--user", "a", "--password-env", "A")
    shell.does("queue", "declare", "orders")
    shell.does("context", "use", "far")
    assert shell.does("queue", "list", "--names").lines == ["orders"]  # SHMBROKER_VHOST is before
    del shell.environment["SHMBROKER_VHOST"]
    assert "the environment has no A" in refused(shell, "queue", "list")
    assert "cannot be over a link" in refused(shell, "queue", "latency", "orders")
    mine = ["queue", "list", "--names", "--context", "mine"]
    assert shell.does(*mine).lines == ["orders"]
    shell.does("context", "use", "mine")
    assert shell.does("queue", "list", "--names").lines == ["orders"]
    assert "orders" in shell.does("top", "--once").out
    shell.does("context", "use", "--none")
    assert "orders" not in shell("queue", "list", "--names").out
    shell.environment["SHMBROKER_VHOST"] = shell.vhost


@pytest.mark.parametrize("links", [True, False])
def test_that_of_an_instance_that_was_deleted_is_not_used(
    shell: Shell, home: Path, tmp_path: Path, links: bool
) -> None:
    folder = tmp_path / "orders"
    listens = ["--port", str(free_port())] if links else []
    shell.does("create", str(folder), "--vhost", shell.vhost, *listens)
    shell.does("context", "use", "orders")
    rmtree(folder)
    del shell.environment["SHMBROKER_VHOST"]
    for words in (["queue", "list"], ["top", "--once"], ["queue", "list", "--context", "orders"]):
        assert f"the instance of context 'orders', {folder}, was deleted" in refused(shell, *words)
    shell.does("context", "remove", "orders")
    assert "there is no context" in refused(shell, "queue", "list", "--context", "orders")
    shell.environment["SHMBROKER_VHOST"] = shell.vhost


def test_an_instance_is_found_by_its_name(shell: Shell, home: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one/orders", tmp_path / "other/orders"
    shell.does("create", str(one), "--vhost", shell.vhost)
    said = shell.does("create", str(other), "--vhost", f"{shell.vhost}-other").said
    assert "its context is 'orders-2'" in said
    found = contexts(shell)
    assert found["orders"]["url"] == f"shm://{shell.vhost}"
    assert found["orders-2"]["folder"] == str(other)
    status = shell("status", "orders-2", "--json")
    assert status.json["vhost"] == f"{shell.vhost}-other"
    assert f"orders-2 is {other}" in status.said
    assert "is no instance" in refused(shell, "status", "orders-3")
    (other / "shmbroker.toml").unlink()
    assert "is no instance" in refused(shell, "status", "orders-2")


def test_an_instance_is_made_without_a_home(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    shell.environment["XDG_CONFIG_HOME"] = str(tmp_path / "file")
    said = shell.does("create", str(tmp_path / "one"), "--vhost", shell.vhost).said
    assert "cannot be written" in said
    assert (tmp_path / "one/shmbroker.toml").exists()
