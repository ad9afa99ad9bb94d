"""Options for the settings of a queue, made from the table in ipc/settings/setting.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from shmbroker.cli.names import queue_names
from shmbroker.cli.units import COUNT, DURATION, SIZE
from shmbroker.core.layout import BUCKETS, LEVELS
from shmbroker.ipc.settings.setting import BY_NAME, SETTINGS, Setting

Function = TypeVar("Function", bound=Callable[..., object])

NONE = "none"


class UpTo(click.ParamType[Any]):
    """A number of priority levels or group buckets, or `all`."""

    def __init__(self, name: str, most: int) -> None:
        self.name = name
        self.range = click.IntRange(0, most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value == "all" or self.range.convert(value, param, ctx)


KINDS: dict[str, click.ParamType[Any]] = {
    "count": COUNT,
    "seconds": DURATION,
    "size": SIZE,
    "queue": click.STRING,
    "levels": UpTo("levels", LEVELS),
    "buckets": UpTo("buckets", BUCKETS),
    "factor": click.FloatRange(min=1),
    "number": click.IntRange(min=0),
    "rate": click.FloatRange(min=0, min_open=True),
}
METAVARS = {
    "count": "N", "seconds": "DURATION", "size": "SIZE", "queue": "QUEUE", "levels": "N",
    "buckets": "N", "factor": "X", "number": "N", "rate": "MESSAGES",
}  # fmt: skip


class OrNone(click.ParamType[Any]):
    """A value, or `none`."""

    def __init__(self, kind: click.ParamType[Any]) -> None:
        self.kind = kind
        self.name = kind.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return NONE if value == NONE else self.kind.convert(value, param, ctx)


def option_of(setting: Setting) -> Callable[[Function], Function]:
    name = setting.name.replace("_", "-")
    if setting.kind == "flag":
        return click.option(f"--{name}/--no-{name}", default=None, help=setting.help)
    if setting.kind == "choice":
        kind: click.ParamType[Any] = click.Choice(tuple(setting.choices))
        return click.option(f"--{name}", type=kind, help=setting.help)
    return click.option(
        f"--{name}", metavar=METAVARS[setting.kind], type=OrNone(KINDS[setting.kind]),
        shell_complete=queue_names if setting.kind == "queue" else None, help=setting.help,
    )  # fmt: skip


def setting_options(*, of_patterns: bool = False) -> Callable[[Function], Function]:
    """Add an option for each setting.  The command reads them with `given`."""

    def add(function: Function) -> Function:
        for setting in reversed(SETTINGS):
            if of_patterns or not setting.is_of_patterns:
                function = option_of(setting)(function)
        return function

    return add


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given; `none` becomes None."""
    return {
        name: None if value == NONE and BY_NAME[name].kind != "choice" else value
        for name, value in options.items()
        if value is not None
    }
