"""`shmbroker completion`, and what the shells then get to know."""

from __future__ import annotations

import subprocess
from pathlib import Path

import click
import pytest

import shmbroker
from shmbroker.cli.main import root
from shmbroker.cli.names import names
from tests.cli.command import COMMAND, Shell


@pytest.fixture
def named(shell: Shell) -> Shell:
    shell.does("queue", "declare", "orders")
    shell.does("queue", "declare", "ordinary")
    shell.does("exchange", "declare", "prices", "topic")
    return shell


def completions(shell: Shell, line: str) -> list[str]:
    """What bash is offered at the end of this line."""
    words = line.split(" ")
    done = subprocess.run(
        [COMMAND],
        env={
            **shell.environment,
            "_SHMBROKER_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return [offered.split(",", 1)[1] for offered in done.stdout.split()]


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_the_script(shell: Shell, kind: str) -> None:
    script = shell.does("completion", kind).out
    assert f"_SHMBROKER_COMPLETE={kind}_complete" in script
    assert shell("completion", "powershell").code == 2


def test_bash_takes_the_script(shell: Shell, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(shell.does("completion", "bash").out)
    line = f"source {script} && complete -p shmbroker"
    said = subprocess.check_output(["bash", "-c", line], text=True)
    assert "shmbroker" in said


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("shmbroker que", ["queue"]),
        ("shmbroker queue pu", ["purge"]),
        ("shmbroker queue stat ord", ["orders", "ordinary"]),
        ("shmbroker queue move orders ordi", ["ordinary"]),
        ("shmbroker sub orde", ["orders"]),
        ("shmbroker pub orde", ["orders"]),
        ("shmbroker pub --exchange p", ["prices"]),
        ("shmbroker bind p", ["prices"]),
        ("shmbroker bind prices orde", ["orders"]),
        ("shmbroker sub orders --from e", ["earliest"]),
        ("shmbroker producer --destination orde", ["orders"]),
        ("shmbroker producer --destination queue://orde", ["queue://orders"]),
        ("shmbroker producer --destination exchange://p", ["exchange://prices"]),
        ("shmbroker queue stat nothing", []),
    ],
)
def test_names_are_completed_live(named: Shell, line: str, offered: list[str]) -> None:
    assert sorted(completions(named, line)) == offered


def test_who_completes_only_looks(named: Shell) -> None:
    seen: list[int] = []

    def of(broker: shmbroker.Broker) -> list[shmbroker.Queue]:
        seen.append(broker.participant)
        return []

    with click.Context(root, info_name="shmbroker") as context:
        context.params["vhost"] = named.vhost
        assert names(context, "", of) == []
    assert seen == [0]


def test_vhosts_are_completed_live(shell: Shell) -> None:
    for line in ("queue list --vhost", "vhost delete"):
        assert completions(shell, f"shmbroker {line} {shell.vhost[:-2]}") == [shell.vhost]


def test_the_vhost_on_the_line_counts(named: Shell) -> None:
    named.environment["SHMBROKER_VHOST"] = "nobody-has-this"
    assert completions(named, "shmbroker queue stat orde") == []
    line = f"shmbroker queue stat --vhost {named.vhost} orde"
    assert completions(named, line) == ["orders"]
    assert completions(named, f"shmbroker --vhost {named.vhost} queue stat orde") == ["orders"]
