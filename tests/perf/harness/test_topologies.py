"""perf.topologies, made short: a table, figures to compare, histograms, and pictures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shmbroker.perf.harness.case import Case, Entry
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.run import RunRecord
from shmbroker.perf.harness.task import Task
from shmbroker.perf.machine.histograms import histogram_of
from shmbroker.perf.peers.mp_pipe import MpPipe
from shmbroker.perf.peers.mp_queue import MpQueue
from shmbroker.perf.peers.ours_python import OursPython
from shmbroker.perf.raw.cacheline import RawCacheline
from shmbroker.perf.scenarios.compare import figures_of
from shmbroker.perf.scenarios.page import Page
from shmbroker.perf.scenarios.topologies import TOPOLOGIES
from shmbroker.perf.scenarios.topologies.__main__ import KINDS, draw, main, mark


@pytest.mark.usefixtures("conditions_are_known")
def test_what_it_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {kind: tmp_path / f"out.{kind}" for kind in ("json", "hlog", "html")}
    options = [word for kind, path in files.items() for word in (f"--{kind}", str(path))]
    asked = ["--topology", "one-to-one", "--size", "64"]
    asked += ["--peer", "mp-pipe", "--mode", "single", "--quick", "--rounds", "1"]
    assert main([*asked, *options]) == 0
    assert "mp-pipe" in capsys.readouterr().out
    told = json.loads(files["json"].read_text())
    assert ("one-to-one 64 mp-pipe single", "messages_per_s") in figures_of(told)
    assert told["scenarios"]["topologies"]["versions"]
    page = files["html"].read_text()
    assert page.count("data:image/png") == 1
    assert "durable" in page


def test_round_trips_are_told_by_percentile() -> None:
    task = Task(TOPOLOGIES["ping-pong"], 64, "single")
    entries = []
    for peer, ns in ((MpPipe(), 5_000.0), (RawCacheline(), 50.0), (OursPython(), 500.0)):
        figures = {"p50_ns": ns, "p99_ns": 3 * ns}
        trips = histogram_of([ns, 2 * ns, 3 * ns])
        rounds: list[RunRecord | None] = [None, RunRecord(Plan(task), figures, histogram=trips)]
        entries.append(Entry(peer, task, Plan(task), rounds, ["round 1: died"]))
    case = Case(task.topology, 64, [*entries, Entry(MpQueue(), task, failures=["died"])])
    page = Page()
    draw([case], None, page)
    assert [each.name for each in page.drawings] == [
        "ping-pong, 64 B",
        "ping-pong, 64 B percentiles",
    ]
    assert [mark(entry) for entry in entries] == [KINDS[1], KINDS[2], KINDS[0]]
    assert "died" in page.html("")
