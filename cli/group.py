"""Commands whose help starts with examples, which suggest names, and which load on first use."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from textwrap import dedent
from typing import Any, Final

import click

from shmbroker.cli.suggestion import did_you_mean


def write_examples(formatter: click.HelpFormatter, examples: str) -> None:
    lines = dedent(examples).strip().splitlines()
    if lines:
        with formatter.section("Examples"):
            for line in lines:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
        formatter.write_paragraph()


REMOTE: Final = ("--url", "--broker", "-b", "--context", "--vhost")


class Verb(click.Command):
    """A command whose help starts with examples."""

    def __init__(self, *arguments: Any, examples: str = "", **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.examples = examples

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, self.examples)
        super().format_help(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name not in REMOTE:
                raise
            takes_folder = any(each.name == "folder" for each in self.params)
            how = "call it there, with the broker's folder" if takes_folder else "call it there"
            raise click.UsageError(
                f"`{ctx.command_path}` takes no {error.option_name}: it works on the broker's own "
                f"host: {how}", ctx,
            ) from None  # fmt: skip


def verb(name: str | None = None, **options: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """For a verb of a LazyGroup, in whatever file."""
    return click.command(name, cls=Verb, **options)


class Group(click.Group):
    """A noun and its verbs."""

    command_class = Verb

    def __init__(self, *arguments: Any, examples: str = "", **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.examples = examples

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(formatter, self.examples)
        super().format_help(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        wanted = args[0]
        unknown = self.get_command(ctx, wanted) is None
        if unknown and not ctx.resilient_parsing and not wanted.startswith("-"):
            meant = did_you_mean(wanted, self.list_commands(ctx))
            ctx.fail(f"no such command: {wanted}." + (f" {meant}" if meant else ""))
        return super().resolve_command(ctx, args)


class LazyGroup(Group):
    """Its verbs are named as "module:attribute" of this package."""

    def __init__(self, *arguments: Any, verbs: dict[str, str], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.verbs:
            return None
        module, attribute = self.verbs[cmd_name].split(":")
        command: click.Command = getattr(import_module(f"shmbroker.cli.{module}"), attribute)
        return command
