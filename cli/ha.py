"""`shmbroker ha`: a member of a replicated node, seen and ordered; a pair that is reset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shmbroker.cli import ordering, pairing
from shmbroker.cli.epoch import epoch
from shmbroker.cli.group import Group
from shmbroker.cli.instance import folder_argument
from shmbroker.cli.output import json_option, print_json, print_pairs, print_table, say
from shmbroker.cli.queue_replica import detach, replicas, replicate
from shmbroker.cli.units import DURATION, format_size

if TYPE_CHECKING:
    from shmbroker.ipc.instance.status import Status

IS_LIVE = "live"
yes_option = click.option("--yes", is_flag=True, help="Do it without being asked.")


@click.group(
    cls=Group,
    examples="""
    shmbroker ha status /var/lib/shmbroker/live
    shmbroker ha handover /var/lib/shmbroker/live
    """,
)
def ha() -> None:
    """Members, pairs and queue replicas, seen and ordered."""


ha.add_command(epoch)
ha.add_command(replicate)
ha.add_command(replicas)
ha.add_command(detach)


@ha.command(
    examples="""
    shmbroker ha status live
    shmbroker ha status backup --json | jq -r .replication
    shmbroker ha status live --is-primary
    shmbroker ha status backup --all
    """
)
@folder_argument
@click.option(
    "--expect", metavar="STATE", help="Exit with 1 unless `replication`, or `pair`, begins so."
)
@click.option("--is-primary", is_flag=True, help="Exit with 1 unless it serves; print nothing.")
@click.option("all_", "--all", is_flag=True, help="Show what it knows of each member, a row each.")
@json_option
def status(folder: Path, expect: str | None, is_primary: bool, all_: bool, as_json: bool) -> None:
    """Show a member: its state, its epoch, who is in sync, its replicas and its voters.

    Of a broker of a pair: its state in the pair, and what it has heard of the other one.

    With --all a row for each member of the node, as this one knows it: whether it is linked, what
    it has said of itself last, and whether it is on the in-sync list.
    How far replicas are behind is asked of the broker; if it hangs, what it has said last is shown.
    Exits with 1 if the broker does not run.
    """
    from shmbroker.ipc.instance import status as states

    if pairing.is_pair(folder):
        pairing.show(folder, expect, is_primary, all_, as_json)
        return
    replicated(folder)
    found = states.read(folder)
    if is_primary:
        raise SystemExit(0 if found.state == IS_LIVE else 1)
    if found.process is not None and expect is None:
        ordering.ask_to_show(folder, "ha")
    told = ordering.shown(folder, "ha")
    told |= {"state": found.state, "replication": found.replication if found.process else ""}
    if as_json:
        print_json(told.get("members", []) if all_ else told)
    elif all_:
        show_members(told.get("members", []))
    else:
        show(told)
    is_expected = expect is None or told["replication"].startswith(expect)
    if found.process is None or not is_expected:
        raise SystemExit(1)


def show_members(members: list[dict[str, Any]]) -> None:
    print_table(["MEMBER", "LINKED", "STATE", "IN SYNC", "EPOCH", "LAST FRAME"], [
        [each["member"], "yes" if each["linked"] else "no", each["state"],
         "yes" if each["in-sync"] else "no", each["epoch"] or "", each["frame"] or ""]
        for each in members
    ])  # fmt: skip


def show(told: dict[str, Any]) -> None:
    lists = {"replicas", "voters", "members"}
    print_pairs({
        name: " ".join(each) if isinstance(each, list) else each
        for name, each in told.items()
        if name not in lists
    })  # fmt: skip
    if told.get("replicas"):
        click.echo()
        print_table(["REPLICA", "IN SYNC", "STATE", "LAG", "MS"], [
            [each["member"], "yes" if each["in-sync"] else "no", each.get("state", ""),
             format_size(each.get("lag-bytes", 0)), each.get("lag-ms", 0)]
            for each in told["replicas"]
        ])  # fmt: skip
    if told.get("voters"):
        click.echo()
        print_table(["VOTER", "STATE"], [list(each) for each in told["voters"].items()])


@ha.command(examples="shmbroker ha ping /var/lib/shmbroker/live")
@folder_argument
def ping(folder: Path) -> None:
    """Ask a member for a sign of life: its network thread answers, or this exits with 1."""
    order(folder, verb="ping")
    say("it answers")


@ha.command(
    examples="""
    shmbroker ha handover live
    shmbroker ha handover live backup
    """
)
@folder_argument
@click.argument("member", required=False, default="")
def handover(folder: Path, member: str) -> None:
    """Have the live in DIR hand over to MEMBER, or to its announced backup.

    Programs are told, what was confirmed is there, and the former live follows.  The preferred
    member gets its role back at once, unless ha.allow-failback is false: for maintenance stop it.
    """
    order(folder, verb="handover", member=member)
    say("it hands over")


@ha.command(
    examples="""
    shmbroker ha activate backup
    shmbroker ha activate backup --force --yes
    """
)
@folder_argument
@click.option("--force", is_flag=True,
              help="Also if it may lack what was confirmed, or its live may be there.")  # fmt: skip
@yes_option
def activate(folder: Path, force: bool, yes: bool) -> None:
    """Have a member that is held, or parked, become live.

    With --force also if it may lack what was confirmed elsewhere, which is lost for good then; and
    if nobody can be asked whether another one is live.  It is written to the log, with user and
    epoch.
    """
    if force and not yes:
        raise click.UsageError(
            "--force may lose what was confirmed: add --yes if the others are gone for good"
        )
    order(folder, verb="activate", force=force)
    say("it becomes live")


@ha.command(
    examples="""
    shmbroker ha promote backup
    shmbroker ha promote -b backup --timeout 5s
    """
)
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), required=False)
@click.option("-b", "--broker", "named", metavar="DIR", type=click.Path(path_type=Path),
              help="The same as DIR.")  # fmt: skip
@click.option("--timeout", type=DURATION, default="30s", show_default=True,
              help="Wait at most this long until it is live.")  # fmt: skip
def promote(folder: Path | None, named: Path | None, timeout: float) -> None:
    """Have a member become live, as an external cluster manager does (activation = "command").

    If another member is live, that one is asked to hand over to it, as it is for a failback: it
    does so if `allow-failback` is true and no other replica is in sync.  A member that still
    catches up is refused.  Exits with 1 if it is not live in time.
    """
    from shmbroker.ipc.instance import status as states

    if (folder is None) == (named is None):
        raise click.UsageError("either DIR or --broker DIR")
    member = folder or named or Path()
    order(member, verb="promote")
    say("it waits until it is granted to be live")
    if states.wait_for(member, IS_LIVE, timeout) is None:
        found = states.read(member)
        raise click.ClickException(
            f"it is {found.replication or found.state}, not live: its log, and that of the live, "
            "say why"
        )
    say("it is live")


@ha.command("continue", examples="shmbroker ha continue live --yes")
@folder_argument
@yes_option
def continue_(folder: Path, yes: bool) -> None:
    """Have a live that is suspended go on alone: a person says that no replica serves."""
    if not yes:
        raise click.UsageError(
            "if a replica serves meanwhile, both take in what the other lacks: add --yes if none "
            "does"
        )
    order(folder, verb="continue")
    say("it goes on alone")


@ha.command("yield", examples="shmbroker ha yield live --yes")
@folder_argument
@yes_option
def yield_(folder: Path, yes: bool) -> None:
    """Have one of two members that were forced to the same epoch give way to the other."""
    if not yes:
        raise click.UsageError("what only this member has is set aside: add --yes")
    order(folder, verb="yield")
    say("it gives way")


@ha.command(examples="shmbroker ha reset /var/lib/shmbroker/one")
@folder_argument
def reset(folder: Path) -> None:
    """Have a broker of a pair accept applications again after a conflict.

    Both brokers were active, and neither goes on.  Reset one of them, and the primary becomes
    active.
    """
    if not pairing.is_pair(folder):
        raise click.ClickException(f'{folder} is no broker of a pair: ha.policy is not "pair"')
    carry_out(folder, verb="reset")
    say("it asks the other one anew who is active")


def replicated(folder: Path) -> None:
    from shmbroker.ipc.instance.config import config

    if config.load(folder).policy != "replication":
        raise click.ClickException(
            f'{folder} is no member of a replicated node: ha.policy is not "replication".  A live '
            "that shares its store hands over when it is stopped, with ha.failover-on-shutdown"
        )


def order(folder: Path, **given: object) -> None:
    replicated(folder)
    carry_out(folder, **given)


def carry_out(folder: Path, **given: object) -> None:
    ordering.order(folder, "ha", given)


def could_take_over(found: Status) -> str:
    """Why it could not take over now; nothing if it could."""
    if found.process is None:
        return f"it is {found.state}"
    if found.replication != "in sync":
        return f"it is {found.replication or found.state}"
    return ""
