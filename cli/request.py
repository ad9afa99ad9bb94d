"""`shmbroker request`: ask, and show what is answered."""

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


@click.command(
    cls=Verb,
    examples="""
    shmbroker request prices 'eu.de.fx?'
    shmbroker request prices 'eu.de.fx?' --timeout 10s --json
    """,
)
@click.argument("queue", shell_complete=queue_names)
@click.argument("body")
@click.option("--key", help="Of the request, for its server.")
@click.option("--property", "properties", type=PROPERTY, multiple=True,
    help="A number, true, false, null, or text; may be repeated.")  # fmt: skip
@click.option("--timeout", type=DURATION, default="1s", show_default=True,
    help="Wait so long for the reply.")  # fmt: skip
@json_option
@vhost_option
def request(
    queue: str, body: str, key: str | None, properties: tuple[tuple[str, object], ...],
    timeout: float, as_json: bool, vhost: str,
) -> None:  # fmt: skip
    """Publish a request and wait for its reply.

    The reply to BODY goes to stdout.  Ends with 1 if none comes in time.
    """
    with connected(vhost) as broker:
        asked = queue_named(broker, queue)
        given = dict(properties) or None
        reply = asked.request(os.fsencode(body), key=key, properties=given, timeout=timeout)
    if as_json:
        print_json({"properties": reply.properties, **body_fields(reply.body)})
    else:
        sys.stdout.buffer.write(reply.body + b"\n")
