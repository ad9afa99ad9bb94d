"""The remote benchmark: ours and a peer over TCP, a link, its verdicts and its table."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from shmbroker.perf.machine.debian import NotInstalled
from shmbroker.perf.peers.redis_stream import RedisInMemory
from shmbroker.perf.scenarios.durable.contender import Contender, Slice
from shmbroker.perf.scenarios.remote.__main__ import main
from shmbroker.perf.scenarios.remote.kind import KINDS, through
from shmbroker.perf.scenarios.remote.verdicts import verdicts
from shmbroker.perf.server.linked import LINKED_QUEUE
from shmbroker.perf.server.server import Server

SHORT = ["--size=64", "--rounds=1", "--singles=3", "--seconds=10ms", "--peer=redis"]
LINKED = KINDS["link"].servers
TRIED = LINKED if os.environ.get("SHMBROKER_LONG") else LINKED[:1]
"""Ours; the others take minutes to install."""


def contender(name: str, waits_us: list[int], per_s: float) -> Contender:
    return Contender(name, slices={64: [Slice(tuple(1000 * each for each in waits_us), per_s)]})


def test_ours_and_a_peer_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], conditions_are_known: None
) -> None:
    RedisInMemory.install()
    written = tmp_path / "told.json"
    asked = [*SHORT, "--kind=memory", "--kind=link", f"--folder={tmp_path}", f"--json={written}"]
    assert main(asked) == 0
    told = capsys.readouterr().out
    assert "memory, 64 B" in told
    assert "link, 64 B" in told
    found = json.loads(written.read_text())
    names = [each["name"] for each in found["cases"]]
    assert names == ["remote memory shmbroker, 64 B", "remote memory redis, 64 B",
                     "remote link shmbroker, 64 B"]  # fmt: skip
    assert len(found["scenarios"]["remote"]["verdicts"]) == 3
    assert not found["scenarios"]["remote"]["failures"]


def test_a_peer_that_cannot_be_had_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], conditions_are_known: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def missing() -> None:
        raise NotInstalled("sudo apt-get install redis-server")

    monkeypatch.setattr(RedisInMemory, "install", staticmethod(missing))
    assert main([*SHORT, "--kind=memory", f"--folder={tmp_path}"]) == 0
    told = capsys.readouterr().out
    assert "redis is left out: sudo apt-get install redis-server" in told
    assert "met" not in told.split()


@pytest.mark.parametrize("server", TRIED, ids=lambda server: server.name)
def test_what_is_published_at_one_is_taken_at_the_other(server: Server, tmp_path: Path) -> None:
    server.install()
    with server.hosted(tmp_path) as running:
        connection = server.connect(running.place, LINKED_QUEUE)
        try:
            for size in (64, 1024):
                through(connection, size, 3, 3000)
        finally:
            connection.close()


def test_it_is_compared_with_the_best_in_rate_and_with_each_in_latency() -> None:
    ours = contender("shmbroker", [100] * 99 + [250], 1000.0)
    peers = [
        contender("quick", [90] * 98 + [300] * 2, 100.0),
        contender("steady", [200] * 100, 150.0),
        Contender("failed"),
    ]
    rate, p50, p99 = verdicts(KINDS["memory"], ours, peers, 64)
    assert rate.figure == pytest.approx(1000 / 150)
    assert rate.is_met
    assert p50.figure == pytest.approx(100 / 90)
    assert not p50.is_met
    assert "quick" in p50.text
    assert "steady" in p99.text
    assert verdicts(KINDS["memory"], ours, [], 64) == []
