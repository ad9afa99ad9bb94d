"""`shmbroker ha epoch`: what a lock manager knows of who is live."""

from __future__ import annotations

import getpass
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shmbroker.cli.group import Group
from shmbroker.cli.instance import folder_argument
from shmbroker.cli.output import (
    confirm,
    json_option,
    print_json,
    print_table,
    say,
    yes_option,
)
from shmbroker.cli.witness import granted

if TYPE_CHECKING:
    from shmbroker.ipc.instance.config.config import Config
    from shmbroker.netbridge.election.ledger import Ledger
    from shmbroker.netbridge.engine.engine import Engine

COLUMNS = ["NODE", "EPOCH", "HOLDER", "IN SYNC", "LEASE OF", "LEASE"]


@click.group(
    cls=Group,
    examples="""
    shmbroker ha epoch list /var/lib/shmbroker/orders
    shmbroker ha epoch set /var/lib/shmbroker/orders 3f0c... 7 --holder a --in-sync b --yes
    """,
)
def epoch() -> None:
    """The epochs that ZooKeeper or PostgreSQL holds for replicated nodes."""


@epoch.command(
    "list",
    examples="""
    shmbroker ha epoch list /var/lib/shmbroker/orders
    shmbroker ha epoch list orders --json | jq -r '.[].epoch'
    """,
)
@folder_argument
@json_option
def list_(folder: Path, as_json: bool) -> None:
    """Show what the lock manager of the member in DIR knows of each node."""
    with reached(folder) as (_, engine):
        found = [fields(engine, node) for node in engine.nodes()]
    if as_json:
        print_json(found)
    else:
        print_table(COLUMNS, [
            [each["node"], each["epoch"], each["holder"], " ".join(each["in_sync"]),
             each["lease_of"], f"{each['lease_ms']} ms"]
            for each in found
        ])  # fmt: skip


@epoch.command(
    "set",
    examples="shmbroker ha epoch set orders 3f0c... 7 --holder a --in-sync b --yes",
)
@folder_argument
@click.argument("node", metavar="NODE")
@click.argument("number", metavar="EPOCH", type=click.IntRange(1))
@click.option("--holder", help="Who was live in that epoch.  [as the engine knows it]")
@click.option("--in-sync", "in_sync", multiple=True, metavar="MEMBER",
    help="Who has all that was confirmed, beside the holder.  May be repeated.")  # fmt: skip
@yes_option
def set_(
    folder: Path, node: str, number: int, holder: str | None, in_sync: tuple[str, ...], yes: bool
) -> None:
    """Tell the lock manager of the member in DIR the epoch of a node.

    For an engine that was emptied, or restored from a backup: it knows an older epoch than the
    members, and they refuse it.  A member that is named in sync, and is not, may take over without
    what was confirmed.  It is written to the log of the member, with user and both epochs.
    """
    if not re.fullmatch("[0-9a-f]{32}", node):
        raise click.UsageError("a node id has 32 hexadecimal digits, as `ha epoch list` prints it")
    with reached(folder) as (config, engine):
        seen = engine.look(bytes.fromhex(node))
        before = seen.ledger.newest.epoch if seen.ledger and seen.ledger.newest else 0
        ledger = told(seen.ledger, number, holder, in_sync)
        confirm(yes, f"set epoch {before} of {node} at {engine.place} to {number}")
        from shmbroker.netbridge.engine.engine import LeaseStep

        if not engine.change(bytes.fromhex(node), seen, ledger, LeaseStep.STAYS):
            raise click.ClickException("somebody has changed it just now: look at it again")
        assert ledger.known is not None
        audit(config, node, before, number, ledger.known.holder, sorted(ledger.known.members))
    say(f"{engine.place}: node {node} is at epoch {number}, was {before}")


def told(
    before: Ledger | None, number: int, holder: str | None, in_sync: tuple[str, ...]
) -> Ledger:
    from shmbroker.netbridge.election.ledger import Ledger
    from shmbroker.netbridge.election.question import Copy, Grant

    newest = before.newest if before is not None else None
    whose = holder or (newest.holder if newest is not None else None)
    if whose is None:
        raise click.UsageError("the engine does not know the node: say --holder, too")
    kept = newest.copies if newest is not None and holder is None and not in_sync else ()
    copies = kept or tuple(Copy(each) for each in dict.fromkeys((whose, *in_sync)))
    lease_ms = before.lease_ms if before is not None else 0
    return Ledger(Grant(number, whose, copies), 0, lease_ms=lease_ms)


def audit(
    config: Config, node: str, before: int, number: int, holder: str, in_sync: list[str]
) -> None:
    from shmbroker.ipc.instance.log import Log

    Log(config.log, config.name).write(
        "epoch set", user=getpass.getuser(), node=node, was=before, epoch=number, holder=holder,
        in_sync=in_sync,
    )  # fmt: skip


@contextmanager
def reached(folder: Path) -> Iterator[tuple[Config, Engine]]:
    from shmbroker.netbridge.broker.voters import engine_of
    from shmbroker.netbridge.config.config import load

    config, network = load(folder)
    engine = engine_of(config, network)
    if engine is None:
        raise click.ClickException(
            f"{folder} has no lock manager (ha.replication.lock-manager): of a witness see "
            "shmbroker witness status"
        )
    try:
        engine.open(lambda: None)
        yield config, engine
    finally:
        engine.close()


def fields(engine: Engine, node: bytes) -> dict[str, Any]:
    seen = engine.look(node)
    assert seen.ledger is not None, "it is listed"
    lease_of = seen.lease.holder if seen.lease else None
    return {"node": node.hex(), **granted(seen.ledger), "lease_of": lease_of}
