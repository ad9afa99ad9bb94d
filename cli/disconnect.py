"""`shmbroker disconnect`: end the connection of a program, on this host or on another one."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

import click

from shmbroker.cli.connection import (
    connected,
    is_over_link,
    operating,
    ordered_far,
    vhost_option,
)
from shmbroker.cli.group import Verb
from shmbroker.cli.output import say, visible
from shmbroker.cli.units import DURATION

if TYPE_CHECKING:
    from shmbroker.netbridge.broker.programs import Disconnected


@click.command(
    cls=Verb,
    examples="""
    shmbroker participants
    shmbroker disconnect 7
    shmbroker disconnect 3f8a91c2 --vhost orders
    shmbroker disconnect 3f8a91c2 --url tcp://orders.example
    """,
)
@click.argument("who", metavar="ID")
@click.option("--timeout", type=DURATION, default="2s", show_default=True,
    help="Wait at most this long until a program of the broker's host has left.")  # fmt: skip
@vhost_option
def disconnect(who: str, timeout: float, vhost: str) -> None:
    """Disconnect a program.

    ID is the one that `shmbroker participants` shows.  What the program has in hand goes back to
    its queues; what it has published stays.  It may connect again, and one on another host does so
    by itself, unless it is told not to.

    A program of the broker's host finds out when it waits, or settles a message.  One that only
    publishes, and never waits for room, goes on: only `kill` ends that.  With --url the user needs
    the role admin.
    """
    done = _far(who, timeout) if is_over_link() else _here(who, timeout, vhost)
    name = visible(done.name)
    if done.has_left:
        say(f"{name} is disconnected")
    else:
        say(
            f"{name} is told to leave, and has nothing in hand any more; it leaves when it "
            f"waits, or settles a message; to end it now: kill {done.pid}"
        )


def _here(who: str, timeout: float, vhost: str) -> Disconnected:
    from shmbroker.ipc.instance.brokers import folders_of
    from shmbroker.netbridge.broker.programs import disconnected

    with connected(vhost) as broker:
        return disconnected(broker, folders_of(broker), who, getpass.getuser(), timeout)


def _far(who: str, timeout: float) -> Disconnected:
    from shmbroker.netbridge.broker.programs import Disconnected
    from shmbroker.netbridge.serving.programs import PROGRAMS

    with operating() as broker:
        [row] = ordered_far(broker, "disconnect", noun=PROGRAMS, who=who, timeout=timeout)
    return Disconnected(**row)
