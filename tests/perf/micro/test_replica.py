from __future__ import annotations

from pathlib import Path

import pytest

from shmbroker.perf.micro import replica


def test_a_replica_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--rounds=1", "--share=200", f"--folder={tmp_path}"]
    assert replica.main(given) in (0, 1)
    told = capsys.readouterr().out
    assert "a confirm, one outstanding" in told
    assert "1024 B, many outstanding" in told
