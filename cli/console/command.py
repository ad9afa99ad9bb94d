"""`shmbroker console`: a link to log in, and the process itself."""

from __future__ import annotations

import getpass
from pathlib import Path

import click

from shmbroker.cli.group import Group
from shmbroker.cli.instance import folder_argument, setting_of, settings_option
from shmbroker.cli.output import json_option, print_json, print_pairs, say


@click.group(
    cls=Group,
    examples="""
    shmbroker console open /var/lib/shmbroker/orders
    shmbroker console status /var/lib/shmbroker/orders
    """,
)
def console() -> None:
    """The console of a broker, in a browser."""


@console.command(
    "open",
    examples="""
    shmbroker console open orders
    xdg-open "$(shmbroker console open orders --role viewer)"
    """,
)
@folder_argument
@click.option(
    "--role", type=click.Choice(["admin", "viewer"]), default="admin", show_default=True,
    help="What whoever opens the link may do.",
)  # fmt: skip
def open_(folder: Path, role: str) -> None:
    """Print a link to the console of the broker in DIR.

    It is good once, for five minutes, and needs no password: whoever has it is logged in.
    """
    from shmbroker.cli.console import one_time

    _, url = _running(folder)
    token = one_time.made(folder, role, getpass.getuser())
    click.echo(f"{url}#link={token}")


@console.command(
    examples="""
    shmbroker console status orders
    shmbroker console status orders --json | jq -r .url
    """
)
@folder_argument
@json_option
def status(folder: Path, as_json: bool) -> None:
    """Show where the console of the broker in DIR listens; exits with 1 if it does not run."""
    pid, url = _running(folder)
    fields: dict[str, object] = {"url": url, "process": pid}
    if as_json:
        print_json(fields)
    else:
        print_pairs({"url": url, "process": str(pid)})


@console.command(examples="shmbroker console stop orders")
@folder_argument
def stop(folder: Path) -> None:
    """End the console of the broker in DIR; the next start of the broker begins it again."""
    from shmbroker.cli.console import supervised

    _running(folder)
    supervised.end(folder)
    say("the console has ended")


@console.command(examples="shmbroker console run orders")
@folder_argument
@settings_option
def run(folder: Path, settings: tuple[str, ...]) -> None:
    """Run the console of the broker in DIR, until SIGTERM or Ctrl-C; `shmbroker run` does so."""
    from shmbroker.cli.console import server, supervised
    from shmbroker.netbridge.broker.hosted import ends_with_host

    supervised.check()
    ends_with_host(folder)
    server.run(folder, dict(setting_of(each) for each in settings))


def _running(folder: Path) -> tuple[int, str]:
    from shmbroker.cli.console.server import running
    from shmbroker.ipc.instance.config import config

    config.load(folder)
    found = running(folder)
    if found is None:
        raise click.ClickException(
            f"the console of {folder} does not run: it has to have a [console], and the broker to "
            f"be started; its log says why it has ended: {config.load(folder).log}"
        )
    return found[0].pid, found[1]
