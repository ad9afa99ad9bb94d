"""`shmbroker witness`: a process that only votes on who may be live."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shmbroker.cli.group import Group
from shmbroker.cli.output import json_option, print_json, print_pairs, print_table, say
from shmbroker.cli.run import keep_out_of_cores

if TYPE_CHECKING:
    from shmbroker.netbridge.broker.witness import Status
    from shmbroker.netbridge.election.ledger import Ledger

COLUMNS = ["NODE", "EPOCH", "HOLDER", "IN SYNC", "LEASE", "LINKS"]
ENDS = (signal.SIGTERM, signal.SIGINT)
state_option = click.option(
    "--state", "folder", metavar="DIR", required=True, type=click.Path(path_type=Path),
    help="Folder with its shmbroker.toml and what it has granted.",
)  # fmt: skip


@click.group(
    cls=Group,
    examples="""
    shmbroker witness run --listen tcp://0.0.0.0:61617 --state /var/lib/shmbroker/witness
    shmbroker witness status --state /var/lib/shmbroker/witness
    """,
)
def witness() -> None:
    """A voter without messages: it says who may be live."""


@witness.command(
    examples="shmbroker witness run --listen tcp://0.0.0.0:61617 --state /var/lib/witness"
)
@click.option(
    "--listen", metavar="URI", required=True, help="Where members connect: tcp://HOST:PORT."
)
@state_option
def run(listen: str, folder: Path) -> None:
    """Run a witness until SIGTERM or Ctrl-C.

    DIR has a shmbroker.toml with [credentials.NAME], the same as at the members, of role witness.
    What the witness grants is synced into DIR before it answers, so it may be killed at any moment.
    Do not copy DIR, and do not restore it from a backup: a witness must not forget a grant.
    """
    from shmbroker.netbridge.broker.witness import WitnessProcess, configured

    options = configured(folder, listen)
    for warning in options.warnings:
        say(f"shmbroker: warning: {warning}")
    keep_out_of_cores()
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)  # for all threads: this one waits for them
    with WitnessProcess(options, lambda: os.kill(os.getpid(), signal.SIGTERM)) as running:
        say(f"witness at {running.address}, with its state in {folder}; SIGTERM ends it")
        signal.sigwait(ENDS)
    if running.failure:
        raise click.ClickException(running.failure)


@witness.command(
    examples="""
    shmbroker witness status --state /var/lib/witness
    shmbroker witness status --state /var/lib/witness --json | jq -r '.nodes[].holder'
    """
)
@state_option
@json_option
def status(folder: Path, as_json: bool) -> None:
    """Show what a witness has granted, and which members have a link to it.

    Exits with 1 if it does not run.
    """
    from shmbroker.netbridge.broker import witness as process

    found = process.status(folder)
    if as_json:
        print_json(fields(found))
    else:
        print_pairs({
            "state": "stopped" if found.process is None else "runs",
            "process": found.process and str(found.process),
            "listen": found.listen,
        })  # fmt: skip
        if found.ledgers:
            click.echo()
            print_table(COLUMNS, [
                [each["node"], each["epoch"], each["holder"], " ".join(each["in_sync"]),
                 f"{each['lease_ms']} ms", " ".join(each["links"])]
                for each in nodes(found)
            ])  # fmt: skip
    if found.process is None:
        sys.exit(1)


def fields(status: Status) -> dict[str, object]:
    return {
        "state": "stopped" if status.process is None else "runs",
        "process": status.process,
        "listen": status.listen,
        "witness": status.identity.hex(),
        "nodes": nodes(status),
    }


def nodes(status: Status) -> list[dict[str, Any]]:
    return [
        {"node": node.hex(), **granted(ledger), "links": sorted(status.links.get(node, []))}
        for node, ledger in status.ledgers.items()
    ]


def granted(ledger: Ledger) -> dict[str, Any]:
    known, accepted = ledger.known, ledger.accepted and ledger.accepted[1]
    is_pending = accepted is not None and accepted is ledger.newest
    return {
        "epoch": known.epoch if known else None,
        "holder": known.holder if known else None,
        "in_sync": sorted(known.members) if known else [],
        "lease_ms": ledger.lease_ms,
        "accepted": {"epoch": accepted.epoch, "holder": accepted.holder}
        if accepted and is_pending else None,
    }  # fmt: skip
