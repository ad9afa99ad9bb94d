"""`shmbroker vhost`."""

from __future__ import annotations

import os
from pathlib import Path

from tests.cli.command import Shell


def test_make_list_and_delete(vhost_name: str) -> None:
    shell = Shell(vhost_name)
    made = shell.does("vhost", "create", vhost_name, "--arena", "4MiB")
    assert made.out == ""
    assert "4 MiB" in made.said
    assert vhost_name in shell.does("vhost", "list", "--names").lines
    assert vhost_name in shell.does("vhost", "list").out
    assert {"name": vhost_name} in shell.does("vhost", "list", "--json").json
    shell.does("vhost", "delete", vhost_name, "--yes")
    assert vhost_name not in shell.does("vhost", "list", "--names").lines


def test_what_exists_is_not_made_again(shell: Shell) -> None:
    shell.does("queue", "declare", "orders")
    answer = shell("vhost", "create", shell.vhost)
    assert answer.code == 1
    assert shell.vhost in answer.said
    assert "orders" in shell.does("queue", "list", "--names").lines


def test_a_misspelt_vhost_is_asked_about(shell: Shell) -> None:
    answer = shell("vhost", "delete", shell.vhost[:-1], "--yes")
    assert answer.code == 1
    assert f"Did you mean '{shell.vhost}'" in answer.said


def test_an_impossible_name(shell: Shell) -> None:
    answer = shell("vhost", "create", "a/b")
    assert answer.code == 1
    assert "a/b" in answer.said


def test_one_for_a_group(vhost_name: str) -> None:
    shell = Shell(vhost_name)
    group = str(os.getegid())
    made = shell.does("vhost", "create", vhost_name, "--group", group, "--mode", "0660")
    assert f"for group {group}" in made.said
    assert Path(f"/dev/shm/shmbroker.{vhost_name}").stat().st_mode & 0o7777 == 0o2770
    shell.does("queue", "declare", "orders")
    assert shell.does("queue", "list", "--names").lines == ["orders"]
    assert vhost_name in shell.does("vhost", "list", "--names").lines
    shell.does("vhost", "delete", vhost_name, "--yes")
    assert vhost_name not in shell.does("vhost", "list", "--names").lines


def test_a_group_that_cannot_be(vhost_name: str) -> None:
    shell = Shell(vhost_name)
    refused = shell("vhost", "create", vhost_name, "--group", "nobodys-group")
    assert refused.code == 1
    assert "no group 'nobodys-group'" in refused.said
    assert shell("vhost", "create", vhost_name, "--group", "0", "--mode", "0600").code == 1
    assert shell("vhost", "create", vhost_name, "--mode", "0666").code == 2
