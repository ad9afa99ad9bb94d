"""`shmbroker mask`: mask a secret for a configuration file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from shmbroker.cli.group import Verb
from shmbroker.cli.output import say, secret_line


@click.command(
    cls=Verb,
    examples="""
    shmbroker mask /var/lib/shmbroker/orders
    pass show broker/database | shmbroker mask /var/lib/shmbroker/orders
    """,
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def mask(folder: Path) -> None:
    """Mask a secret for the configuration of the broker in DIR.

    The command prompts for the secret or reads it from standard input, because every user of a
    host can see command lines.

    The secret is masked with the key in DIR/mask.key, which is created if it is missing.  The
    configuration can then be shared.  Whoever can read DIR can also read the key.
    """
    from shmbroker.ipc.instance.config import config, masking

    config.read(folder)
    asks = sys.stdin.isatty()
    secret = click.prompt("secret", hide_input=True, err=True) if asks else secret_line()
    key = masking.made_key(folder / masking.FILE)
    click.echo(f'{{ masked = "{masking.masked(secret, key)}" }}')
    say(f"to be put behind sql.password in {folder / config.FILE}")
