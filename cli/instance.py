"""`shmbroker stop`, `kill`, `status`, `unit`: instances, each in its folder."""

from __future__ import annotations

import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shmbroker.cli import colocated, pairing, scale_down
from shmbroker.cli.context.instance import InstanceFolder
from shmbroker.cli.group import Verb
from shmbroker.cli.output import json_option, print_json, print_pairs, print_table, visible
from shmbroker.cli.units import DURATION

if TYPE_CHECKING:
    from shmbroker.ipc.instance.config.config import Config
    from shmbroker.ipc.instance.status import Status

STATES = ("starting", "passive", "promoting", "restoring", "live", "handing over", "stopped",
          "failed")  # fmt: skip

SECRETS = {"sql.password": ".", "sql.url": r"://[^/]*:[^/]*@|password"}
"""Settings that hold a secret, with a pattern of values that disclose it."""

folder_argument = click.argument("folder", metavar="DIR", type=InstanceFolder())
settings_option = click.option(
    "--set", "settings", metavar="KEY=VALUE", multiple=True,
    help="Set an option of shmbroker.toml.  May be repeated.",
)  # fmt: skip
timeout_option = click.option(
    "--timeout", type=DURATION, help="Wait at most this long.  [for ever]"
)


def setting_of(text: str) -> tuple[str, object]:
    """Parse `ha.role=backup`: the value is TOML, or else text."""
    key, separator, value = text.partition("=")
    if not separator:
        raise click.UsageError(f"an option is set by KEY=VALUE, not {text!r}")
    from shmbroker.ipc.instance.config.sources import value_of

    given = value_of(value)
    pattern = SECRETS.get(key, "." if is_secret(key) else None)
    if pattern is not None and discloses(given, pattern):
        raise click.UsageError(
            f"all on this host see a command line: write a {key} with a password into "
            f"shmbroker.toml, or say where it is: --set '{key}={{ env = \"NAME\" }}' or "
            '{ file = "/path" }'
        )
    return key, given


def is_secret(key: str) -> bool:
    from shmbroker.netbridge.config.config import option_of

    option = option_of(key)
    return option is not None and option.kind.name.startswith("secret")


def discloses(given: object, pattern: str) -> bool:
    """Whether it is a secret itself, and not the place of one."""
    if isinstance(given, list):
        return any(discloses(each, pattern) for each in given)
    return isinstance(given, str) and re.search(pattern, given) is not None


@click.command(
    cls=Verb,
    examples="""
    shmbroker stop /var/lib/shmbroker/orders --timeout 30s
    shmbroker stop live --no-handover
    """,
)
@folder_argument
@timeout_option
@click.option(
    "--no-handover", is_flag=True, help="Of a replicated node: nobody becomes live meanwhile."
)
@click.option(
    "--no-scale-down", is_flag=True, help="Of a live-only broker: what is there stays there."
)
def stop(folder: Path, timeout: float | None, no_handover: bool, no_scale_down: bool) -> None:
    """Stop the broker in DIR.

    The broker writes its journal first.  A second `stop` ends it at once.  The option
    ha.failover-on-shutdown says whether a backup takes over.  A live of a replicated node hands
    over, unless --no-handover says that the group waits until it is back.

    A live-only broker with [ha.scale-down] moves everything to another node first, and shows how
    far it is.  Exits with 1 if something stayed.
    """
    if scale_down.is_wanted(folder):
        if not no_scale_down:
            scale_down.stop(folder, timeout)
            return
        scale_down.stay(folder)
    if no_handover:
        from shmbroker.cli.ha import order
        from shmbroker.ipc.instance import status

        order(folder, verb="stop")
        if not status.ended(folder, timeout):
            raise click.ClickException(f"{folder} is still {status.read(folder).state}")
    else:
        end(folder, signal.SIGTERM, timeout)


