"""A member of a cluster that is elected again before all of its time as live is cleared away; and
what it keeps of how many elect."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shmbroker.ipc.instance.creation import create
from shmbroker.netbridge.broker.given import Given
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.cluster.said import Announcement, Here
from shmbroker.netbridge.clustered import kept_lives
from shmbroker.netbridge.clustered.members import Members, Standing
from shmbroker.netbridge.clustered.setup import Setup, setup
from shmbroker.netbridge.config.config import load
from shmbroker.netbridge.config.logins import credentials
from shmbroker.netbridge.election.threshold import Quorum
from shmbroker.netbridge.witness.state import State
from shmbroker.perf.machine.port import free_port
from tests.netbridge.cluster.talk import node_of

NODE = node_of("east")
PATIENCE = 60.0


def east(tmp_path: Path) -> Setup:
    """Of a vhost that is not there."""
    folder, uri = tmp_path / "east", f"tcp://127.0.0.1:{free_port()}"
    create(folder, {
        "instance.name": "east", "instance.vhost": "nowhere", "connectors.east.uri": uri,
        "cluster.town.connector": "east", "cluster.town.static-connectors": ["east"],
        "cluster.town.user": "town", "cluster.town.password": "correct horse",
        "cluster.town.max-hops": 0,
        "acceptors.town.uri": uri, "acceptors.town.roles": ["cluster"],
    })  # fmt: skip
    config, network = load(folder)
    known, _ = credentials(network)
    found = setup(config, Given(network, known), "")
    assert found is not None
    return found


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Members]:
    found = east(tmp_path)
    with NetworkThread() as thread, Members(thread, found, lambda _: None, lambda *_: None) as made:
        yield made


def test_who_is_elected_again_listens_and_votes(members: Members, tmp_path: Path) -> None:
    def lives(epoch: int) -> None:
        members.becomes(
            Standing(NODE, epoch, is_live=True), lambda: State(tmp_path / "votes", bytes(16))
        )

    def served() -> tuple[bool, bool]:
        """What it was told before is done: whether it listens, and votes."""
        done = threading.Event()
        members._thread.ask(lambda: members._worker.do(lambda: None, lambda _: done.set()))
        assert done.wait(PATIENCE)
        return bool(members._listening._there), members._voting.witness is not None

    lives(1)
    assert served() == (True, True)
    goes_on = threading.Event()
    members._worker.do(lambda: goes_on.wait(PATIENCE), lambda _: None)
    members.becomes(Standing(NODE, 1, is_live=False))
    lives(3)
    members._thread.ask(lambda: None)
    goes_on.set()
    ends_at = time.monotonic() + PATIENCE
    while served() != (True, True):  # ZeroMQ may take a moment to give the address free
        assert time.monotonic() < ends_at
        time.sleep(0.05)


def test_a_disk_that_is_full_keeps_nobody_from_counting_who_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_lives, "AGAIN_SECONDS", 0.0)
    lines: list[Any] = []
    tried: list[int] = []
    is_kept = threading.Event()

    def keeps(quorum: Quorum) -> None:
        tried.append(quorum.lives)
        if len(tried) < 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "cluster-lives")
        is_kept.set()

    west = Announcement(
        node_of("west"), bytes(16), 1, 1, "west", "tcp://127.0.0.1:1", True, ("west",), ""
    )
    with (
        NetworkThread() as thread,
        Members(thread, east(tmp_path), lines.append, lambda *_: None, keeps) as members,
    ):

        def meets() -> None:
            members._does(members.machine.up(99, 0.0))
            members._does(members.machine.heard(99, Here(west, 1, 0), 0.0))

        members.becomes(Standing(NODE, 1, is_live=False))
        thread.ask(meets)
        assert is_kept.wait(PATIENCE)
    assert tried == [2, 2, 2]
    [line] = [each for each in lines if each.get("state") == "not kept"]
    assert "cluster-lives" in line["detail"]


def test_who_forgets_a_node_hears_when_that_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_lives, "AGAIN_SECONDS", 0.0)
    has_room, is_kept = threading.Event(), threading.Event()

    def keeps(quorum: Quorum) -> None:
        if quorum.lives == 1 and not has_room.is_set():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "cluster-lives")
        is_kept.set()

    west = Announcement(
        node_of("west"), bytes(16), 1, 1, "west", "tcp://127.0.0.1:1", True, ("west",), ""
    )
    with (
        NetworkThread() as thread,
        Members(thread, east(tmp_path), lambda _: None, lambda *_: None, keeps) as members,
    ):

        def meets() -> None:
            members._does(members.machine.up(99, 0.0))
            members._does(members.machine.heard(99, Here(west, 1, 0), 0.0))
            members._does(members.machine.down(99, 0.0))

        members.becomes(Standing(NODE, 1, is_live=False))
        thread.ask(meets)
        assert is_kept.wait(PATIENCE)
        is_kept.clear()
        assert members.forget(west.node.hex()[:8]) == (west.node, "west")
        with pytest.raises(OSError, match="cluster-lives"):
            members.keeps_forgotten(west.node)
        has_room.set()
        assert is_kept.wait(PATIENCE)
        members.keeps_forgotten(west.node)
