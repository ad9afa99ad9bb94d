"""python -m shmbroker.perf: what is missed is told, and stops nothing; all of it is on one page."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from shmbroker.perf import __main__ as everything
from shmbroker.perf.scenarios import conditions, parts
from shmbroker.perf.scenarios.conditions import conditions_now
from shmbroker.perf.scenarios.findings import Findings, Verdict
from shmbroker.perf.scenarios.scenario import Scenario


def scenario_of(name: str, *verdicts: Verdict) -> Scenario:
    def measure(steps: object) -> Findings:
        if not verdicts:
            raise RuntimeError("it broke")
        return Findings(f"table of {name}", [], "k", lambda page: page.note(name), {}, verdicts)

    return Scenario(name, "help", "examples", (), measure, "none")


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, conditions_are_known: None
) -> Callable[..., int]:
    given = {
        "open-loop": scenario_of("open-loop"),
        "scaling": scenario_of("scaling", Verdict("too slow", 2.0, 1.0, False)),
        "durable": scenario_of("durable", Verdict("fine", 1.0, 1.0, True)),
    }
    monkeypatch.setattr(everything, "scenario", given.__getitem__)
    monkeypatch.chdir(tmp_path)

    def run(names: Sequence[str], *more: str) -> int:
        words = [word for name in names for word in ("--only", name)]
        return everything.main([*words, "--quick", "--folder", str(tmp_path), *more])

    return run


def test_what_is_missed_or_breaks_stops_nothing(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["open-loop", "scaling", "durable", "idle-queues"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "1,000 queues" in "".join(lines)
    assert lines[-2:] == ["MISSED  too slow", "FAILED  open-loop: RuntimeError: it broke"]
    told = json.loads((tmp_path / "bench.json").read_text())
    assert list(told["scenarios"]) == ["scaling", "durable"]
    assert told["parts"]["idle_queues"]["exit_code"] == 0
    page = (tmp_path / "bench.html").read_text()
    assert all(
        text in page for text in ("too slow", "fine", "it broke", "1,000 queues", "cache line")
    )


def test_all_is_well(run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["durable"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "all verdicts are met"


def test_a_missed_verdict_is_an_error_only_if_strict(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["scaling"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "MISSED  too slow"
    assert run(["scaling"], "--strict") == 1
    alone = scenario_of("scaling", Verdict("too slow", 2.0, 1.0, False)).command
    assert (alone.main([]), alone.main(["--strict"])) == (0, 1)


@pytest.mark.parametrize("name", everything.MODULES)
@pytest.mark.parametrize("quick", [True, False])
def test_each_scenario_understands_what_it_will_be_asked(name: str, quick: bool) -> None:
    of = everything.scenario(name)
    asked = of.asked(everything.words(of, quick, 3, Path("/var")))
    assert asked["rounds"] == 3
    assert ("folder" in asked) == (name in ("durable", "failover", "remote"))


def test_a_part_that_misses_its_target_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(parts.QUICK, "idle_queues", ("--queues=not-a-number",))
    part = parts.run("idle_queues", quick=True, folder=tmp_path)
    assert part.code == 2
    assert "MISSED  idle_queues ended with 2" in str(part)
    assert "not-a-number" in part.text


def test_the_conditions_have_all_limits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = "raw_cacheline_ns"
    peer, plan, of = conditions.LIMITS[name]
    # two that spin take long where others want the processor
    short = replace(plan, warmup=10, groups=1)
    monkeypatch.setitem(conditions.LIMITS, name, (peer, short, of))
    told = conditions_now(tmp_path)
    assert told.limits.keys() == {*conditions.LIMITS, "fdatasync_ns"}
    assert min(told.limits.values()) > 0
    assert told.jitter.total > 1000
    assert not list(tmp_path.iterdir())
