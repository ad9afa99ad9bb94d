"""A broker that serves programs, in a process of its own, and programs of this one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from typing import Any

import shmbroker
from shmbroker import Broker
from shmbroker.netbridge.carrier.listener import Listener
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.peer import Identity
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.remote.options import SessionOptions
from shmbroker.netbridge.remote.session import SessionLimits
from shmbroker.netbridge.security.credential import Credential, Credentials
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.serving.audience import Audience
from shmbroker.netbridge.serving.service import Service
from shmbroker.netbridge.wire.words import OF_PROGRAMS, Role, Standing
from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.process import Process
from tests.support.program import Program

KEY = Stretched("site", "correct horse battery")
SITE = Credential("site", "site", tuple(OF_PROGRAMS), (KEY,))


@dataclass
class Site:
    """Where programs are served: `broker` looks at the same vhost from this process."""

    broker: Broker
    folder: Path
    limits: SessionLimits = SessionLimits()  # noqa: RUF009  # it is frozen
    times: LinkTimes = LinkTimes()  # noqa: RUF009
    of: Credential = SITE
    """Whoever may come."""
    port: int = field(default_factory=free_port)
    opened: ExitStack = field(default_factory=ExitStack)
    process: Process | None = None
    said: SimpleQueue[Mapping[str, Any]] = field(default_factory=SimpleQueue)
    """Lines of its log, if it is served in this process."""

    @contextmanager
    def served(self) -> Iterator[Audience]:
        with ExitStack() as opened:
            broker = opened.enter_context(
                shmbroker.connect(f"shm://{self.broker.vhost}", name="broker")
            )
            thread = opened.enter_context(NetworkThread(broker))
            audience = Audience(opened.enter_context(Service(thread, limits=self.limits)))
            ours = Identity(b"b" * 16, os.urandom(16), "broker", Standing.LIVE, 0)
            opened.enter_context(
                Listener(
                    thread, f"tcp://127.0.0.1:{self.port}", KEY, Credentials([self.of]), ours,
                    roles=OF_PROGRAMS, times=self.times, serves=audience, tell=self._tell,
                )
            )  # fmt: skip
            yield audience

    def _tell(self, line: Mapping[str, Any]) -> None:
        self.said.put(line)
        with (self.folder / "broker.log").open("a") as file:
            file.write(json.dumps(dict(line)) + "\n")

    def begin(self) -> Process:
        """It lives until it is killed."""

        def live() -> int:
            with self.served():
                Event().wait()
            return 0

        process = self.process = Process(live, self.folder / "broker.errors")
        self.opened.callback(process.kill)
        return process

    def begin_again(self) -> None:
        """kill -9, and another one in its place; the vhost stays."""
        assert self.process is not None
        self.process.kill()
        self.begin()

    def program(self, role: Role = Role.CLIENT, name: str = "program", **options: Any) -> Program:
        program = Program(
            self.port, SITE, role=role, name=name, times=self.times,
            options=SessionOptions(**options),
        )  # fmt: skip
        self.opened.callback(program.vanish)
        return program.up()


@contextmanager
def site(vhost: str, folder: Path, **more: Any) -> Iterator[Site]:
    with shmbroker.connect(f"shm://{vhost}", create=True, name="test") as broker:
        made = Site(broker, folder, **more)
        with made.opened:
            made.begin()
            yield made
