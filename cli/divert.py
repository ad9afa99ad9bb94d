"""`shmbroker divert` and `undivert`: route messages of one exchange to another."""

from __future__ import annotations

import click

from shmbroker.cli.connection import connected, exchange_named, vhost_option
from shmbroker.cli.group import Verb
from shmbroker.cli.names import exchange_names
from shmbroker.cli.output import say

source_argument = click.argument("source", metavar="FROM", shell_complete=exchange_names)
target_argument = click.argument("target", metavar="TO", shell_complete=exchange_names)
key_option = click.option("--key", help="Binding key: divert only messages that match it.")


@click.command(
    cls=Verb,
    examples="""
    shmbroker divert orders audit
    shmbroker divert orders eu-orders --key 'eu.#' --exclusive
    shmbroker exchange bindings orders
    """,
)
@source_argument
@target_argument
@key_option
@click.option("--exclusive", is_flag=True, help="Diverted messages go to no other binding of FROM.")
@vhost_option
def divert(source: str, target: str, key: str | None, exclusive: bool, vhost: str) -> None:
    """Divert messages of exchange FROM to exchange TO."""
    with connected(vhost) as broker:
        exchange_named(broker, source)
        exchange_named(broker, target)
        broker.divert(source, target, exclusive=exclusive, key=key)
    what = "what goes" if exclusive else "a copy of what goes"
    say(f"{what} to exchange {source!r} goes to {target!r}" + (f" by {key!r}" if key else ""))


@click.command(
    cls=Verb,
    examples="""
    shmbroker undivert orders audit
    shmbroker undivert orders eu-orders --key 'eu.#'
    """,
)
@source_argument
@target_argument
@key_option
@vhost_option
def undivert(source: str, target: str, key: str | None, vhost: str) -> None:
    """Remove a divert.  Takes the key that `divert` was given."""
    with connected(vhost) as broker:
        exchange_named(broker, source)
        exchange_named(broker, target)
        broker.undivert(source, target, key=key)
    say(f"exchange {source!r} is no longer diverted to {target!r}")
