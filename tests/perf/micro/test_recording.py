"""perf.recording, made short: it runs, with all messages recorded and with some."""

from __future__ import annotations

import pytest

from shmbroker.perf.micro import recording


def test_each_way_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recording, "pin", lambda number: None)
    monkeypatch.setattr(recording, "SPIN_SECONDS", 0.0)  # to sleep: others need the processors
    monkeypatch.setattr(recording, "TRIPS", 8)
    assert recording.main(["--pairs", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    ways = ("ping-pong", *recording.WAYS)
    assert [line[:18].strip() for line in lines] == [way for way in ways for _ in recording.ONE_IN]
