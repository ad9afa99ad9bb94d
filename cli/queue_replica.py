"""Queues that follow those of another broker: `ha replicate`, `ha replicas`, `ha detach`, and
`queue declare --start-replica`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from shmbroker.cli import ordering
from shmbroker.cli.group import Verb
from shmbroker.cli.output import json_option, print_json, print_table, say
from shmbroker.cli.units import format_duration, format_size

ANSWER_SECONDS = 15.0
"""It waits for the other broker first."""
NOUN = "replicas"

folder_option = click.option(
    "broker_folder", "-b", "--broker", metavar="DIR", type=click.Path(path_type=Path),
    default=Path(), show_default="the current folder", help="Folder of the broker that follows.",
)  # fmt: skip


def start_replica_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--start-replica", metavar="PEER",
        help="Follow the queue of this name on another broker.  Needs --broker DIR.",
    )(command)  # fmt: skip


def start(folder: Path | None, peer: str, name: str, settings: dict[str, Any]) -> None:
    """`queue declare --start-replica`."""
    if folder is None:
        raise click.UsageError(
            "--start-replica needs --broker DIR, the folder of the broker that follows, on its host"
        )
    order(folder, verb="follow", queue=name, of=peer, settings=settings)
    say(f"queue {name!r} follows the one of {peer}")


@click.command(
    cls=Verb,
    examples="""
    shmbroker ha replicate --broker /var/lib/shmbroker/standby node1 orders
    shmbroker ha replicate -b standby node1:5555 orders
    """,
)
@folder_option
@click.argument("peer")
@click.argument("queue")
def replicate(broker_folder: Path, peer: str, queue: str) -> None:
    """Have QUEUE, which is there, follow the queue of its name on the broker PEER.

    What is in it is dropped: it shows what the other one has.  Until `shmbroker ha detach` it is
    read-only.  Does nothing if it follows that broker already.
    """
    order(broker_folder, verb="follow", queue=queue, of=peer)
    say(f"queue {queue!r} follows the one of {peer}")


@click.command(
    cls=Verb,
    examples="""
    shmbroker ha replicas -b standby
    shmbroker ha replicas -b standby --json | jq -r '.[] | select(.state != "following") | .queue'
    """,
)
@folder_option
@json_option
def replicas(broker_folder: Path, as_json: bool) -> None:
    """List the queues of a broker that follow queues of others: their states, and how far they are.

    MESSAGES have come and are not shown yet, because more belongs to them.  BYTES is what has come
    over the link to that broker, for all its queues, since this broker was started.
    """
    order(broker_folder, verb="show")
    found = ordering.shown(broker_folder, NOUN).get("replicas", [])
    if as_json:
        print_json(found)
        return
    print_table(
        ["QUEUE", "OF", "STATE", "FOR", "POSITION", "MESSAGES", "BYTES", "REASON"],
        [
            [each["queue"], each["of"], each["state"], age(each), each.get("position", ""),
             each.get("lag-messages", ""), format_size(each.get("link-bytes", 0)), each["reason"]]
            for each in found
        ],
    )  # fmt: skip


@click.command(cls=Verb, examples="shmbroker ha detach -b standby orders")
@folder_option
@click.argument("queue")
def detach(broker_folder: Path, queue: str) -> None:
    """Have QUEUE follow no more: it is a queue like any other, with what it has.

    The other broker is not asked: it may be gone.
    """
    order(broker_folder, verb="detach", queue=queue)
    say(f"queue {queue!r} follows nothing any more")


def age(row: Mapping[str, Any]) -> str:
    return format_duration(max(0.0, time.time() - row["since"])) if "since" in row else ""


def order(folder: Path, **given: object) -> None:
    from shmbroker.ipc.instance import status

    if status.read(folder).process is None:
        raise click.ClickException(f"no broker runs in {folder}")
    ordering.order(folder, NOUN, given, ANSWER_SECONDS)
