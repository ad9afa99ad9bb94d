"""`shmbroker producer`: publish many messages of one size and report the rate."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from shmbroker.cli.connection import connected, is_over_link, vhost_option
from shmbroker.cli.destination import DESTINATION, Destination
from shmbroker.cli.group import Verb
from shmbroker.cli.names import destination_names
from shmbroker.cli.output import json_option, print_json, say
from shmbroker.cli.progress import Progress
from shmbroker.cli.publisher import confirm_option, publisher, timeout_option
from shmbroker.cli.units import COUNT, DURATION, SIZE, format_size
from shmbroker.ipc.base.errors import NotFound
from shmbroker.ipc.vhost import vhost as vhosts

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.message.confirm import Confirm


def numbered(index: int, size: int) -> bytes:
    """A body that starts with its number, as far as its size allows."""
    return (b"%d " % index).ljust(size, b".")[:size]


@click.command(
    cls=Verb,
    examples="""
    shmbroker producer --message-count 10 --message-size 1KiB --destination queue://haQueue
    shmbroker producer --destination exchange://prices/eu.de.fx --message-count 100000
    """,
)
@click.option("--destination", type=DESTINATION, required=True, shell_complete=destination_names,
    help="queue://NAME, exchange://NAME/KEY, or the name of a queue.")  # fmt: skip
@click.option("--message-count", "count", metavar="N", type=COUNT, default=1000,
    show_default=True, help="Number of messages.")  # fmt: skip
@click.option("--message-size", "size", type=SIZE, default="1KiB", show_default=True,
    help="Size of each body.")  # fmt: skip
@click.option("--sleep", type=DURATION, default=0.0, help="Pause after each message.")
@confirm_option
@timeout_option
@json_option
@vhost_option
def producer(
    destination: Destination, count: int, size: int, sleep: float, confirm: Confirm | None,
    timeout: float | None, as_json: bool, vhost: str,
) -> None:  # fmt: skip
    """Publish messages and report the rate.

    A queue that is not there is made; it is durable if there is a broker that writes a journal.
    """
    queue, exchange = (
        (destination.name, None) if destination.kind == "queue" else (None, destination.name)
    )
    progress = Progress("produced", count)
    with connected(vhost) as broker:
        if size > broker.message_bytes_max:
            raise click.UsageError(
                f"a message of vhost {broker.vhost} has at most "
                f"{format_size(broker.message_bytes_max)}, a quarter of its arena, not "
                f"{format_size(size)}"
            )
        if queue is not None:
            make(broker, queue)
        publish = publisher(
            broker, queue, exchange, destination.key or None, {}, timeout, confirm, {}
        )
        progress.start()
        try:
            for index in range(count):
                publish(numbered(index, size))
                progress.add(size)
                if sleep:
                    time.sleep(sleep)
        finally:
            progress.stop()
            if publish.unconfirmed:
                say(f"{publish.published:,} published, the last not confirmed")
            if as_json:
                print_json(progress.fields(str(destination)))
            else:
                click.echo(progress.sentence("to", str(destination)))


def make(broker: Broker, name: str) -> None:
    """Unless it is there."""
    try:
        broker.queue(name)
    except NotFound:
        is_durable = is_over_link() or vhosts.has_journaler(broker.vhost)
        broker.declare_queue(name, durable=is_durable)
        say(f"queue {name!r} is made{', durable' if is_durable else ''}")
