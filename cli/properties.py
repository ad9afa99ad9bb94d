"""Properties on the command line: `n=1`, `region=eu`, `urgent=true`, `code="007"`."""

from __future__ import annotations

import json
from math import isfinite

import click


def parse_value(text: str) -> object:
    """Parse a JSON number, true, false, null or quoted string.  Anything else is text, as is what
    Python alone takes for a number (NaN), and what is too large to be one (1e400)."""
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    is_no_number = isinstance(value, float) and not isfinite(value)
    return text if is_no_number or isinstance(value, dict | list) else value


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
