"""The vhost that a command uses, and the connection to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TypeVar

import click

from shmbroker.cli.suggestion import suggesting

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.exchange.exchange import Exchange
    from shmbroker.ipc.queue.queue import Queue

VARIABLE = "SHMBROKER_VHOST"
DEFAULT = "default"

Function = TypeVar("Function", bound=Callable[..., object])


def chosen_vhost(ctx: click.Context) -> str:
    """The vhost: from --vhost after the verb, before it, from the environment, or the default."""
    candidates = (
        ctx.params.get("vhost"),
        ctx.find_root().params.get("vhost"),
        os.environ.get(VARIABLE),
    )
    return next((name for name in candidates if name), DEFAULT)


def vhost_names(_ctx: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    from shmbroker.ipc.vhost import vhost

    return [name for name in vhost.names() if name.startswith(incomplete)]


def vhost_option(function: Function) -> Function:
    """The option `--vhost`, resolved."""
    option = click.option(
        "--vhost",
        metavar="NAME",
        shell_complete=vhost_names,
        callback=lambda ctx, _option, value: value or chosen_vhost(ctx),
        help=f"Name of the vhost.  [env {VARIABLE}, else '{DEFAULT}']",
    )
    return option(function)


def observed(vhost: str) -> AbstractContextManager[Broker]:
    """A read-only connection.  It needs no participant id and never waits for a participant."""
    return connected(vhost, observe=True)


@contextmanager
def connected(vhost: str, *, observe: bool = False) -> Iterator[Broker]:
    """A connection that lasts as long as the block, named after the command that runs."""
    import shmbroker
    from shmbroker.ipc.vhost import vhost as vhosts

    name = click.get_current_context().command_path
    with suggesting("vhost", vhost, vhosts.names, f"shmbroker vhost create {vhost}"):
        broker = shmbroker.connect(f"shm://{vhost}", name=name, observe=observe)
    with broker:
        yield broker


def queue_named(broker: Broker, name: str) -> Queue:
    def known() -> list[str]:
        return [queue.name for queue in broker.queues()]

    with suggesting("queue", name, known, f"shmbroker queue declare {name}"):
        return broker.queue(name)


def exchange_named(broker: Broker, name: str) -> Exchange:
    def known() -> list[str]:
        return [exchange.name for exchange in broker.exchanges()]

    with suggesting("exchange", name, known, f"shmbroker exchange declare {name} topic"):
        return broker.exchange(name)
