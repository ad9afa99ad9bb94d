"""perf.stream, made short: what was published arrives, from memory and from what is durable."""

from __future__ import annotations

import pytest

from shmbroker.perf.micro import stream


def test_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "SLOTS", {64: 1024, 1024: 256})
    found = list(stream.figures(rounds=2))
    assert [(each.size, each.durable) for each in found] == [
        (64, False), (1024, False), (64, True), (1024, True),
    ]  # fmt: skip
    assert all(each.messages > 0 and each.share > 0 for each in found)
