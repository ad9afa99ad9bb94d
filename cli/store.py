"""`shmbroker store`: back up a store while its broker is live, verify and restore the backup."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shmbroker.cli.group import Group
from shmbroker.cli.instance import folder_argument
from shmbroker.cli.output import json_option, print_json, print_pairs, say
from shmbroker.cli.units import format_size

if TYPE_CHECKING:
    from shmbroker.ipc.instance.backup import Backup

SHOWN = ("vhost", "node", "taken_at", "shmbroker", "epoch", "frame", "segments")

backup_argument = click.argument(
    "source", metavar="BACKUP", type=click.Path(file_okay=False, path_type=Path)
)


@click.group(
    cls=Group,
    examples="""
    shmbroker store backup /var/lib/shmbroker/orders /backup/orders-monday
    shmbroker store backup orders /backup/orders-tuesday --since /backup/orders-monday
    shmbroker store verify /backup/orders-tuesday
    shmbroker store restore /backup/orders-tuesday /var/lib/shmbroker/orders
    """,
)
def store() -> None:
    """Backups of a store, taken while its broker is live."""


@store.command(
    examples="""
    shmbroker store backup /var/lib/shmbroker/orders /backup/orders-monday
    shmbroker store backup orders /backup/orders-tuesday --since /backup/orders-monday
    """
)
@folder_argument
@click.argument("target", type=click.Path(file_okay=False, path_type=Path))
@click.option("--since", metavar="BACKUP",
    type=click.Path(file_okay=False, path_type=Path),
    help="An earlier backup: only what is new since is read and written.")  # fmt: skip
@json_option
def backup(folder: Path, target: Path, since: Path | None, as_json: bool) -> None:
    """Back up the store of the broker in DIR into the new folder TARGET.

    The broker may be live, and nobody waits.  The backup has everything that was confirmed before
    it began, and is checked.  It does not have shmbroker.toml and the files of passwords.

    With --since, segments that are in both backups are one file with two names, if both are on one
    file system.  Either backup may be deleted.
    """
    from shmbroker.ipc.instance import backup as backups
    from shmbroker.ipc.instance.config import config

    show(backups.take(config.load(folder), target, since, say), as_json)


@store.command(examples="shmbroker store verify /backup/orders-monday")
@backup_argument
@json_option
def verify(source: Path, as_json: bool) -> None:
    """Read a whole backup, and exit with 1 if something of it is missing or damaged."""
    from shmbroker.ipc.instance import backup as backups

    show(backups.verified(source), as_json)


@store.command(
    examples="""
    shmbroker store restore /backup/orders-monday /var/lib/shmbroker/orders
    shmbroker store restore /backup/orders-monday copy --new-node
    """
)
@backup_argument
@folder_argument
@click.option("--new-node", is_flag=True,
    help="The original goes on: this one is another node.")  # fmt: skip
@json_option
def restore(source: Path, folder: Path, new_node: bool, as_json: bool) -> None:
    """Restore a backup into the store of the instance in DIR, which must be empty and not run.

    The original must be gone, unless --new-node is given: the store is the same node, in another
    history, so links send again what they sent after the backup.  Start it then: shmbroker start.
    """
    from shmbroker.ipc.instance import restoration
    from shmbroker.ipc.instance.config import config

    show(restoration.restore(config.load(folder), source, new_node=new_node), as_json)
    say(f"start it: shmbroker start {folder}")


def show(made: Backup, as_json: bool) -> None:
    from dataclasses import asdict

    fields = asdict(made)
    if as_json:
        print_json(fields)
        return
    print_pairs(
        {name: fields[name] for name in SHOWN}
        | {"page files": len(made.pages), "bytes": format_size(made.bytes),
           "of them copied": format_size(made.copied)}
    )  # fmt: skip
