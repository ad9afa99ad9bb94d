"""What a live does when a backup that it runs for another one cannot begin, or ends at once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shmbroker.netbridge.cluster.asking import Asking
from shmbroker.netbridge.cluster.hosting import Begin
from shmbroker.netbridge.cluster.said import BackupEnds, Granted, Releases, Requests
from shmbroker.netbridge.clustered import colocating
from shmbroker.netbridge.clustered.colocating import Colocating
from shmbroker.netbridge.config.colocated import Colocated
from tests.netbridge.cluster.talk import node_of

WEST = node_of("west")
WANTED = Requests(
    1, 0, "shared-store", "", "west", "west", "/", "/shared/west", "", "", ""
)  # fmt: skip


class Host:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines: list[tuple[Any, ...]] = []
        self.said: list[Any] = []
        monkeypatch.setattr(colocating, "encode", lambda what: what)
        monkeypatch.setattr(colocating, "Talk", lambda what: what)
        self.end: Any = SimpleNamespace(say=self.said.append)
        config = SimpleNamespace(folder=folder, policy="shared-store", vhost="east")
        found = Colocated(False, 1, None, 5.0, 100, ())
        setup: Any = SimpleNamespace(config=config, colocated=found, group_name="")
        nobody: Any = SimpleNamespace()
        self.colocating = Colocating(
            nobody, nobody, setup, lambda *line: self.lines.append(line), lambda *shown: None
        )
        self.colocating._lives = {WEST: self.end}
        begin = self.colocating._hosting.requested(WEST, WANTED)
        assert isinstance(begin, Begin)
        self.begin = begin
        self.colocating._for[WEST] = begin


def test_one_that_ends_before_it_is_known_here_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else who asked for it would believe for ever that it has a backup."""
    host = Host(tmp_path, monkeypatch)
    child: Any = SimpleNamespace(code=1, why="it has no store")
    host.colocating._ended(WEST, 1)
    host.colocating._begun(host.end, host.begin, child)
    granted, ends = host.said
    assert isinstance(granted, Granted)
    assert granted.why == ""
    assert isinstance(ends, BackupEnds)
    assert ends.why == "exit code 1: it has no store"
    host.colocating._ended(WEST, 1)  # told late
    assert len(host.said) == 2
    assert not host.colocating._hosting.hosted


def test_one_that_is_released_while_it_is_being_started_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asked for it has another one by then, and says so once."""
    host, stopped = Host(tmp_path, monkeypatch), []
    child: Any = SimpleNamespace(code=None, why="", stop=lambda: stopped.append(1))
    live: Any = SimpleNamespace(node=WEST, is_live=True)
    host.colocating.heard(host.end, live, Releases())
    host.colocating._begun(host.end, host.begin, child)
    assert stopped == [1]
    host.colocating._ended(WEST, 0)
    granted, ends = host.said
    assert isinstance(granted, Granted)
    assert ends == BackupEnds("colocated_backup_1", "exit code 0")
    assert not host.colocating._hosting.hosted


def test_what_cannot_be_a_path_is_refused_and_ends_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(tmp_path, monkeypatch)
    host.colocating._begun(host.end, host.begin, ValueError("embedded null byte"))
    assert host.said[0] == Granted(1, "", "embedded null byte", is_old=False)
    assert not host.colocating._hosting.hosted


def test_one_that_cannot_begin_has_ended_for_whom_it_was_counted_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was asked for so long ago that the refusal is of nothing which is waited for."""
    host, asks, east = Host(tmp_path, monkeypatch), Asking(None, 5.0), node_of("east")
    list(asks.becomes(0.0, is_live=True))
    list(asks.reaches([east], 0.0))
    list(asks.counted(east, host.colocating._hosting.counted(WEST, 2), 40.0))
    assert asks.host == east
    host.colocating._begun(host.end, host.begin, ValueError("its port is taken"))
    for what in host.said:
        has_ended = isinstance(what, BackupEnds)
        list(asks.ended(east, what.why, 50.0) if has_ended else asks.answered(east, what, 50.0))
    assert (asks.host, asks.why) == (None, "its port is taken")


def test_one_that_cannot_begin_has_ended_for_whom_it_was_counted_over_a_newer_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is being started is said to be theirs, and the refusal goes over the link of before."""
    host = Host(tmp_path, monkeypatch)
    newer: list[Any] = []
    host.colocating._lives = {WEST: SimpleNamespace(say=newer.append)}  # type: ignore[dict-item]
    assert host.colocating._hosting.counted(WEST, 2).is_yours
    host.colocating._begun(host.end, host.begin, ValueError("its port is taken"))
    assert newer == [BackupEnds("colocated_backup_1", "its port is taken")]
