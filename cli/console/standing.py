"""What an instance is at the moment, also if its process hangs or is dead: from its folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING

from shmbroker.cli import ordering
from shmbroker.ipc.base import trust
from shmbroker.ipc.base.errors import Error
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.status import RUN
from shmbroker.ipc.instance.whole import read_whole
from shmbroker.netbridge.broker import whereabouts
from shmbroker.netbridge.config.console import is_link

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shmbroker.ipc.instance.config.config import Config

SERVING = ("live", "handing over")


class Mode(Enum):
    LIVE = "live"
    PASSIVE = "passive"
    """It waits, or begins: it has no addresses and no queues."""
    DEAD = "dead"
    """Its process has ended without an orderly stop, and it was live: its memory is shown."""
    DOWN = "down"
    """Its process has ended, and it was not live."""


@dataclass(frozen=True, slots=True)
class Standing:
    name: str
    vhost: str
    policy: str
    role: str
    state: str
    mode: Mode
    epoch: int
    why: str
    replication: str
    process: int | None
    live: str
    """The address of the live, if this is not it, and it is known."""
    console: str
    """Where its console is."""

    @property
    def shows_queues(self) -> bool:
        return self.mode in (Mode.LIVE, Mode.DEAD)

    @property
    def fields(self) -> dict[str, object]:
        return {**asdict(self), "mode": self.mode.value}


def standing(config: Config, others: Mapping[str, str]) -> Standing:
    """`others`: addresses of consoles of other members, by name."""
    try:
        said = status.told(read_whole(config.folder / RUN / "status", trust.seen_files()))
        found = status.read(config.folder)
    except (Error, OSError) as error:
        said = found = status.Status(why=str(error))
    if found.process is not None:
        mode = Mode.LIVE if found.state in SERVING else Mode.PASSIVE
    elif found.state == "starting":
        mode = Mode.PASSIVE
    else:
        mode = Mode.DEAD if said.state in SERVING else Mode.DOWN
    is_other = mode in (Mode.PASSIVE, Mode.DOWN)
    live, console = live_of(config, others) if is_other else ("", "")
    return Standing(
        config.name, config.vhost, config.policy, config.role, found.state, mode, found.epoch,
        found.why, found.replication, None if found.process is None else found.process.pid,
        live, console,
    )  # fmt: skip


def live_of(config: Config, others: Mapping[str, str]) -> tuple[str, str]:
    """Where the live and its console are; empty: it is not known."""
    alone = next(iter(others.values())) if len(others) == 1 else ""
    try:
        if config.policy == "replication":
            name = str(ordering.shown(config.folder, "ha").get("live"))
            return dict(config.members).get(name, ""), others.get(name, "")
        told = read_whole(config.store / whereabouts.FILE, trust.seen_files())
    except (Error, OSError):
        return "", alone
    console = str(told.get("console", ""))
    return str(told.get("uri", "")), alone or (console if is_link(console) else "")
