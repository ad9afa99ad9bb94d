"""The programs that are connected to a vhost: on other hosts, as its brokers show them; and how one
is disconnected, on this host or on another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shmbroker.ipc.base.errors import InvalidArgument, NotFound, SystemRefused
from shmbroker.ipc.connection import disconnecting
from shmbroker.ipc.connection.broker import Broker
from shmbroker.ipc.instance import ordering, status
from shmbroker.ipc.instance.brokers import folders_of
from shmbroker.ipc.vhost.participants import ParticipantInfo
from shmbroker.netbridge.serving.programs import PROGRAMS, Row

ANSWER_SECONDS: Final = 10.0
PREFIX_MIN: Final = 4
"""Digits of a session that name it."""


@dataclass(frozen=True, slots=True)
class Disconnected:
    name: str
    pid: int | None
    """None: it is on another host."""
    has_left: bool


def of_folder(folder: Path) -> list[Row]:
    """Of the broker in a folder; as it has said last, if it hangs."""
    ordering.asked_to_show(folder, PROGRAMS)
    found: list[Row] = ordering.shown(folder, PROGRAMS).get(PROGRAMS, [])
    return found


def of_vhost(broker: Broker) -> list[Row]:
    """Of all its brokers."""
    return [row for folder in folders_of(broker) for row in of_folder(folder)]


def disconnected(
    broker: Broker, folders: list[Path], who: str, user: str, timeout: float, asks: str = ""
) -> Disconnected:
    """`folders`: of the brokers of its vhost; `who`: the number of a participant, or how its
    session begins; `asks`: the session of who asks for that, if it has one.  An Error says why
    not."""
    participant = next((each for each in broker.participants() if str(each.id) == who), None)
    for folder in folders:
        if row := _program(of_folder(folder), who, participant):
            if row["session"] == asks:
                raise InvalidArgument(f"{who} is who asks for that")
            _ordered(folder, row["session"], user)
            return Disconnected(row["name"] or row["session"], None, has_left=True)
    if participant is None:
        raise NotFound(f"there is no participant {who!r} in vhost {broker.vhost!r}")
    _check(broker, participant, folders)
    has_left = disconnecting.disconnected(broker, participant, timeout)
    return Disconnected(participant.name, participant.pid, has_left)


def _ordered(folder: Path, session: str, user: str) -> None:
    """An Error says why it is not done."""
    wanted = {"noun": PROGRAMS, "verb": "disconnect", "session": session, "user": user}
    answer = ordering.asked(folder, wanted, ANSWER_SECONDS)
    if answer is None:
        raise SystemRefused(f"the broker in {folder} does not answer")
    if why := answer.get("why"):
        raise InvalidArgument(str(why))


def _program(rows: list[Row], who: str, participant: ParticipantInfo | None) -> Row | None:
    """InvalidArgument: several sessions begin so."""
    if participant is not None:
        return next((row for row in rows if row["participant"] == participant.id), None)
    found = [row for row in rows if len(who) >= PREFIX_MIN and row["session"].startswith(who)]
    if len(found) > 1:
        raise InvalidArgument(f"{len(found)} sessions begin with {who!r}: say more of it")
    return found[0] if found else None


def _check(broker: Broker, participant: ParticipantInfo, folders: list[Path]) -> None:
    """InvalidArgument: it is a broker's own, or ours."""
    if participant.id == broker.participant:
        raise InvalidArgument(f"participant {participant.id} is who asks for that")
    for folder in folders:
        its = status.read(folder).process
        if its is not None and its.pid == participant.pid:
            raise InvalidArgument(
                f"participant {participant.id} ({participant.name}) is of the broker in {folder}, "
                f"which needs it: shmbroker stop {folder}"
            )
