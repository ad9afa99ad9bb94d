"""Instances as processes, for a test."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from shmbroker.cli.main import main
from shmbroker.ipc.instance import status
from shmbroker.ipc.instance.config.config import load
from shmbroker.ipc.instance.creation import create
from shmbroker.ipc.instance.lock.live_lock import LiveLock
from shmbroker.ipc.instance.loop import lock_of
from shmbroker.ipc.instance.store import Store
from shmbroker.perf.machine.process import Process
from tests.support.log_lines import log_lines

PATIENCE_SECONDS = 60
STACKS_SECONDS = 5
"""A process that stands still writes none."""

Settings = dict[str, object]


def option(name: str) -> str:
    """stall_limit, as those of HA are asked for; spool__path has its table with it."""
    table, _, rest = name.rpartition("__")
    return f"{table or 'ha'}.{rest.replace('_', '-')}"


class Run:
    """One instance; may run several times."""

    def __init__(
        self, folder: Path, vhost: str, role: str, store: Settings | None = None, **settings: object
    ) -> None:
        self.folder = folder
        create(
            folder,
            {
                "instance.name": folder.name,
                "instance.vhost": vhost,
                "instance.arena": "16MiB",
                "store.path": str(folder.parent / "store"),
                "store.segment": "1MiB",
                "ha.role": role,
                **(store or {}),
                **{option(key): value for key, value in settings.items()},
            },
        )
        self.process: Process | None = None
        self.limited: dict[str, int] = {}
        """What its process may have at most, by names of `resource`."""
        self.before: Callable[[], None] = lambda: None
        """Done in its process first."""

    def start(self, *more: str, moved: bool = False) -> Self:
        """`more`: words behind the folder."""

        def live() -> int:
            self.before()
            for name, most in self.limited.items():
                resource.setrlimit(getattr(resource, name), (most, most))
            sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
            faulthandler.register(signal.SIGUSR2, file=sys.stderr)
            words = [*more, *(["--moved"] if moved else [])]
            sys.argv = ["shmbroker", "run", str(self.folder), *words]
            return main()

        self.process = Process(live, self.folder / "errors")
        return self

    def becomes(self, state: str) -> Self:
        assert status.wait_for(self.folder, state, PATIENCE_SECONDS), (
            f"{self.folder.name} did not become {state}: {self.said()} {self.errors()}"
        )
        return self

    def runs(self) -> Self:
        """It has said who it is: from now on it can be told to stop."""
        late = time.monotonic() + PATIENCE_SECONDS
        while self.status.process is None:
            assert time.monotonic() < late, f"{self.said()} {self.errors()}"
            time.sleep(0.01)  # it writes a file
        return self

    def ends(self) -> int:
        assert self.process is not None
        assert self.process.has_ended(PATIENCE_SECONDS), f"{self.said()}\n{self.stacks()}"
        assert self.process.status is not None
        return self.process.status

    def stop(self) -> int:
        status.signalled(self.folder, signal.SIGTERM, PATIENCE_SECONDS)
        return self.ends()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()

    @property
    def status(self) -> status.Status:
        return status.read(self.folder)

    def said(self) -> list[dict[str, Any]]:
        return log_lines(self.folder / "log" / "shmbroker.log")

    def events(self) -> list[str]:
        return [line["event"] for line in self.said()]

    def why(self, event: str) -> str:
        """Of the last line with this event: others may have been written behind it."""
        return next(str(line["why"]) for line in reversed(self.said()) if line["event"] == event)

    def errors(self) -> str:
        path = self.folder / "errors"
        return path.read_text() if path.exists() else ""

    def stacks(self) -> str:
        """Its errors, and where each thread of it is: for a test that has waited in vain."""
        before = self.errors()
        if self.process is not None and not self.process.has_ended():
            self.process.send(signal.SIGUSR2)
            until = time.monotonic() + STACKS_SECONDS
            while self.errors() == before and time.monotonic() < until:
                time.sleep(0.1)
        return self.errors()

    def lock(self) -> LiveLock:
        """As one more that shares its store."""
        config = load(self.folder)
        return lock_of(config, Store(config.store, config.vhost, config.lock))
