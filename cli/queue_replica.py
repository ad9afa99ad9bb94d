"""Queues that follow those of another broker: `ha replicate`, `ha replicas`, `ha detach`, and
`queue declare --start-replica`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import click

from shmbroker.cli import ordering
from shmbroker.cli.connection import broker_options, chosen_broker, opened
from shmbroker.cli.group import Verb
from shmbroker.cli.output import json_option, print_json, print_table, say
from shmbroker.cli.units import format_duration, format_size

ANSWER_SECONDS = 15.0
"""It waits for the other broker first."""
NOUN = "replicas"


def start_replica_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--start-replica", metavar="PEER",
        help="Follow the queue of this name on another broker: HOST[:PORT], a url, or a connector "
        "of the broker that follows.  Needs --broker.",
    )(command)  # fmt: skip


def start(peer: str, name: str, settings: dict[str, Any]) -> None:
    """`queue declare --start-replica`."""
    if chosen_broker() is None:
        raise click.UsageError(
            "--start-replica needs --broker, the broker that follows: HOST[:PORT], a url or its "
            "folder"
        )
    order("follow", queue=name, of=peer, settings=settings)
    say(f"queue {name!r} follows the one of {peer}")


@click.command(
    cls=Verb,
    examples="""
    shmbroker ha replicate --broker node2 node1 orders
    shmbroker ha replicate -b tcp://node2:61616 "failover:(tcp://node1,tcp://node3)" orders
    """,
)
@broker_options
@click.argument("peer")
@click.argument("queue")
def replicate(peer: str, queue: str) -> None:
    """Have QUEUE, which is there, follow the queue of its name on the broker PEER.

    --broker is the one that follows; it is the one in the current folder if that is left out.

    It shows what the other one has; what is in it is saved on its broker, as a file for
    `shmbroker queue import`.  Until `shmbroker ha detach` it is read-only.  Does nothing if it
    follows that broker already.
    """
    rows = order("follow", queue=queue, of=peer)
    say(f"queue {queue!r} follows the one of {peer}")
    for where in (each.get("saved") for each in rows if each["queue"] == queue):
        if where:
            say(f"what was in it before is saved on its broker: {where}")


@click.command(
    cls=Verb,
    examples="""
    shmbroker ha replicas -b standby
    shmbroker ha replicas -b standby --json | jq -r '.[] | select(.state != "following") | .queue'
    """,
)
@broker_options
@json_option
def replicas(as_json: bool) -> None:
    """List the queues of a broker that follow queues of others: their states, and how far they are.

    MESSAGES have come and are not shown yet, because more belongs to them.  BYTES is what has come
    over the link to that broker, for all its queues, since this broker was started.
    """
    found = order("show")
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
@broker_options
@click.argument("queue")
def detach(queue: str) -> None:
    """Have QUEUE follow no more: it is a queue like any other, with what it has.

    The other broker is not asked: it may be gone.
    """
    order("detach", queue=queue)
    say(f"queue {queue!r} follows nothing any more")


def age(row: Mapping[str, Any]) -> str:
    return format_duration(max(0.0, time.time() - row["since"])) if "since" in row else ""


def order(verb: str, **given: object) -> list[dict[str, Any]]:
    """How its replicas are then; the broker in the current folder, if none was chosen."""
    chosen = chosen_broker()
    if chosen is not None and chosen.url:
        with opened(click.get_current_context(), "") as broker:
            found: list[dict[str, Any]] = cast(Any, broker).order(verb, **given)
            return found
    from shmbroker.ipc.instance import status

    folder = Path() if chosen is None or chosen.folder is None else chosen.folder
    if status.read(folder).process is None:
        raise click.ClickException(f"no broker runs in {folder}")
    ordering.order(folder, NOUN, {"verb": verb, **given}, ANSWER_SECONDS)
    return list(ordering.shown(folder, NOUN).get("replicas", []))
