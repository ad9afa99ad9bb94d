"""Sizes, times and counts for people: 64KiB, 50us, 1,000."""

from __future__ import annotations

from datetime import datetime

import click

from shmbroker.ipc.base.units import KIB, parse_duration, parse_size


class Size(click.ParamType[int]):
    name = "size"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        if isinstance(value, int):
            return value
        try:
            return parse_size(value)
        except ValueError:
            self.fail(
                f"{value!r} is no size; one is written 512, 64KiB or 1MB, below 8EiB", param, ctx
            )


class Duration(click.ParamType[float]):
    name = "duration"

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if not isinstance(value, str):
            return value
        try:
            return parse_duration(value)
        except ValueError:
            self.fail(
                f"{value!r} is no time; one is written 50us, 100ms, 2s or 5m, up to 11,574d",
                param,
                ctx,
            )


class TimeOfDay(click.ParamType[datetime]):
    name = "time"

    def convert(
        self, value: str | datetime, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            return datetime.fromisoformat(value).astimezone()
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is no time of day; one is written 2026-11-22T08:00, here, or "
                "2026-11-22T08:00Z",
                param,
                ctx,
            )


COUNT = click.IntRange(min=1, max=2**63 - 1)
SIZE = Size()
DURATION = Duration()
TIME_OF_DAY = TimeOfDay()


def format_number(value: float) -> str:
    """A number with three significant digits, more only before the point."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def format_size(size: float) -> str:
    """1 KiB, 1.5 MiB."""
    unit = "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < KIB or unit == "TiB":
            break
        size /= KIB
    return f"{format_number(size)} {unit}"


def format_duration(seconds: float) -> str:
    """850 ns, 1.2 ms, 3 s, 5 min."""
    for limit, unit, text in (
        (1e-6, 1e-9, "ns"), (1e-3, 1e-6, "us"), (1.0, 1e-3, "ms"), (120.0, 1.0, "s"),
        (7200.0, 60.0, "min"), (172800.0, 3600.0, "h"),
    ):  # fmt: skip
        if seconds < limit:
            return f"{format_number(seconds / unit)} {text}"
    return f"{format_number(seconds / 86400)} d"


def format_count(count: int, noun: str) -> str:
    """1 message, 1,000 messages."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
