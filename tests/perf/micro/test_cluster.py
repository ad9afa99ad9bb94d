from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker.perf.micro import cluster


def test_a_cluster_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [f"--folder={tmp_path}", "--rounds=1", "--share=1000"]
    assert cluster.main(given) in (0, 1)
    told = capsys.readouterr().out
    assert "shares of four nodes: 25" in told
    assert "x to one other node" in told
    assert "of 1,000 that waited" in told
    assert "found by multicast" in told
