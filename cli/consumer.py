"""`shmbroker consumer`: take many messages, and say how fast they came."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from shmbroker.cli.connection import connected, exchange_named, queue_named, vhost_option
from shmbroker.cli.destination import DESTINATION, Destination
from shmbroker.cli.group import Verb
from shmbroker.cli.names import destination_names
from shmbroker.cli.output import json_option, print_json
from shmbroker.cli.progress import Progress
from shmbroker.cli.units import COUNT, DURATION, format_count, format_duration
from shmbroker.ipc.base.errors import Empty

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.queue.queue import Queue


@contextmanager
def source(broker: Broker, destination: Destination) -> Iterator[Queue]:
    """The queue, or one of our own that is bound to the exchange for as long as we look."""
    if destination.kind == "queue":
        yield queue_named(broker, destination.name)
        return
    exchange_named(broker, destination.name)
    name = f"consumer-{os.getpid()}-{os.urandom(4).hex()}"
    queue = broker.declare_queue(name)
    try:
        broker.bind(destination.name, name, destination.key)
        yield queue
    finally:
        broker.delete_queue(name, force=True)


@click.command(
    cls=Verb,
    examples="""
    shmbroker consumer --message-count 10 --destination queue://haQueue
    shmbroker consumer --destination exchange://prices/eu.# --timeout 10s
    """,
)
@click.option("--destination", type=DESTINATION, required=True, shell_complete=destination_names,
    help="queue://NAME, exchange://NAME/KEY, or just a queue's name.")  # fmt: skip
@click.option("--message-count", "count", metavar="N", type=COUNT, default=1000,
    show_default=True, help="How many messages.")  # fmt: skip
@click.option("--timeout", type=DURATION,
    help="Give up when nothing has come for so long.  [never]")  # fmt: skip
@json_option
@vhost_option
def consumer(
    destination: Destination, count: int, timeout: float | None, as_json: bool, vhost: str
) -> None:
    """Take many messages and say how fast that was.

    Each is acknowledged.  Of an exchange it takes copies, through a queue of its own.
    Ends with 1 if fewer came.
    """
    progress = Progress("consumed", count)
    with connected(vhost) as broker, source(broker, destination) as queue:
        try:
            while progress.messages < count:
                body = queue.receive(timeout=timeout)
                progress.add(len(body))
                if progress.messages == 1:  # how long we waited for it says nothing of the speed
                    progress.start()
        except Empty:
            pass
        finally:
            progress.stop()
            if as_json:
                print_json(progress.fields(str(destination)))
            else:
                click.echo(progress.sentence("from", str(destination)))
    if progress.messages < count:
        assert timeout is not None
        raise click.ClickException(
            f"{progress.messages:,} of {format_count(count, 'message')} came: "
            f"then nothing for {format_duration(timeout)}"
        )
