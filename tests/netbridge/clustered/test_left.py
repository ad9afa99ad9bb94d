"""A node that has left keeps that, also if its file cannot be written."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shmbroker.ipc.base.errors import ConnectionClosed
from shmbroker.ipc.instance.whole import write_whole
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.carrier.worker import Worker
from shmbroker.netbridge.cluster.said import Left
from shmbroker.netbridge.clustered.left import LeftNodes
from shmbroker.netbridge.clustered.members import Members
from shmbroker.netbridge.clustered.setup import LIVES, keep_lives, kept_lives, read_left
from shmbroker.netbridge.clustered.towards import _read
from shmbroker.netbridge.election.threshold import Quorum
from tests.netbridge.cluster.talk import Town, node_of


def made(worker: Worker, place: Path, lines: list[tuple[str, ...]]) -> LeftNodes:
    machine = Town().add("east")
    return LeftNodes(place, worker, machine, list, lambda *line: lines.append(line))


def test_a_file_that_cannot_be_written_is_told_of(tmp_path: Path) -> None:
    lines: list[tuple[str, ...]] = []
    with NetworkThread() as thread:
        worker = Worker(thread.call)
        left, done = made(worker, tmp_path / "nowhere" / "left", lines), Future[None]()
        thread.call(lambda: left.has_left(node_of("west"), done))
        thread.answered(done)
        worker.close()
    assert [line[:2] for line in lines] == [("error", "not kept")]


def test_how_many_count_and_who_was_counted_off_is_kept(tmp_path: Path) -> None:
    config: Any = SimpleNamespace(store=tmp_path)
    fresh = Quorum(recalculates=False)
    assert kept_lives(config, fresh) == fresh
    keep_lives(config, fresh.sees(["a", "b", "c"]).forgets("c"))
    kept = kept_lives(config, fresh)
    assert (kept.lives, kept.forgets("c").lives, kept.sees(["c"]).lives) == (2, 2, 3)
    write_whole(tmp_path / LIVES, {"lives": None})
    assert kept_lives(config, fresh) == fresh


def test_a_node_that_leaves_does_not_wait_for_a_network_that_has_ended(tmp_path: Path) -> None:
    thread = NetworkThread()
    worker = Worker(thread.call)
    members: Any = SimpleNamespace(
        _thread=thread, _worker=worker, _left=made(worker, tmp_path / "left", []),
        _listening=SimpleNamespace(end=lambda: None),
    )  # fmt: skip
    thread.close()
    for step in (lambda: Members.has_left(members, node_of("west")),
                 lambda: Members.listens_no_more(members)):  # fmt: skip
        with pytest.raises(ConnectionClosed, match="network thread has ended"):
            step()
    worker.close()


@pytest.mark.parametrize("said", [5, [1], [1, 2, 3], ["x", "ab"], [1, 5], [1, "x"], None])
def test_what_is_no_node_that_has_left_is_passed_over(tmp_path: Path, said: object) -> None:
    place = tmp_path / "left"
    west, east = node_of("west"), node_of("east")
    write_whole(place, {"ab": said, west.hex(): [3, east.hex()]})
    assert read_left(place) == [Left(west, 3, east)]


@pytest.mark.parametrize("hop", [5, None, ["ab"], "x"])
def test_what_are_no_hops_are_passed_over(tmp_path: Path, hop: object) -> None:
    write_whole(tmp_path / "ways", {"ab": hop})
    assert _read(tmp_path / "ways") == {}
