"""`shmbroker config`: where each value is from, and reading all of them again."""

from __future__ import annotations

from pathlib import Path

import click

from shmbroker.cli.group import Group
from shmbroker.cli.instance import folder_argument, setting_of, settings_option
from shmbroker.cli.output import json_option, print_json, print_table, say
from shmbroker.cli.units import DURATION


@click.group(
    cls=Group,
    examples="""
    shmbroker config explain /var/lib/shmbroker/orders
    """,
)
def config() -> None:
    """The configuration of a broker."""


@config.command(
    examples="""
    shmbroker config explain /var/lib/shmbroker/orders
    SHMBROKER_HA_ROLE=backup shmbroker config explain orders --json
    shmbroker config explain orders --set ha.role=backup
    """
)
@folder_argument
@settings_option
@json_option
def explain(folder: Path, settings: tuple[str, ...], as_json: bool) -> None:
    """Show each value of the configuration in DIR, and its source.

    A flag (--set) counts before the environment (SHMBROKER_HA_ROLE), then the file, then the
    default.  Secrets are shown as ***.
    """
    from shmbroker.ipc.instance.config.config import FILE
    from shmbroker.netbridge.config import config as network
    from shmbroker.netbridge.config.explain import explained

    flags = dict(setting_of(each) for each in settings)
    network.load(folder, flags)
    found = explained(network.layers(folder, flags), folder / FILE)
    if as_json:
        print_json([
            {"key": each.key, "value": each.value, "source": each.source} for each in found
        ])  # fmt: skip
    else:
        rows = [[each.key, text(each.value), each.source] for each in found]
        print_table(["KEY", "VALUE", "SOURCE"], rows)


@config.command(examples="shmbroker config reload /var/lib/shmbroker/orders")
@folder_argument
@click.option("--timeout", type=DURATION, default="10s", show_default=True,
    help="Wait at most this long for the answer.")  # fmt: skip
def reload(folder: Path, timeout: float) -> None:
    """Let the running broker in DIR read its configuration again.

    SIGHUP does the same.  An error in the configuration changes nothing.  Keys that need a restart
    are named.
    """
    from shmbroker.ipc.instance import reloading
    from shmbroker.netbridge.config.config import load

    load(folder)
    answer = reloading.asked(folder, timeout)
    if answer is None:
        raise click.ClickException(f"{folder} has not answered in {timeout:g} s")
    if "why" in answer:
        raise click.ClickException(f"nothing was changed: {answer['why']}")
    for key in answer["applied"]:
        say(f"{key} is changed")
    for key in answer["ignored"]:
        say(f"{key} is ignored: it needs a restart")


def text(value: object) -> str:
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
