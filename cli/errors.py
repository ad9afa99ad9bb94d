"""`shmbroker errors`: the log of distinct errors of a vhost."""

from __future__ import annotations

import click

from shmbroker.cli.connection import observed, vhost_option
from shmbroker.cli.group import Verb
from shmbroker.cli.output import instant, json_option, print_json, print_table


@click.command(
    cls=Verb,
    examples="""
    shmbroker errors
    shmbroker errors --json | jq -r '.[].text'
    """,
)
@json_option
@vhost_option
def errors(as_json: bool, vhost: str) -> None:
    """Show the errors of a vhost.

    Each is shown once, with its count and its first and last time.
    """
    with observed(vhost) as broker:
        found = sorted(broker.errors(), key=lambda error: error.last_at, reverse=True)
    if as_json:
        print_json(
            [
                {"text": e.text, "count": e.count, "first_at": e.first_at, "last_at": e.last_at}
                for e in found
            ]
        )
    else:
        rows = [[e.count, instant(e.first_at), instant(e.last_at), e.text] for e in found]
        print_table(["COUNT", "FIRST", "LAST", "ERROR"], rows)
