"""`shmbroker participants`: the connections to a vhost, live and dead."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shmbroker.cli.connection import observed, vhost_option
from shmbroker.cli.group import Verb
from shmbroker.cli.output import (
    instant,
    json_option,
    names_option,
    print_json,
    print_names,
    print_table,
)
from shmbroker.cli.units import format_size

if TYPE_CHECKING:
    from shmbroker.ipc.vhost.participants import ParticipantInfo


@click.command(
    cls=Verb,
    examples="""
    shmbroker participants
    shmbroker participants --json | jq '.[] | select(.state == "dead")'
    """,
)
@json_option
@names_option
@vhost_option
def participants(as_json: bool, names: bool, vhost: str) -> None:
    """List the participants of a vhost and their queues.

    This command itself only looks, so it is none.
    """
    with observed(vhost) as broker:
        found = broker.participants()
    if as_json:
        print_json([fields(each) for each in found])
    elif names:
        print_names(p.name for p in found)
    else:
        print_table(
            ["ID", "PID", "NAME", "STATE", "CONNECTED", "HOLDS", "QUEUES"],
            [
                [
                    p.id,
                    str(p.pid),
                    p.name,
                    p.state,
                    instant(p.connected_at),
                    format_size(p.bytes),
                    ", ".join(p.queues),
                ]
                for p in found
            ],
        )


def fields(of: ParticipantInfo) -> dict[str, object]:
    return {
        "id": of.id,
        "pid": of.pid,
        "name": of.name,
        "state": of.state,
        "connected_at": of.connected_at,
        "bytes": of.bytes,
        "queues": list(of.queues),
    }
