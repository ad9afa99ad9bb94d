"""`shmbroker sub`: see what comes through a queue without taking it from anybody."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

import click

from shmbroker.cli.connection import connected, queue_named, vhost_option
from shmbroker.cli.fields import message_fields
from shmbroker.cli.group import Verb
from shmbroker.cli.names import queue_names
from shmbroker.cli.output import json_option, print_json, say
from shmbroker.cli.units import DURATION, format_count, format_duration

if TYPE_CHECKING:
    from shmbroker.ipc.copied import CopiedMessage


@click.command(
    cls=Verb,
    examples="""
    shmbroker sub orders
    shmbroker sub orders --from earliest --count 10
    shmbroker sub orders --json | jq .body
    shmbroker sub ticks --lossy --timeout 5s > ticks.txt
    """,
)
@click.argument("queue", shell_complete=queue_names)
@click.option("--count", metavar="N", type=click.IntRange(min=1), help="End after so many.")
@click.option("--timeout", type=DURATION, help="End when nothing has come for so long.")
@click.option("--lossy", is_flag=True,
    help="Rather miss messages than let producers wait for us.")  # fmt: skip
@click.option("--from", "start", type=click.Choice(["earliest", "now"]), default="now",
    show_default=True, help="Begin with what is there, or with what comes.")  # fmt: skip
@json_option
@vhost_option
def sub(
    queue: str, count: int | None, timeout: float | None, lossy: bool,
    start: Literal["earliest", "now"], as_json: bool, vhost: str,
) -> None:  # fmt: skip
    """See what comes through a queue.

    Each message of QUEUE goes to stdout, one a line, and consumers get it all the same: nothing is
    taken.  Ends with 1 if --count was asked for and fewer came within --timeout.
    """
    seen = 0
    with connected(vhost) as broker:
        queue_named(broker, queue)
        subscription = broker.subscribe(queue, start=start, lossy=lossy, timeout=timeout)
        try:
            say(f"subscribed to queue {queue!r}; Ctrl-C ends")
            for message in subscription:
                show(message, as_json)
                seen += 1
                if seen == count:
                    break
        finally:
            missed = subscription.missed
            subscription.close()
            say(format_count(seen, "message") + (f", {missed:,} missed" if missed else ""))
    if count and seen < count:
        assert timeout is not None
        raise click.ClickException(
            f"{seen} of {format_count(count, 'message')} came: "
            f"then nothing for {format_duration(timeout)}"
        )


def show(message: CopiedMessage, as_json: bool) -> None:
    """Whoever reads us sees each message when it comes, so nothing stays in a buffer."""
    if as_json:
        print_json(message_fields(message), indent=None)
    else:
        sys.stdout.buffer.write(message.body + b"\n")
    sys.stdout.flush()
