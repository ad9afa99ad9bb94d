"""`shmbroker witness`, as a person runs it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from shmbroker.ipc.instance.config.config import FILE
from shmbroker.netbridge.broker.witness import STATUS
from tests.cli.command import Shell, eventually, line_of
from tests.support.witness import BOTH, NODE, PATIENCE_SECONDS, Member, Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "witness")


def started(shell: Shell, place: Place) -> subprocess.Popen[bytes]:
    command = ["witness", "run", "--listen", place.uri, "--state", str(place.folder)]
    process = shell.start(*command, stderr=subprocess.PIPE)
    assert place.uri in line_of(process.stderr).decode()
    return process


@pytest.fixture
def running(shell: Shell, place: Place) -> Iterator[subprocess.Popen[bytes]]:
    process = started(shell, place)
    yield process
    process.kill()
    process.wait()


def test_it_shows_what_it_has_granted(
    shell: Shell, place: Place, running: subprocess.Popen[bytes]
) -> None:
    with_link = Member("a", [place]).wait()
    with_link.renew(BOTH, lease_ms=600)
    eventually(lambda: '"a"' in (place.folder / STATUS).read_text())  # links are shown soon
    shown = shell.does("witness", "status", "--state", str(place.folder), "--json").json
    assert shown["state"] == "runs"
    assert (shown["process"], shown["listen"]) == (running.pid, place.uri)
    [node] = shown["nodes"]
    assert node == {
        "node": NODE.hex(), "epoch": 1, "holder": "a", "in_sync": ["a", "b"], "lease_ms": 600,
        "accepted": None, "links": ["a"],
    }  # fmt: skip
    assert "a b" in shell.does("witness", "status", "--state", str(place.folder)).out
    with_link.close()
    running.terminate()
    assert running.wait(PATIENCE_SECONDS) == 0
    stopped = shell("witness", "status", "--state", str(place.folder), "--json")
    assert (stopped.code, stopped.json["state"]) == (1, "stopped")
    assert stopped.json["nodes"][0]["epoch"] == 1


def test_a_state_is_of_one_process(
    shell: Shell, place: Place, running: subprocess.Popen[bytes]
) -> None:
    second = shell("witness", "run", "--listen", place.uri, "--state", str(place.folder))
    assert second.code == 1
    assert f"witness that runs, process {running.pid}" in second.said


def test_what_is_missing_is_said(shell: Shell, place: Place) -> None:
    def refused() -> str:
        answer = shell("witness", "run", "--listen", place.uri, "--state", str(place.folder))
        assert answer.code == 1
        assert len(answer.said.splitlines()) == 1
        return answer.said

    file = place.folder / FILE
    file.write_text(file.read_text() + '[ha]\nrole = "live"\n')
    assert "a witness has no [ha]" in refused()
    file.write_text('[credentials.votes]\npassword = "a long password"\n')
    assert "admits nobody" in refused()
    file.write_text('[credentials.votes]\npassword = "guest"\nrole = "witness"\n')
    assert "shipped with" in refused()
    file.unlink()
    assert "write one with [credentials.NAME]" in refused()
    absent = shell("witness", "status", "--state", str(place.folder))
    assert absent.code == 1
    assert "is no state of a witness" in absent.said
