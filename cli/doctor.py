"""`shmbroker doctor`: problems of this host, and their remedies."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from shmbroker.cli.connection import observed, url_option
from shmbroker.cli.group import Verb
from shmbroker.cli.output import confirm, json_option, print_json, say, yes_option
from shmbroker.cli.units import format_count

if TYPE_CHECKING:
    from pathlib import Path

    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.doctor.finding import Finding


def of_vhosts() -> list[Finding]:
    """What is wrong in the vhosts of this host that can be opened, and with their brokers."""
    from shmbroker.ipc.base.errors import Error
    from shmbroker.ipc.doctor import container
    from shmbroker.ipc.instance import brokers
    from shmbroker.ipc.vhost import vhost

    names = vhost.names()
    found = list(container.alone(names, container.pid_namespace()))
    for name in names:
        with suppress(Error, OSError), observed(name) as broker:
            found += of_vhost(broker)
            found += container.of_broker(broker)
            for folder in brokers.folders_of(broker):
                found += of_broker(broker, folder)
    return found


def of_vhost(broker: Broker) -> list[Finding]:
    """What its memory shows: its queues, links and gates."""
    from shmbroker.ipc.base.errors import Error
    from shmbroker.ipc.follower import gates
    from shmbroker.ipc.queue import aside, writer
    from shmbroker.netbridge.broker import delayed
    from shmbroker.netbridge.clustered import ungrouped, unselected

    found: list[Finding] = []
    for each in (writer, aside, unselected, ungrouped, delayed, gates):
        with suppress(Error):  # of a queue that cannot be looked at: gates tells of those
            found += each.findings(broker)
    return found


def of_broker(broker: Broker, folder: Path) -> list[Finding]:
    """One that runs on this host, as it shows itself in its folder."""
    from shmbroker.ipc.base import trust
    from shmbroker.ipc.base.errors import Error
    from shmbroker.ipc.instance import full_disk
    from shmbroker.ipc.instance.status import RUN
    from shmbroker.ipc.instance.whole import read_whole
    from shmbroker.netbridge.clustered import shown, stuck, too_far
    from shmbroker.netbridge.replicated import lessened

    found: list[Finding] = []
    with suppress(Error, OSError):
        told = read_whole(folder / RUN / shown.FILE, trust.seen_files())
        if not shown.is_configured(folder, told):
            told = {}
        found += too_far.findings(folder, told)
        found += stuck.findings(broker, folder, told)
        found += lessened.findings(folder)
        found += full_disk.findings(folder)
    return found


@click.command(
    cls=Verb,
    examples="""
    shmbroker doctor
    shmbroker doctor --fix --yes
    shmbroker doctor --json | jq -r '.[] | select(.severity == "error") | .remedy'
    """,
)
@click.option(
    "--fix", is_flag=True, help="Remove stale segments.  Other problems are only reported."
)
@yes_option
@json_option
@url_option
@click.pass_context
def doctor(ctx: click.Context, fix: bool, yes: bool, as_json: bool) -> None:
    """Examine this host and suggest remedies.

    Looks for stale segments, a small /dev/shm, RemoveIPC, low limits of open files, locked memory
    and memory maps, queues that need a broker and have none, queues whose dead-letter or expiry
    queue is full, messages that no consumer's selector matches, queues with groups at a node of a
    cluster without a consumer, gates that hold back what a queue could let go of, and containers
    that do not see each other's processes.

    Of brokers of this host also: a full disk, links and agents that are not up, messages that wait
    long for a link, or for a node that is missing, forgotten or further away than max-hops, groups
    whose node is gone, lives without a backup, and confirms that mean less than they are configured
    to.

    Exits with 1 if an error or a warning remains, with 0 if there are only notes.
    """
    from shmbroker.ipc.doctor.doctor import examine
    from shmbroker.ipc.doctor.finding import remove_stale

    found = examine() + of_vhosts()
    stale = {path for finding in found for path in finding.stale}
    if fix and stale:
        confirm(yes, f"remove {format_count(len(stale), 'stale segment')}")
        for path in remove_stale(examine(), stale):  # others may have begun while somebody thought
            say(f"{path} is removed")
        found = examine() + of_vhosts()
    if as_json:
        print_json(
            [
                {
                    "severity": finding.severity,
                    "subject": finding.subject,
                    "problem": finding.problem,
                    "remedy": finding.remedy,
                    "stale": [str(path) for path in finding.stale],
                }
                for finding in found
            ]
        )
    else:
        for finding in found:
            click.echo(f"{finding.severity}: {finding.subject}: {finding.problem}")
            click.echo(f"    {finding.remedy}")
        if not found:
            click.echo("nothing is wrong")
    ctx.exit(int(any(finding.severity != "note" for finding in found)))
