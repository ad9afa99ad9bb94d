"""perf.pinned, made short: all three cases are measured, and a slow one is told."""

from __future__ import annotations

import os

import pytest

from shmbroker.perf.micro import pinned
from shmbroker.perf.micro.pinned import Turns


def test_each_case_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    allowed = os.sched_getaffinity(0)
    monkeypatch.setattr(pinned, "RATIO_MAX", 1e9)  # this machine is busy with other tests
    assert pinned.run(rounds=2, trips=50) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["apart", "together", "free"]
    assert os.sched_getaffinity(0) == allowed


def test_a_slow_case_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = Turns([(52_000.0, 1.0), (23_000.0, 1.0)], [(230.0, 1.0), (23_000.0, 1.0)])
    monkeypatch.setattr(pinned, "measure", lambda *asked: slow)
    assert pinned.run(rounds=2, trips=1) == 1
    assert "MISSED  more than 1.15 x: " in capsys.readouterr().out
