from __future__ import annotations

import pytest

from shmbroker.perf.micro import idle_sessions


def test_idle_sessions_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert idle_sessions.main(["--sessions=3", "--seconds=0.2", "--aged=0"]) in (0, 1)
    told = capsys.readouterr().out
    assert "3 idle sessions" in told
