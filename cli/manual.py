"""The manual pages of the command: `python -m shmbroker.cli.manual FOLDER` writes them.

setup.py has it done when a wheel is made, of the same click objects as `--help`.  click-man has the
form of a page; what it does not know is here: verbs that are imported on use, examples, epilogs,
and characters that mean something to troff.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from inspect import cleandoc
from pathlib import Path
from typing import Final

import click
from click_man.man import ManPage

from shmbroker.cli.main import root

SECTION: Final = "1"
KEPT: Final = "\b"
"""Begins a paragraph of click whose lines stay as they are."""
SHORT_MAX: Final = 200
PARAGRAPH: Final = "\n.PP\n"


def written(text: str) -> str:
    """As troff takes it: nothing in it is a request, and no `-` becomes a hyphen."""
    plain = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"(?m)^(?=[.'])", r"\\&", plain)


def verbatim(lines: str) -> str:
    return f".nf\n{written(lines)}\n.fi"


def paragraphs(text: str) -> str:
    """Of a help text."""
    parts = re.split(r"\n\s*\n", cleandoc(text).strip())
    return PARAGRAPH.join(
        verbatim(each.removeprefix(KEPT).strip("\n")) if each.startswith(KEPT) else written(each)
        for each in parts
    )


def section(title: str, content: str) -> str:
    return f".SH {title}\n{content}\n" if content else ""


def page_of(ctx: click.Context, below: list[tuple[str, click.Command]], release: str) -> str:
    command = ctx.command
    page = ManPage(ctx.command_path)
    page.version = release
    page.short_help = written(command.get_short_help_str(SHORT_MAX))
    page.synopsis = " ".join(command.collect_usage_pieces(ctx))
    page.description = paragraphs(command.help or "")
    options = (each for each in command.get_params(ctx) if isinstance(each, click.Option))
    records = [each.get_help_record(ctx) for each in options]
    page.options = [(name, written(text)) for name, text in filter(None, records)]
    page.commands = [
        (written(name), written(each.get_short_help_str(SHORT_MAX))) for name, each in below
    ]
    examples = getattr(command, "examples", "")
    shown = "" if not examples.strip() else verbatim(cleandoc(examples).strip())
    more = section("EXAMPLES", shown) + section("EXIT STATUS", paragraphs(command.epilog or ""))
    # click-man knows commands of one level
    dashed = ctx.command_path.replace(" ", "-")
    text = str(page).replace(rf"\fB{ctx.command_path}-", rf"\fB{dashed}-")
    text = text.replace(f'"{ctx.command_path.upper()}"', f'"{dashed.upper()}"')
    return re.sub(r"(?m)[ \t]+$", "", text + more)


def pages(
    command: click.Command, name: str, release: str, above: click.Context | None = None
) -> Iterator[tuple[str, str]]:
    """The names of files and their texts: of this command, and of those below it."""
    ctx = click.Context(command, info_name=name, parent=above, **command.context_settings)
    below = []
    if isinstance(command, click.Group):
        found = ((each, command.get_command(ctx, each)) for each in command.list_commands(ctx))
        below = [(each, its) for each, its in found if its is not None and not its.hidden]
    file = f"{ctx.command_path.replace(' ', '-')}.{SECTION}"
    yield file, page_of(ctx, below, release)
    for each, its in below:
        yield from pages(its, each, release, ctx)


def main(folder: Path, release: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(root, "shmbroker", release):
        (folder / name).write_text(text)


def installed() -> str:
    try:
        return version("shmbroker")
    except PackageNotFoundError:  # while it is built
        return ""


if __name__ == "__main__":
    given = [*sys.argv[1:], installed()]
    main(Path(given[0]), given[1])
