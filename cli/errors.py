"""`shmbroker errors`: the log of distinct errors of a vhost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shmbroker.cli.connection import observed, vhost_option
from shmbroker.cli.group import Verb
from shmbroker.cli.output import instant, json_option, print_json, print_table

if TYPE_CHECKING:
    from shmbroker.ipc.vhost.participants import ErrorInfo


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
        found = broker.errors()
    if as_json:
        print_json([fields(each) for each in found])
    else:
        rows = [[e.count, instant(e.first_at), instant(e.last_at), e.text] for e in found]
        print_table(["COUNT", "FIRST", "LAST", "ERROR"], rows)


def fields(of: ErrorInfo) -> dict[str, object]:
    return {"text": of.text, "count": of.count, "first_at": of.first_at, "last_at": of.last_at}
