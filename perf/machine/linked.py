"""Brokers for benchmarks of links: each a vhost, and a process that carries its links.

The process of a broker listens at a port, and ships queues of its vhost to the other one's.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from shmbroker import connect, vhost
from shmbroker.netbridge.carrier.link import Link
from shmbroker.netbridge.carrier.listener import Listener
from shmbroker.netbridge.carrier.source import Shipped
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.security.credential import Credential, Credentials
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.serving.service import Service
from shmbroker.netbridge.wire.words import Role, Standing
from shmbroker.perf.machine.pinning import pin
from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.process import Process
from shmbroker.perf.machine.workspace import unique_token

PATIENCE_S = 30
USER, PASSWORD = "bench", "bench bench bench"


@cache
def credential() -> Credential:
    roles = (Role.PEERING, Role.CLIENT)
    return Credential("bench", USER, roles, (Stretched(USER, PASSWORD),))


@dataclass(frozen=True, slots=True)
class End:
    """A broker: where it is, and to which port each of its links ships what."""

    vhost: str
    processor: int
    port: int
    links: tuple[tuple[int, tuple[Shipped, ...]], ...]
    told: Path
    times: LinkTimes = LinkTimes()  # noqa: RUF009  # it is frozen

    def process(self) -> Process:
        return Process(self._live, self.told.with_suffix(".errors"))

    def _live(self) -> int:
        pin(self.processor)
        node = hashlib.md5(self.vhost.encode(), usedforsecurity=False).digest()
        ours = Identity(node, os.urandom(16), self.vhost, Standing.LIVE, 0)
        name = f"link{os.getpid()}"
        with ExitStack() as opened:
            broker = opened.enter_context(connect(f"shm://{self.vhost}", name=name))
            thread = opened.enter_context(NetworkThread(broker))
            opened.enter_context(
                Listener(
                    thread, f"tcp://127.0.0.1:{self.port}", credential().keys[0],
                    Credentials([credential()]), ours, roles=frozenset(credential().roles),
                    times=self.times, serves=opened.enter_context(Service(thread)),
                )
            )  # fmt: skip
            for number, (port, shipped) in enumerate(self.links):
                uri = f"failover:(tcp://127.0.0.1:{port})?max-reconnect-delay=50ms"
                opened.enter_context(
                    Link(
                        thread, f"link-{number}", uri, credential(), ours, shipped,
                        times=self.times, tell=self._tell,
                    )
                )  # fmt: skip
            threading.Event().wait()
        return 0

    def _tell(self, line: Mapping[str, Any]) -> None:
        """When its links change: seconds of the clock that only rises, and the state."""
        if "state" in line:
            with self.told.open("a") as file:
                file.write(f"{time.monotonic()} {line['state']}\n")

    def changes(self) -> list[tuple[float, str]]:
        if not self.told.exists():
            return []
        lines = (line.split() for line in self.told.read_text().splitlines())
        return [(float(at), state) for at, state in lines]

    def when(self, state: str, many: int = 1) -> float:
        """Wait until links have become this so many times: when the last of these did."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            found = [at for at, became in self.changes() if became == state]
            if len(found) >= many:
                return found[many - 1]
            time.sleep(0.005)
        errors = self.told.with_suffix(".errors").read_text()
        raise TimeoutError(f"links of {self.vhost} do not become {state!r}: {errors}")


@contextmanager
def two_ends(
    *forth: tuple[Shipped, ...],
    back: tuple[tuple[Shipped, ...], ...] = (),
    arena_bytes: int,
    times: LinkTimes | None = None,
) -> Iterator[tuple[End, End]]:
    """Each of these is a link.  Their vhosts are there; begin their processes."""
    credential().keys[0].listening  # noqa: B018  # it takes a while: once, for all processes
    names, ports = [unique_token("link") for _ in range(2)], [free_port() for _ in range(2)]
    links = (
        tuple((ports[1], shipped) for shipped in forth),
        tuple((ports[0], shipped) for shipped in back),
    )
    with ExitStack() as opened, tempfile.TemporaryDirectory() as folder:
        for name in names:
            vhost.create(name, arena_bytes=arena_bytes)
            opened.callback(vhost.delete, name, force=True)
        near, far = (
            End(
                names[each], each, ports[each], links[each], Path(folder, names[each]),
                times or LinkTimes(),
            )
            for each in (0, 1)
        )  # fmt: skip
        yield near, far
