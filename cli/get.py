"""`shmbroker queue get`: take messages and print them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from shmbroker.cli.connection import connected, queue_named, vhost_option
from shmbroker.cli.group import verb
from shmbroker.cli.hang_up import ended_by_hang_up
from shmbroker.cli.output import json_option, say
from shmbroker.cli.queue import name_argument
from shmbroker.cli.selector import selector_option
from shmbroker.cli.subscribe import show
from shmbroker.cli.units import COUNT, DURATION, format_count
from shmbroker.ipc.base.errors import Empty

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shmbroker.ipc.message.message import Message
    from shmbroker.ipc.queue.queue import Queue
    from shmbroker.ipc.selector.selector import Selector


@verb(
    examples="""
    shmbroker queue get orders
    shmbroker queue get orders --requeue --json | jq .properties
    shmbroker queue get orders --count 10 --timeout 5s
    shmbroker queue get orders --selector 'table = 7'
    """
)
@name_argument
@click.option("--count", metavar="N", type=COUNT, default=1, show_default=True,
    help="Take this many messages.")  # fmt: skip
@click.option("--ack/--requeue", "acks", default=True,
    help="Acknowledge the messages, or return them to the queue.  [default: ack]")  # fmt: skip
@click.option("--timeout", type=DURATION, default=0.0,
    help="Wait at most this long for each message.  [default: do not wait]")  # fmt: skip
@selector_option
@json_option
@vhost_option
@ended_by_hang_up()
def get(
    name: str, count: int, acks: bool, timeout: float, selector: Selector | None, as_json: bool,
    vhost: str,
) -> None:  # fmt: skip
    """Take messages from a queue and print them.

    Prints one message per line.  Each is acknowledged after it was printed.  With --requeue all
    return to their places at the end, and count as delivered once more.  Exits with 1 if there are
    fewer than --count messages.  To look without taking: `shmbroker browse`.
    """
    seen = 0
    with connected(vhost) as broker, ExitStack() as given_back:
        for message in taken(queue_named(broker, name), count, selector, timeout):
            if not acks:
                given_back.callback(message.give_back)
                show(message, as_json)
            else:
                with message:
                    show(message, as_json)
            seen += 1
    done = "taken from" if acks else "shown and returned to"
    say(f"{format_count(seen, 'message')} {done} queue {name!r}")
    if seen < count:
        raise click.ClickException(f"{seen} of {format_count(count, 'message')} came")


def taken(queue: Queue, count: int, selector: Selector | None, timeout: float) -> Iterator[Message]:
    """Up to `count` messages, until none comes in time."""
    from shmbroker.ipc.selector.selection import Selection

    selection = None if selector is None else Selection(selector)
    for _ in range(count):
        try:
            if selection is None:
                yield queue.get(timeout=timeout)
            else:
                yield queue.select(selection, timeout=timeout)
        except Empty:
            return
