from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from shmbroker.perf.micro import cluster
from shmbroker.perf.micro.instance import Instance


def patient(node: Instance, more: Mapping[str, object]) -> None:
    """One that a busy machine keeps waiting has its share all the same."""
    Instance.create(node, {**more, "link-defaults.heartbeat-interval": "3s"})


def test_a_cluster_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.Node, "create", patient)
    given = [f"--folder={tmp_path}", "--rounds=1", "--share=1000"]
    assert cluster.main(given) in (0, 1)
    told = capsys.readouterr().out
    assert "shares of four nodes: 25" in told
    assert "x to one other node" in told
    assert "of 1,000 that waited" in told
    assert "found by multicast" in told
