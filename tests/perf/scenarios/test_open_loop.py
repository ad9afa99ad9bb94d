"""perf.open_loop: messages count from when they were due, and what it writes can be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shmbroker.ipc.spool import hlog
from shmbroker.perf.machine.histograms import GEOMETRY, histogram_of, merged
from shmbroker.perf.scenarios import open_loop, paced
from shmbroker.perf.scenarios.open_loop import Case, knee
from shmbroker.perf.scenarios.paced import Pace, Run

STALL_SECONDS = 0.2


@pytest.mark.parametrize("client", ["c", "python"])
def test_a_consumer_that_stalls_shows_in_the_tail(client: str) -> None:
    """Not one message, but all that were due meanwhile: half of them waited half of the stall."""
    pace = Pace(5_000, seconds=0.4, client=client, stall=STALL_SECONDS)
    told = paced.run(pace).histogram
    assert told.total == pace.count
    assert told.maximum >= STALL_SECONDS * 1e9 * 0.99
    waited = sum(count for value, count in told if value >= STALL_SECONDS / 2 * 1e9)
    assert waited >= pace.rate * STALL_SECONDS / 2 * 0.9


def test_of_a_burst_all_are_due_at_once() -> None:
    pace = Pace(10, seconds=10.0, burst=50, client="c")
    told = paced.run(pace)
    assert told.histogram.total == 100
    assert told.achieved > 12  # the last burst is due when half of the time is over


def test_of_a_bare_ring_each_message_comes_when_it_was_due() -> None:
    """More than it has lines, so that each line is used again; a burst of all at once."""
    pace = Pace(1_000_000, seconds=0.1, burst=100_000)
    told = paced.run_bare(pace)
    assert told.histogram.total == pace.count > paced.LINES
    assert 0 < told.histogram.percentile(50) < 60e9


def case(rate: int, achieved: float, ns: int, bare_ns: int = 100) -> Case:
    bare = Run(histogram_of([bare_ns] * 100), rate)
    return Case.of(Pace(rate), [Run(histogram_of([ns] * 100), achieved)], [bare])


def test_the_knee() -> None:
    slow, fast = case(1000, 1000, 1000), case(2000, 2000, 9000)
    late, behind = case(4000, 4000, 50_000), case(8000, 5000, 900_000)
    assert knee([slow, fast, late, behind]) is fast
    assert knee([case(10, 5, 1000)]) is None


def test_what_the_machine_does_to_a_bare_ring_is_no_knee() -> None:
    slow, stopped = case(1000, 1000, 1000), case(2000, 2000, 90_000, bare_ns=60_000)
    assert knee([slow, stopped]) is stopped


def test_a_time_is_in_its_bucket() -> None:
    """As the scalar arithmetic of the geometry says."""
    values = [0, 1, 2047, 2048, 2049, 4095, 4096, 10**6, 10**9 + 7, GEOMETRY.highest, 1 << 60]
    expected = {GEOMETRY.index(min(value, GEOMETRY.highest)) for value in values}
    assert set(histogram_of([*values, -5]).indexes) == expected


def test_histograms_are_merged_by_adding() -> None:
    one, two = histogram_of([1, 5, 5, 900]), histogram_of([5, 10**6])
    both = merged([one, two])
    assert list(both) == list(histogram_of([1, 5, 5, 900, 5, 10**6]))
    assert both.total == 6


@pytest.mark.usefixtures("conditions_are_known")
def test_what_it_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {kind: tmp_path / f"out.{kind}" for kind in ("json", "hlog", "html")}
    options = [word for kind, path in files.items() for word in (f"--{kind}", str(path))]
    rates = ["--rate", "2000", "--rate", "1000"]
    assert open_loop.main([*rates, "--seconds", "0.05", "--rounds", "2", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [f"{ring}, {rate}/s" for rate in ("1,000", "2,000") for ring in ("c", "bare ring")]
    assert [line.split("  ")[0] for line in lines[4:8]] == names
    assert lines[-1].startswith("knee: ")
    told = json.loads(files["json"].read_text())
    assert [len(each["rounds"]) for each in told["cases"]] == [2, 2]
    assert [len(each["bare_rounds"]) for each in told["cases"]] == [2, 2]
    assert told["machine"]["kernel"]
    logged = [line for line in files["hlog"].read_text().splitlines() if line.startswith("Tag=")]
    assert [hlog.decode(line.rpartition(",")[2]).total for line in logged] == [
        100, 100, 200, 200, 1,
    ]  # fmt: skip
    assert told["scenarios"]["open-loop"]["conditions"]["load"] == 0.5
    page = files["html"].read_text()
    assert page.count("data:image/png") == 3
    assert all(name in page for name in names)


@pytest.mark.usefixtures("conditions_are_known")
def test_what_it_was_before_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = tmp_path / "old.json"
    options = ["--rate", "1000", "--seconds", "0.02", "--rounds", "6"]
    assert open_loop.main([*options, "--json", str(old)]) == 0
    told = json.loads(old.read_text())
    for each in told["cases"][0]["rounds"]:
        each["p50_ns"] = 1.0
    old.write_text(json.dumps(told))
    assert open_loop.main([*options, "--compare", str(old)]) == 1
    assert "SLOWER" in capsys.readouterr().out
    assert open_loop.main([*options, "--compare", str(tmp_path / "none")]) == 2


@pytest.mark.parametrize("wrong", [["--rate", "0"], ["--burst", "0"], ["--seconds", "0"]])
def test_what_makes_no_sense_is_refused(wrong: list[str]) -> None:
    assert open_loop.main(wrong) == 2
