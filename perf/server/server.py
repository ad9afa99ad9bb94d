"""A server: a peer that is a program of its own, on a free port of loopback, in a temporary folder.

Subclasses say how it is installed, started and connected to, with its own configuration: whatever
makes it sync to disk before it confirms is on. The rest, in the contest and in the durable
benchmark, is the same for all of them. Started by ``running``, it is ended by pid, and its folder
is removed.
"""

import shutil
import socket
import tempfile
import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from shmbroker.perf.harness.peer import Durability
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.port import Port
from shmbroker.perf.harness.python_peer import PythonPeer
from shmbroker.perf.harness.tally import LARGE_BYTES
from shmbroker.perf.harness.task import Task
from shmbroker.perf.harness.topology import Seat
from shmbroker.perf.machine import debian
from shmbroker.perf.machine.debian import NotInstalled
from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.program import Program
from shmbroker.perf.machine.workspace import Workspace
from shmbroker.perf.server.connection import Connection

START_S = 120
POLL_S = 0.02
HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server runs; goes to other processes."""

    folder: Path
    port: int


@dataclass(frozen=True, slots=True)
class Lines:
    """What the processes of one run need: a place, and how their queues are called."""

    place: Place
    forth: str
    back: str


@dataclass(frozen=True, slots=True)
class Running:
    place: Place
    pid: int
    """Of the process that writes to the disk."""


class Server(PythonPeer):
    durability: ClassVar[Durability] = "disk"
    package: ClassVar[str | None] = None
    """Debian's, that has the program."""
    program: ClassVar[str]
    """Its command, or a file that is there when it is installed."""
    modules: ClassVar[tuple[str, ...]] = ()
    """What the client needs, from PyPI."""

    def __init__(self) -> None:
        self._place: Place | None = None

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return type(self), ()  # in a child process it is enough to know how to connect

    # --- what subclasses say ----------------------------------------------------------------------

    @abstractmethod
    def start(self, place: Place, stack: ExitStack) -> Program:
        """Configure it into the place's folder, and start it: the program that writes."""

    @abstractmethod
    def connect(self, place: Place, queue: str) -> Connection:
        """To this durable queue, which is made if it does not exist."""

    def is_up(self, place: Place) -> bool:
        try:
            socket.create_connection((HOST, place.port), 1).close()
        except OSError:
            return False
        return True

    # --- installing and running -------------------------------------------------------------------

    @classmethod
    def installed(cls) -> bool:
        return bool(cls.found_program()) and all(map(find_spec, cls.modules))

    @classmethod
    def found_program(cls) -> str | None:
        return shutil.which(cls.program)

    @classmethod
    def install(cls) -> None:
        """NotInstalled, with what to do, if it cannot be had."""
        if missing := [name for name in cls.modules if not find_spec(name)]:
            raise NotInstalled(f"pip install 'shmbroker[perf]' ({', '.join(missing)})")
        if not cls.found_program():
            if cls.package is None:
                raise NotInstalled(f"{cls.program}: not found")
            debian.install(cls.package)

    @classmethod
    def version(cls) -> str:
        return debian.version(cls.package) if cls.package else ""

    @contextmanager
    def hosted(self, above: Path | None = None) -> Iterator[Running]:
        """Runs in a new folder in ``above``, so on that disk, until the block ends."""
        with ExitStack() as stack:
            folder = tempfile.mkdtemp(prefix=f"shmbroker-perf-{self.name}-", dir=above)
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            place = Place(Path(folder), free_port())
            program = self.start(place, stack)
            ends_at = time.monotonic() + START_S
            while not self.is_up(place):
                program.check()
                if time.monotonic() > ends_at:
                    raise TimeoutError(f"{self.name} did not start within {START_S} s")
                time.sleep(POLL_S)
            yield Running(place, program.pid)

    # --- as a peer of the contest -----------------------------------------------------------------

    @contextmanager
    def running(self) -> Iterator[None]:
        with self.hosted() as running:
            self._place = running.place
            try:
                yield
            finally:
                self._place = None

    def supports(self, task: Task) -> bool:
        """Streams go by batches only: one at a time is what the durable benchmark measures. Large
        messages would be minutes of writing to the disk."""
        mode = "single" if task.topology.measures_latency else "batch"
        is_large = task.size >= LARGE_BYTES
        return task.mode == mode and task.topology.delivery != "to-all" and not is_large

    def setup(self, plan: Plan, workspace: Workspace) -> Lines:
        assert self._place, f"{self.name} does not run"
        return Lines(self._place, f"{workspace.token}-forth", f"{workspace.token}-back")

    def open_port(self, seat: Seat, endpoint: Lines, plan: Plan) -> Port:
        names = [endpoint.forth, endpoint.back]
        if seat.role == "responder":
            names.reverse()
        if seat.role == "receiver":
            names = [endpoint.forth] * 2
        if not plan.task.topology.measures_latency:
            names = names[:1]
        connections = [self.connect(endpoint.place, name) for name in names]
        out, incoming = connections[0], connections[-1]

        def close() -> None:
            for connection in connections:
                connection.close()

        return Port(
            send=out.publish,
            receive=lambda: incoming.take(1)[0],
            send_many=out.publish_many,
            receive_many=partial(incoming.take, plan.batch),
            close=close,
        )
