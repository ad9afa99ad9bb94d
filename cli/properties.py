"""Properties on the command line: `n=1`, `region=eu`, `urgent=true`, `code="007"`."""

from __future__ import annotations

import json

import click


def parse_value(text: str) -> object:
    """Parse a JSON number, true, false, null or quoted string.  Anything else is text."""
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(value, dict | list) else value


class Property(click.ParamType[tuple[str, object]]):
    name = "name=value"

    def convert(
        self,
        value: str | tuple[str, object],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, object]:
        if isinstance(value, tuple):
            return value
        name, equals, text = value.partition("=")
        if not name or not equals:
            self.fail(f"{value!r}: a property is written name=value", param, ctx)
        return name, parse_value(text)


PROPERTY = Property()
