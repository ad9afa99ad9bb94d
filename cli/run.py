"""`shmbroker run`: the caretaker of a vhost, which repairs what the dead leave at once."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from types import FrameType
from typing import TYPE_CHECKING

import click

from shmbroker.cli.connection import connected, vhost_option
from shmbroker.cli.group import Verb
from shmbroker.cli.units import DURATION, SIZE

if TYPE_CHECKING:
    from shmbroker.ipc.spool import Spool


class Stopped(Exception):
    """SIGTERM: end as if there were nothing more to do."""


def stop(_number: int, _frame: FrameType | None) -> None:
    raise Stopped


@click.command(
    cls=Verb,
    examples="""
    shmbroker run
    shmbroker run --vhost trading
    shmbroker run --spool /var/lib/shmbroker/latency --spool-keep 10GiB
    """,
)
@click.option("--spool", "folder", metavar="FOLDER", type=click.Path(file_okay=False),
    help="Write there how long messages take, where that is recorded (queue latency).")  # fmt: skip
@click.option("--spool-interval", type=DURATION, default="10s", show_default=True,
    help="One histogram for so long.")  # fmt: skip
@click.option("--spool-rotate", type=DURATION, default="1h", show_default=True,
    help="A file for so long.")  # fmt: skip
@click.option("--spool-size", type=SIZE, default="64MiB", show_default=True,
    help="Or until it has so many bytes.")  # fmt: skip
@click.option("--spool-keep", type=SIZE, default="1GiB", show_default=True,
    help="Delete the oldest files of more than this.")  # fmt: skip
@click.option("--spool-parquet/--spool-no-parquet", default=None,
    help="Parquet as well.  [default: if pyarrow is installed]")  # fmt: skip
@vhost_option
def run(
    vhost: str,
    folder: str | None,
    spool_interval: float,
    spool_rotate: float,
    spool_size: int,
    spool_keep: int,
    spool_parquet: bool | None,
) -> None:
    """Take care of a vhost until SIGTERM or Ctrl-C.

    No message goes through this process.  It waits for the death of a participant, and gives what
    that one had in hand to others within milliseconds; without it, waiting participants do so
    within 100 ms.
    """
    signal.signal(signal.SIGTERM, stop)
    with connected(vhost) as broker, ExitStack() as open_spools:
        spool = None
        if folder is not None:
            from shmbroker.ipc.spool import Spool

            spool = Spool(
                f"shm://{vhost}",
                folder,
                interval=spool_interval,
                rotate=spool_rotate,
                rotate_bytes=spool_size,
                keep_bytes=spool_keep,
                parquet=spool_parquet,
            )
            open_spools.enter_context(spool)
        click.echo(f"taking care of vhost {vhost}", err=True)
        try:
            while True:
                repaired = broker.tend(None if spool is None else ticked(spool))
                if repaired:
                    click.echo(f"somebody died: {repaired} repairs", err=True)
        except Stopped:
            click.echo(f"vhost {vhost} is left to its participants", err=True)


def ticked(spool: Spool) -> float:
    """For how long the spool needs nothing.  A full disk is no reason to leave the vhost alone."""
    from shmbroker.ipc.errors import Error

    try:
        return spool.tick()
    except Error as error:
        click.echo(f"spool: {error}", err=True)
        return spool.interval
