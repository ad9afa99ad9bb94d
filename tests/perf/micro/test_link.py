"""perf.link, made short: what was published arrives, and each figure is there."""

from __future__ import annotations

import pytest

from shmbroker.perf.micro import link


def test_a_short_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(link, "MESSAGES", {64: 4096, 1024: 512, 64 << 10: 32})
    monkeypatch.setattr(link, "FRAMES", 16)
    monkeypatch.setattr(link, "ARENA_BYTES", 64 << 20)
    link.main(["--rounds", "1", "--trips", "20"])
    said = capsys.readouterr().out
    assert said.count("round trip") == 2
    assert said.count("stream") == 4
