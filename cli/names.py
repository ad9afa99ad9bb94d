"""Shell completion of the names that exist now."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

import click

from shmbroker.cli.connection import chosen_vhost, opened
from shmbroker.ipc.base.errors import Error

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker


class Named(Protocol):
    @property
    def name(self) -> str: ...


def names(
    ctx: click.Context, incomplete: str, of: Callable[[Broker], Iterable[Named]]
) -> list[str]:
    try:
        with opened(ctx, chosen_vhost(ctx), "completion", observe=True) as broker:
            found = [each.name for each in of(broker)]
    except (Error, OSError):  # completion shows no errors
        return []
    return [name for name in found if name.startswith(incomplete)]


def queue_names(ctx: click.Context, _argument: click.Parameter, incomplete: str) -> list[str]:
    return names(ctx, incomplete, lambda broker: broker.queues())


def exchange_names(ctx: click.Context, _argument: click.Parameter, incomplete: str) -> list[str]:
    return names(ctx, incomplete, lambda broker: broker.exchanges())


def subscription_names(
    ctx: click.Context, _argument: click.Parameter, incomplete: str
) -> list[str]:
    return names(ctx, incomplete, lambda broker: broker.subscriptions())


def destination_names(ctx: click.Context, argument: click.Parameter, incomplete: str) -> list[str]:
    """Destinations as `cli/destination.py` reads them; the scheme of a queue is optional."""
    for scheme, offered in (("queue://", queue_names), ("exchange://", exchange_names)):
        if incomplete.startswith(scheme):
            return [scheme + name for name in offered(ctx, argument, incomplete[len(scheme) :])]
    return queue_names(ctx, argument, incomplete)
