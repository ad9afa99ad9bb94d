"""`shmbroker run`: the caretaker of a vhost, which repairs what the dead leave at once."""

from __future__ import annotations

import signal
from types import FrameType

import click

from shmbroker.cli.connection import connected, vhost_option
from shmbroker.cli.group import Verb


class Stopped(Exception):
    """SIGTERM: end as if there were nothing more to do."""


def stop(_number: int, _frame: FrameType | None) -> None:
    raise Stopped


@click.command(
    cls=Verb,
    examples="""
    shmbroker run
    shmbroker run --vhost trading
    """,
)
@vhost_option
def run(vhost: str) -> None:
    """Take care of a vhost until SIGTERM or Ctrl-C.

    No message goes through this process.  It waits for the death of a participant, and gives what
    that one had in hand to others within milliseconds; without it, waiting participants do so
    within 100 ms.
    """
    signal.signal(signal.SIGTERM, stop)
    with connected(vhost) as broker:
        click.echo(f"taking care of vhost {vhost}", err=True)
        try:
            while True:
                repaired = broker.tend()
                if repaired:
                    click.echo(f"somebody died: {repaired} repairs", err=True)
        except Stopped:
            click.echo(f"vhost {vhost} is left to its participants", err=True)
