"""`shmbroker journal diverged`: what one member of a replicated node had alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shmbroker.cli.group import Group
from shmbroker.cli.instance import folder_argument
from shmbroker.cli.output import json_option, print_json, print_table
from shmbroker.cli.units import format_size

if TYPE_CHECKING:
    from shmbroker.netbridge.replicated.diverged import Kept


@click.group(
    cls=Group,
    examples="""
    shmbroker journal diverged list /var/lib/shmbroker/live
    shmbroker journal diverged export /var/lib/shmbroker/live 1 > tail.jsonl
    """,
)
def diverged() -> None:
    """What a member of a replicated node had set aside, and what nobody else has of it."""


@diverged.command(
    "list",
    examples="""
    shmbroker journal diverged list live
    shmbroker journal diverged list live --json | jq '.[] | select(.messages > 0)'
    """,
)
@folder_argument
@json_option
def list_(folder: Path, as_json: bool) -> None:
    """List the journals that the member in DIR has set aside, the oldest first.

    MESSAGES: how many messages no other member has.  `at most`: it is not known up to which frame
    both journals are the same, and all that is durable and not acknowledged counts, unless the new
    copy has it.
    """
    from shmbroker.netbridge.replicated.diverged import kept

    found = kept(store_of(folder))
    if as_json:
        print_json([
            {"number": each.number, "at": each.at, "epoch": each.epoch, "holder": each.holder,
             "messages": each.messages, "size": each.size, "exact": each.is_exact,
             "bytes": each.bytes}
            for each in found
        ])  # fmt: skip
        return
    print_table(["N", "SET ASIDE", "EPOCH", "HOLDER", "MESSAGES", "SIZE", "FILES"], [
        [each.number, each.at, each.epoch, each.holder, messages(each), format_size(each.size),
         format_size(each.bytes)]
        for each in found
    ])  # fmt: skip


@diverged.command(
    examples="""
    shmbroker journal diverged export live 1 > tail.jsonl
    mkdir tail && shmbroker journal diverged export live 1 | shmbroker journal import tail
    """
)
@folder_argument
@click.argument("numbers", metavar="N...", type=int, nargs=-1, required=True)
def export(folder: Path, numbers: tuple[int, ...]) -> None:
    """Write the messages of sets N that no other member has, as `shmbroker journal export` does.

    First come the declarations of their queues.  Nothing is merged: that is for a person to decide.
    """
    from shmbroker.netbridge.replicated.diverged import exported, kept

    store = store_of(folder)
    there = {each.number for each in kept(store)}
    for number in numbers:
        if number not in there:
            known = ", ".join(map(str, sorted(there))) or "none"
            raise click.ClickException(f"there is no set {number} in {store}: there is {known}")
    for number in numbers:
        for line in exported(store, number):
            click.echo(line)


def messages(each: Kept) -> str:
    return str(each.messages) if each.is_exact or not each.messages else f"at most {each.messages}"


def store_of(folder: Path) -> Path:
    from shmbroker.cli.ha import replicated
    from shmbroker.ipc.instance.config import config

    replicated(folder)
    return config.load(folder).store
