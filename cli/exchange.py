"""`shmbroker exchange`: declare, list and delete exchanges."""

from __future__ import annotations

import click

from shmbroker.cli.connection import connected, exchange_named, observed, vhost_option
from shmbroker.cli.group import Group
from shmbroker.cli.names import exchange_names
from shmbroker.cli.output import (
    confirm,
    json_option,
    names_option,
    print_json,
    print_names,
    print_table,
    say,
    yes_option,
)  # fmt: skip
from shmbroker.ipc.settings.setting import REPLICATE, Replicate

KINDS = ["direct", "topic", "fanout", "headers"]


@click.group(
    cls=Group,
    examples="""
    shmbroker exchange declare prices topic
    shmbroker bind prices orders --key 'eu.#'
    shmbroker pub --exchange prices --key eu.de.fx 1.08
    """,
)
def exchange() -> None:
    """Exchanges, which route messages to queues by bindings."""


@exchange.command(
    examples="""
    shmbroker exchange declare prices topic
    shmbroker exchange declare orders direct --alternate unrouted
    """
)
@click.argument("name")
@click.argument("kind", type=click.Choice(KINDS))
@click.option(
    "--alternate", metavar="EXCHANGE", shell_complete=exchange_names,
    help="Exchange for messages that no binding matches.",
)  # fmt: skip
@click.option(
    "--replicate", type=click.Choice(tuple(REPLICATE)),
    help="What another member of a replicated node has of it when it takes over.",
)  # fmt: skip
@vhost_option
def declare(
    name: str, kind: str, alternate: str | None, replicate: Replicate | None, vhost: str
) -> None:
    """Declare an exchange.  Does nothing if it already exists."""
    with connected(vhost) as broker:
        if alternate:
            exchange_named(broker, alternate)
        broker.declare_exchange(name, kind, alternate=alternate, replicate=replicate)
    say(f"exchange {name!r}, {kind}")


@exchange.command(
    "list",
    examples="""
    shmbroker exchange list
    shmbroker exchange list --json | jq '.[] | select(.bindings == 0)'
    """,
)
@json_option
@names_option
@vhost_option
def list_(as_json: bool, names: bool, vhost: str) -> None:
    """List all exchanges."""
    with observed(vhost) as broker:
        found = broker.exchanges()
    if as_json:
        print_json(
            [
                {
                    "name": e.name,
                    "kind": e.kind,
                    "alternate": e.alternate,
                    "bindings": e.bindings,
                    "replicate": e.replicate,
                }
                for e in found
            ]
        )
    elif names:
        print_names(e.name for e in found)
    else:
        rows = [[e.name, e.kind, e.alternate, e.bindings, e.replicate] for e in found]
        print_table(["NAME", "KIND", "ALTERNATE", "BINDINGS", "REPLICATE"], rows)


@exchange.command(
    examples="""
    shmbroker exchange bindings
    shmbroker exchange bindings prices --json
    """
)
@click.argument("name", required=False, shell_complete=exchange_names)
@json_option
@vhost_option
def bindings(name: str | None, as_json: bool, vhost: str) -> None:
    """List the bindings of an exchange, or of all."""
    with observed(vhost) as broker:
        if name is not None:
            exchange_named(broker, name)
        found = [b for b in broker.bindings() if name in (None, b.exchange)]
    if as_json:
        print_json(
            [
                {
                    "exchange": b.exchange,
                    "destination": b.destination,
                    "to": b.to,
                    "key": b.key,
                    "arguments": dict(b.arguments or {}),
                    "match": b.match,
                    "exclusive": b.exclusive,
                }
                for b in found
            ]
        )
    else:
        rows = [
            [b.exchange, f"{b.to}://{b.destination}", b.key, arguments_text(b.arguments, b.match),
             "exclusive" if b.exclusive else ""]
            for b in found
        ]  # fmt: skip
        print_table(["EXCHANGE", "DESTINATION", "KEY", "ARGUMENTS", "DIVERT"], rows)


def arguments_text(arguments: dict[str, object] | None, match: str) -> str:
    if not arguments:
        return ""
    return f"{match} of " + ", ".join(f"{name}={value}" for name, value in arguments.items())


@exchange.command(examples="shmbroker exchange delete prices --yes")
@click.argument("name", shell_complete=exchange_names)
@click.option(
    "--force", is_flag=True, help="Delete it even if it has bindings or is an alternate exchange."
)
@yes_option
@vhost_option
def delete(name: str, force: bool, yes: bool, vhost: str) -> None:
    """Delete an exchange."""
    with connected(vhost) as broker:
        exchange_named(broker, name)
        confirm(yes, f"delete exchange {name!r}")
        broker.delete_exchange(name, force=force)
    say(f"exchange {name!r} is deleted")
