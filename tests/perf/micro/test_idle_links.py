"""perf.idle_links, made short: every figure is there."""

from __future__ import annotations

import pytest

from shmbroker.perf.micro import idle_links


def test_a_short_one(capsys: pytest.CaptureFixture[str]) -> None:
    idle_links.main(["--links", "3", "--seconds", "0.2", "--losses", "1"])
    said = capsys.readouterr().out
    assert said.count("idle links") == 2
    assert said.count("told after") == 2
