"""Both ends of a link, each in a process of its own, over loopback TCP."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import shmbroker
from shmbroker.netbridge.carrier.link import Link
from shmbroker.netbridge.carrier.listener import Listener
from shmbroker.netbridge.carrier.source import Shipped
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.security.credential import Credential, Credentials
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.words import Role, Standing
from shmbroker.perf.machine.process import Process
from tests.support.hosts import Host
from tests.support.log_lines import log, log_lines

SOURCE, TARGET, DEAD = "outbox", "inbox", "dead"
PATIENCE = 60.0


def credential_of(password: str) -> Credential:
    keys = (Stretched("site", password),)
    return Credential("site", "site", (Role.PEERING,), keys)


SITE = credential_of("correct horse battery")


@dataclass(frozen=True, slots=True)
class Pair:
    """Where both ends are."""

    near: str
    far: str
    port: int
    folder: Path
    times: LinkTimes = LinkTimes()  # noqa: RUF009  # it is frozen
    ships: tuple[Shipped, ...] = (Shipped(SOURCE, TARGET),)
    credential: Credential = SITE
    hosts: tuple[Host, Host] | None = None
    """Near and far, if they have hosts of their own."""

    @property
    def address(self) -> str:
        return f"{self.hosts[1].address if self.hosts else '127.0.0.1'}:{self.port}"

    def lines(self, end: str) -> list[dict[str, Any]]:
        return log_lines(self.folder / f"{end}.log")

    def states(self, end: str) -> list[str]:
        return [each["state"] for each in self.lines(end) if "state" in each]

    def _tell(self, end: str, line: Mapping[str, Any]) -> None:
        log(self.folder / f"{end}.log", line)

    @contextmanager
    def listening(self) -> Iterator[Listener]:
        with ExitStack() as opened:
            broker = opened.enter_context(shmbroker.connect(f"shm://{self.far}", name="far"))
            thread = opened.enter_context(NetworkThread(broker))
            ours = Identity(b"f" * 16, os.urandom(16), "far", Standing.LIVE, 0)
            yield opened.enter_context(
                Listener(
                    thread, f"tcp://{self.address}", SITE.keys[0], Credentials([SITE]),
                    ours, times=self.times, tell=partial(self._tell, "far"),
                )
            )  # fmt: skip

    @contextmanager
    def linked(self) -> Iterator[Link]:
        uri = f"failover:(tcp://{self.address})?max-reconnect-delay=50ms"
        with ExitStack() as opened:
            broker = opened.enter_context(shmbroker.connect(f"shm://{self.near}", name="near"))
            thread = opened.enter_context(NetworkThread(broker))
            ours = Identity(b"n" * 16, os.urandom(16), "near", Standing.LIVE, 0)
            yield opened.enter_context(
                Link(
                    thread, "link", uri, self.credential, ours, self.ships,
                    times=self.times, tell=partial(self._tell, "near"),
                )
            )  # fmt: skip

    def with_password(self, password: str) -> Pair:
        return replace(self, credential=credential_of(password))

    def process(self, end: str) -> Process:
        """It lives until it is killed."""

        def live() -> int:
            if self.hosts is not None:
                self.hosts[end == "far"].enter()
            with self.listening() if end == "far" else self.linked():
                Event().wait()
            return 0

        return Process(live, self.folder / f"{end}.errors")
