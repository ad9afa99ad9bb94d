"""`shmbroker pub`: publish an argument, a file or standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

import click

from shmbroker.cli.connection import connected, vhost_option
from shmbroker.cli.group import Verb
from shmbroker.cli.names import exchange_names, queue_names
from shmbroker.cli.output import say
from shmbroker.cli.properties import PROPERTY
from shmbroker.cli.publisher import Publisher, confirm_option, publisher, timeout_option
from shmbroker.cli.units import DURATION, TIME_OF_DAY, format_count

if TYPE_CHECKING:
    from datetime import datetime

    from shmbroker.ipc.message.confirm import Confirm


def bodies(body: str | None, file: IO[bytes] | None, lines: bool) -> Iterator[bytes]:
    """The argument; else a file or stdin, whole or line by line."""
    if body is not None:
        yield os.fsencode(body)  # restores bytes that are not text
        return
    source = file or sys.stdin.buffer
    if source.isatty():
        each = ", a message a line" if lines else ""
        say(f"type what is to be published{each}; Ctrl-D ends")
    if lines:
        for line in source:
            yield line.removesuffix(b"\n")
    else:
        yield source.read()


def addressed(words: tuple[str, ...], exchange: str | None) -> tuple[str | None, str | None]:
    """Split the arguments into queue and body.  With --exchange there is no queue."""
    most = 1 if exchange is not None else 2
    if len(words) > most:
        raise click.UsageError(f"too many arguments: {words[most]!r}; quote a body with spaces")
    if exchange is not None:
        return None, words[0] if words else None
    if not words:
        raise click.UsageError("which queue? Name it, or an exchange by --exchange")
    return words[0], words[1] if len(words) > 1 else None


@click.command(
    cls=Verb,
    examples="""
    shmbroker pub orders 'one coffee'
    shmbroker pub orders --property table=7 --property urgent=true 'one coffee'
    shmbroker pub orders --ttl 30s --priority 9 'one espresso'
    shmbroker pub orders --deliver-after 2h 'one cake'
    shmbroker pub orders --id order-17 'one coffee'
    shmbroker pub orders --confirm shm 'one coffee'
    shmbroker pub --exchange prices --key eu.de.fx 1.08
    shmbroker pub --exchange quotes --key eu.de --immediate 1.08
    shmbroker pub photos --file cat.jpg
    tail -F app.log | shmbroker pub logs --lines
    """,
)
@click.argument("words", nargs=-1, metavar="[QUEUE] [BODY]", shell_complete=queue_names)
@click.option("--exchange", metavar="NAME", shell_complete=exchange_names,
    help="Publish to an exchange instead of a queue.")  # fmt: skip
@click.option("--key", help="Routing key.")
@click.option("--property", "properties", type=PROPERTY, multiple=True,
    help="A property: a number, true, false, null, or text.  May be repeated.")  # fmt: skip
@click.option("--ttl", type=DURATION, help="Expire the message after this time.")
@click.option("--deliver-after", type=DURATION, help="Deliver the message after this delay.")
@click.option("--deliver-at", type=TIME_OF_DAY,
    help="Deliver the message at this time of day, e.g. 2026-11-22T08:00.")  # fmt: skip
@click.option(
    "--priority", metavar="0-9", type=click.IntRange(0, 9), help="Priority; 9 is the highest."
)
@click.option(
    "--id",
    "message_id",
    metavar="ID",
    help="Message id.  A queue drops a second message with the same id.  Not with --deliver-after "
    "or --deliver-at.",
)
@click.option("--group", metavar="NAME", help="Message group; one consumer at a time gets a group.")
@click.option("--file", type=click.File("rb"), help="Publish the content of this file; - is stdin.")
@click.option(
    "--lines", is_flag=True, help="Publish each line of the file or of stdin as a message."
)
@click.option("--mandatory", is_flag=True, help="Fail if no queue takes the message.")
@click.option("--immediate", is_flag=True,
    help="Only for queues with a consumer; fail if none of these takes the message.")  # fmt: skip
@confirm_option
@timeout_option
@vhost_option
def pub(
    words: tuple[str, ...], exchange: str | None, key: str | None,
    properties: tuple[tuple[str, object], ...], ttl: float | None, deliver_after: float | None,
    deliver_at: datetime | None, priority: int | None, message_id: str | None, group: str | None,
    file: IO[bytes] | None, lines: bool, mandatory: bool, immediate: bool,
    confirm: Confirm | None, timeout: float | None, vhost: str,
) -> None:  # fmt: skip
    """Publish BODY, or a file, or stdin, to QUEUE.

    A durable queue confirms each message when it is safe: on disk, and with its replicas.  Exits
    with 1 if a message was published and not confirmed: it is in the queue, so publishing it again
    would double it.
    """
    queue, body = addressed(words, exchange)
    if body is not None and (file or lines):
        raise click.UsageError("a body is either an argument or in a file")
    if immediate and exchange is None:
        raise click.UsageError("--immediate is for what is published by --exchange")
    if deliver_after is not None and deliver_at is not None:
        raise click.UsageError("either --deliver-after or --deliver-at")
    if message_id is not None and (deliver_after is not None or deliver_at is not None):
        raise click.UsageError("what is scheduled has no id: leave it out, or publish it when due")
    if message_id is not None and lines:
        raise click.UsageError("an id is one message's: publish each line for itself, or without")
    with connected(vhost) as broker:
        options = {
            "properties": dict(properties) or None, "ttl": ttl, "priority": priority,
            "deliver_after": deliver_after, "deliver_at": deliver_at,
            "message_id": message_id, "group": group,
        }  # fmt: skip
        wishes = {"mandatory": mandatory, "immediate": immediate}
        publish = publisher(broker, queue, exchange, key, wishes, timeout, confirm, options)
        try:
            for one in bodies(body, file, lines):
                publish(one)
        finally:
            say(summary(publish, queue, exchange))


def summary(done: Publisher, queue: str | None, exchange: str | None) -> str:
    published, taken = done.published, done.taken
    messages = format_count(published, "message")
    if done.unconfirmed:
        which = "" if published == 1 else "the last "
        return f"{published:,} published, {which}not confirmed: it is in shared memory"
    if done.unknown:
        where = f"queue {queue!r}" if exchange is None else f"exchange {exchange!r}"
        return f"{messages} to {where}; whether one more was published is unknown"
    if exchange is None and taken < published:
        return f"nothing to queue {queue!r}: a message with this id was published before"
    if exchange is None:
        return f"{messages} to queue {queue!r}"
    if published and not taken:
        return f"{messages} to exchange {exchange!r}, but no binding took any"
    return f"{messages} to exchange {exchange!r}, into queues {format_count(taken, 'time')}"
