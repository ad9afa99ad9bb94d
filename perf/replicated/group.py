"""A group: brokers on free ports of loopback, of which one answers and the others have its copies.

Whoever is killed comes back, and has its copy again, before the next one is.
"""

from __future__ import annotations

import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import ClassVar, Final

from shmbroker.perf.machine.program import Program
from shmbroker.perf.server.connection import Connection

PATIENCE_S: Final = 120
POLL_S: Final = 0.02
QUEUE: Final = "copied"


class Group(ABC):
    name: ClassVar[str]
    names: ClassVar[tuple[str, ...]]
    """Of its members."""
    told_of_silence: ClassVar[bool] = False
    """A member that stands still is noticed as soon as one that has ended."""

    def __init__(self) -> None:
        self.folder = Path()
        self._stack = ExitStack()
        self._programs: dict[str, Program] = {}

    @classmethod
    @abstractmethod
    def install(cls) -> None:
        """NotInstalled, with what to do, if it cannot be had."""

    @abstractmethod
    def configure(self) -> None:
        """Everybody, in the folder."""

    @abstractmethod
    def started(self, name: str) -> Program:
        """This member."""

    @abstractmethod
    def connect(self) -> Connection:
        """Of a program that goes on with another member by itself; the queue is made if need be."""

    @abstractmethod
    def answering(self) -> str | None:
        """Who answers for the queue; None as long as not all have a copy of it."""

    @classmethod
    def version(cls) -> str:
        return ""

    # --- the same for all -------------------------------------------------------------------------

    @contextmanager
    def hosted(self, folder: Path) -> Iterator[None]:
        self.folder = folder
        with ExitStack() as self._stack:
            self.configure()
            for name in self.names:
                self._start(name)
            yield

    def _start(self, name: str) -> None:
        self._programs[name] = self._stack.enter_context(self.started(name))

    def whole(self) -> str:
        """Who answers, as soon as all have a copy."""
        return eventually(self.answering, f"{self.name} has not all its copies")

    def strike(self, name: str, what: signal.Signals) -> int:
        """When that was; who is stopped stands still by then."""
        at = time.monotonic_ns()
        self._programs[name].signal(what)
        return time.monotonic_ns() if what is signal.SIGSTOP else at

    def revive(self, name: str) -> None:
        self._programs[name].signal(signal.SIGKILL)
        self._programs[name].end()
        self._start(name)


def eventually(what: Callable[[], str | None], why: str) -> str:
    ends_at = time.monotonic() + PATIENCE_S
    while not (found := what()):
        if time.monotonic() > ends_at:
            raise TimeoutError(why)
        time.sleep(POLL_S)
    return found


def said(command: list[str], environment: dict[str, str] | None = None) -> str | None:
    """By a command of theirs; None if it failed."""
    with suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=PATIENCE_S,
        )  # fmt: skip
        if done.returncode == 0:
            return done.stdout
    return None
