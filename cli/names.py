"""What the shell offers after Tab: the names that are there now."""

from __future__ import annotations

import click

from shmbroker.cli.connection import chosen_vhost
from shmbroker.ipc.errors import Error


def queue_names(ctx: click.Context, _argument: click.Parameter, incomplete: str) -> list[str]:
    import shmbroker

    try:
        with shmbroker.connect(f"shm://{chosen_vhost(ctx)}", name="completion") as broker:
            names = [queue.name for queue in broker.queues()]
    except (Error, OSError):  # whoever completes wants to hear of no other trouble
        return []
    return [name for name in names if name.startswith(incomplete)]


def exchange_names(ctx: click.Context, _argument: click.Parameter, incomplete: str) -> list[str]:
    import shmbroker

    try:
        with shmbroker.connect(f"shm://{chosen_vhost(ctx)}", name="completion") as broker:
            names = [exchange.name for exchange in broker.exchanges()]
    except (Error, OSError):
        return []
    return [name for name in names if name.startswith(incomplete)]


def destination_names(ctx: click.Context, argument: click.Parameter, incomplete: str) -> list[str]:
    """As `cli/destination.py` reads them; a queue may go without its scheme."""
    for scheme, names in (("queue://", queue_names), ("exchange://", exchange_names)):
        if incomplete.startswith(scheme):
            return [scheme + name for name in names(ctx, argument, incomplete[len(scheme) :])]
    return queue_names(ctx, argument, incomplete)
