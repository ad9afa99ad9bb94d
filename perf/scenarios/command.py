"""A command of the harness: what it can be asked, and how it ends.

`python -m` its module and `shmbroker bench` have the same.  Exit codes: 0 ok, 1 something failed,
is slower than what it is compared with, or with --strict misses a verdict, 2 usage, 130
interrupted.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

from shmbroker.ipc.base.units import parse_duration
from shmbroker.perf.machine.size import parse_size

CTRL_C = 130
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


STRICT = option("--strict", is_flag=True, help="Exit with 1 if a verdict is missed.")


def several(*names: str, help: str, **attributes: Any) -> click.Option:
    return option(*names, multiple=True, help=f"{help}  May be repeated.", **attributes)


@dataclass(frozen=True)
class Command:
    name: str
    help: str
    examples: str
    parameters: Sequence[click.Parameter]
    run: Callable[..., int]
    """Gets what was asked by the name of its parameter; its answer is the exit code."""

    def of_click(self) -> click.Command:
        def run(**asked: Any) -> None:
            signal.signal(signal.SIGTERM, _terminated)
            click.get_current_context().exit(self.run(**asked))

        return click.Command(self.name, params=list(self.parameters), callback=run, help=self.help)

    def main(self, words: Sequence[str] | None = None) -> int:
        """As a program of its own."""
        given = None if words is None else list(words)
        try:
            code: int | None = self.of_click().main(given, standalone_mode=False)
        except click.ClickException as error:
            error.show()
            return error.exit_code
        except (click.Abort, KeyboardInterrupt):
            return CTRL_C
        return code or 0


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    """SIGTERM ends like Ctrl-C: every process and segment of the run is removed on the way."""
    raise KeyboardInterrupt
