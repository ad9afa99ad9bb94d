"""perf.agent, made short: it runs, and counts what it publishes."""

from __future__ import annotations

import pytest

from shmbroker.perf.micro import agent


def test_each_way_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(agent, "ROUNDS", 1)
    monkeypatch.setattr(agent, "MESSAGES", 8)
    monkeypatch.setattr(agent, "MOST", float("inf"))
    assert agent.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:10].strip() for line in lines] == [agent.PLAIN, agent.ALL, agent.ONLY]
    assert agent.main(["--plain"]) == 0
    assert float(capsys.readouterr().out) > 0
