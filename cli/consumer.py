"""`shmbroker consumer`: consume many messages and report the rate."""

from __future__ import annotations

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
    """The queue; for an exchange a temporary queue that is bound to it.

    It vanishes however we end: one that stayed would be full some day, and nobody could publish.
    """
    if destination.kind == "queue":
        yield queue_named(broker, destination.name)
        return
    exchange_named(broker, destination.name)
    queue = broker.temporary_queue()
    broker.bind(destination.name, queue.name, destination.key)
    yield queue


@click.command(
    cls=Verb,
    examples="""
    shmbroker consumer --message-count 10 --destination queue://haQueue
    shmbroker consumer --destination exchange://prices/eu.# --timeout 10s
    """,
)
@click.option("--destination", type=DESTINATION, required=True, shell_complete=destination_names,
    help="queue://NAME, exchange://NAME/KEY, or the name of a queue.")  # fmt: skip
@click.option("--message-count", "count", metavar="N", type=COUNT, default=1000,
    show_default=True, help="Number of messages.")  # fmt: skip
@click.option("--timeout", type=DURATION,
    help="Stop if no message arrives for this long.  [never]")  # fmt: skip
@json_option
@vhost_option
def consumer(
    destination: Destination, count: int, timeout: float | None, as_json: bool, vhost: str
) -> None:
    """Consume messages and report the rate.

    Each message is acknowledged.  From an exchange it consumes through a temporary queue of its
    own.  Exits with 1 if fewer messages arrive.
    """
    progress = Progress("consumed", count)
    with connected(vhost) as broker, source(broker, destination) as queue:
        try:
            while progress.messages < count:
                body = queue.receive(timeout=timeout)
                progress.add(len(body))
                if progress.messages == 1:  # the wait for the first message is no part of the rate
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
