"""Brokers as processes on one host, with network links between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker import Broker, Empty, Queue
from shmbroker.ipc.instance import ordering
from shmbroker.netbridge.broker.table import read
from shmbroker.perf.machine.port import free_port
from tests.conftest import vhost_for_a_while
from tests.support.runs import Run

PASSWORD = "correct horse battery staple"
PATIENCE = 60.0
DURABLE: dict[str, Any] = {"durable": True, "max_deliveries": None, "slots": 4096}


@dataclass
class Brokers:
    folder: Path
    opened: ExitStack
    runs: dict[str, Run] = field(default_factory=dict)
    vhosts: dict[str, str] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    """The addresses of those that have hosts of their own."""
    heartbeat: str = "3s"

    def __getitem__(self, name: str) -> Run:
        return self.runs[name]

    def address(self, name: str) -> str:
        host = self.hosts.get(name, "127.0.0.1")
        return f"tcp://{host}:{self.ports.setdefault(name, free_port())}"

    def add(
        self,
        name: str,
        uri: str = "",
        role: str = "live",
        *,
        shares: str = "",
        settings: Mapping[str, object] | None = None,
        **more: object,
    ) -> Run:
        """`uri`: of its link, if it has one; `more`: settings of the link, with `_` for a dash.

        `shares`: the store and the vhost of this one.
        """
        self.vhosts[name] = (
            self.vhosts[shares] if shares else self.opened.enter_context(vhost_for_a_while())
        )
        given: dict[str, object] = {
            "store.path": str(self.folder / (shares or name) / "data"),
            "credentials.site.password": PASSWORD,
            "credentials.site.role": "peering",
            "acceptors.site.uri": self.address(name),
            "acceptors.site.roles": ["peering"],
            "link-defaults.heartbeat-interval": self.heartbeat,
        }
        if uri:
            given["links.fetch.uri"] = uri
        given |= {f"links.fetch.{key.replace('_', '-')}": each for key, each in more.items()}
        given |= settings or {}
        run = self.runs[name] = Run(self.folder / name, self.vhosts[name], role, given)
        self.opened.callback(run.kill)
        return run

    def at(self, name: str) -> Broker:
        vhost = self.vhosts[name]
        return self.opened.enter_context(shmbroker.connect(f"shm://{vhost}", name="test"))

    def link(self, name: str, link: str = "fetch") -> dict[str, Any]:
        """Its row at this broker; of one that is not there yet the state is empty."""
        table = read(self.vhosts[name])
        rows = table.rows if table is not None else ()
        found = next((each for each in rows if each.text["name"] == link), None)
        return {"state": "", **(found.text | found.counters if found else {})}

    def becomes(self, name: str, state: str, link: str = "fetch") -> dict[str, Any]:
        return self.until(lambda: self.link(name, link), lambda row: row["state"] == state)

    def counts(self, name: str, messages: int, link: str = "fetch") -> None:
        """So many have come over this link: they are counted once they are in their queues."""
        self.until(lambda: self.link(name, link), lambda row: row.get("messages", -1) >= messages)
        assert self.link(name, link)["messages"] == messages

    def until(self, look: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:
        """What it is, once that holds; nothing tells when it changes."""
        late = time.monotonic() + PATIENCE
        while True:
            found = look()
            if holds(found):
                return found
            assert time.monotonic() < late, f"{found}\n{self.story()}"
            time.sleep(0.02)

    def order(self, name: str, verb: str, link: str = "fetch") -> None:
        answer = ordering.asked(self[name].folder, {"verb": verb, "name": link}, PATIENCE)
        assert answer is not None, self.story()
        assert "why" not in answer, answer

    def story(self) -> str:
        lines = [f"{line['time']} {name} {line}" for name in self.runs
                 for line in self[name].said()]  # fmt: skip
        return "\n".join([*sorted(lines), *(run.stacks() for run in self.runs.values())])


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Brokers]:
    with ExitStack() as opened:
        yield Brokers(tmp_path, opened)


@dataclass
class Two:
    """`near` fetches from `far`, for all tests of a file; each has queues of its own."""

    brokers: Brokers
    near: Broker
    far: Broker


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    with ExitStack() as opened:
        brokers = Brokers(tmp_path_factory.mktemp("two"), opened)
        yield started(brokers, exclude=["private.#"], include_static=["static.*"])


def started(brokers: Brokers, **link: object) -> Two:
    brokers.add("far").start().becomes("live")
    brokers.add("near", brokers.address("far"), **link).start().becomes("live")
    brokers.becomes("near", "up")
    return Two(brokers, brokers.at("near"), brokers.at("far"))


def consumes(queue: Queue) -> Queue:
    """From now on, until its connection is closed."""
    with pytest.raises(Empty):
        queue.get(timeout=0)
    return queue


def taken(queue: Queue, count: int, patience: float = PATIENCE) -> list[int]:
    """As many, or what comes in time."""
    found: list[int] = []
    late = time.monotonic() + patience
    while len(found) < count:
        try:
            with queue.get(timeout=max(0.0, late - time.monotonic())) as message:
                found.append(int(bytes(message.body)))
                message.ack()
        except Empty:
            break
    return found


def publishes(queue: Queue, *numbers: int) -> None:
    for each in numbers:
        queue.publish(b"%d" % each)
