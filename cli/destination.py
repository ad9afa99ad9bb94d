"""Destinations: `queue://orders`, `exchange://prices/eu.de.fx`."""

from __future__ import annotations

from typing import NamedTuple

import click


class Destination(NamedTuple):
    kind: str
    name: str
    key: str = ""

    def __str__(self) -> str:
        return f"{self.kind}://{self.name}" + (f"/{self.key}" if self.key else "")


def parse_destination(text: str) -> Destination:
    """Parse a destination.  A name without a scheme is a queue; ValueError if it is invalid."""
    kind, separator, rest = text.partition("://")
    if not separator:
        kind, rest = "queue", text
    name, key = rest, ""
    if kind == "exchange":
        name, _, key = rest.partition("/")
    if kind not in ("queue", "exchange") or not name:
        raise ValueError(text)
    return Destination(kind, name, key)


class DestinationType(click.ParamType[Destination]):
    name = "destination"

    def convert(
        self, value: str | Destination, param: click.Parameter | None, ctx: click.Context | None
    ) -> Destination:
        if isinstance(value, Destination):
            return value
        try:
            return parse_destination(value)
        except ValueError:
            self.fail(
                f"{value!r}: a destination is written queue://NAME or exchange://NAME/KEY",
                param,
                ctx,
            )


DESTINATION = DestinationType()
