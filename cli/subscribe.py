"""`shmbroker sub`: watch a queue, or consume a subscription."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

import click

from shmbroker.cli.connection import connected, exchange_named, queue_named, vhost_option
from shmbroker.cli.fields import message_fields
from shmbroker.cli.group import Verb
from shmbroker.cli.hang_up import ended_by_hang_up
from shmbroker.cli.names import exchange_names, queue_names, subscription_names
from shmbroker.cli.output import json_option, print_json, say
from shmbroker.cli.selector import selector_option, selects
from shmbroker.cli.units import COUNT, DURATION, format_count, format_duration

if TYPE_CHECKING:
    from shmbroker.ipc.message.copied import CopiedMessage
    from shmbroker.ipc.message.message import Message
    from shmbroker.ipc.selector.selector import Selector


@click.command(
    cls=Verb,
    examples="""
    shmbroker sub orders
    shmbroker sub orders --from earliest --count 10
    shmbroker sub orders --json | jq .body
    shmbroker sub orders --selector 'price > 5'
    shmbroker sub ticks --lossy --timeout 5s > ticks.txt
    shmbroker sub --name audit --exchange prices --key 'eu.#' --durable
    """,
)
@click.argument("queue", required=False, shell_complete=queue_names)
@click.option("--name", metavar="NAME", shell_complete=subscription_names,
    help="Consume the subscription with this name.")  # fmt: skip
@click.option("--exchange", metavar="NAME", shell_complete=exchange_names,
    help="With --name: the exchange of the subscription.")  # fmt: skip
@click.option("--key", default="", help="With --name: the binding key.")
@click.option(
    "--durable", is_flag=True, help="With --name: collect messages while nobody consumes."
)
@click.option("--shared", is_flag=True, help="With --name: allow other consumers.")
@click.option("--count", metavar="N", type=COUNT, help="Stop after this many messages.")
@click.option("--timeout", type=DURATION, help="Stop if no message arrives for this long.")
@click.option("--lossy", is_flag=True,
    help="Skip messages instead of making producers wait.")  # fmt: skip
@click.option("--from", "start", type=click.Choice(["earliest", "now"]), default="now",
    show_default=True, help="Start with the oldest message, or with new ones.")  # fmt: skip
@selector_option
@json_option
@vhost_option
@ended_by_hang_up()
def sub(
    queue: str | None, name: str | None, exchange: str | None, key: str, durable: bool,
    shared: bool, count: int | None, timeout: float | None, lossy: bool,
    start: Literal["earliest", "now"], selector: Selector | None, as_json: bool, vhost: str,
) -> None:  # fmt: skip
    """Print the messages of a queue or of a subscription.

    Prints one message per line.  With QUEUE it only watches: consumers still get the messages. With
    --name it consumes the subscription and acknowledges each message.  Messages that --selector
    does not match are not printed; a subscription keeps them.  Exits with 1 if fewer than --count
    messages arrive within --timeout, with 141 as soon as nobody reads the output any more.
    """
    if name is not None:
        if queue is not None or exchange is None:
            raise click.UsageError("--name goes with --exchange, and without a queue")
        seen = consume(
            name, exchange, key, durable, shared, selector, count, timeout, as_json, vhost
        )
    elif queue is None:
        raise click.UsageError("which queue? Name it, or a subscription by --name and --exchange")
    elif exchange is not None or key or durable or shared:
        raise click.UsageError("--exchange, --key, --durable and --shared go with --name")
    else:
        seen = watch(queue, start, lossy, selector, count, timeout, as_json, vhost)
    if count and seen < count:
        assert timeout is not None
        raise click.ClickException(
            f"{seen} of {format_count(count, 'message')} came: "
            f"then nothing for {format_duration(timeout)}"
        )


def consume(
    name: str, exchange: str, key: str, durable: bool, shared: bool, selector: Selector | None,
    count: int | None, timeout: float | None, as_json: bool, vhost: str,
) -> int:  # fmt: skip
    """Print and acknowledge the messages of a subscription: how many."""
    seen = 0
    with connected(vhost) as broker:
        exchange_named(broker, exchange)
        subscription = broker.subscription(
            name, exchange=exchange, key=key, durable=durable, shared=shared
        )
        try:
            say(f"subscribed to exchange {exchange!r} as {name!r}; Ctrl-C ends")
            for message in subscription.consume(selector=selector, timeout=timeout):
                with message:
                    show(message, as_json)
                seen += 1
                if seen == count:
                    break
        finally:
            say(format_count(seen, "message"))
    return seen


def watch(
    queue: str, start: Literal["earliest", "now"], lossy: bool, selector: Selector | None,
    count: int | None, timeout: float | None, as_json: bool, vhost: str,
) -> int:  # fmt: skip
    """Print the messages of a queue without taking them: how many."""
    seen = 0
    with connected(vhost) as broker:
        queue_named(broker, queue)
        subscription = broker.subscribe(queue, start=start, lossy=lossy, timeout=timeout)
        try:
            say(f"subscribed to queue {queue!r}; Ctrl-C ends")
            for message in subscription:
                if not selects(selector, message):
                    continue
                show(message, as_json)
                seen += 1
                if seen == count:
                    break
        finally:
            missed = subscription.missed
            subscription.close()
            say(format_count(seen, "message") + (f", {missed:,} missed" if missed else ""))
    return seen


def show(message: CopiedMessage | Message, as_json: bool) -> None:
    """Print a message and flush, so that a reader of a pipe sees it at once."""
    if as_json:
        print_json(message_fields(message), indent=None)
    else:
        sys.stdout.buffer.write(message.body + b"\n")
    sys.stdout.flush()
