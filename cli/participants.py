"""`shmbroker participants`: the connections to a vhost, live and dead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from shmbroker.cli.connection import is_over_link, observed, ordered_far, vhost_option
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
    from shmbroker.netbridge.serving.programs import Row

COLUMNS = ["ID", "PID", "NAME", "STATE", "CONNECTED", "HOLDS", "FROM", "IN", "OUT", "QUEUES"]
SESSION_DIGITS = 8


@click.command(
    cls=Verb,
    examples="""
    shmbroker participants
    shmbroker participants --json | jq '.[] | select(.state == "dead")'
    shmbroker participants --json | jq '.[].remote | select(. != null) | .received_bytes'
    """,
)
@json_option
@names_option
@vhost_option
def participants(as_json: bool, names: bool, vhost: str) -> None:
    """List the participants of a vhost and their queues.

    This command itself only looks, so it is none.  Of programs on other hosts it shows the user,
    the address, and the bytes that have come and gone over the connection that they have now.  One
    that has only looked so far has no number: ID is the beginning of its session.
    """
    from shmbroker.netbridge.broker.programs import of_vhost
    from shmbroker.netbridge.serving.programs import PROGRAMS

    with observed(vhost) as broker:
        if is_over_link():
            programs = ordered_far(broker, "show", noun=PROGRAMS)
        else:
            programs = of_vhost(broker)
        found = joined(broker.participants(), programs)
    if as_json:
        print_json(found)
    elif names:
        print_names(each["name"] for each in found)
    else:
        print_table(COLUMNS, [cells(each) for each in found])


def joined(participants: Iterable[ParticipantInfo], programs: Iterable[Row]) -> list[Row]:
    """All participants, and behind them programs on other hosts that are none."""
    remote = {each["participant"]: each for each in programs if each["participant"] is not None}
    lookers = [_looker(each) for each in programs if each["participant"] is None]
    return [fields(each) | {"remote": remote.get(each.id)} for each in participants] + lookers


def _looker(program: Row) -> Row:
    state = "live" if program["attached"] else "leaving"
    return {"id": None, "pid": None, "name": program["name"], "state": state,
            "connected_at": program["connected_at"], "bytes": 0, "queues": [],
            "remote": program}  # fmt: skip


def cells(each: Row) -> list[object]:
    remote = each["remote"] or {}
    came, went = remote.get("received_bytes"), remote.get("sent_bytes")
    whence = f"{remote['user']}@{remote['address']}" if remote.get("address") else None
    return [
        remote["session"][:SESSION_DIGITS] if each["id"] is None else each["id"],
        None if each["pid"] is None else str(each["pid"]),
        each["name"],
        each["state"],
        None if each["connected_at"] is None else instant(each["connected_at"]),
        format_size(each["bytes"]),
        whence,
        None if came is None else format_size(came),
        None if went is None else format_size(went),
        ", ".join(each["queues"]),
    ]


def fields(of: ParticipantInfo) -> Row:
    return {
        "id": of.id,
        "pid": of.pid,
        "name": of.name,
        "state": of.state,
        "connected_at": of.connected_at,
        "bytes": of.bytes,
        "queues": list(of.queues),
    }
