"""`shmbroker mask`: a secret that may stand in a configuration."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from shmbroker.cli.group import Verb
from shmbroker.cli.output import say


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

    It is asked for, or read from standard input: what stands on a command line is seen by all.

    What is masked means something only with the key in DIR/mask.key, which is made if it is not
    there.  So the configuration may be shown; whoever may read DIR has the key, too.
    """
    from shmbroker.ipc.instance.config import config, masking

    config.read(folder)
    asks = sys.stdin.isatty()
    secret = click.prompt("secret", hide_input=True, err=True) if asks else sys.stdin.readline()
    key = masking.made_key(folder / masking.FILE)
    click.echo(f'{{ masked = "{masking.masked(secret.removesuffix(chr(10)), key)}" }}')
    say(f"to be put behind sql.password in {folder / config.FILE}")
