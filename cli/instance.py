"""`shmbroker create`, `stop`, `kill`, `status`, `unit`: brokers that are folders."""

from __future__ import annotations

import re
import signal
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shmbroker.cli.group import Verb
from shmbroker.cli.output import json_option, print_json, print_pairs, print_table, say
from shmbroker.cli.units import DURATION

if TYPE_CHECKING:
    from shmbroker.ipc.instance.config.config import Config
    from shmbroker.ipc.instance.status import Status

STATES = ("starting", "passive", "promoting", "restoring", "live", "handing over", "stopped",
          "failed")  # fmt: skip

SECRETS = {"sql.password": ".", "sql.url": r"://[^/]*:[^/]*@|password"}
"""What a value looks like that gives one away."""

folder_argument = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
timeout_option = click.option("--timeout", type=DURATION, help="Wait so long.  [for ever]")


def setting_of(text: str) -> tuple[str, object]:
    """ha.role=backup: the value as in TOML, or as text."""
    key, separator, value = text.partition("=")
    if not separator:
        raise click.UsageError(f"an option is set by KEY=VALUE, not {text!r}")
    given: object = value
    with suppress(ValueError, RecursionError):  # then it is text
        given = tomllib.loads(f"value = {value}")["value"]
    if key in SECRETS and isinstance(given, str) and re.search(SECRETS[key], given):
        raise click.UsageError(
            f"all on this host see a command line: write a {key} with a password into "
            f"shmbroker.toml, or say where it is: --set '{key}={{ env = \"NAME\" }}' or "
            '{ file = "/path" }'
        )
    return key, given


@click.command(
    cls=Verb,
    examples="""
    shmbroker create /var/lib/shmbroker/orders --vhost orders
    shmbroker create live --vhost orders --store /shared/orders
    shmbroker create backup --vhost orders --store /shared/orders --role backup
    shmbroker create scratch --set store.segment=16MiB --set ha.failover-on-shutdown=true
    """,
)
@folder_argument
@click.option("--name", help="How people see it.  [the folder's]")
@click.option("--vhost", metavar="NAME", help="Programs connect to shm://NAME.  [default]")
@click.option("--store", metavar="PATH", help="What live and backup share.  [DIR/data]")
@click.option("--role", type=click.Choice(["live", "backup"]), help="Who waits.  [live]")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True,
    help="Any option of shmbroker.toml; may be repeated.")  # fmt: skip
def create(
    folder: Path, name: str | None, vhost: str | None, store: str | None, role: str | None,
    settings: tuple[str, ...],
) -> None:  # fmt: skip
    """Make an instance in DIR.

    That is its configuration, its log and its store.

    A store that is there is used: live and backup share one.  Nothing in it needs a password;
    only this user may read it.
    """
    from shmbroker.ipc.instance import creation

    given: dict[str, object] = {"instance.name": name or folder.absolute().name}
    if store is not None:
        given["store.path"] = str(Path(store).absolute())
    given.update({
        key: value for key, value in (("instance.vhost", vhost), ("ha.role", role)) if value
    })  # fmt: skip
    given.update(setting_of(each) for each in settings)
    config = creation.create(folder, given)
    say(f"{config.role} {config.name!r} of vhost {config.vhost!r}, with its journal in "
        f"{config.store}; start it: shmbroker run {folder}")  # fmt: skip


@click.command(cls=Verb, examples="shmbroker stop /var/lib/shmbroker/orders --timeout 30s")
@folder_argument
@timeout_option
def stop(folder: Path, timeout: float | None) -> None:
    """Stop the broker in DIR.

    What is there is written before.  Whether a backup takes over then is said by
    ha.failover-on-shutdown.  Once more stops it at once.
    """
    end(folder, signal.SIGTERM, timeout)


@click.command(cls=Verb, examples="shmbroker kill /var/lib/shmbroker/orders")
@folder_argument
@timeout_option
def kill(folder: Path, timeout: float | None) -> None:
    """Kill the broker in DIR, as kill -9 does.

    A backup takes over.
    """
    end(folder, signal.SIGKILL, timeout)


def end(folder: Path, number: signal.Signals, timeout: float | None) -> None:
    from shmbroker.ipc.instance import status
    from shmbroker.ipc.instance.config import config

    config.load(folder)
    if not status.signalled(folder, number, timeout):
        raise click.ClickException(
            f"{folder} is still {status.read(folder).state}; once more stops it at once"
        )


@click.command(
    cls=Verb,
    examples="""
    shmbroker status /var/lib/shmbroker/orders
    shmbroker status backup --json | jq -r .state
    shmbroker status backup --wait live --timeout 10s
    """,
)
@folder_argument
@click.option("--wait", "wanted", type=click.Choice(STATES), help="Until it is that.")
@timeout_option
@json_option
def status(folder: Path, wanted: str | None, timeout: float | None, as_json: bool) -> None:
    """Say what the broker in DIR is.

    Live, passive, ...; with the queues of one that is live.

    Ends with 1 if it does not run, or is not what --wait wants in time.
    """
    from shmbroker.ipc.instance import status
    from shmbroker.ipc.instance.config import config

    configured = config.load(folder)
    found = status.read(folder)
    waited = found if wanted is None else status.wait_for(folder, wanted, timeout)
    found = waited or status.read(folder)
    queues = queues_of(configured) if found.state == "live" else []
    if as_json:
        print_json({**fields(configured, found), "queues": queues})
    else:
        print_pairs(fields(configured, found))
        if queues:
            click.echo()
            print_table(["QUEUE", "DEPTH"], [list(each.values()) for each in queues])
    if waited is None:
        raise click.ClickException(f"{folder} is {found.state}, not {wanted}")
    if found.process is None and wanted is None:
        sys.exit(1)


def fields(config: Config, status: Status) -> dict[str, object]:
    return {
        "name": config.name,
        "state": status.state,
        "announced": status.is_announced,
        "role": config.role,
        "epoch": status.epoch,
        "vhost": config.vhost,
        "store": str(config.store),
        "process": status.process.pid if status.process else None,
        "why": status.why,
    }


def queues_of(config: Config) -> list[dict[str, object]]:
    from shmbroker.cli.connection import observed

    with observed(config.vhost) as broker:
        return [{"name": each.name, "depth": each.depth} for each in broker.queues()]


@click.command(
    cls=Verb,
    examples="shmbroker unit /var/lib/shmbroker/orders > /etc/systemd/system/orders.service",
)
@folder_argument
def unit(folder: Path) -> None:
    """A unit for systemd that runs the broker in DIR as this user."""
    from shmbroker.ipc.instance.config import config
    from shmbroker.ipc.instance.unit import unit_text

    click.echo(unit_text(config.load(folder)), nl=False)
