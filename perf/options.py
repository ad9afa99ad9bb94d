"""What a scenario can be asked, as click reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from shmbroker.ipc.units import parse_duration
from shmbroker.perf.size import parse_size

FILE = click.Path(path_type=Path)
POSITIVE = click.IntRange(min=1)


class Parsed(click.ParamType[Any]):
    """Read by a function that says in a ValueError what is wrong."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _duration(text: str) -> float:
    try:
        seconds = parse_duration(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time; one is written 50us, 100ms, 2s or 5m") from None
    if seconds <= 0:
        raise ValueError("it must be longer than nothing")
    return seconds


DURATION = Parsed("duration", _duration)
SIZE = Parsed("size", parse_size)


def one_of(what: str, names: Iterable[str]) -> Parsed:
    """A name; a wrong one is answered with the nearest right one."""
    right = list(names)

    def check(name: str) -> str:
        if name in right:
            return name
        near = get_close_matches(name, right, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(right)}"
        raise ValueError(f"no {what} {name!r}: {hint}")

    return Parsed(what, check)


def option(*names: str, **attributes: Any) -> click.Option:
    return click.Option(list(names), **attributes)


def several(*names: str, help: str, **attributes: Any) -> click.Option:
    return option(*names, multiple=True, help=f"{help}  May be repeated.", **attributes)
