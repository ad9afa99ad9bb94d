"""What the process of a member does for `acting.Acting`, and its clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from shmbroker.ipc.connection.broker import Broker


class Process(Protocol):
    """Of the member; called in the network thread."""

    def prepares(self, node: bytes, epoch: int) -> None:
        """In the worker: its vhost is there, and it is about to serve."""

    def serves(self, node: bytes, epoch: int) -> None: ...

    def drains(self, broker: Broker, gave: Callable[[bool], None]) -> None:
        """Give all to another node.  `gave`: in a thread of its own, whether that was done."""

    def stops_serving(self, *, at_once: bool, uri: str) -> None:
        """In the worker: returns when programs of other hosts are out.  `uri`: where they are to
        go, if that is known."""

    def looks_around(self) -> None:
        """Acting is told once more whether this host is isolated (`network-check`)."""

    def refusal(self, epoch: int, node: bytes, old_live: str) -> str | None:
        """In the worker: why `on-promote` says no."""

    def line(self, event: str, **fields: object) -> None: ...

    def changed(self) -> None:
        """There may be something to show."""

    def ends(self, is_failure: bool, why: str) -> None: ...


def now() -> float:
    """Seconds of a clock that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
