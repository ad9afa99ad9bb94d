"""`shmbroker browser`: look at the messages of a queue and report the rate."""

from __future__ import annotations

from itertools import islice

import click

from shmbroker.cli.connection import observed, queue_named, vhost_option
from shmbroker.cli.destination import DESTINATION, Destination
from shmbroker.cli.group import Verb
from shmbroker.cli.names import destination_names
from shmbroker.cli.output import json_option, print_json
from shmbroker.cli.progress import Progress
from shmbroker.cli.units import COUNT


@click.command(
    cls=Verb,
    examples="""
    shmbroker browser --message-count 10 --destination queue://haQueue
    shmbroker browser --destination haQueue --url tcp://127.0.0.1:61616
    """,
)
@click.option("--destination", type=DESTINATION, required=True, shell_complete=destination_names,
    help="queue://NAME, or the name of a queue.")  # fmt: skip
@click.option("--message-count", "count", metavar="N", type=COUNT, default=1000,
    show_default=True, help="Look at this many messages at most.")  # fmt: skip
@json_option
@vhost_option
def browser(destination: Destination, count: int, as_json: bool, vhost: str) -> None:
    """Look at the messages of a queue and report the rate.

    Nothing is taken.  It ends with the last message that is there: it waits for none.
    `shmbroker queue browse` shows them.
    """
    if destination.kind != "queue":
        raise click.UsageError(f"{destination} has no messages: browse a queue that is bound to it")
    progress = Progress("browsed", count)
    with observed(vhost) as broker:
        queue = queue_named(broker, destination.name)
        progress.start()
        try:
            for message in islice(queue.browse(), count):
                progress.add(len(message.body))
        finally:
            progress.stop()
            if as_json:
                print_json(progress.fields(str(destination)))
            else:
                click.echo(progress.sentence("of", str(destination)))
