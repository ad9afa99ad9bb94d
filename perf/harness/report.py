"""The report of a contest: a plain table for people, JSON with every figure for programs.

Ratios: of times (ping-pong) and of rates alike, this entry's figure / the reference's.
Preempted: how often a process of the run lost its core, see RunRecord; with a core for each
process and no threads it should be near 0, or the machine was shared with strangers.
Durable: what a message outlives once it was sent, see peer.py;
python -m shmbroker.perf.scenarios.durable counts who keeps that promise.
"""

from collections.abc import Sequence
from typing import Any

from shmbroker.perf.harness.case import Case, Entry
from shmbroker.perf.harness.figures import Figures

Row = tuple[str, ...]

LATENCY_COLUMNS = {"p50_ns": "p50 ns", "p99_ns": "p99 ns"}
STREAM_COLUMNS = {"messages_per_s": "messages/s", "gb_per_s": "GB/s"}


def case_table(case: Case, against: str | None) -> str:
    """One case: medians over the rounds, and medians of the ratios of each round."""
    columns = LATENCY_COLUMNS if case.topology.measures_latency else STREAM_COLUMNS
    references = _references(case, against)
    compared = next(iter(columns))
    header = ("peer", "mode", "kind", "durable", *columns.values())
    header += (*(f"x {entry.title}" for entry in references), "preempted")
    rows = [_row(entry, columns, references, compared) for entry in case.entries]
    rounds = max((len(entry.rounds) for entry in case.entries), default=0)
    what = "round trip" if case.topology.measures_latency else "stream"
    title = f"{case.title}: {what}, medians of {rounds} rounds"
    failures = [f"FAILED {failure}" for failure in case.failures()]
    return "\n".join([title, *aligned([header, *rows], names=4), *failures])


def aligned(rows: Sequence[Row], names: int = 3) -> list[str]:
    """Columns as wide as they need to be: so many names to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if place < names else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def case_json(case: Case, against: str | None) -> dict[str, Any]:
    """Everything, with each round's figures and the plan it was run by."""
    return {
        "topology": case.topology.name,
        "size_bytes": case.size,
        "entries": [_entry_json(case, entry, against) for entry in case.entries],
    }


def _references(case: Case, against: str | None) -> list[Entry]:
    chosen = [case.limit(), case.reference(against)]
    return list({id(entry): entry for entry in chosen if entry}.values())


def _row(entry: Entry, columns: dict[str, str], references: list[Entry], compared: str) -> Row:
    medians = entry.medians()
    figures = (_figure(name, medians) for name in columns)
    ratios = (entry.ratios_to(reference).get(compared) for reference in references)
    shown = ("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)
    named = (entry.peer.name, entry.task.mode, entry.peer.kind, entry.peer.durability)
    return (*named, *figures, *shown, f"{entry.preempted():.0f}")


def _figure(name: str, figures: Figures) -> str:
    if name not in figures:
        return "-"
    if name == "gb_per_s":
        return f"{figures[name]:.2f}"
    return f"{figures[name]:,.1f}" if figures[name] < 1000 else f"{figures[name]:,.0f}"


def _entry_json(case: Case, entry: Entry, against: str | None) -> dict[str, Any]:
    plan = entry.plan
    amounts = ("count", "warmup", "groups", "singles", "batch", "crowded")
    return {
        "peer": entry.peer.name,
        "mode": entry.task.mode,
        "kind": entry.peer.kind,
        "durability": entry.peer.durability,
        "plan": plan and {name: getattr(plan, name) for name in amounts},
        "medians": entry.medians(),
        "ratios": {
            reference.title: entry.ratios_to(reference) for reference in _references(case, against)
        },
        "rounds": [run and run.figures | {"preempted": run.preempted} for run in entry.rounds],
        "failures": entry.failures,
        "left_behind": sorted({name for run in entry.rounds if run for name in run.left_behind}),
    }
