"""`shmbroker run`: a broker, or only the caretaker of a vhost."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType

import click

from shmbroker.cli.connection import connected, vhost_option
from shmbroker.cli.group import Verb
from shmbroker.cli.units import format_size


class Stopped(Exception):
    """SIGTERM: end as if there were nothing more to do."""


def stop(_number: int, _frame: FrameType | None) -> None:
    raise Stopped


@click.command(
    cls=Verb,
    examples="""
    shmbroker run /var/lib/shmbroker/orders
    shmbroker run --vhost trading
    """,
)
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--moved", is_flag=True, help="The store of DIR was copied, and the original is gone."
)
@vhost_option
def run(folder: Path | None, moved: bool, vhost: str) -> None:
    """Run the broker in DIR, or take care of a vhost, until SIGTERM or Ctrl-C.

    No message goes through this process.  The broker in DIR (see `shmbroker create`) writes the
    journal of its vhost, or waits as a backup until it has to.  Stopped, it first writes what is
    there; stopped twice, it ends at once.

    Without DIR nothing is durable: it only waits for the death of a participant, and gives what
    that one had in hand to others within milliseconds; without it, waiting participants do so
    within 100 ms.  A broker does that too.
    """
    if folder is None:
        if moved:
            raise click.UsageError("--moved is about the store of DIR: name that")
        take_care(vhost)
    else:
        run_instance(folder, moved)


def run_instance(folder: Path, moved: bool) -> None:
    from shmbroker.ipc.instance.config import load
    from shmbroker.ipc.instance.instance import Instance

    progress = show if sys.stderr.isatty() else None
    code = Instance(load(folder), moved=moved, progress=progress).run()
    sys.stdout.flush()
    os._exit(code)  # threads of it sleep in the kernel, and nobody will wake them


def show(done: int, size: int) -> None:
    """How far restoring is, on one line."""
    click.echo(f"\rrestoring: {format_size(done)} of {format_size(size)}\x1b[K", err=True, nl=False)


def take_care(vhost: str) -> None:
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
