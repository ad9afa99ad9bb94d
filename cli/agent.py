"""`shmbroker mta`: the message transfer agents of a broker, seen."""

from __future__ import annotations

import click

from shmbroker.cli.connection import vhost_option
from shmbroker.cli.group import Group
from shmbroker.cli.link import found, shown, since
from shmbroker.cli.output import json_option, names_option
from shmbroker.cli.units import format_duration

COLUMNS = ["EXCHANGE", "REMOTE", "MODE", "STATE", "SINCE", "PEER", "BINDINGS", "FORWARDED", "CAME",
           "RETURNED", "REFUSED", "DROPPED", "WAITING", "OLDEST", "REASON"]  # fmt: skip


@click.group(
    cls=Group,
    examples="""
    shmbroker mta list --vhost orders
    """,
)
def mta() -> None:
    """The message transfer agents of a broker."""


@mta.command(
    "list",
    examples="""
    shmbroker mta list
    shmbroker mta list --vhost orders --json | jq -r '.[] | select(.lag > 1000) | .exchange'
    """,
)
@json_option
@names_option
@vhost_option
def list_(vhost: str, as_json: bool, names: bool) -> None:
    """Show the agents of the broker that is live for a vhost, as they are now.

    It reads shared memory, so it works as well if the broker hangs; with --url the broker is asked.
    BINDINGS are copied to the
    other broker now.  Since the broker is live so many messages were FORWARDED, CAME from there,
    were RETURNED because nobody takes them there, REFUSED by a queue there, and DROPPED because
    more waited than may.  WAITING is what the other broker has not confirmed, OLDEST the age of the
    first of it.  `shmbroker link stop` and `link start` take the names that --names prints.
    """
    shown(agents(vhost), COLUMNS, cells, as_json, names)


def agents(vhost: str) -> list[dict[str, object]]:
    return [each | {"forwarded": _number(each, "messages") - _number(each, "fetched")}
            for each in found(vhost) if each.get("mode")]  # fmt: skip


def _number(of: dict[str, object], name: str) -> int:
    found = of[name]
    assert isinstance(found, int)
    return found


def cells(of: dict[str, object]) -> list[object]:
    return [of["exchange"], of["plan"], of["mode"], of["state"], since(of), of["peer"],
            of["bindings"], of["forwarded"], of["fetched"], of["returned"], of["set_aside"],
            of["dropped"], of["lag"], oldest(of), of["reason"]]  # fmt: skip


def oldest(of: dict[str, object]) -> str | None:
    """For how long its first message has waited."""
    seconds = of["oldest_seconds"]
    return format_duration(seconds) if isinstance(seconds, float) else None
