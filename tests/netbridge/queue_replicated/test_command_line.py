"""The commands of docs/queue-replicas.md as they are typed there, and each error of the table."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.command import Shell
from tests.netbridge.queue_replicated.conftest import NAME, Made, Two

PAGE = Path(__file__).parents[3] / "docs" / "queue-replicas.md"
FOLDER, PEER = "/var/lib/shmbroker/standby", "node1"


def typed(run: Two, session: int) -> list[list[str]]:
    """A session of the page, with the folder and address of this test."""
    block = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)[session]
    places = {FOLDER: str(run.copy.folder), PEER: run.peer}
    return [
        [places.get(word, word) for word in shlex.split(line)[1:]] for line in block.splitlines()
    ]


def fails(shell: Shell, *words: str, code: int = 1) -> str:
    """What it says."""
    answer = shell(*words)
    assert answer.code == code, answer
    return answer.said


@pytest.fixture
def shell(vhost: str) -> Shell:
    return Shell(vhost)


def test_the_commands_of_the_page(two: Made, shell: Shell) -> None:
    run = two()
    there, here = run.up()
    original = there.declare_queue(NAME)
    original.publish(b"one")
    declare, replicas, replicate, detach, again = typed(run, 0)
    assert "follows the one of" in shell.does(*declare).said
    run.waits("following")
    run.equal(original, here.queue(NAME))
    assert here.queue(NAME).statistics().slots == 4096
    listed = shell.does(*replicas).out
    assert NAME in listed
    assert "following" in listed
    [row] = shell.does(*replicas, "--json").json
    assert row["queue"] == NAME
    assert row["position"] == 1
    shell.does(*replicate)
    shell.does(*detach)
    assert shell.does(*replicas, "--json").json == []
    here.queue(NAME).publish(b"its own")
    shell.does(*again)
    run.waits("following")
    run.equal(original, here.queue(NAME))


def test_the_commands_of_a_durable_replica(two: Made, shell: Shell) -> None:
    run = two()
    there, here = run.up()
    there.declare_queue("ledger").publish(b"one")
    declare, stat = typed(run, 1)
    shell.does(*declare)
    run.waits("following", "ledger")
    run.equal(there.queue("ledger"), here.queue("ledger"))
    assert "journal" in [gate["kind"] for gate in shell.does(*stat, "--json").json["gates"]]


def test_errors(two: Made, shell: Shell) -> None:
    run = two()
    there, here = run.up()
    folder = str(run.copy.folder)
    start = ["queue", "declare", "--broker", folder, "--start-replica", run.peer, NAME]
    replicate = ["ha", "replicate", "-b", folder, run.peer, NAME]
    assert f"there is no queue '{NAME}' on original" in fails(shell, *start)
    assert here.queues() == []
    assert "there is no queue 'orders' here" in fails(shell, *replicate)
    here.declare_queue(NAME)
    assert f"there is no queue '{NAME}' on original" in fails(shell, *replicate)
    there.declare_queue(NAME)
    assert "exists: make it follow by shmbroker ha replicate" in fails(shell, *start)
    shell.does(*replicate)
    other = ["ha", "replicate", "-b", folder, "127.0.0.1:1", NAME]
    assert f"follows tcp://{run.peer}" in fails(shell, *other)
    here.declare_queue("alone")
    nowhere = ["ha", "replicate", "-b", folder, "127.0.0.1:1", "alone"]
    assert "does not begin to follow: tcp://127.0.0.1:1" in fails(shell, *nowhere)
    assert "follows nothing" in fails(shell, "ha", "detach", "-b", folder, "alone")
    here.queue("alone").publish(b"x")


def test_usage(two: Made, shell: Shell) -> None:
    run = two()
    folder = str(run.copy.folder)
    said = fails(shell, "queue", "declare", "--start-replica", "node1", NAME, code=2)
    assert "--start-replica needs --broker" in said
    assert "no broker runs in" in fails(shell, "ha", "replicas", "-b", folder)


def test_a_broker_is_named_by_its_folder(two: Made, shell: Shell) -> None:
    run = two()
    run.copy.start().becomes("live")
    run.connected("copy").declare_queue(NAME)
    folder = str(run.copy.folder)
    assert NAME in shell.does("queue", "list", "-b", folder).out
    said = fails(shell, "queue", "list", "-b", folder, "--vhost", "other", code=2)
    assert "either --vhost" in said
