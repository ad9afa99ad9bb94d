"""perf.topologies, made short: a table, figures to compare, histograms, and pictures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shmbroker.perf.compare import figures_of
from shmbroker.perf.topologies.__main__ import main


@pytest.mark.usefixtures("conditions_are_known")
def test_what_it_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {kind: tmp_path / f"out.{kind}" for kind in ("json", "hlog", "html")}
    options = [word for kind, path in files.items() for word in (f"--{kind}", str(path))]
    asked = ["--topology", "ping-pong", "--topology", "one-to-one", "--size", "64"]
    asked += ["--peer", "mp-pipe", "--mode", "single", "--quick", "--rounds", "1"]
    assert main([*asked, *options]) == 0
    assert "mp-pipe" in capsys.readouterr().out
    told = json.loads(files["json"].read_text())
    assert ("ping-pong 64 mp-pipe single", "p99_ns") in figures_of(told)
    assert ("one-to-one 64 mp-pipe single", "messages_per_s") in figures_of(told)
    log = files["hlog"].read_text()
    assert "mp-pipe/single;round-trip" in log
    page = files["html"].read_text()
    assert page.count("data:image/png") == 3  # bars of both, and the percentiles of round trips
    assert "[none]" not in page  # it stands in the pictures; the table has a column
    assert "durable" in page
