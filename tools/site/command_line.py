"""The reference of the command line, made from the same click objects as `--help`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc
from typing import Final

import click

from shmbroker.cli.main import root
from tools.site.markdown import cell, escaped, fenced, prose

KEPT: Final = "\b"
"""Begins a paragraph of click whose lines stay as they are."""
INTRODUCTION: Final = """\
# Command line

All commands of `shmbroker`, as `--help` shows them. `man shmbroker-queue-declare` shows the same.

* Payload goes to stdout, messages for people to stderr.
* The vhost is `--vhost`, else `SHMBROKER_VHOST`, else `default`.
* Exit codes: 0 ok, 1 failed, 2 usage error, 130 Ctrl-C, 141 output closed by its reader. `check` \
uses those of Nagios.
* [Contexts](contexts.md) name brokers, so that commands need neither address nor password."""


def pages() -> dict[str, str]:
    commands = list(commands_below(root, "shmbroker"))
    rows = ["| command | |", "|---|---|"]
    for ctx in commands:
        path, short = ctx.command_path, ctx.command.get_short_help_str(200)
        rows.append(f"| [`{path}`](#{anchor(path)}) | {cell(short)} |")
    parts = [INTRODUCTION, "## All commands", "\n".join(rows), *map(section, commands)]
    return {"command-line.md": "\n\n".join(parts) + "\n"}


def commands_below(
    command: click.Command, name: str, above: click.Context | None = None
) -> Iterator[click.Context]:
    """This command and all below it, each as a context."""
    ctx = click.Context(command, info_name=name, parent=above, **command.context_settings)
    yield ctx
    if isinstance(command, click.Group):
        for each in command.list_commands(ctx):
            below = command.get_command(ctx, each)
            if below is not None and not below.hidden:
                yield from commands_below(below, each, ctx)


def anchor(path: str) -> str:
    return path.replace(" ", "-")


def section(ctx: click.Context) -> str:
    command, path = ctx.command, ctx.command_path
    level = "##" if ctx.parent is None or ctx.parent.parent is None else "###"
    usage = " ".join([path, *command.collect_usage_pieces(ctx)])
    parts = [f"{level} `{path}` {{ #{anchor(path)} }}", help_of(command.help or "")]
    parts.append(fenced(usage, "text"))
    if examples := cleandoc(getattr(command, "examples", "")).strip():
        parts.append(fenced(examples, "sh"))
    options = [each for each in command.get_params(ctx) if isinstance(each, click.Option)]
    records = filter(None, (each.get_help_record(ctx) for each in options))
    rows = [f"| {code(name)} | {escaped(' '.join(text.split()))} |" for name, text in records]
    if len(rows) > 1:  # all have --help
        parts.append("\n".join(["| option | |", "|---|---|", *rows]))
    if command.epilog:
        parts.append(help_of(command.epilog))
    return "\n\n".join(each for each in parts if each)


def help_of(text: str) -> str:
    paragraphs = re.split(r"\n\s*\n", cleandoc(text).strip())
    return "\n\n".join(
        fenced(cleandoc(each.removeprefix(KEPT)).strip("\n"), "text")
        if each.startswith(KEPT)
        else prose(each)
        for each in paragraphs
    )


def code(name: str) -> str:
    return f"`{name}`".replace("|", r"\|")
