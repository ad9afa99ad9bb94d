"""Output: results go to stdout, messages for people to stderr."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Final, TypeVar

import click

Function = TypeVar("Function")
CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def say(text: str) -> None:
    """Print a message for a person on stderr."""
    click.echo("\n".join(visible(line) for line in text.split("\n")), err=True)


json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON.  Its keys are stable."
)
names_option = click.option("--names", is_flag=True, help="Print only names, one per line.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


def encodable(value: object) -> object:
    """Encode bytes as base64 for JSON."""
    if isinstance(value, bytes):
        from base64 import b64encode

        return b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def json_of(value: object, **options: Any) -> str:
    """What is no finite number is null, as JavaScript has it: JSON has no form for it."""
    try:
        return json.dumps(value, allow_nan=False, **options)
    except ValueError:
        return json.dumps(_finite(value), **options)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def print_json(value: object, indent: int | None = 2) -> None:
    text = json_of(value, indent=indent, ensure_ascii=False, default=encodable)
    click.echo(text.encode("utf-8", "surrogateescape"))


def print_names(names: Iterable[str]) -> None:
    """A line each: those of programs and groups may have control characters, all others do not."""
    for name in names:
        click.echo(CONTROL.sub(lambda found: visible(found[0]), name))


def cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return "-" if value is None or value == "" else visible(str(value))


def visible(text: str) -> str:
    """Escape control characters, which could move the cursor or change colours."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def table_lines(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """The lines of a table, with numbers aligned to the right."""
    cells = [[cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    is_number = [
        {type(row[i]) for row in rows} - {type(None)} == {int} for i in range(len(headers))
    ]
    lines = []
    for line in [list(headers), *cells]:
        padded = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, is_number, strict=True)
        )
        lines.append("  ".join(padded).rstrip())
    return lines


def print_table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    for line in table_lines(headers, rows):
        click.echo(line)


def print_pairs(pairs: dict[str, object]) -> None:
    """Print the properties of one object, one per line."""
    width = max(map(len, pairs))
    for name, value in pairs.items():
        click.echo(f"{name:<{width}}  {cell(value)}")


def body_fields(body: bytes) -> dict[str, object]:
    """A body for JSON: text if it is UTF-8, else base64."""
    try:
        return {"body": body.decode(), "body_encoding": "utf-8", "bytes": len(body)}
    except UnicodeDecodeError:
        return {"body": encodable(body), "body_encoding": "base64", "bytes": len(body)}


def excerpt(body: bytes, columns: int) -> str:
    """The start of a body, on one line."""
    text = visible(body[: 4 * columns].decode("utf-8", "replace"))
    return text if len(text) <= columns and len(body) <= 4 * columns else text[: columns - 1] + "…"


def columns_left(taken: int) -> int:
    """The columns of the terminal that remain beside `taken`, at least 20."""
    return max(20, shutil.get_terminal_size().columns - taken)


def instant(nanoseconds: int) -> str | None:
    """A time since the epoch as text in UTC; None if it is unknown."""
    if not nanoseconds:
        return None
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat(timespec="milliseconds")


def secret_line() -> str:
    """Of stdin, which is no terminal."""
    try:
        line = sys.stdin.readline().removesuffix("\n")
        line.encode()  # what could not be decoded may be in it as halves of characters
    except UnicodeError:
        raise click.ClickException("a password is UTF-8, and what stdin has is not") from None
    return line


def confirm(yes: bool, what: str) -> None:
    """Ask for confirmation.  Without a terminal, `--yes` is required."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"to {what} without a terminal, say --yes")
    click.echo(f"{what[0].upper()}{what[1:]}? [y/N] ", err=True, nl=False)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise click.ClickException("nothing was done")
