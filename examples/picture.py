"""Latency over time, drawn with characters: the median of each moment, and its worst."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from statistics import median

COLUMNS = 72
LADDER_NS = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)


def name_of(ns: int) -> str:
    return f"{ns // 1_000_000} ms" if ns >= 1_000_000 else f"{ns // 1_000} us"


def draw(took: Sequence[tuple[float, int]], marks: dict[str, float], seconds: float) -> list[str]:
    """Lines for pairs of when (s) and how long (ns); marks are letters below, at their time."""
    columns: list[list[int]] = [[] for _ in range(COLUMNS)]

    def column_of(at: float) -> int:
        return min(COLUMNS - 1, max(0, int(at / seconds * COLUMNS)))

    for at, ns in took:
        columns[column_of(at)].append(ns)
    floor, top = log10(LADDER_NS[0] / 3), log10(LADDER_NS[-1])
    rows = 2 * len(LADDER_NS)
    step = (top - floor) / rows
    lines = []
    for row in range(rows, 0, -1):
        level = floor + (row - 1) * step
        label = next((name_of(each) for each in LADDER_NS if 0 <= log10(each) - level < step), "")
        line = "".join(
            " " if not each or log10(max(each)) < level
            else "█" if log10(median(each)) >= level
            else "░"
            for each in columns
        )  # fmt: skip
        lines.append(f"{label:>7} │{line}")
    axis = ["─"] * COLUMNS
    for letter, at in marks.items():
        axis[column_of(at)] = letter
    lines.append(f"{'':7} └{''.join(axis)}")
    lines.append(f"{'':9}0 s{f'{seconds:.1f} s':>{COLUMNS - 3}}")
    return lines
