"""A live that is replicated, and its replica, each in a process of its own, over loopback TCP."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import shmbroker
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.netbridge.carrier.listener import Listener
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.replica.live import Replication
from shmbroker.netbridge.replica.replica import Replica
from shmbroker.netbridge.replica.terms import ReplicationTerms
from shmbroker.netbridge.security.credential import Credential, Credentials
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.words import Role, Standing
from shmbroker.perf.machine.port import free_port
from tests.support.log_lines import log, log_lines

NODE = b"n" * 16
PATIENCE = 60.0
SITE = Credential("site", "site", (Role.REPLICA,), (Stretched("site", "correct horse battery"),))


@dataclass
class Pair:
    """Stores below `folder`, by the names of members; a vhost for each of them."""

    folder: Path
    vhosts: dict[str, str]
    port: int = field(default_factory=free_port)
    terms: ReplicationTerms = ReplicationTerms(replica_timeout=PATIENCE)  # noqa: RUF009  # frozen
    times: LinkTimes = LinkTimes(heartbeat_interval=2)  # noqa: RUF009
    """Patient with processes that stand still."""
    segment_bytes: int = 1 << 20
    arena_bytes: int = 64 << 20

    def store(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir(exist_ok=True)
        return path

    def lines(self, name: str) -> list[dict[str, Any]]:
        return log_lines(self.folder / f"{name}.log")

    def told(self, name: str, line: Mapping[str, Any]) -> None:
        log(self.folder / f"{name}.log", line)

    def _identity(self, name: str, standing: Standing) -> Identity:
        return Identity(NODE, os.urandom(16), name, standing, 0)

    @contextmanager
    def serving(self, name: str, journaler: Journaler) -> Iterator[Replication]:
        """Replicas may come."""
        with ExitStack() as opened:
            thread = opened.enter_context(NetworkThread())
            replication = opened.enter_context(
                Replication(
                    thread, journaler, self.store(name) / "journal", self.terms,
                    tell=partial(self.told, name),
                )
            )  # fmt: skip
            opened.enter_context(
                Listener(
                    thread, f"tcp://127.0.0.1:{self.port}", SITE.keys[0], Credentials([SITE]),
                    self._identity(name, Standing.LIVE), roles=frozenset({Role.REPLICA}),
                    times=self.times, replicates=replication, tell=partial(self.told, name),
                )
            )  # fmt: skip
            yield replication

    @contextmanager
    def live(self, name: str, epoch: int = 1) -> Iterator[Replication]:
        """Of the vhost that is there."""
        folder = self.store(name) / "journal"
        folder.mkdir(exist_ok=True)
        with (
            shmbroker.connect(f"shm://{self.vhosts[name]}", name="live") as broker,
            Journaler(folder, node=NODE, segment_bytes=self.segment_bytes) as journaler,
        ):
            journaler.start(broker, epoch)
            with self.serving(name, journaler) as replication:
                yield replication

    @contextmanager
    def replica(self, name: str) -> Iterator[Replica]:
        uri = f"failover:(tcp://127.0.0.1:{self.port})?max-reconnect-delay=50ms"
        with (
            NetworkThread() as thread,
            Replica(
                thread, self.store(name), self.vhosts[name], uri, SITE,
                self._identity(name, Standing.BACKUP), arena_bytes=self.arena_bytes,
                segment_bytes=self.segment_bytes, terms=self.terms, times=self.times,
                tell=partial(self.told, name),
            ) as replica,
        ):  # fmt: skip
            yield replica


def wait_for(what: Callable[[], bool], why: Callable[[], object] = lambda: "") -> None:
    until = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < until, why()
        time.sleep(0.002)
