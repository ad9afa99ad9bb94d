from __future__ import annotations

import pytest

from shmbroker.perf.micro import queue_replica


def test_a_queue_replica_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert queue_replica.main(["--rounds=2", "--pairs=2", "--share=100"]) in (0, 1)
    told = capsys.readouterr().out
    assert "million/s of 64 B" in told
    assert "times as long as without one" in told
    assert "after it was away for 10 changes" in told
