"""`shmbroker subscription`: list and remove subscriptions; `sub --name` makes one."""

from __future__ import annotations

from dataclasses import asdict

import click

from shmbroker.cli.connection import connected, observed, vhost_option
from shmbroker.cli.group import Group
from shmbroker.cli.names import subscription_names
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
from shmbroker.cli.suggestion import suggesting


@click.group(
    cls=Group,
    examples="""
    shmbroker sub --name audit --exchange prices --key 'eu.#' --durable
    shmbroker subscription list
    shmbroker subscription remove audit --yes
    """,
)
def subscription() -> None:
    """Named subscriptions to exchanges."""


@subscription.command(
    "list",
    examples="""
    shmbroker subscription list
    shmbroker subscription list --json | jq -r '.[] | select(.depth > 100) | .name'
    """,
)
@json_option
@names_option
@vhost_option
def list_(as_json: bool, names: bool, vhost: str) -> None:
    """List the subscriptions and their depths."""
    with observed(vhost) as broker:
        found = broker.subscriptions()
    if as_json:
        print_json([asdict(each) for each in found])
    elif names:
        print_names(each.name for each in found)
    else:
        print_table(
            ["NAME", "EXCHANGE", "KEY", "DURABLE", "SHARED", "CONSUMER", "DEPTH"],
            [
                [s.name, s.exchange, s.key, "yes" if s.durable else "no",
                 "yes" if s.shared else "no", s.consumer, s.depth]
                for s in found
            ],
        )  # fmt: skip


@subscription.command(examples="shmbroker subscription remove audit --yes")
@click.argument("name", shell_complete=subscription_names)
@click.option("--force", is_flag=True, help="Delete it even if a participant consumes it.")
@yes_option
@vhost_option
def remove(name: str, force: bool, yes: bool, vhost: str) -> None:
    """Delete a subscription and its messages."""
    with connected(vhost) as broker:

        def known() -> list[str]:
            return [each.name for each in broker.subscriptions()]

        if name not in known():
            with suggesting("subscription", name, known, "shmbroker sub --help"):
                broker.unsubscribe(name)
        confirm(yes, f"delete subscription {name!r} with what it has collected")
        broker.unsubscribe(name, force=force)
    say(f"subscription {name!r} is removed")
