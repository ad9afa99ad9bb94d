"""perf.scaling: with more of anything, what is received is what was sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shmbroker.ipc.spool import hlog
from shmbroker.perf.harness.verdict import SumsDiffer
from shmbroker.perf.scenarios import scaling
from shmbroker.perf.scenarios.scaling import Part, Point, rate_of

SECONDS = 0.05


@pytest.mark.parametrize("client", ["c", "python"])
@pytest.mark.parametrize(
    "more",
    [{"producers": 3, "consumers": 2}, {"queues": 20}, {"bindings": 20}, {"size": 65536}],
    ids=lambda more: "-".join(more),
)
def test_what_is_received_is_what_was_sent(client: str, more: dict[str, int]) -> None:
    """Or the run says so."""
    told = scaling.run(Point(client, **more), SECONDS)
    assert told.rate > 0
    assert told.waited.total > 0


def test_a_message_too_few_or_another_counts_for_nothing() -> None:
    sent = [Part(10, 45, 0), Part(10, 145, 500)]
    assert rate_of([Part(4, 50, 900), Part(16, 140, 1000)], sent, 1) == pytest.approx(18 / 1e-6)
    for wrong in (Part(16, 141, 1000), Part(15, 140, 1000)):
        with pytest.raises(SumsDiffer):
            rate_of([Part(4, 50, 900), wrong], sent, 1)


@pytest.mark.usefixtures("conditions_are_known")
def test_what_it_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {kind: tmp_path / f"out.{kind}" for kind in ("json", "hlog", "html")}
    options = [word for kind, path in files.items() for word in (f"--{kind}", str(path))]
    asked = ["--with", "size", "--client", "c", "--number", "64", "--number", "4096"]
    brief = ["--rounds", "2", "--seconds", "20ms"]
    assert scaling.main([*asked, *brief, *options]) == 0
    assert "4 KiB" in capsys.readouterr().out
    told = json.loads(files["json"].read_text())
    assert [(each["name"], len(each["rounds"])) for each in told["cases"]] == [
        ("scaling 64 B, c", 2), ("scaling 4 KiB, c", 2),
    ]  # fmt: skip
    conditions = told["scenarios"]["scaling"]["conditions"]
    assert conditions["limits"].keys() >= {"raw_cacheline_ns", "fdatasync_ns"}
    logged = [line for line in files["hlog"].read_text().splitlines() if line.startswith("Tag=")]
    assert all(hlog.decode(line.rpartition(",")[2]).total for line in logged)
    assert [line.partition(",")[0] for line in logged] == [
        "Tag=scaling%2064%20B%2C%20c;publish-take", "Tag=scaling%204%20KiB%2C%20c;publish-take",
        "Tag=scaling%20jitter;gap",
    ]  # fmt: skip
    assert files["html"].read_text().count("data:image/png") == 1


@pytest.mark.usefixtures("conditions_are_known")
def test_a_message_has_room_for_its_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert scaling.main(["--with", "size", "--number", "7"]) == 2
    assert "at least 8 bytes" in capsys.readouterr().err