@click.command(cls=Verb, examples="shmbroker kill /var/lib/shmbroker/orders")
@folder_argument
@timeout_option
def kill(folder: Path, timeout: float | None) -> None:
    """Kill the broker in DIR with SIGKILL.

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
@click.option(
    "--wait", "wanted", type=click.Choice(STATES), help="Wait until the broker is in this state."
)
@timeout_option
@json_option
def status(folder: Path, wanted: str | None, timeout: float | None, as_json: bool) -> None:
    """Show the state of the broker in DIR.

    Shows live, passive and so on, the queues of a live broker, and queues of its vhost that need a
    broker and have none.

    Exits with 1 if the broker does not run, or does not reach the state of --wait in time. --wait
    ends if the broker fails.
    """
    from shmbroker.ipc.instance import status
    from shmbroker.ipc.instance.config import config

    configured = config.load(folder)
    found = status.read(folder)
    waited = found if wanted is None else status.wait_for(folder, wanted, timeout)
    found = waited or status.read(folder)
    queues = queues_of(configured) if found.state == "live" else []
    critical = critical_queues(configured)
    more = pairing.shown(folder, found) if configured.policy == "pair" else {}
    pid = None if found.process is None else found.process.pid
    moves = scale_down.of_status(folder, found.state, pid)
    backups = colocated.of_status(folder, pid)
    if as_json:
        print_json(
            {**fields(configured, found), **more, **moves, **backups, "queues": queues,
             "critical": critical}
        )  # fmt: skip
    else:
        shown = {**fields(configured, found), **pairing.as_text(more), **moves}
        shown |= colocated.as_text(backups)
        process = shown["process"]
        print_pairs({**shown, "process": None if process is None else str(process)})
        for name, problem in critical.items():
            click.echo(f"CRITICAL: queue {visible(name)}: {problem}")
        if queues:
            click.echo()
            print_table(["QUEUE", "DEPTH"], [list(each.values()) for each in queues])
    if waited is None:
        why = f": {found.why}" if found.why else ""
        raise click.ClickException(f"{folder} is {found.state}, not {wanted}{why}")
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
        **({"replication": status.replication} if config.policy == "replication" else {}),
    }


def queues_of(config: Config) -> list[dict[str, object]]:
    """Nothing if they are not on this host: its /dev/shm may be that of a container."""
    from shmbroker.cli.connection import observed
    from shmbroker.ipc.base.errors import NotFound

    with suppress(NotFound), observed(config.vhost) as broker:
        return [{"name": each.name, "depth": each.depth} for each in broker.queues()]
    return []


def critical_queues(config: Config) -> dict[str, str]:
    """Queues of its vhost without their live writer; none if the vhost is not on this host."""
    from shmbroker.cli.connection import observed
    from shmbroker.ipc.base.errors import Error
    from shmbroker.ipc.queue.writer import without_writer
    from shmbroker.ipc.vhost import vhost as vhosts

    found: dict[str, str] = {}
    if vhosts.exists(config.vhost):
        with suppress(Error), observed(config.vhost) as broker:  # it may be deleted, or remade
            found = without_writer(broker)
    return found


@click.command(
    cls=Verb,
    examples="""
    shmbroker unit /var/lib/shmbroker/orders > /etc/systemd/system/orders.service
    shmbroker unit --template /var/lib/shmbroker > /etc/systemd/system/shmbroker@.service
    systemctl enable --now shmbroker@orders
    """,
)
@click.argument("folder", metavar="[DIR]", required=False, type=InstanceFolder())
@click.option("--template", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path),
    help="One unit for all instances in this folder: shmbroker@NAME runs FOLDER/NAME.")  # fmt: skip
@click.option(
    "--user", default="shmbroker", show_default=True, help="With --template: who runs them."
)
def unit(folder: Path | None, template: Path | None, user: str) -> None:
    """Print a systemd unit for the broker in DIR, or for many.

    That of one broker runs it as this user.  See docs/service.md.
    """
    from shmbroker.ipc.instance.config import config
    from shmbroker.ipc.instance.unit import template_text, unit_text

    if (folder is None) == (template is None):
        raise click.UsageError("say DIR, or --template FOLDER")
    if template is not None:
        text = template_text(template.absolute(), user)
    else:
        assert folder is not None
        text = unit_text(config.load(folder))
    click.echo(text, nl=False)
