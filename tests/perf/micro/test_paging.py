"""perf.paging, made short: what has no room in memory comes back from files, all of it in order."""

from __future__ import annotations

import pytest

from shmbroker.perf.micro import paging


def test_a_short_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(paging, "SLOTS", 4096)
    monkeypatch.setattr(paging, "RATE_MIN", 0.0)  # other tests may run as well
    assert paging.main(["--messages", "100000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["in", "paged", "out", "memory"]
    assert lines[1].split()[1] == "95,904"
    assert "0 not in order" in lines[2]
