"""A peer: something that carries messages, described so that the contest can run it.

In the parent process ``setup`` makes what the processes need and returns an endpoint;
in each child process ``run_role`` does that process's whole part of the run; in the parent
``teardown`` removes what setup made. The peer itself is pickled into the children,
so it holds no open things: a small object without state.
"""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import Any, ClassVar, Literal

from shmbroker.perf.harness.gate import Gate
from shmbroker.perf.harness.plan import Plan
from shmbroker.perf.harness.role_result import RoleResult
from shmbroker.perf.harness.task import Task
from shmbroker.perf.harness.topology import Seat
from shmbroker.perf.machine.workspace import Workspace

Kind = Literal["python", "numba", "c"]

Durability = Literal["none", "programs", "disk"]
"""What a message outlives once it was sent: nothing, the programs, or the machine's power too."""

Endpoint = Any
"""Whatever setup returns; it must survive being an argument of a spawned process."""


class Peer(ABC):
    """Compiled peers subclass this; those driven call by call subclass PythonPeer."""

    name: ClassVar[str]
    kind: ClassVar[Kind]
    distribution: ClassVar[str | None] = None
    """The installed distribution whose version the report names."""
    module: ClassVar[str | None] = None
    """The module that must be importable; without it the peer is left out."""
    durability: ClassVar[Durability] = "none"
    is_limit: ClassVar[bool] = False
    """A raw limit of the machine, not a messenger; the others' ratios refer to it."""

    @classmethod
    def installed(cls) -> bool:
        return cls.module is None or find_spec(cls.module) is not None

    def running(self) -> AbstractContextManager[None]:
        """Parent: around all runs of a case; a server runs for as long."""
        return nullcontext()

    @abstractmethod
    def supports(self, task: Task) -> bool:
        """Whether it can do this at all; never an error."""

    @abstractmethod
    def setup(self, plan: Plan, workspace: Workspace) -> Endpoint:
        """Parent: make what the processes need. Name every file and segment by workspace.token."""

    @abstractmethod
    def run_role(self, seat: Seat, endpoint: Endpoint, plan: Plan, gate: Gate) -> RoleResult:
        """Child: open, gate.start(), the whole loop, gate.finish(), close."""

    def teardown(self, endpoint: Endpoint) -> None:  # noqa: B027 - optional, not forgotten
        """Parent: called once after every setup, also when children were killed."""
