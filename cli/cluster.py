"""`shmbroker cluster`: the members of a cluster, as one of them knows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from shmbroker.cli.group import Group
from shmbroker.cli.instance import folder_argument
from shmbroker.cli.ordering import ask_to_show, order, shown
from shmbroker.cli.output import (
    json_option,
    names_option,
    print_json,
    print_names,
    print_table,
    say,
)

NODE_DIGITS = 8


@click.group(
    cls=Group,
    examples="""
    shmbroker cluster list /var/lib/shmbroker/east
    shmbroker cluster queues /var/lib/shmbroker/east
    shmbroker cluster forget /var/lib/shmbroker/east 5f2a91c0 --yes
    """,
)
def cluster() -> None:
    """Clusters of brokers."""


@cluster.command(
    "list",
    examples="""
    shmbroker cluster list east
    shmbroker cluster list east --json | jq -r '.nodes[] | select(.state == "missing") | .name'
    """,
)
@folder_argument
@json_option
@names_option
def list_(folder: Path, as_json: bool, names: bool) -> None:
    """Show the nodes of a cluster, as the broker in DIR knows them now.

    WAITING is the number of messages on their way to a node, `-` if none go there.  A node that has
    been seen stays `missing` until it is back, is forgotten, or all others were
    restarted.  The last line says how many lives count, and how many of the others have to say yes
    when a member of a replicated node asks.  With `discovery-group` one more line says how many
    brokers are announced, and what was ignored; `--json` has the entries.  Exits with 1 if the
    broker does not run.
    """
    told = known(folder)
    if not told and not as_json:
        raise click.ClickException(silent(folder))
    if names:
        print_names(str(each["name"]) for each in told.get("nodes", []))
    elif as_json:
        print_json(told)
    else:
        show(told)
    if not told:
        raise SystemExit(1)


@cluster.command(
    examples="""
    shmbroker cluster queues east
    shmbroker cluster queues east --json | jq -r '.queues[] | select(.consumed) | .name'
    """,
)
@folder_argument
@json_option
@names_option
def queues(folder: Path, as_json: bool, names: bool) -> None:
    """Show the queues of all nodes of a cluster, as the broker in DIR knows them now.

    Of a node that is missing this is what it has told last.  SELECTORS is `-` if whoever consumes
    takes any message.  `--json` has the bindings, too.  Exits
    with 1 if the broker does not run.
    """
    told = _queues(folder)
    if not told and not as_json:
        raise click.ClickException(silent(folder))
    rows = told.get("queues", [])
    if names:
        print_names(dict.fromkeys(str(each["queue"]) for each in rows))
    elif as_json:
        print_json(told)
    else:
        print_table(["QUEUE", "NODE", "STATE", "DURABLE", "CONSUMED", "SELECTORS"], [
            [each["queue"], each["name"], each["state"], _yes(each["durable"]),
             _yes(each["consumed"]), "; ".join(each["selectors"]) or "-"]
            for each in rows
        ])  # fmt: skip
    if not told:
        raise SystemExit(1)


def _queues(folder: Path) -> dict[str, Any]:
    from shmbroker.netbridge.clustered.shown import QUEUES_FILE

    if not runs(folder):
        return {}
    order(folder, "cluster", {"verb": "queues"})
    return shown(folder, QUEUES_FILE)


def silent(folder: Path) -> str:
    """Why there is nothing to show."""
    return f"the broker in {folder} does not run, or is not live yet: shmbroker status {folder}"


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def known(folder: Path) -> dict[str, Any]:
    """What the broker says; if it hangs, what it has said last."""
    from shmbroker.netbridge.clustered.shown import FILE

    if not runs(folder):
        return {}
    ask_to_show(folder, "cluster")
    return shown(folder, FILE)


def runs(folder: Path) -> bool:
    """ClickException: it is in no cluster."""
    from shmbroker.ipc.instance import status as states

    in_a_cluster(folder)
    return states.read(folder).process is not None


def in_a_cluster(folder: Path) -> None:
    from shmbroker.netbridge.config.config import load

    if load(folder)[1].cluster is None:
        raise click.ClickException(f"{folder} is in no cluster: there is no [cluster.NAME]")


def show(told: dict[str, Any]) -> None:
    print_table(["NAME", "NODE", "ADDRESS", "STATE", "HOPS", "EPOCH", "VERSION", "WAITING",
                 "BACKUPS"], [
        [each["name"], each["node"][:NODE_DIGITS], each["address"], each["state"], each["hops"],
         each["epoch"], each["version"], each.get("waiting", "-"), " ".join(each["backups"])]
        for each in told.get("nodes", [])
    ])  # fmt: skip
    if told:
        click.echo()
        click.echo(quorum(told))
        if found := told.get("discovery"):
            click.echo(discovery(found))


def discovery(found: dict[str, Any]) -> str:
    ignored = [f"{count} {why}" for why, count in found["ignored"].items() if count]
    text = f"discovery {found['group']}: {len(found['entries'])} brokers"
    return text + (f"; ignored: {', '.join(ignored)}" if ignored else "")


def quorum(told: dict[str, Any]) -> str:
    if told["needed"] is None:
        return "1 life: no vote can succeed"
    return f"{told['lives']} lives: {told['needed']} of the others have to say yes"


@cluster.command(
    examples="""
    shmbroker cluster forget east west --yes
    shmbroker cluster forget east 5f2a91c0 --yes
    """
)
@folder_argument
@click.argument("node")
@click.option("--yes", is_flag=True, help="Do it without being asked.")
def forget(folder: Path, node: str, yes: bool) -> None:
    """Forget a node that is gone for good: by its name, its id, or 8 digits or more of that.

    All members are told, and fewer of them have to say yes from then on.  If the node runs still
    and is only cut off, it and the others could each count a majority: stop it first.
    """
    if not yes:
        raise click.UsageError(
            "a node that is only cut off may still serve: add --yes if it is gone for good"
        )
    in_a_cluster(folder)
    who = order(folder, "cluster", {"verb": "forget", "node": node})
    say(f"{who} is forgotten")
