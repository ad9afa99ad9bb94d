"""`shmbroker bind` and `unbind`: bindings of queues and exchanges to an exchange."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from shmbroker.cli.connection import connected, exchange_named, queue_named, vhost_option
from shmbroker.cli.group import Verb
from shmbroker.cli.names import exchange_names, queue_names
from shmbroker.cli.output import say
from shmbroker.cli.properties import PROPERTY

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker


def binding_options(function: Callable[..., None]) -> Callable[..., None]:
    """The options that describe a binding."""
    for option in (
        vhost_option,
        click.option(
            "--match", type=click.Choice(["all", "any"]), default="all", show_default=True,
            help="Whether a message must have all of the arguments, or any of them.",
        ),
        click.option(
            "--argument", "arguments", type=PROPERTY, multiple=True,
            help="Headers exchange: a property that a message must have.  May be repeated.",
        ),
        click.option(
            "--to-exchange", is_flag=True, help="The destination is an exchange, not a queue."
        ),
        click.option("--key", default="", help="Binding key of a direct or topic exchange.  In a "
            "topic, * matches one word and # any number of words."),
        click.argument("destination", shell_complete=queue_names),
        click.argument("exchange", shell_complete=exchange_names),
    ):  # fmt: skip
        function = option(function)
    return function


def check_names(broker: Broker, exchange: str, destination: str, to_exchange: bool) -> None:
    """Raise NotFound, with a suggestion, for a name that does not exist."""
    exchange_named(broker, exchange)
    (exchange_named if to_exchange else queue_named)(broker, destination)


def shape(key: str, arguments: tuple[Any, ...], match: str, to_exchange: bool) -> dict[str, Any]:
    to = "exchange" if to_exchange else "queue"
    return {"key": key, "arguments": dict(arguments) or None, "match": match, "to": to}


@click.command(
    cls=Verb,
    examples="""
    shmbroker bind prices orders --key 'eu.*.fx'
    shmbroker bind invoices archive --argument kind=invoice --argument year=2026
    shmbroker bind prices audit --key '#' --to-exchange
    """,
)
@binding_options
def bind(
    exchange: str, destination: str, key: str, to_exchange: bool,
    arguments: tuple[tuple[str, object], ...], match: str, vhost: str,
) -> None:  # fmt: skip
    """Bind a queue to an exchange.

    EXCHANGE then routes messages to DESTINATION: all of them, or those that match --key or
    --argument.
    """
    with connected(vhost) as broker:
        check_names(broker, exchange, destination, to_exchange)
        broker.bind(exchange, destination, **shape(key, arguments, match, to_exchange))
    say(f"exchange {exchange!r} is bound to {destination!r}" + (f" by {key!r}" if key else ""))


@click.command(
    cls=Verb,
    examples="""
    shmbroker unbind prices orders --key 'eu.*.fx'
    shmbroker exchange bindings prices
    """,
)
@binding_options
def unbind(
    exchange: str, destination: str, key: str, to_exchange: bool,
    arguments: tuple[tuple[str, object], ...], match: str, vhost: str,
) -> None:  # fmt: skip
    """Remove a binding.  Takes the arguments that `bind` was given."""
    with connected(vhost) as broker:
        check_names(broker, exchange, destination, to_exchange)
        broker.unbind(exchange, destination, **shape(key, arguments, match, to_exchange))
    say(f"exchange {exchange!r} is no longer bound to {destination!r}")
