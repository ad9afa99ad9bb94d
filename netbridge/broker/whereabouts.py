"""Where the live of a store is reached: a small file of the store, for its backups.

They tell it to programs and links that come to them, and leave the live its ports if they are on
one host.
"""

from __future__ import annotations

import socket
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from shmbroker.ipc.instance.process import boot
from shmbroker.ipc.instance.whole import read_whole, write_whole
from shmbroker.netbridge.config.config import Network as Wanted
from shmbroker.netbridge.plan.uri import Single

FILE: Final = "whereabouts"


def this_host() -> str:
    """Where a port is one port: this boot, and this network namespace."""
    return f"{boot()} {Path('/proc/self/ns/net').stat().st_ino}"


def address(host: str, port: int, *, is_secure: bool) -> str:
    """For browsers; a console that listens everywhere is found by the name of its host."""
    shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(
        host, f"[{host}]" if ":" in host else host
    )
    return f"{'https' if is_secure else 'http'}://{shown}:{port}/"


@dataclass(frozen=True, slots=True)
class Whereabouts:
    epoch: int
    """Of the live; that of another one says nothing."""
    uri: str
    """How others reach it; empty if that is not known."""
    host: str
    listens: tuple[tuple[str, int], ...]
    console: str = ""
    """The address of its console; empty if it has none, or its port is any that is free."""

    def has(self, address: Single) -> bool:
        """We would be in its way there."""
        anywhere = {"*", "0.0.0.0", "::"}
        return self.host == this_host() and any(
            port == address.port and (host == address.host or {host, address.host} & anywhere)
            for host, port in self.listens
        )


def of(epoch: int, wanted: Wanted) -> Whereabouts:
    """Of this broker.  Without connectors, where it listens, if others can connect to that, or if
    its cluster knows its host."""
    acceptors = [each.uri for each in wanted.acceptors.values()]
    connectors = [each for each in wanted.connectors.values() if each not in wanted.between]
    reached = [*connectors, *(each for each in acceptors if not each.is_anywhere)]
    if wanted.between:
        host = wanted.between[0].host
        reached += [replace(each, host=host) for each in acceptors if each.is_anywhere]
    listens = tuple((each.host, each.port) for each in acceptors)
    console = wanted.console
    shown = "" if console is None or not console.port else address(
        console.host, console.port, is_secure=console.is_secure
    )  # fmt: skip
    return Whereabouts(epoch, str(reached[0]) if reached else "", this_host(), listens, shown)


def write(store: Path, told: Whereabouts) -> None:
    write_whole(store / FILE, asdict(told))


def read(store: Path, epoch: int) -> Whereabouts | None:
    """None if the live of this epoch has not told it."""
    found = read_whole(store / FILE)
    try:
        listens = tuple((str(host), int(port)) for host, port in found["listens"])
        told = Whereabouts(
            int(found["epoch"]), str(found["uri"]), str(found["host"]), listens,
            str(found.get("console", "")),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError):
        return None
    return told if told.epoch == epoch else None
