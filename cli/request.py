"""`shmbroker request`: send a request and print the reply."""

from __future__ import annotations

import os
import sys

import click

from shmbroker.cli.connection import connected, queue_named, vhost_option
from shmbroker.cli.group import Verb
from shmbroker.cli.names import queue_names
from shmbroker.cli.output import body_fields, json_option, print_json
from shmbroker.cli.properties import PROPERTY
from shmbroker.cli.units import DURATION
from shmbroker.ipc.base.errors import NoReply


@click.command(
    cls=Verb,
    examples="""
    shmbroker request prices 'eu.de.fx?'
    shmbroker request prices 'eu.de.fx?' --timeout 10s --json
    """,
)
@click.argument("queue", shell_complete=queue_names)
@click.argument("body")
@click.option("--key", help="Key of the request.")
@click.option("--property", "properties", type=PROPERTY, multiple=True,
    help="A property: a number, true, false, null, or text.  May be repeated.")  # fmt: skip
@click.option("--timeout", type=DURATION, default="1s", show_default=True,
    help="Wait at most this long for the reply.")  # fmt: skip
@json_option
@vhost_option
def request(
    queue: str, body: str, key: str | None, properties: tuple[tuple[str, object], ...],
    timeout: float, as_json: bool, vhost: str,
) -> None:  # fmt: skip
    """Publish BODY as a request to QUEUE and print the reply.

    If no reply arrives in time, it takes the request back, unless somebody has taken it, and exits
    with 1.
    """
    with connected(vhost) as broker:
        asked = queue_named(broker, queue)
        given = dict(properties) or None
        try:
            reply = asked.request(os.fsencode(body), key=key, properties=given, timeout=timeout)
        except NoReply as error:
            raise click.ClickException(f"{error}; {what_became_of(error, queue)}") from None
    if as_json:
        print_json({"properties": reply.properties, **body_fields(reply.body)})
    else:
        sys.stdout.buffer.write(reply.body + b"\n")


def what_became_of(error: NoReply, queue: str) -> str:
    if error.take_back():
        return f"nobody had taken the request, so it was taken back from queue {queue!r}"
    return f"somebody has taken the request from queue {queue!r}, or it cannot be taken back"
