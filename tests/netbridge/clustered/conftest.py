"""Brokers of a cluster as processes, on one host; all of them look for the same few."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker.ipc.instance import ordering, status
from shmbroker.ipc.instance.watch import Watch
from shmbroker.ipc.instance.whole import read_whole
from shmbroker.netbridge.clustered.shown import FILE, QUEUES_FILE
from shmbroker.perf.machine.port import free_port
from tests.conftest import vhost_for_a_while
from tests.support.runs import Run

PASSWORD = "correct horse battery staple"
PATIENCE = 60.0


@dataclass
class Cluster:
    folder: Path
    opened: ExitStack
    runs: dict[str, Run] = field(default_factory=dict)
    vhosts: dict[str, str] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)
    """Of those that have a host of their own."""
    looks_for: tuple[str, ...] = ("east",)
    """Static connectors of all; each names its own as well."""

    def __getitem__(self, name: str) -> Run:
        return self.runs[name]

    def uri(self, name: str) -> str:
        address = self.addresses.get(name, "127.0.0.1")
        return f"tcp://{address}:{self.ports.setdefault(name, free_port())}"

    def add(self, name: str, role: str = "live", *, shares: str = "", **more: object) -> Run:
        """`more`: settings, with `__` for a dot and `_` for a dash; None: not this one.

        `shares`: the store and the vhost of this one.
        """
        self.vhosts[name] = (
            self.vhosts[shares] if shares else self.opened.enter_context(vhost_for_a_while())
        )
        looks_for = dict.fromkeys([*self.looks_for, name])
        given: dict[str, object] = {
            "store.path": str(self.folder / (shares or name) / "data"),
            "cluster.town.connector": name,
            "cluster.town.user": "town",
            "cluster.town.password": PASSWORD,
            "cluster.town.static-connectors": list(looks_for),
            "cluster.town.max-hops": 0,
            "cluster.town.retry-interval": "50ms",
            "acceptors.town.uri": self.uri(name),
            "acceptors.town.roles": ["cluster"],
            "link-defaults.heartbeat-interval": "3s",
        }
        for each in looks_for:
            given[f"connectors.{each}.uri"] = self.uri(each)
        given |= {key.replace("__", ".").replace("_", "-"): each for key, each in more.items()}
        kept = {key: each for key, each in given.items() if each is not None}
        run = self.runs[name] = Run(self.folder / name, self.vhosts[name], role, kept)
        self.opened.callback(run.kill)
        return run

    def add_pair(self, name: str, **more: object) -> None:
        """A replicated node of two members, whose voters are the other lives."""
        names = (name, f"{name}2")
        addresses = {each: f"tcp://127.0.0.1:{free_port()}" for each in names}
        for each in names:
            given: dict[str, object] = {
                "store__path": "data",
                "ha__policy": "replication",
                "ha__members": [f"{member}={uri}" for member, uri in addresses.items()],
                "ha__allow-failback": False,
                "ha__replication__check-for-live-server": True,
                "ha__replication__vote-on-replication-failure": True,
                "ha__replication__vote-retry-wait": "200ms",
                "ha__replication__vote-retries": 1000,
                "ha__replication__quorum-vote-wait": "5s",
                "ha__replication__retry-replication-wait": "100ms",
                "acceptors__members__uri": addresses[each],
                "acceptors__members__roles": ["replica"],
                "credentials__members__password": PASSWORD,
                "credentials__members__role": "replica",
                **more,
            }
            self.add(each, "auto", **given)

    def starts(self, name: str) -> None:
        """A pair: the first one serves, and the second one is in sync."""
        self[name].start().becomes("live")
        self[f"{name}2"].start()
        for each in (f"{name}2", name):
            self.says(each, "in sync")

    def serves(self, *names: str) -> str:
        """Which of these serves, once one of them does."""
        late = time.monotonic() + PATIENCE
        while True:
            for name in names:
                found = self[name].status
                if found.process is not None and found.state == "live":
                    return name
            assert time.monotonic() < late, self.story()
            time.sleep(0.02)  # each of them tells it in a folder of its own

    def says(self, name: str, replication: str) -> None:
        """Waits until its line `replication` begins so."""
        watch = Watch(self[name].folder / status.RUN)
        late = time.monotonic() + PATIENCE
        try:
            while True:
                found = self[name].status
                if found.process is not None and found.replication.startswith(replication):
                    return
                assert time.monotonic() < late, self.story()
                watch.wait(late - time.monotonic())
        finally:
            watch.close()

    def publishes(self, name: str, body: bytes) -> None:
        """Confirmed as its node confirms, when this returns."""
        with shmbroker.connect(f"shm://{self.vhosts[name]}", name="test") as broker:
            broker.declare_queue("orders", durable=True).publish(body)

    def bodies(self, name: str) -> list[bytes]:
        with shmbroker.connect(f"shm://{self.vhosts[name]}", observe=True) as broker:
            return [message.body for message in broker.queue("orders").browse()]

    def told(self, name: str) -> dict[str, Any]:
        return read_whole(self[name].folder / status.RUN / FILE)

    def until(self, name: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """What this one shows, once that holds."""
        watch = Watch(self[name].folder / status.RUN)
        late = time.monotonic() + PATIENCE
        try:
            while True:
                told = self.told(name)
                if told and holds(told):
                    return told
                assert time.monotonic() < late, f"{name} says {told}\n{self.story()}"
                watch.wait(late - time.monotonic())
        finally:
            watch.close()

    def sees(self, name: str, *up: str, missing: tuple[str, ...] = ()) -> dict[str, Any]:
        wanted = {(each, "up") for each in up} | {(each, "missing") for each in missing}
        return self.until(
            name,
            lambda told: (
                wanted == {(each["name"], each["state"]) for each in told["nodes"] if each["hops"]}
            ),
        )

    def copied(
        self,
        name: str,
        holds: Callable[[set[tuple[str, str, bool]]], bool],
        exchanges: frozenset[str] = frozenset(),
    ) -> dict[str, Any]:
        """What this one shows of the queues of all, once that holds of them, and it knows bindings
        of these exchanges."""
        late = time.monotonic() + PATIENCE
        while True:
            assert self.order(name, verb="queues") == ""
            told = read_whole(self[name].folder / status.RUN / QUEUES_FILE)
            is_so = holds({(at["queue"], at["name"], at["consumed"]) for at in told["queues"]})
            if is_so and exchanges <= {at["exchange"] for at in told["bindings"]}:
                return told
            assert time.monotonic() < late, f"{name} says {told}\n{self.story()}"
            time.sleep(0.05)  # nothing tells that a board has changed

    def order(self, name: str, **given: object) -> str:
        answer = ordering.asked(self[name].folder, {"noun": "cluster", **given}, PATIENCE)
        assert answer is not None, self.story()
        return str(answer.get("why", ""))

    def refused(self, name: str) -> None:
        """Waits until a link of it was refused."""
        watch = Watch(self[name].folder / "log")
        late = time.monotonic() + PATIENCE
        try:
            while not any(line.get("state") == "refused" for line in self[name].said()):
                assert time.monotonic() < late, self.story()
                watch.wait(late - time.monotonic())
        finally:
            watch.close()

    def logged(self, name: str, state: str) -> list[dict[str, Any]]:
        return [
            line
            for line in self[name].said()
            if line["event"] == "cluster" and line["state"] == state
        ]

    def story(self) -> str:
        lines = [
            f"{line['time']} {name} {line}" for name in self.runs for line in self[name].said()
        ]
        return "\n".join([*sorted(lines), *(run.stacks() for run in self.runs.values())])


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as opened:
        yield Cluster(tmp_path, opened)
