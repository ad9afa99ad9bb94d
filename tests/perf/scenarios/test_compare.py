"""perf.compare: what is slower is found, and what is not raises no alarm."""

from __future__ import annotations

import json
import random
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from shmbroker.perf.scenarios import compare


def document(**cases: list[float]) -> dict[str, Any]:
    return {
        "cases": [
            {"name": name, "rounds": [{"p50_ns": value} for value in values]}
            for name, values in cases.items()
        ]
    }


def write(path: Path, told: object) -> str:
    path.write_text(json.dumps(told))
    return str(path)


def p_by_hand(old: list[float], new: list[float]) -> float:
    """Of all ways to deal them, how many are at least as bad."""

    def wins(before: list[float], after: list[float]) -> int:
        return sum(b < a for b in before for a in after)

    both = old + new
    seen = wins(old, new)
    dealings = list(combinations(range(len(both)), len(old)))
    bad = 0
    for chosen in dealings:
        before = [both[each] for each in chosen]
        after = [both[each] for each in range(len(both)) if each not in chosen]
        bad += wins(before, after) >= seen
    return bad / len(dealings)


@pytest.mark.parametrize("sizes", [(3, 3), (5, 5), (2, 6)])
def test_the_test_is_that_of_mann_and_whitney(sizes: tuple[int, int]) -> None:
    dice = random.Random(7)
    for _ in range(10):
        old, new = ([dice.random() for _ in range(size)] for size in sizes)
        assert compare.p_worse(old, new, -1) == pytest.approx(p_by_hand(old, new))
        assert compare.p_worse([-x for x in old], [-x for x in new], 1) == pytest.approx(
            p_by_hand(old, new)
        )


def test_what_is_slower_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = [100.0, 101, 102, 103, 104, 105, 106]
    old = write(tmp_path / "old", document(a=before, b=before))
    new = write(tmp_path / "new", document(a=[each * 1.1 for each in before], b=before))
    assert compare.main([old, new]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert ["SLOWER" in line for line in lines[1:3]] == [True, False]
    assert compare.main([new, old]) == 0  # faster is no fault
    assert compare.main([old, old]) == 0


@pytest.mark.parametrize("lost", [{}, {"b": [None, None]}])
def test_a_case_that_is_gone_or_has_failed_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lost: dict[str, list[None]]
) -> None:
    old = write(tmp_path / "old", document(a=[100.0, 101], b=[100.0, 101]))
    told = document(a=[100.0, 101])
    told["cases"] += [{"name": name, "rounds": rounds} for name, rounds in lost.items()]
    new = write(tmp_path / "new", told)
    assert compare.main([old, new]) == 1
    assert "failed there: b\n" in capsys.readouterr().out
    assert compare.main([new, old]) == 0  # there is more than before


def test_a_difference_that_does_not_matter_is_none(tmp_path: Path) -> None:
    before = [100.0 + each / 100 for each in range(7)]
    old = write(tmp_path / "old", document(a=before))
    new = write(tmp_path / "new", document(a=[each + 1 for each in before]))  # certain, and 1 %
    assert compare.main([old, new]) == 0


def test_too_few_rounds_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = write(tmp_path / "old", document(a=[100.0, 101]))
    new = write(tmp_path / "new", document(a=[200.0, 201]))
    assert compare.main([old, new]) == 0
    assert "5 rounds do" in capsys.readouterr().out


def test_without_a_difference_alarms_are_as_rare_as_stated() -> None:
    dice = random.Random(11)
    alarms = 0
    for _ in range(400):
        figures = [
            {(case, "p50_ns"): [dice.lognormvariate(5, 0.3) for _ in range(7)] for case in "abc"}
            for _ in "on"
        ]  # fmt: skip
        alarms += any(each.is_slower for each in compare.compare(*figures))
    assert alarms <= 12  # 4 are expected; more than 12 come by chance once in 4,000 times


@pytest.mark.parametrize("told", [{}, [], {"cases": [{}]}, {"cases": []}, "x"])
def test_what_cannot_be_compared(
    tmp_path: Path, told: object, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "one", told)
    assert compare.main([path, path]) == 2
    assert capsys.readouterr().err
    assert compare.main([path, str(tmp_path / "none")]) == 2
