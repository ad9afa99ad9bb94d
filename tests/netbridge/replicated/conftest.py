"""Two members of a replicated node as processes, on one host and without a witness."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.ipc.instance import ordering, status
from shmbroker.ipc.instance.watch import Watch
from shmbroker.perf.machine.port import free_port
from shmbroker.perf.machine.process import Process
from tests.conftest import vhost_for_a_while
from tests.support.runs import Run

PASSWORD = "correct horse battery staple"
PATIENCE = 60.0
SHM = "prefer-shared-memory=false"
PATIENTLY = "randomize=false&max-reconnect-delay=50ms&startup-max-reconnect-attempts=-1"
"""A member shows that it is live, or in sync, a moment before it listens."""
NAMES = ("a", "b")


@dataclass
class Node:
    """`a` is preferred."""

    runs: dict[str, Run]
    vhosts: dict[str, str]
    ports: dict[str, int]
    """Of programs."""
    opened: ExitStack
    addresses: Mapping[str, str]

    def __getitem__(self, name: str) -> Run:
        return self.runs[name]

    def up(self) -> Node:
        for name in NAMES:  # who is alone at its first start waits for the other one
            self[name].start()
        self["a"].becomes("live")
        self.says("b", "in sync")
        self.says("a", "in sync")
        return self

    def says(self, name: str, replication: str) -> None:
        """Waits until its line `replication` begins so."""
        run = self.runs[name]
        watch = Watch(run.folder / status.RUN)
        until = time.monotonic() + PATIENCE
        try:
            while True:
                found = status.read(run.folder)
                if found.process is not None and found.replication.startswith(replication):
                    return
                assert time.monotonic() < until, self.story()
                watch.wait(until - time.monotonic())
        finally:
            watch.close()

    def logs(self, name: str, event: str) -> None:
        """Waits until its log has a line of this event."""
        run = self.runs[name]
        watch = Watch(run.folder / "log")
        until = time.monotonic() + PATIENCE
        try:
            while event not in run.events():
                assert time.monotonic() < until, self.story()
                watch.wait(until - time.monotonic())
        finally:
            watch.close()

    def story(self) -> str:
        lines = [
            f"{line['time']} {name} {line}" for name in self.runs for line in self[name].said()
        ]
        errors = [run.stacks() for run in self.runs.values()]
        return "\n".join([*sorted(lines), *errors])

    def connected(self, name: str) -> Broker:
        broker = shmbroker.connect(f"shm://{self.vhosts[name]}", name="test")
        return self.opened.enter_context(broker)

    def uri(self, more: str = "") -> str:
        members = ",".join(
            f"tcp://{self.addresses[name]}:{each}" for name, each in self.ports.items()
        )
        return f"failover:({members})?{PATIENTLY}&{SHM}{more}"

    def program(self, more: str = "") -> Any:
        made = shmbroker.connect(self.uri(more), user="programs", password=PASSWORD)
        self.opened.callback(made.close)
        return made

    def orders(self, name: str, order: dict[str, object]) -> str:
        """Why it is not done, or nothing."""
        answer = ordering.asked(self[name].folder, {"noun": "ha", **order}, PATIENCE)
        assert answer is not None, self.story()
        return str(answer.get("why", ""))

    def stands_still(self, name: str) -> None:
        self._process(name).stop()

    def goes_on(self, name: str) -> None:
        self._process(name).go_on()

    def _process(self, name: str) -> Process:
        process = self[name].process
        assert process is not None
        return process

    def are_killed(self, first: str, second: str) -> None:
        """Both at once: the second one does not see that the first one is dead."""
        self.stands_still(second)
        self[first].kill()
        self[second].kill()

    def bodies(self, name: str, queue: str = "orders") -> list[bytes]:
        with shmbroker.connect(f"shm://{self.vhosts[name]}", observe=True) as broker:
            return [message.body for message in broker.queue(queue).browse()]


Made = Callable[..., Node]
HERE = dict.fromkeys(NAMES, "127.0.0.1")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Made]:
    """`settings`: of both; `a`, `b`: of one."""
    with nodes(tmp_path, HERE) as made:
        yield made


@contextmanager
def nodes(folder: Path, addresses: Mapping[str, str]) -> Iterator[Made]:
    names = tuple(addresses)
    with ExitStack() as opened:
        vhosts = {name: opened.enter_context(vhost_for_a_while()) for name in names}
        members = {name: f"tcp://{addresses[name]}:{free_port()}" for name in names}
        ports = {name: free_port() for name in names}

        def made(settings: dict[str, object] | None = None, **of_one: dict[str, object]) -> Node:
            runs = {}
            for name in names:
                given: dict[str, object] = {
                    "store.path": "data",
                    "ha.policy": "replication",
                    "ha.members": [f"{each}={members[each]}" for each in names],
                    "ha.replication.on-partition": "continue-alone",
                    "ha.replication.retry-replication-wait": "100ms",
                    "ha.replication.replica-timeout": "9s",  # a busy machine is none that hangs
                    "link-defaults.heartbeat-interval": "3s",
                    "acceptors.members.uri": members[name],
                    "acceptors.members.roles": ["replica"],
                    "acceptors.programs.uri": f"tcp://{addresses[name]}:{ports[name]}",
                    "acceptors.programs.roles": ["client"],
                    "credentials.members.password": PASSWORD,
                    "credentials.members.role": "replica",
                    "credentials.programs.password": PASSWORD,
                    "credentials.programs.role": "client",
                    **(settings or {}), **of_one.get(name, {}),
                }  # fmt: skip
                kept = {key: each for key, each in given.items() if each is not None}
                run = Run(folder / name, vhosts[name], "auto", kept)
                opened.callback(run.kill)
                runs[name] = run
            return Node(runs, vhosts, ports, opened, addresses)

        yield made
