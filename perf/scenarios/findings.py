"""What a scenario found, and how it is told: as text, JSON, a histogram log, and a page."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shmbroker.ipc.latency.latency import Histogram
from shmbroker.ipc.spool import hlog
from shmbroker.perf.machine.machine import Description
from shmbroker.perf.scenarios.conditions import Conditions

if TYPE_CHECKING:  # it needs matplotlib, which only a page needs
    from shmbroker.perf.scenarios.page import Page
    from shmbroker.perf.scenarios.parts import Part


@dataclass(frozen=True)
class Verdict:
    """What a figure should be, and whether it is."""

    text: str
    figure: float
    target: float
    is_met: bool

    def __str__(self) -> str:
        return f"{'met   ' if self.is_met else 'MISSED'}  {self.text}"

    def as_json(self) -> dict[str, object]:
        return {"text": self.text, "figure": self.figure, "target": self.target, "met": self.is_met}


@dataclass(frozen=True)
class Findings:
    table: str
    cases: Sequence[Mapping[str, Any]]
    """What perf.compare reads: a name and rounds each."""
    kind: str
    """What is in the histograms: from when to when."""
    draw: Callable[[Page], None]
    """Puts the pictures on a page."""
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    verdicts: Sequence[Verdict] = ()
    failures: Sequence[str] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    """For JSON."""

    @property
    def is_good(self) -> bool:
        return not self.failures and all(each.is_met for each in self.verdicts)

    def judged(self) -> list[str]:
        return [*map(str, self.verdicts), *(f"FAILED  {each}" for each in self.failures)]


@dataclass(frozen=True)
class Told:
    """What one scenario found, and when."""

    name: str
    pinning: str
    conditions: Conditions
    findings: Findings

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.conditions}", f"pinning: {self.pinning}", self.findings.table]
        return "\n".join([*lines, *self.findings.judged()])


def as_json(machine: Description, told: Sequence[Told]) -> dict[str, Any]:
    return {
        "machine": machine,
        "cases": [case for each in told for case in each.findings.cases],
        "scenarios": {
            each.name: {
                "conditions": each.conditions.as_json(),
                "pinning": each.pinning,
                "verdicts": [verdict.as_json() for verdict in each.findings.verdicts],
                "failures": list(each.findings.failures),
                **each.findings.details,
            }
            for each in told
        },
    }


def log_of(machine: Description, told: Sequence[Told]) -> str:
    """As .hlog; what was measured is the tag, what the machine added by itself is there as well."""
    now = time.time_ns()

    def line(tag: str, kind: str, histogram: Histogram) -> str:
        return hlog.line(hlog.Interval(tag, kind, now, now + 10**9, histogram))

    lines = [hlog.head(now, str(machine["cpu"]), "perf", str(machine["build"]))]
    for each in told:
        lines += [line(tag, each.findings.kind, of) for tag, of in each.findings.histograms.items()]
        lines.append(line(f"{each.name} jitter", "gap", each.conditions.jitter))
    return "".join(lines)


def page_of(
    title: str, machine: Description, told: Sequence[Told], parts: Sequence[Part] = (),
    failures: Sequence[str] = (),
) -> str:  # fmt: skip
    """HTML with the pictures in it; needs matplotlib."""
    from shmbroker.perf.scenarios.page import Page

    page = Page()
    page.note(headline(machine))
    for each in told:
        page.heading(each.name)
        page.note(f"Before it, {each.conditions}. Pinning: {each.pinning}.")
        each.findings.draw(page)
        for verdict in each.findings.verdicts:
            (page.note if verdict.is_met else page.alarm)(str(verdict))
        for failure in each.findings.failures:
            page.alarm(f"FAILED  {failure}")
    for part in parts:
        page.heading(part.name.replace("_", " "))
        page.text(part.text)
        if not part.is_good:
            page.alarm(f"MISSED  it ended with {part.code}")
    for failure in failures:
        page.alarm(failure)
    return page.html(title)


def headline(machine: Description) -> str:
    return "{cpu}, {n} cores, Linux {kernel}, Python {python}, build {build}".format(
        **machine,
        n=len(machine["cores"]),  # type: ignore[arg-type]  # a list, by machine()
    )
