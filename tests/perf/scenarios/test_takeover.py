"""The benchmark of takeovers: ours is struck for real; who is compared with whom."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from shmbroker.ipc.instance.config.config import Config, Given
from shmbroker.ipc.instance.creation import create
from shmbroker.perf.replicated import ours as replicated
from shmbroker.perf.replicated.ours import Ours
from shmbroker.perf.scenarios.durable.contender import Contender, Slice
from shmbroker.perf.scenarios.takeover.__main__ import KILLED, STOPPED, main, verdicts
from shmbroker.perf.scenarios.takeover.trial import BODY, Outcome, tried

MS = 1_000_000


def outcome(name: str, per_s: float, killed: int = 0, stopped: int = 0) -> Outcome:
    contender = Contender(name, slices={BODY.size: [Slice((1000, 1000), per_s)]})
    pauses = {KILLED: [killed * MS], STOPPED: [stopped * MS]} if killed else {}
    return Outcome(contender, pauses)


def patient(folder: Path, given: Given) -> Config:
    """A member that a busy machine keeps waiting is none that hangs."""
    times = {"link-defaults.heartbeat-interval": "2s", "ha.replication.replica-timeout": "9s"}
    return create(folder, {**given, **times})


def test_ours_loses_nothing_when_its_live_is_killed_and_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicated, "create", patient)
    told: list[str] = []
    found = tried(Ours(), tmp_path, 1, 3, 200, 1, 1, told.append)
    assert not found.faults
    assert [len(found.pauses[each.name]) for each in (signal.SIGKILL, signal.SIGSTOP)] == [1, 1]
    assert found.confirmed > 2
    assert (found.lost, found.twice) == (0, 0)
    assert found.pauses[STOPPED][0] > 100 * MS, "nobody has closed a socket"


def test_a_pause_and_a_rate_are_compared() -> None:
    ours, full = outcome("shmbroker", 1000.0, 20, 650), outcome("shmbroker, 1GiB", 1.0, 30, 750)
    peers = [outcome("slow", 50.0), outcome("quick", 200.0)]
    found = verdicts([ours, full, *peers])
    assert [each.is_met for each in found] == [True, True, True, False, True, False, False, False]
    assert found[0].text == "shmbroker, killed: p50 20.0 ms (at most 25)"
    assert found[-2].text == "shmbroker, 1GiB: 1.50 x the p50 without it (at most 1.2)"
    assert found[-1].text == "many outstanding: 5.0 x quick (at least 10)"


def test_who_fails_is_told_and_fails_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], conditions_are_known: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def cannot(self: Ours) -> None:
        raise OSError("no room")

    monkeypatch.setattr(Ours, "configure", cannot)
    monkeypatch.setattr("shmbroker.perf.scenarios.takeover.__main__.PEERS", {})
    written = tmp_path / "told.json"
    assert main([f"--folder={tmp_path}", f"--json={written}"]) == 1
    assert "FAILED  shmbroker: OSError: no room" in capsys.readouterr().out
    assert json.loads(written.read_text())["scenarios"]["takeover"]["failures"]
