"""The programs on other hosts that are connected to the brokers of a vhost, as those show them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from shmbroker.cli import ordering
from shmbroker.ipc.base.errors import InvalidArgument, SystemRefused

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker

Row = dict[str, Any]
ANSWER_SECONDS = 10.0


def of_folder(folder: Path) -> list[Row]:
    """Of the broker in a folder; as it has said last, if it hangs."""
    from shmbroker.netbridge.serving.programs import PROGRAMS

    ordering.ask_to_show(folder, PROGRAMS)
    found: list[Row] = ordering.shown(folder, PROGRAMS).get(PROGRAMS, [])
    return found


def of_vhost(broker: Broker) -> dict[Path, list[Row]]:
    """By the folder of their broker."""
    from shmbroker.ipc.instance.brokers import folders_of

    return {folder: of_folder(folder) for folder in folders_of(broker)}


def disconnect(folder: Path, session: str, user: str) -> None:
    """An Error says why it is not done."""
    from shmbroker.ipc.instance import ordering as orders
    from shmbroker.netbridge.serving.programs import PROGRAMS

    wanted = {"noun": PROGRAMS, "verb": "disconnect", "session": session, "user": user}
    answer = orders.asked(folder, wanted, ANSWER_SECONDS)
    if answer is None:
        raise SystemRefused(f"the broker in {folder} does not answer")
    if why := answer.get("why"):
        raise InvalidArgument(str(why))
