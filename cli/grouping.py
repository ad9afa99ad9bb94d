"""`shmbroker group`: to which nodes of a cluster the messages of groups go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from shmbroker.cli.cluster import NODE_DIGITS, runs, silent
from shmbroker.cli.group import Group
from shmbroker.cli.instance import folder_argument
from shmbroker.cli.ordering import order, shown
from shmbroker.cli.output import (
    json_option,
    names_option,
    print_json,
    print_names,
    print_table,
)


@click.group(cls=Group, examples="shmbroker group list /var/lib/shmbroker/east")
def group() -> None:
    """Message groups of a cluster."""


@group.command(
    "list",
    examples="""
    shmbroker group list east
    shmbroker group list east --json | jq -r '.groups[] | select(.name == "west") | .group'
    """,
)
@folder_argument
@json_option
@names_option
def list_(folder: Path, as_json: bool, names: bool) -> None:
    """Show to which queue at which node the messages of each group go.

    At the broker that decides these are all groups, and UNUSED is for how many seconds nobody has
    used it.  At the others they are those that were published there.  The last line says who
    decides, and counts proposals, those that were answered with another node, and time-outs.  Exits
    with 1 if the broker does not run.
    """
    told = _known(folder)
    if not told and not as_json:
        raise click.ClickException(silent(folder))
    if names:
        print_names(dict.fromkeys(str(each["group"]) for each in told.get("groups", [])))
    elif as_json:
        print_json(told)
    else:
        _show(told)
    if not told:
        raise SystemExit(1)


def _known(folder: Path) -> dict[str, Any]:
    from shmbroker.netbridge.clustered.shown import GROUPS_FILE
    from shmbroker.netbridge.config.config import load

    if not runs(folder):
        return {}
    if load(folder)[1].grouping is None:
        raise click.ClickException(
            f"{folder} has no [grouping.NAME]: groups are of each node alone"
        )
    order(folder, "cluster", {"verb": "groups"})
    return shown(folder, GROUPS_FILE)


def _show(told: dict[str, Any]) -> None:
    print_table(["GROUP", "QUEUE", "NAME", "NODE", "UNUSED"], [
        [each["group"], each["queue"], each["name"], each["node"][:NODE_DIGITS],
         "-" if each["unused"] is None else f"{each['unused']:.0f}"]
        for each in told.get("groups", [])
    ])  # fmt: skip
    if told:
        click.echo()
        click.echo(
            f"{told['handler']}: {told['state']}; {told['proposals']} proposals, "
            f"{told['rejections']} rejected, {told['timeouts']} timed out"
        )
