"""Brokers as processes: queues of `copy` follow queues of `original`, and those of `last` follow
`copy`, if a test starts it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, Queue
from shmbroker.ipc.instance import ordering, status
from shmbroker.ipc.instance.watch import Watch
from shmbroker.ipc.instance.whole import read_whole
from shmbroker.perf.machine.port import free_port
from tests.conftest import vhost_for_a_while
from tests.support.runs import Run

PASSWORD = "correct horse battery staple"
PATIENCE = 60.0
NAME = "orders"
NAMES = ("original", "copy", "last")
LONG = pytest.mark.skipif("SHMBROKER_LONG" not in os.environ, reason="`make crash` has it")


def content(queue: Queue) -> list[tuple[Any, ...]]:
    """With positions."""
    return [(each.position, each.body, each.key, each.priority) for each in queue.browse()]


@dataclass
class Two:
    original: Run
    copy: Run
    vhosts: dict[str, str]
    ports: dict[str, int]
    opened: ExitStack
    last: Run

    def peer_of(self, name: str) -> str:
        return f"127.0.0.1:{self.ports[name]}"

    @property
    def peer(self) -> str:
        return self.peer_of("original")

    def up(self) -> tuple[Broker, Broker]:
        self.original.start().becomes("live")
        self.copy.start().becomes("live")
        return self.connected("original"), self.connected("copy")

    def connected(self, name: str) -> Broker:
        made = shmbroker.connect(f"shm://{self.vhosts[name]}", name="test")
        return self.opened.enter_context(made)

    def orders(self, verb: str, **given: object) -> str:
        return self.orders_at(self.copy, verb, **given)

    def orders_at(self, run: Run, verb: str, **given: object) -> str:
        """Why it is not done, or nothing."""
        wanted = {"noun": "replicas", "verb": verb, "user": "test", **given}
        answer = ordering.asked(run.folder, wanted, PATIENCE)
        assert answer is not None, f"{run.said()} {run.errors()}"
        return str(answer.get("why", ""))

    def follow(self, name: str = NAME, **settings: object) -> None:
        """Made there."""
        given = {"slots": 1024, **settings}
        why = self.orders("follow", queue=name, of=self.peer, settings=given)
        assert not why, why

    def replicate(self, name: str = NAME) -> str:
        return self.orders("follow", queue=name, of=self.peer)

    def waits(self, state: str, name: str = NAME, *, at: Run | None = None) -> dict[str, Any]:
        """Until `ha replicas` shows this."""
        run = at or self.copy
        watch = Watch(run.folder / status.RUN)
        until = time.monotonic() + PATIENCE
        try:
            while True:
                rows = read_whole(run.folder / status.RUN / "replicas").get("replicas", [])
                found = next((each for each in rows if each["queue"] == name), {"state": ""})
                if found["state"] == state:
                    return found
                assert time.monotonic() < until, f"{rows} {run.said()} {run.errors()}"
                watch.wait(until - time.monotonic())
        finally:
            watch.close()

    def reaches(self, name: str) -> None:
        """Until the copy has had a link to this broker, which may be sooner than anybody looks."""
        watch = Watch(self.copy.folder / "log")
        until = time.monotonic() + PATIENCE
        try:
            while not any(
                (line["event"], line.get("state"), line.get("name")) == ("link", "up", name)
                for line in self.copy.said()
            ):
                assert time.monotonic() < until, f"{self.copy.said()} {self.copy.errors()}"
                watch.wait(until - time.monotonic())
        finally:
            watch.close()

    def equal(self, original: Queue, copy: Queue) -> None:
        """As soon as all has come; nobody uses the original."""
        until = time.monotonic() + PATIENCE
        while content(copy) != content(original):
            assert time.monotonic() < until, f"{self.copy.said()} {self.copy.errors()}"
            time.sleep(0.005)


Made = Callable[..., Two]


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Made]:
    """`original`, `copy`: options of one."""
    with ExitStack() as opened:
        vhosts = {name: opened.enter_context(vhost_for_a_while()) for name in NAMES}

        def made(
            original: Mapping[str, object] | None = None, copy: Mapping[str, object] | None = None
        ) -> Two:
            ports = {name: free_port() for name in NAMES}
            both: dict[str, object] = {
                "store.path": "data",
                "ha.queue-replication": True,
                "link-defaults.heartbeat-interval": "3s",  # a busy machine is not silent
                "credentials.copies.password": PASSWORD,
                "credentials.copies.role": "replica",
            }
            given = {
                name: both
                | {
                    "acceptors.copies.uri": f"tcp://127.0.0.1:{ports[name]}",
                    "acceptors.copies.roles": ["replica"],
                }
                for name in NAMES
            }
            given["original"] |= dict(original or {})
            given["copy"] |= dict(copy or {})
            runs = {name: Run(tmp_path / name, vhosts[name], "live", given[name]) for name in NAMES}
            for each in runs.values():
                opened.callback(each.kill)
            return Two(runs["original"], runs["copy"], vhosts, ports, opened, runs["last"])

        yield made
