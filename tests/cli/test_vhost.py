"""`shmbroker vhost`."""

from __future__ import annotations

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
