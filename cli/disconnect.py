"""`shmbroker disconnect`: end the connection of a program, on this host or on another one."""

from __future__ import annotations

import getpass
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shmbroker.cli.connection import connected, vhost_option
from shmbroker.cli.group import Verb
from shmbroker.cli.output import say
from shmbroker.cli.units import DURATION

if TYPE_CHECKING:
    from shmbroker.cli.programs import Row
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.vhost.participants import ParticipantInfo

PREFIX_MIN = 4
"""Digits of a session that name it."""


@dataclass(frozen=True, slots=True)
class Disconnected:
    name: str
    pid: int | None
    """None: it is on another host."""
    has_left: bool


@click.command(
    cls=Verb,
    examples="""
    shmbroker participants
    shmbroker disconnect 7
    shmbroker disconnect 3f8a91c2 --vhost orders
    """,
)
@click.argument("who", metavar="ID")
@click.option("--timeout", type=DURATION, default="2s", show_default=True,
    help="Wait at most this long until a program of this host has left.")  # fmt: skip
@vhost_option
def disconnect(who: str, timeout: float, vhost: str) -> None:
    """Disconnect a program.

    ID is the one that `shmbroker participants` shows.  What the program has in hand goes back to
    its queues; what it has published stays.  It may connect again, and one on another host does so
    by itself, unless it is told not to.

    A program of this host finds out when it waits, or settles a message.  One that only publishes,
    and never waits for room, goes on: only `kill` ends that.
    """
    with connected(vhost) as broker:
        done = disconnected(broker, who, getpass.getuser(), timeout)
    if done.has_left:
        say(f"{done.name} is disconnected")
    else:
        say(
            f"{done.name} is told to leave, and has nothing in hand any more; it leaves when it "
            f"waits, or settles a message; to end it now: kill {done.pid}"
        )


def disconnected(broker: Broker, who: str, user: str, timeout: float) -> Disconnected:
    """`who`: the number of a participant, or how its session begins.  An Error says why not."""
    from shmbroker.cli import programs
    from shmbroker.ipc.base.errors import NotFound
    from shmbroker.ipc.connection import disconnecting

    by_folder = programs.of_vhost(broker)
    participant = next((each for each in broker.participants() if str(each.id) == who), None)
    for folder, rows in by_folder.items():
        if row := _program(rows, who, participant):
            programs.disconnect(folder, row["session"], user)
            return Disconnected(row["name"] or row["session"], None, has_left=True)
    if participant is None:
        raise NotFound(f"there is no participant {who!r} in vhost {broker.vhost!r}")
    _check(broker, participant, list(by_folder))
    has_left = disconnecting.disconnected(broker, participant, timeout)
    return Disconnected(participant.name, participant.pid, has_left)


def _program(rows: list[Row], who: str, participant: ParticipantInfo | None) -> Row | None:
    """InvalidArgument: several sessions begin so."""
    from shmbroker.ipc.base.errors import InvalidArgument

    if participant is not None:
        return next((row for row in rows if row["participant"] == participant.id), None)
    found = [row for row in rows if len(who) >= PREFIX_MIN and row["session"].startswith(who)]
    if len(found) > 1:
        raise InvalidArgument(f"{len(found)} sessions begin with {who!r}: say more of it")
    return found[0] if found else None


def _check(broker: Broker, participant: ParticipantInfo, folders: list[Path]) -> None:
    """InvalidArgument: it is a broker's own, or ours."""
    from shmbroker.ipc.base.errors import InvalidArgument
    from shmbroker.ipc.instance import status

    if participant.id == broker.participant:
        raise InvalidArgument(f"participant {participant.id} is who asks for that")
    for folder in folders:
        its = status.read(folder).process
        if its is not None and its.pid == participant.pid:
            raise InvalidArgument(
                f"participant {participant.id} ({participant.name}) is of the broker in {folder}, "
                f"which needs it: shmbroker stop {folder}"
            )
